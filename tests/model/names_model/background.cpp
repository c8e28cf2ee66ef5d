// SPDX-License-Identifier: LGPL-2.1-or-later
#include "background.h"

#include <algorithm>
#include <cstring>

#include "log.h"
#include "rules.h"
#include "store.h"
#include "turn.h"

namespace names_model {

namespace {

void put(Successors& out, const State& state, const std::string& who, const std::string& words) {
  out.push_back({state, plan.with_labels ? who + words : std::string()});
}

std::string name_of_client(int client) { return plan.with_labels ? "c" + std::to_string(client) : std::string(); }

bool is_of(int thread, int client) { return plan.client_of_thread(thread) == client; }

// ---- own removals

enum RemovalPhase : u8 { none, marks_own, asks_itself, removes_own_inode };

void end_removal(Client& client) { client.removing = client.removal_phase = client.removal_stands = 0; }

/// The step that is sent. false: it was refused.
bool run_own_removal(State& state, int number) {
  auto& client = state.client[number];
  const int ino = client.removing;
  auto& inode = state.inode[ino];
  const bool stands = client.removal_stands != 0 || !on(own_guards_version);
  if (!stands || inode.state == missing || has(inode.barred, number)) return false;
  if (client.removal_phase == marks_own) {
    if (inode.state != live) return false;
    if (on(own_marks_dead)) {
      inode.state = dead;
      changed(state, ino);
    }
    client.removal_stands = 1;
    client.removal_phase = asks_itself;
    return true;
  }
  remove_inode(state, ino);
  end_removal(client);
  return true;
}

// ---- a client after its answers

class Background {
 public:
  Background(const State& before, int client, Successors& out)
      : before_(before),
        its_(before.client[client]),
        client_(client),
        who_(name_of_client(client) + " in the background: "),
        out_(out) {}

  void work() {
    store_inodes();
    store_sizes();
    for (int directory = 1; directory < most_inodes; ++directory) {
      if (has(its_.holds, directory)) send_batches(directory);
    }
    repeat_batch();
    if (plan.now->removes_own) remove_own();
    for (int directory = 1; directory < most_inodes; ++directory) {
      if (its_.asked[directory] != 0) answer_question(directory);
    }
  }

 private:
  void add(const State& state, const std::string& words) { put(out_, state, who_, words); }

  void store_inodes() {
    for (int i = 0; i < its_.records; ++i) {
      const auto& record = its_.log[i];
      if (record.kind != insertion || is_stored(before_, record.ino)) continue;
      State state = before_;
      if (create_inode(state, client_, record.operation, record.directory, true))
        add(state, "stores inode " + name_of(record.ino));
    }
  }

  void store_sizes() {
    for (int file = 1; file < most_inodes; ++file) {
      if (!has(its_.unsized, file) || !is_stored(before_, file)) continue;
      State state = before_;
      state.client[client_].unsized &= static_cast<Inodes>(~bit(file));
      state.inode[file].has_size = 1;
      changed(state, file);
      add(state, "stores the size of " + name_of(file));
    }
  }

  void send_batches(int directory) {
    for (const auto& batch : batches(before_, client_, directory)) {
      State state = before_;
      const auto words = "batch of " + std::to_string(batch.size()) + " on " + name_of(directory);
      if (!apply(state, client_, directory, batch)) {
        if (its_.is_over != 0) continue;
        state.broken = batch_refused;
        add(state, words + ", refused");
        continue;
      }
      if (before_.repeats != 0 && its_.repeated_on == 0) {
        State lost = state;
        --lost.repeats;
        lost.client[client_].repeated_on = static_cast<u8>(directory);
        lost.client[client_].repeated_batch = encode(batch);
        add(lost, words + ", and the answer is lost");
      }
      note_own(state.client[client_], batch);
      drop(state.client[client_], batch);
      add(state, words);
    }
  }

  void repeat_batch() {
    if (its_.repeated_on == 0) return;
    State state = before_;
    auto& client = state.client[client_];
    const auto batch = decode(client, client.repeated_on, client.repeated_batch);
    note_own(client, batch);
    drop(client, batch);
    client.repeated_on = client.repeated_batch = 0;
    add(state, "batch, run again");
  }

  // -- own removals (src/fs/removals.cpp)

  static void note_own(Client& client, const Batch& batch) {
    for (const int i : batch) {
      const auto& record = client.log[i];
      const int gone = record.kind == renaming ? record.replaced : record.ino;
      if (record.takes_own != 0) client.own_gone |= bit(gone);
    }
  }

  void remove_own() {
    if (its_.removing != 0) return continue_removal();
    for (int ino = 1; ino < most_inodes; ++ino) {
      if (has(its_.own_gone, ino)) begin_removal(ino);
    }
  }

