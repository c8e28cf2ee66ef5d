// SPDX-License-Identifier: LGPL-2.1-or-later
#include "log.h"

#include <algorithm>

#include "rules.h"
#include "store.h"

namespace names_model {

bool has_records(const Client& client, int directory) {
  return std::any_of(client.log, client.log + client.records,
                     [&](const Record& record) { return record.directory == directory; });
}

bool removes(const Record& record, int ino) {
  if (record.kind == renaming) return record.replaced == ino;
  return record.kind != insertion && record.ino == ino;
}

bool is_doomed(const Client& client, int ino) {
  return std::any_of(client.log, client.log + client.records,
                     [&](const Record& record) { return removes(record, ino); });
}

bool insertions_elsewhere(const Client& client, int directory, int before) {
  return std::any_of(client.log, client.log + before, [&](const Record& record) {
    return record.kind == insertion && record.directory != directory &&
           (on(barrier_doomed) || !is_doomed(client, record.ino));
  });
}

void add_record(State& state, int client, const Record& record) {
  auto& its = state.client[client];
  if (its.records == most_records) {
    state.broken = log_full;
    return;
  }
  its.log[its.records++] = record;
}

void drop(Client& client, const Batch& batch) {
  int kept = 0;
  for (int i = 0; i < client.records; ++i) {
    if (std::find(batch.begin(), batch.end(), i) == batch.end()) client.log[kept++] = client.log[i];
  }
  for (int i = kept; i < most_records; ++i) client.log[i] = Record{};
  client.records = static_cast<u8>(kept);
}

namespace {

bool takes_a_name_away(const Record& record) {
  return record.kind == removal || record.kind == directory_removal ||
         (record.kind == renaming && record.replaced != 0);
}

/// Insertion and removal drop out, both in this batch.
bool drops_out(const Client& client, const Batch& batch, std::size_t position) {
  const int ino = client.log[batch[position]].ino;
  if (on(open_not_dropped) && has(client.open, ino)) return false;
  return std::any_of(batch.begin() + static_cast<std::ptrdiff_t>(position) + 1, batch.end(),
                     [&](int later) { return removes(client.log[later], ino); });
}

bool may_be_sent(const State& state, int number, int directory, const Batch& batch) {
  const auto& client = state.client[number];
  if (!is_stored(state, directory)) return false;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& record = client.log[batch[i]];
    if (record.kind == insertion && on(need_inode) && !is_stored(state, record.ino) && !drops_out(client, batch, i))
      return false;
    if (record.kind == directory_removal && on(need_child) && has_records(client, record.ino)) return false;
    if (record.kind == renaming && record.replaced != 0 && on(need_size) && has(client.unsized, record.ino))
      return false;
    if (on(barrier) && takes_a_name_away(record) && insertions_elsewhere(client, directory, batch[i])) return false;
  }
  return true;
}

}  // namespace

std::vector<Batch> batches(const State& state, int client, int directory) {
  const auto& its = state.client[client];
  std::vector<Batch> all;
  if (its.repeated_on == directory) return all;
  Batch batch;
  for (int i = 0; i < its.records; ++i) {
    if (its.log[i].directory != directory) continue;
    if (!on(prefix)) batch.clear();
    batch.push_back(i);
    if (may_be_sent(state, client, directory, batch)) all.push_back(batch);
  }
  return all;
}

bool apply(State& state, int number, int ino, const Batch& batch) {
  const auto& client = state.client[number];
  auto& directory = state.inode[ino];
  if (directory.state == missing || has(directory.barred, number) || directory.lease != number + 1) return false;
  for (const int i : batch) {
    const auto& record = client.log[i];
    auto& entry = directory.entry[record.name];
    switch (record.kind) {
      case insertion:
        if (is_stored(state, record.ino) || !on(need_inode)) entry = record.ino;
        break;
      case renaming:
        directory.entry[record.to] = record.ino;
        if (record.replaced != 0) detach(state, ino, record.replaced, record.operation);
        if (record.replaced != 0 && has(client.unsized, record.ino)) state.broken = size_exposed;
        entry = 0;
        break;
      default:
        entry = 0;
        detach(state, ino, record.ino, record.operation);
    }
  }
  changed(state, ino);
  return true;
}

namespace {
constexpr u8 single = 0x80;  // without the rule `prefix`: one record, by its index
}

u8 encode(const Batch& batch) {
  return static_cast<u8>(on(prefix) ? batch.size() : static_cast<unsigned>(single | batch.front()));
}

Batch decode(const Client& client, int directory, u8 code) {
  if ((code & single) != 0) return {code & ~single};
  Batch batch;
  for (int i = 0; i < client.records && batch.size() < code; ++i) {
    if (client.log[i].directory == directory) batch.push_back(i);
  }
  return batch;
}

}  // namespace names_model
