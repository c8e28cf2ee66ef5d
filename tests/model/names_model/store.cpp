// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store.h"

#include <algorithm>

#include "rules.h"

namespace names_model {

Clients those_over(const State& state) {
  unsigned over = 0;
  for (int client = 0; client < most_clients; ++client) {
    if (state.client[client].is_over != 0) over |= bit(client);
  }
  return static_cast<Clients>(over);
}

void changed(State& state, int ino) {
  for (auto& thread : state.thread) {
    if (thread.snapshot == ino) thread.snapshot_stands = 0;
  }
  if (state.collected == ino) state.collector_stands = 0;
  for (auto& client : state.client) {
    if (client.removing == ino) client.removal_stands = 0;
  }
}

void has_read(State& state, int client, int ino) {
  if (on(fence)) state.inode[ino].barred |= state.client[client].knows_over & those_over(state);
}

void detach(State& state, int directory, int ino, int operation) {
  if (!is_stored(state, ino)) return;
  state.inode[directory].detached |= bit(ino);
  state.inode[ino].traces |= bit(operation);
}

void remove_inode(State& state, int ino) {
  auto& inode = state.inode[ino];
  for (const u8 entry : inode.entry) {
    if (entry != 0) state.queue |= bit(entry);
  }
  const auto barred = inode.barred;
  inode = Inode{};
  inode.barred = barred;
  changed(state, ino);
  for (auto& directory : state.inode) directory.detached &= static_cast<Inodes>(~bit(ino));
}

bool stands(const State& state, int directory, int name) {
  const auto& inode = state.inode[directory];
  if (inode.entry[name] == 0) return false;
  if (inode.mark[name] == 0) return true;
  const int move = inode.mark[name] - 1;
  return !has(state.inode[state.other_directory[move]].committed, move);
}

bool has_name(const State& state, int directory, int ino) {
  const auto& inode = state.inode[directory];
  if (inode.state == missing) return false;
  return std::find(inode.entry, inode.entry + names, ino) != inode.entry + names;
}

bool is_empty(const Inode& directory) {
  return std::all_of(directory.entry, directory.entry + names, [](u8 ino) { return ino == 0; });
}

namespace {

bool is_retired(const State& state, int operation) {
  const auto& client = state.client[plan.client_of(operation)];
  if (client.is_over != 0) return true;
  if (client.is_alive == 0 || !has(state.done, operation)) return false;
  if (!on(rely_on_token)) return true;
  return std::none_of(client.log, client.log + client.records,
                      [&](const Record& record) { return record.operation == operation; });
}

}  // namespace

bool are_retired(const State& state, Operations operations) {
  for (int operation = 0; operation < plan.operations(); ++operation) {
    if (has(operations, operation) && !is_retired(state, operation)) return false;
  }
  return true;
}

bool create_inode(State& state, int client, int operation, int directory, bool is_leased) {
  const int ino = first_made + operation;
  auto& inode = state.inode[ino];
  if (inode.state != missing || has(inode.barred, client)) return false;
  inode.state = live;
  inode.is_directory = plan.operation(operation).kind == op_mkdir;
  inode.lease = static_cast<u8>(inode.is_directory != 0 && is_leased ? client + 1 : 0);
  inode.parents = bit(directory);
  inode.traces = static_cast<Operations>(bit(operation));
  inode.has_size = 0;
  changed(state, ino);
  return true;
}

namespace {

class Step {
 public:
  Step(State& state, int thread)
      : state_(state),
        client_(plan.client_of_thread(thread)),
        number_(plan.first[thread] + state.thread[thread].next),
        operation_(plan.operation(number_)),
        thread_(state.thread[thread]),
        directory_(state.directory[number_]),
        other_(state.other_directory[number_]) {}

  bool is_barred() const {
    const int ino = thread_.phase == make_inode ? first_made + number_ : object();
    return has(state_.inode[ino].barred, client_);
  }

  bool run() {
    if (thread_.phase == make_inode) {
      return create_inode(state_, client_, number_, directory_, plan.now->takes[client_] != never);
    }
    const int ino = object();
    auto& inode = state_.inode[ino];
    if (has(inode.barred, client_) || inode.state == missing) return false;
    if (!apply(inode, ino)) return false;
    changed(state_, ino);
    return true;
  }

 private:
  int object() const {
    switch (thread_.phase) {
      case change_entry:
        return operation_.kind == op_link ? other_ : directory_;
      case set_mark:
      case move_out:
      case clear_mark:
        return directory_;
      case commit_move:
      case cancel_own:
        return other_;
      case cancel_seal:
        return state_.directory[thread_.other - 1];
      case cancel_mark:
        return state_.other_directory[thread_.other - 1];
      case end_mark:
        return thread_.awaited;
      default:
        return thread_.ino;
    }
  }

  /// The guard of who holds the directory, or does not, as the step was built.
  bool lease_is(const Inode& inode, int which) const {
    if (!on(guard_lease)) return true;
    if (on(guard_tenure) && has(thread_.guards_own, which + 2)) return false;
    return inode.lease == (has(thread_.guards_own, which) ? client_ + 1 : 0);
  }
  bool snapshot_stands(int ino) const { return thread_.snapshot_stands != 0 && thread_.snapshot == ino; }