  void begin_removal(int ino) {
    State state = before_;
    auto& client = state.client[client_];
    client.own_gone &= static_cast<Inodes>(~bit(ino));
    has_read(state, client_, ino);
    const auto& inode = state.inode[ino];
    const bool has_one_parent = (inode.parents & (inode.parents - 1)) == 0;
    const bool is_open = has(its_.open, ino) && on(own_asks_itself);
    if (inode.state != live || !has_one_parent || is_open) return add(state, "leaves " + name_of(ino));
    client.removing = static_cast<u8>(ino);
    client.removal_phase = marks_own;
    client.removal_stands = 1;
    add(state, "reads " + name_of(ino) + ", to remove it");
  }

  void continue_removal() {
    State state = before_;
    auto& client = state.client[client_];
    const auto name = name_of(its_.removing);
    if (its_.removal_phase == asks_itself) {
      client.removal_phase = removes_own_inode;
      if (has(its_.open, its_.removing) && on(own_asks_itself)) end_removal(client);
      return add(state, "looks whether " + name + " is open here");
    }
    const bool marks = its_.removal_phase == marks_own;
    if (!run_own_removal(state, client_)) end_removal(client);
    add(state, (marks ? "marks dead, of its own, " : "removes, of its own, ") + name);
  }

  // -- questions

  bool is_taking(int directory) const {
    for (int thread = 0; thread < plan.programs; ++thread) {
      const auto& one = before_.thread[thread];
      if (!is_of(thread, client_) || one.ino != directory) continue;
      const bool taken = one.phase == read_what_is_held || one.phase == read_parents || one.phase == bury;
      const bool in_doubt =
          one.repeats != 0 && (one.phase == take || one.phase == take_over || one.phase == take_empty);
      if (taken || in_doubt) return true;
    }
    return false;
  }

  bool a_request_locks(int directory) const {
    for (int thread = 0; thread < plan.programs; ++thread) {
      const auto& one = before_.thread[thread];
      if (is_of(thread, client_) && one.in_kernel != 0 && has(one.locks, directory)) return true;
    }
    return false;
  }

  void answer_question(int directory) {
    if (!has(its_.holds, directory)) {
      if (is_taking(directory)) return;
      State state = before_;
      state.client[client_].asked[directory] = 0;
      return add(state, "answers: it does not hold " + name_of(directory));
    }
    if (plan.now->has_kernel && on(tell_kernel) && !has(its_.told, directory)) return tell(directory);
    give_back(directory);
  }

  void tell(int directory) {
    if (a_request_locks(directory)) return;
    State state = before_;
    auto& client = state.client[client_];
    client.told |= bit(directory);
    for (int name = 0; name < names; ++name) {
      if (has(client.told_names[directory], name)) client.kernel[directory][name] = 0;
    }
    client.told_names[directory] = 0;
    forget_attributes(state, directory);
    add(state, "tells the kernel of " + name_of(directory));
  }

  void forget_attributes(State& state, int directory) const {
    for (int ino = 0; ino < most_inodes; ++ino) {
      const bool is_there = has(state.inode[ino].parents, directory) || !is_stored(state, ino);
      if (is_there) state.client[client_].own &= static_cast<Inodes>(~bit(ino));
    }
  }

  void give_back(int directory) {
    if (on(drain) && has_records(its_, directory)) return;
    const bool removal_waits = std::any_of(its_.log, its_.log + its_.records, [&](const Record& record) {
      return record.kind == directory_removal && record.ino == directory;
    });
    if (removal_waits && on(removal_stored_first)) return;
    const bool was_removed = has(its_.removed, directory);
    if (!is_stored(before_, directory) && !was_removed) return;
    State state = before_;
    auto& inode = state.inode[directory];
    if (has(inode.barred, client_)) return;
    if (inode.lease == client_ + 1) {
      inode.lease = 0;
      if (was_removed && on(removal_marks_dead) && inode.state != missing) inode.state = dead;
      changed(state, directory);
    }
    if (on(tell_kernel)) forget_attributes(state, directory);
    lose(state, directory);
    add(state, "releases " + name_of(directory));
  }

