// SPDX-License-Identifier: LGPL-2.1-or-later
#include "invariants.h"

#include <algorithm>

#include "store.h"

namespace names_model {

namespace {

bool inode_of_open_file_is_gone(const State& state, const Client& client, int ino) {
  if (is_stored(state, ino)) return false;
  return std::none_of(client.log, client.log + client.records,
                      [&](const Record& record) { return record.kind == insertion && record.ino == ino; });
}

/// While an open runs, its registration may be of an inode that is gone: it looks, and starts over.
bool is_open_through(const State& state, int client, int ino) {
  for (int thread = 0; thread < plan.programs; ++thread) {
    if (plan.client_of_thread(thread) == client && state.thread[thread].file == ino) return true;
  }
  return false;
}

}  // namespace

const char* violation(const State& state) {
  switch (state.broken) {
    case size_exposed:
      return "a rename over a file exposes one whose size is not stored";
    case batch_refused:
      return "a holder's batch is refused";
    case log_full:
      return "the log of the model is too short";
    default:
      break;
  }
  for (int directory = 1; directory < most_inodes; ++directory) {
    if (!is_there(state.inode[directory])) continue;
    for (int name = 0; name < names; ++name) {
      if (stands(state, directory, name) && !is_there(state.inode[state.inode[directory].entry[name]]))
        return "V: an entry names an inode that is missing or dead";
    }
  }
  for (int number = 0; number < most_clients; ++number) {
    const auto& client = state.client[number];
    if (client.is_over != 0 || client.is_alive == 0) continue;
    for (int ino = 1; ino < most_inodes; ++ino) {
      if (has(client.holds, ino) && !has(client.removed, ino) && is_stored(state, ino) &&
          state.inode[ino].lease != number + 1)
        return "a holder's lease is gone";
      if (is_open_through(state, number, ino) && inode_of_open_file_is_gone(state, client, ino))
        return "an open file is gone";
    }
  }
  return nullptr;
}

namespace {

void settle_all_marks(State& state) {
  for (int directory = 1; directory < most_inodes; ++directory) {
    for (int name = 0; name < names; ++name) {
      auto& inode = state.inode[directory];
      if (inode.mark[name] == 0) continue;
      if (!stands(state, directory, name)) {
        detach(state, directory, inode.entry[name], inode.mark[name] - 1);
        inode.entry[name] = 0;
      }
      inode.mark[name] = 0;
    }
  }
}

bool has_any_name(const State& state, int ino) {
  for (int directory = 1; directory < most_inodes; ++directory) {
    if (has(state.inode[ino].parents, directory) && has_name(state, directory, ino)) return true;
  }
  return false;
}

void reach(const State& state, int directory, unsigned& reached) {
  reached |= bit(directory);
  for (const u8 ino : state.inode[directory].entry) {
    if (ino == 0) continue;
    reached |= bit(ino);
    if (state.inode[ino].is_directory != 0) reach(state, ino, reached);
  }
}

void recount(State& state, int ino) {
  auto& inode = state.inode[ino];
  bool is_detached = false;
  for (auto& directory : state.inode) {
    if (!has(directory.detached, ino)) continue;
    is_detached = true;
    state.queue |= bit(ino);
    if (!is_stored(state, ino) || has_any_name(state, ino)) directory.detached &= static_cast<Inodes>(~bit(ino));
  }
  if (!is_stored(state, ino) || !(ino >= first_made || has(state.queue, ino))) return;
  if (inode.state == sealed) inode.state = is_detached ? dead : live;
  if (has_any_name(state, ino) || inode.detached != 0) return;
  for (u8& entry : inode.entry) {
    if (entry != 0) state.queue |= bit(entry);
    entry = 0;
  }
  inode.state = missing;
  for (auto& directory : state.inode) directory.detached &= static_cast<Inodes>(~bit(ino));
}

}  // namespace

const char* left_over(State state) {
  settle_all_marks(state);
  for (int round = 0; round < 8; ++round) {
    for (int ino = child; ino < most_inodes; ++ino) recount(state, ino);
  }
  unsigned reached = 0;
  reach(state, parent, reached);
  for (int ino = 1; ino < most_inodes; ++ino) {
    if (is_stored(state, ino) && !has(reached, ino)) return "Q: an inode without a name, to which nothing leads";
    if (is_stored(state, ino) && state.inode[ino].detached != 0) return "Q: a d/ key is left";
  }
  return nullptr;
}

bool is_finished(const State& state) {
  for (int thread = 0; thread < plan.programs; ++thread) {
    const auto& client = state.client[plan.client_of_thread(thread)];
    if (client.is_alive == 0 || client.is_over != 0) continue;
    if (state.thread[thread].next < plan.length(thread) || client.records != 0 || client.repeated_on != 0) return false;
  }
  return state.collector_phase == 0;
}

}  // namespace names_model