  bool apply(Inode& inode, int ino) {
    switch (thread_.phase) {
      case change_entry:
        return operation_.kind == op_link ? insert_link(inode) : change(inode);
      case seal:
        return set_seal(inode, ino);
      case unseal:
        return take_seal_back(inode);
      case take_empty:
        if (on(take_child_version) && !snapshot_stands(ino)) return false;
        return lease(inode, inode.state == live);
      case take:
        return lease(inode, inode.state == live || !on(take_live));
      case take_over:
        if (inode.lease != thread_.other) return false;
        inode.lease = static_cast<u8>(client_ + 1);
        return true;
      case bury:
        if (inode.lease != client_ + 1) return false;
        inode.state = dead;
        inode.lease = 0;
        return true;
      case cancel_seal:
        return decide_seal(inode);
      case end_seal:
        if (inode.state != sealed || inode.sealer != thread_.other) return false;
        inode.state = thread_.outcome != 0 ? dead : live;
        inode.sealer = 0;
        return true;
      case change_attributes:
        inode.attributes = static_cast<u8>(number_ + 1);
        return true;
      default:
        return apply_move(inode, ino);
    }
  }

  bool lease(Inode& inode, bool may_be_leased) const {
    if (!may_be_leased || inode.lease != 0) return false;
    inode.lease = static_cast<u8>(client_ + 1);
    return true;
  }

  bool change(Inode& inode) {
    if (!lease_is(inode, 0)) return false;
    auto& entry = inode.entry[operation_.name];
    if (inode.mark[operation_.name] != 0) return false;
    switch (operation_.kind) {
      case op_create:
      case op_mkdir:
        if (inode.state != live || entry != 0) return false;
        entry = static_cast<u8>(first_made + number_);
        return true;
      case op_rename:
        if (entry != thread_.ino || inode.entry[operation_.to] != thread_.other || inode.mark[operation_.to] != 0)
          return false;
        inode.entry[operation_.to] = thread_.ino;
        if (thread_.other != 0) detach(state_, directory_, thread_.other, number_);
        entry = 0;
        return true;
      default:
        if (entry != thread_.ino || has(inode.cancelled, number_)) return false;
        entry = 0;
        detach(state_, directory_, thread_.ino, number_);
        return true;
    }
  }

  bool insert_link(Inode& inode) const {
    if (!lease_is(inode, 1) || inode.state != live || inode.entry[operation_.to] != 0) return false;
    inode.entry[operation_.to] = thread_.ino;
    return true;
  }

  bool set_seal(Inode& inode, int ino) const {
    if (inode.state != live || (on(seal_version) && !snapshot_stands(ino))) return false;
    if (on(seal_unleased) && inode.lease != 0 && inode.lease != client_ + 1) return false;
    inode.state = sealed;
    inode.sealer = static_cast<u8>(number_ + 1);
    state_.queue |= bit(ino);
    return true;
  }

  bool take_seal_back(Inode& inode) const {
    if (inode.state != sealed || inode.sealer != number_ + 1) return false;
    inode.state = live;
    inode.sealer = 0;
    return true;
  }

  /// Sets `outcome`: whether the sealed directory has lost its name.
  bool decide_seal(Inode& inode) {
    thread_.outcome = has(inode.detached, thread_.ino) ? 1 : 0;
    if (thread_.outcome == 0) inode.cancelled |= bit(thread_.other - 1);
    return true;
  }

  bool apply_move(Inode& inode, int ino) {
    switch (thread_.phase) {
      case point_to:
        if (inode.state != live) return false;
        inode.parents |= bit(other_);
        inode.traces |= bit(number_);
        return true;
      case set_mark:
        if (!lease_is(inode, 0) || inode.entry[operation_.name] != thread_.ino || inode.mark[operation_.name] != 0)
          return false;
        inode.mark[operation_.name] = static_cast<u8>(number_ + 1);
        return true;
      case commit_move:
        return commit(inode);
      case move_out:
        if (inode.mark[operation_.name] != number_ + 1) return false;
        leave(inode, operation_.name, number_);
        return true;
      case clear_mark:
        if (inode.mark[operation_.name] != number_ + 1) return false;
        inode.mark[operation_.name] = 0;
        return true;
      case cancel_own:
        inode.cancelled |= bit(number_);
        return true;
      case cancel_mark:
        thread_.outcome = has(inode.committed, thread_.other - 1) ? 1 : 0;
        if (thread_.outcome == 0) inode.cancelled |= bit(thread_.other - 1);
        return true;
      case end_mark:
        return settle_mark(inode);
      default:
        static_cast<void>(ino);
        return false;
    }
  }

  bool commit(Inode& inode) {
    if (!lease_is(inode, 1) || inode.state != live || has(inode.cancelled, number_)) return false;
    if (inode.entry[operation_.to] != thread_.other || inode.mark[operation_.to] != 0) return false;
    inode.entry[operation_.to] = thread_.ino;
    inode.committed |= bit(number_);
    if (thread_.other != 0) detach(state_, other_, thread_.other, number_);
    return true;
  }

  bool settle_mark(Inode& inode) {
    const int name = thread_.settles_name;
    if (inode.mark[name] != thread_.other) return false;
    if (thread_.outcome != 0) {
      leave(inode, name, thread_.other - 1);
    } else {
      inode.mark[name] = 0;
    }
    return true;
  }

  void leave(Inode& inode, int name, int move) {
    const int directory = static_cast<int>(&inode - state_.inode);
    detach(state_, directory, inode.entry[name], move);
    inode.entry[name] = 0;
    inode.mark[name] = 0;
  }

  State& state_;
  const int client_, number_;
  const Operation& operation_;
  Thread& thread_;
  const int directory_, other_;
};

}  // namespace

bool run_step(State& state, int thread) { return Step(state, thread).run(); }

bool step_is_barred(const State& state, int thread) {
  State same = state;
  return Step(same, thread).is_barred();
}

}  // namespace names_model