  void lose(State& state, int directory) const {
    auto& client = state.client[client_];
    const auto rest = static_cast<Inodes>(~bit(directory));
    client.holds &= rest;
    client.removed &= rest;
    client.own_gone = 0;
    client.told &= rest;
    client.asked[directory] = 0;
    client.known[directory] = 0;
    if (on(tell_kernel)) client.told_names[directory] = 0;
    std::memset(client.memory[directory], 0, names);
    for (int thread = 0; thread < plan.programs; ++thread) {
      if (!is_of(thread, client_)) continue;
      auto& its = state.thread[thread];
      if (its.next >= plan.length(thread)) continue;
      const int operation = plan.first[thread] + its.next;
      const bool reads_it = its.phase == name_is_read && its.awaited == directory;
      const bool is_first = state.directory[operation] == directory && has(its.guards_own, 0);
      const bool is_second = state.other_directory[operation] == directory && has(its.guards_own, 1);
      if (is_first) its.guards_own |= bit(2);
      if (is_second) its.guards_own |= bit(3);
      if (!on(keep_same_tenure)) continue;
      if (reads_it || (is_first && !two_directories(plan.operation(operation).kind))) its.keeps = 0;
      if (is_second) its.keeps &= static_cast<u8>(~2U);
    }
  }

  const State& before_;
  const Client& its_;
  const int client_;
  const std::string who_;
  Successors& out_;
};

// ---- crashes

int only_thread_of(int client) {
  int thread = 0;
  while (!is_of(thread, client)) ++thread;
  return thread;
}

/// A crashed client is only what it has on the way.
void tidy(State& state, int number) {
  auto& client = state.client[number];
  auto& thread = state.thread[only_thread_of(number)];
  const bool has_batches =
      std::any_of(client.late_batch, client.late_batch + most_inodes, [](u8 code) { return code != 0; });
  if (thread.late != 0 || client.late_inodes != 0 || has_batches) return;
  std::memset(client.log, 0, sizeof client.log);
  client.records = 0;
  Thread rest{};
  rest.next = thread.next;
  thread = rest;
}

/// What of the log is on the way: inode writes, and of each directory one batch or none.
std::vector<State> with_late_batches(const State& before, const State& crashed, int number) {
  std::vector<State> all{crashed};
  for (int directory = 1; directory < most_inodes; ++directory) {
    const auto& client = before.client[number];
    if (!has(client.holds, directory) || client.repeated_on == directory) continue;
    std::vector<State> more = all;
    for (const auto& state : all) {
      for (const auto& batch : batches(before, number, directory)) {
        more.push_back(state);
        more.back().client[number].late_batch[directory] = encode(batch);
      }
    }
    all = more;
  }
  return all;
}

void crash(const State& before, int number, Successors& out) {
  State crashed = before;
  --crashed.crashes;
  auto& client = crashed.client[number];
  const int its_thread = only_thread_of(number);
  auto& thread = crashed.thread[its_thread];
  client.is_alive = 0;
  const bool runs_step = thread.next < plan.length(its_thread) && is_step(thread.phase);
  thread.late = runs_step && (thread.repeats == 0 || !on(step_number)) ? 1 : 0;
  for (int i = 0; i < client.records; ++i) {
    if (client.log[i].kind == insertion && !is_stored(crashed, client.log[i].ino))
      client.late_inodes |= bit(client.log[i].ino);
  }
  for (auto& state : with_late_batches(before, crashed, number)) {
    auto& rest = state.client[number];
    Client kept{};
    kept.is_over = rest.is_over;
    kept.knows_over = rest.knows_over;
    kept.unsized = rest.unsized;
    kept.late_inodes = rest.late_inodes;
    kept.records = rest.records;
    if (rest.removal_phase == marks_own || rest.removal_phase == removes_own_inode) {
      kept.removing = rest.removing;
      kept.removal_phase = rest.removal_phase;
      kept.removal_stands = rest.removal_stands;
    }
    std::memcpy(kept.log, rest.log, sizeof kept.log);
    std::memcpy(kept.late_batch, rest.late_batch, sizeof kept.late_batch);
    rest = kept;
    state.thread[its_thread].in_kernel = state.thread[its_thread].repeats = 0;
    state.thread[its_thread].locks = 0;
    tidy(state, number);
    put(out, state, name_of_client(number), " CRASHES");
  }
}

u8 directory_of_insertion(const Client& client, int ino) {
  for (int i = 0; i < client.records; ++i) {
    if (client.log[i].kind == insertion && client.log[i].ino == ino) return client.log[i].directory;
  }
  return parent;
}

void late_steps(const State& before, int number, Successors& out) {
  const auto& client = before.client[number];
  const int thread = only_thread_of(number);
  const auto who = "late step of " + name_of_client(number) + ": ";
  if (client.is_over == 0) {
    State state = before;
    state.client[number].is_over = 1;
    put(out, state, name_of_client(number), " is fenced");
  }
  if (before.thread[thread].late != 0) {
    State state = before;
    state.thread[thread].late = 0;
    if (run_step(state, thread)) {
      tidy(state, number);
      put(out, state, who, "the one that was under way");
    }
  }
  if (client.removing != 0) {
    State state = before;
    if (run_own_removal(state, number)) {
      end_removal(state.client[number]);
      put(out, state, who, "of an own removal");
    }
  }
  for (int ino = 1; ino < most_inodes; ++ino) {
    if (has(client.late_inodes, ino)) {
      State state = before;
      state.client[number].late_inodes &= static_cast<Inodes>(~bit(ino));
      if (create_inode(state, number, ino - first_made, directory_of_insertion(client, ino), true)) {
        tidy(state, number);
        put(out, state, who, "inode " + name_of(ino));
      }
    }
    if (client.late_batch[ino] != 0) {
      State state = before;
      state.client[number].late_batch[ino] = 0;
      if (apply(state, number, ino, decode(client, ino, client.late_batch[ino]))) {
        tidy(state, number);
        put(out, state, who, "batch on " + name_of(ino));
      }
    }
  }
}

// ---- a collector: one inode at a time

enum CollectorPhase : u8 { idle, counts_names, marks, removes_it };

class Collector {
 public:
  Collector(const State& before, Successors& out)
      : before_(before), state_(before), out_(out), ino_(before.collected) {}

  void work() {
    switch (before_.collector_phase) {
      case idle:
        return look();
      case counts_names:
        return count();
      case marks:
        return mark();
      default:
        return remove();
    }
  }

 private:
  void add(const char* words, int ino) { put(out_, state_, "collector ", words + name_of(ino)); }
  void see(int ino) {
    if (on(fence)) state_.inode[ino].barred |= those_over(state_);
  }
  void end() { state_.collector_phase = state_.collected = state_.collector_stands = state_.collector_parent = 0; }

  void look() {
    if (before_.collections == 0) return;
    for (int ino = child; ino < most_inodes; ++ino) {
      const auto& inode = before_.inode[ino];
      if (inode.state == missing || inode.state == sealed || !are_retired(before_, inode.traces)) continue;
      state_ = before_;
      --state_.collections;
      state_.collected = static_cast<u8>(ino);
      state_.collector_stands = 1;
      state_.collector_phase = counts_names;
      state_.collector_parent = 1;
      see(ino);
      add("reads ", ino);
    }
  }

  void count() {
    int directory = before_.collector_parent;
    while (directory < most_inodes && !has(before_.inode[ino_].parents, directory)) ++directory;
    if (directory == most_inodes) {
      state_.collector_phase = before_.inode[ino_].state == dead ? removes_it : marks;
      return add("finds no name of ", ino_);
    }
    see(directory);
    state_.collector_parent = static_cast<u8>(directory + 1);
    if (has_name(state_, directory, ino_)) end();
    add("reads a parent of ", ino_);
  }

  void mark() {
    auto& inode = state_.inode[ino_];
    if (before_.collector_stands == 0 || inode.state != live) {
      end();
    } else {
      inode.state = dead;
      changed(state_, ino_);
      state_.collector_stands = 1;
      state_.collector_phase = removes_it;
    }
    add("marks dead ", ino_);
  }

  bool is_open() const {
    return std::any_of(before_.client, before_.client + most_clients, [&](const Client& client) {
      return client.is_alive != 0 && client.is_over == 0 && has(client.open, ino_);
    });
  }

  void remove() {
    if (before_.collector_stands == 0 || before_.inode[ino_].detached != 0 || (is_open() && on(ask_who_has_open))) {
      end();
      return add("leaves ", ino_);
    }
    remove_inode(state_, ino_);
    const int removed = ino_;
    end();
    add("removes ", removed);
  }

  const State& before_;
  State state_;
  Successors& out_;
  const int ino_;
};

void evict(const State& before, int client, Successors& out) {
  State state = before;
  --state.evictions;
  state.client[client].is_over = state.client[client].stood_still = 1;
  put(out, state, name_of_client(client), " stands still, is evicted, and does not know");
}

}  // namespace

void successors(const State& state, Successors& out) {
  for (int thread = 0; thread < plan.programs; ++thread) {
    const auto& client = state.client[plan.client_of_thread(thread)];
    if (client.is_alive != 0 && client.is_told == 0 && state.thread[thread].next < plan.length(thread))
      play(state, thread, out);
  }
  for (int client = 0; client < most_clients; ++client) {
    const bool takes_part = std::any_of(plan.now->programs.begin(), plan.now->programs.end(),
                                        [&](const Program& program) { return program.client == client; });
    if (!takes_part) continue;
    if (state.client[client].is_alive == 0) {
      late_steps(state, client, out);
      continue;
    }
    if (state.client[client].is_told != 0) continue;
    Background(state, client, out).work();
    if (state.crashes != 0 && has(plan.now->may_crash, client)) crash(state, client, out);
    if (state.evictions != 0 && state.client[client].is_over == 0) evict(state, client, out);
  }
  Collector(state, out).work();
}

}  // namespace names_model
