// SPDX-License-Identifier: LGPL-2.1-or-later
#include "turn.h"

#include <algorithm>
#include <cstring>

#include "log.h"
#include "rules.h"

namespace names_model {

namespace {
constexpr u8 all_names = (1U << names) - 1;
constexpr u8 known_to_be_missing = 1;
}  // namespace

Turn::Turn(const State& before, int thread, Successors& out)
    : state_(before),
      index_(thread),
      client_(plan.client_of_thread(thread)),
      number_(plan.first[thread] + before.thread[thread].next),
      operation_(plan.operation(number_)),
      me_(state_.thread[thread]),
      mine_(state_.client[client_]),
      takes_(plan.now->takes[client_]),
      out_(out) {}

void play(const State& before, int thread, Successors& out) { Turn(before, thread, out).play(); }

void Turn::put(const std::string& words) {
  std::string label;
  if (plan.with_labels) label = "c" + std::to_string(client_) + " " + describe(operation_) + ": " + words;
  out_.push_back({state_, label});
}

void Turn::go(u8 phase, const char* words) {
  me_.phase = phase;
  put(words);
}

void Turn::answer(u8 result) {
  state_.result[number_] = result;
  state_.done |= bit(number_);
  Thread fresh{};
  fresh.next = static_cast<u8>(me_.next + 1);
  fresh.child = me_.child;
  fresh.file = me_.file;
  me_ = fresh;
}

/// An inode that it has made meanwhile goes.
void Turn::refuse(u8 result) {
  if (me_.made != 0) {
    auto& inode = state_.inode[first_made + number_];
    const auto barred = inode.barred;
    inode = Inode{};
    inode.barred = barred;
    changed(state_, first_made + number_);
  }
  answer(result);
}

void Turn::say(u8 result) {
  static const char* const words[] = {"", "done", "EEXIST", "ENOENT", "ENOTEMPTY", "again"};
  refuse(result);
  if (result < found) {
    put(std::string("answers ") + words[result]);
  } else if (result < attributes_are) {
    put("answers " + name_of(result - found));
  } else {
    put("answers attributes " + std::to_string(result - attributes_are));
  }
}

void Turn::begin() {
  state_.started |= bit(number_);
  state_.before[number_] = state_.done;
  state_.directory[number_] = operation_.directory == parent ? parent : me_.child;
  state_.other_directory[number_] = operation_.directory == parent ? me_.child : parent;
}

void Turn::play() {
  if (!has(state_.started, number_)) begin();
  directory_ = state_.directory[number_];
  other_ = state_.other_directory[number_];
  if (plan.now->has_kernel && me_.in_kernel == 0 && enter_kernel()) return;
  if (is_step(me_.phase)) return take_a_step();
  play_phase();
}

// ---- the kernel

/// The directories that the kernel locks until the request is answered.
Inodes Turn::locked_by_kernel() const {
  switch (operation_.kind) {
    case op_link:
      return bit(other_);
    case op_move:
      return bit(directory_) | bit(other_);
    case op_rmdir: {
      const bool knows = holds(directory_) && has(mine_.known[directory_], operation_.name);
      const auto removed =
          knows ? mine_.memory[directory_][operation_.name] : state_.inode[directory_].entry[operation_.name];
      return bit(directory_) | (removed != 0 ? bit(removed) : 0);
    }
    default:
      return changes_names(operation_.kind) ? bit(directory_) : 0;
  }
}

bool Turn::other_request_locks() const {
  for (int thread = 0; thread < plan.programs; ++thread) {
    if (thread == index_ || plan.client_of_thread(thread) != client_) continue;
    if (state_.thread[thread].in_kernel != 0 && (state_.thread[thread].locks & locked_by_kernel()) != 0) return true;
  }
  return false;
}

/// true: that is all for this turn.
bool Turn::enter_kernel() {
  if (operation_.kind == op_lookup && directory_ != 0) {
    const auto known = mine_.kernel[directory_][operation_.name];
    if (known != 0) {
      answer(known == known_to_be_missing ? u8{no_entry} : static_cast<u8>(found + known - 1));
      put("answered by the kernel");
      return true;
    }
  }
  if (changes_names(operation_.kind) && other_request_locks()) return true;
  me_.in_kernel = 1;
  me_.locks = locked_by_kernel();
  if (me_.locks == 0) return false;
  put("the kernel locks and asks");
  return true;
}

void Turn::kernel_learns(int directory, int name, u8 ino) {
  if (!plan.now->has_kernel) return;
  const bool may_last = holds(directory) && (mine_.asked[directory] == 0 || !on(short_when_asked));
  mine_.kernel[directory][name] = may_last ? static_cast<u8>(ino == 0 ? known_to_be_missing : ino + 1) : 0;
  if (may_last) mine_.told_names[directory] |= bit(name);
}

/// The name takes its time-out along.
void Turn::kernel_renames(int directory, int name, int to_directory, int to) {
  if (!plan.now->has_kernel) return;
  auto& from = mine_.kernel[directory][name];
  mine_.kernel[to_directory][to] = from > known_to_be_missing ? from : 0;
  if (from > known_to_be_missing && on(tell_new_name)) mine_.told_names[to_directory] |= bit(to);
  from = 0;
}

// ---- what a client knows

void hold(State& state, int client, int directory) {
  auto& its = state.client[client];
  its.holds |= bit(directory);
  its.removed &= static_cast<Inodes>(~bit(directory));
  its.known[directory] = 0;
  std::memset(its.memory[directory], 0, names);
}

void Turn::outdate_reads(int directory, int name) {
  if (!on(keep_if_unchanged)) return;
  for (int thread = 0; thread < plan.programs; ++thread) {
    auto& its = state_.thread[thread];
    const bool reads_it = its.phase == name_is_read && its.awaited == directory && its.settles_name == name;
    if (plan.client_of_thread(thread) == client_ && reads_it) its.keeps = 0;
  }
}

void Turn::learn(int directory, int name, u8 ino) {
  mine_.memory[directory][name] = ino;
  mine_.known[directory] |= bit(name);
  outdate_reads(directory, name);
}

void Turn::forget(int directory, int name) {
  mine_.memory[directory][name] = 0;
  mine_.known[directory] &= static_cast<u8>(~bit(name));
  outdate_reads(directory, name);
}

/// Whether the step that a program of this client has on the way changes, or marks, that name of a directory that is
/// held, in the tenure that it guards. Answers the bit of `keeps`: 1 for its name, 2 for its new name; 0: it does not.
u8 Turn::step_changes(int thread, int directory, int name) const {
  const auto& its = state_.thread[thread];
  const bool changes = its.phase == change_entry || its.phase == set_mark || its.phase == commit_move;
  if (plan.client_of_thread(thread) != client_ || !changes) return 0;
  const int number = plan.first[thread] + its.next;
  const auto& operation = plan.operation(number);
  const bool is_there = two_directories(operation.kind) && its.phase != set_mark;
  if ((is_there ? state_.other_directory : state_.directory)[number] != directory) return 0;
  const int guarded = is_there ? 1 : 0;
  if (!has(its.guards_own, guarded) || has(its.guards_own, guarded + 2)) return 0;
  const bool is_name = !is_there && operation.name == name;
  const bool is_new_name = (is_there || operation.kind == op_rename) && operation.to == name;
  return static_cast<u8>((is_name ? 1 : 0) | (is_new_name ? 2 : 0));
}

/// By a step that may be applied, and was not answered yet.
bool Turn::is_hidden(int directory, int name) const {
  for (int thread = 0; thread < plan.programs; ++thread) {
    const auto phase = state_.thread[thread].phase;
    const bool hides = phase == commit_move ? on(hide_target) : phase == change_entry && on(hide);
    if (hides && step_changes(thread, directory, name) != 0) return true;
  }
  return false;
}

/// Its step was applied: earlier ones, of which the answer comes later, say nothing of these names any more.
void Turn::outdate_answers() {
  if (!on(newest_counts)) return;
  for (int thread = 0; thread < plan.programs; ++thread) {
    auto& its = state_.thread[thread];
    if (thread == index_ || its.repeats == 0) continue;
    for (const int directory : {directory_, other_}) {
      for (int name = 0; name < names; ++name) {
        if (step_changes(index_, directory, name) == 0) continue;
        its.keeps &= static_cast<u8>(~step_changes(thread, directory, name));
      }
    }
  }
}

/// Of a directory that is held here. false: it is being read, and that is all for this turn.
bool Turn::knows(int directory, int name) {
  if (has(mine_.known[directory], name) && !is_hidden(directory, name)) return true;
  has_read(state_, client_, directory);
  if (on(keep_no_marked)) {
    const bool stays = !changes_names(operation_.kind);
    if (stays ? reads_marked(directory, name) : settles_mark(directory, name)) return false;
  }
  me_.outcome = state_.inode[directory].entry[name];
  me_.awaited = static_cast<u8>(directory);
  me_.settles_name = static_cast<u8>(name);
  me_.keeps = 1;
  go(name_is_read, "reads the name");
  return false;
}

/// What may not be kept, or is hidden, answers a lookup all the same.
void Turn::keep_name() {
  const bool may_be_kept = holds(me_.awaited) && me_.keeps != 0;
  if (may_be_kept) {
    mine_.memory[me_.awaited][me_.settles_name] = me_.outcome;
    mine_.known[me_.awaited] |= bit(me_.settles_name);
  }
  const bool is_visible = may_be_kept && !is_hidden(me_.awaited, me_.settles_name);
  if (!is_visible && operation_.kind == op_lookup && !plan.now->has_kernel) {
    if (me_.outcome != 0 && operation_.name == 2) me_.child = me_.outcome;
    return say(me_.outcome != 0 ? static_cast<u8>(found + me_.outcome) : u8{no_entry});
  }
  go(starting, "has the answer");
}

/// Changes of a directory that somebody asks for.
bool Turn::waits_for_recall(int directory) const {
  if (mine_.asked[directory] == 0) return false;
  return !plan.now->has_kernel || !on(hold_back_after_telling) || has(mine_.told, directory);
}

// ---- leases

void Turn::ask_for(int directory, int holder) {
  state_.client[holder].asked[directory] |= static_cast<Clients>(bit(client_));
  me_.phase = waiting;
  me_.awaited = static_cast<u8>(directory);
  me_.holder = static_cast<u8>(holder);
}

/// It was read just now, and its lease is another's: that is dealt with first. false: it is nobody's, or does not
/// matter.
bool Turn::in_conflict(int directory, bool reads_only) {
  if (reads_only && !plan.now->readers_ask()) return false;
  const int holder = state_.inode[directory].lease - 1;
  if (holder < 0 || holder == client_) return false;
  auto& its = state_.client[holder];
  if (its.is_over != 0 || (!on(fence) && its.is_alive == 0)) {
    if (!has(mine_.knows_over, holder)) {
      mine_.knows_over |= static_cast<Clients>(bit(holder));
      me_.phase = starting;
      if (on(fence)) {
        put("syncs fences");
        return true;
      }
    }
    if (reads_only) return false;
    me_.ino = static_cast<u8>(directory);
    me_.other = static_cast<u8>(holder + 1);
    go(take_over, "the holder is expired");
    return true;
  }
  if (reads_only && !on(ask)) return false;
  ask_for(directory, holder);
  put("asks c" + std::to_string(holder) + " for " + name_of(directory));
  return true;
}

void Turn::wait_for_holder() {
  auto& holder = state_.client[me_.holder];
  if (holder.is_over != 0) {
    mine_.knows_over |= static_cast<Clients>(bit(me_.holder));
    holder.asked[me_.awaited] &= static_cast<Clients>(~bit(client_));
    return go(starting, "the holder is expired");
  }
  if (!on(fence) && holder.is_alive == 0) return go(starting, "the holder is silent");
  if (!has(holder.asked[me_.awaited], client_)) return go(starting, "was answered");
  if (me_.in_kernel == 0 || !on(give_way)) return;
  for (int directory = 1; directory < most_inodes; ++directory) {
    if (!has(me_.locks, directory) || mine_.asked[directory] == 0 || !holds(directory)) continue;
    if (has(mine_.told, directory)) continue;
    Thread fresh{};
    fresh.next = me_.next;
    fresh.child = me_.child;
    fresh.file = me_.file;
    if (me_.made != 0) return;  // it has nobody's directory locked that another could want: its own waits
    me_ = fresh;
    return put("gives way: the kernel lets go");
  }
}

/// A client that may take leases does so with a change, if nobody has one. `perhaps`: both ways. true: the turn is
/// over.
bool Turn::takes_lease(int directory) {
  if (takes_ == never || me_.made != 0 || me_.pointed != 0 || state_.inode[directory].lease != 0) return false;
  const State as_it_was = state_;
  me_.ino = static_cast<u8>(directory);
  if (!on(read_after_take)) std::memcpy(mine_.memory[directory], state_.inode[directory].entry, names);
  go(take, "takes the lease");
  if (takes_ == always) return true;
  state_ = as_it_was;
  return false;
}

void Turn::read_parents_of_taken() {
  const int taken = me_.ino;
  if (taken == parent || !on(look_for_name)) return go(read_what_is_held, "has a name");
  bool named = false;
  for (int directory = 1; directory < most_inodes; ++directory) {
    if (!has(state_.inode[taken].parents, directory)) continue;
    has_read(state_, client_, directory);
    named = named || has_name(state_, directory, taken);
  }
  go(named ? read_what_is_held : bury, named ? "has a name" : "has no name");
}

void Turn::read_taken() {
  const int taken = me_.ino;
  has_read(state_, client_, taken);
  u8 before[names];
  std::memcpy(before, mine_.memory[taken], names);
  hold(state_, client_, taken);
  for (int name = 0; name < names && !plan.now->learns_one_by_one; ++name) {
    if (state_.inode[taken].mark[name] != 0 && on(keep_no_marked)) continue;
    mine_.memory[taken][name] = on(read_after_take) ? state_.inode[taken].entry[name] : before[name];
    mine_.known[taken] |= bit(name);
  }
  go(starting, "reads what it holds");
}

// ---- what stands in the way

/// A change that meets a seal: it is cancelled, unless its directory has lost its name. true: the turn is over.
bool Turn::settles_seal(int directory) {
  const auto sealer = state_.inode[directory].sealer;
  if (sealer == 0) return false;
  me_.ino = static_cast<u8>(directory);
  me_.other = sealer;
  go(cancel_seal, "settles a seal");
  return true;
}

/// A marked name is settled by who wants to change it. true: the turn is over.
bool Turn::settles_mark(int directory, int name) {
  const auto mark = state_.inode[directory].mark[name];
  if (mark == 0) return false;
  me_.awaited = static_cast<u8>(directory);
  me_.settles_name = static_cast<u8>(name);
  me_.other = mark;
  go(cancel_mark, "settles a mark");
  return true;
}

// ---- steps and phases

void Turn::take_a_step() {
  static const char* const words[] = {"",
                                      "make inode",
                                      "change entry",
                                      "seal",
                                      "unseal",
                                      "take",
                                      "take",
                                      "take over",
                                      "bury",
                                      "cancel seal",
                                      "settle seal",
                                      "change attributes",
                                      "point to directory",
                                      "mark entry",
                                      "move entry in",
                                      "move entry out",
                                      "clear mark",
                                      "cancel",
                                      "cancel move",
                                      "settle mark"};
  const std::string name = words[me_.phase];
  if (step_is_barred(state_, index_)) {
    mine_.is_told = 1;
    return put(name + ", refused: it is fenced");
  }
  if (me_.repeats != 0) {
    const bool applied = on(step_number) || run_step(state_, index_);
    me_.repeats = 0;
    continue_after(applied);
    return put(name + ", run again");
  }
  const State before = state_;
  const bool applied = run_step(state_, index_);
  if (applied) outdate_answers();
  const State after = state_;
  if (applied && before.repeats != 0 && before.thread[index_].phase != make_inode) {
    --state_.repeats;
    me_.repeats = 1;
    put(name + ", and the answer is lost");
    state_ = after;
  }
  continue_after(applied);
  put(name + (applied ? "" : ", refused"));
}

void Turn::continue_after(bool applied) {
  switch (me_.phase) {
    case make_inode:
      if (!applied) break;
      me_.made = 1;
      me_.phase = change_entry;
      return;
    case change_entry:
      return operation_.kind == op_link ? linked(applied) : changed_entry(applied);
    case seal:
      if (!applied) break;
      me_.phase = change_entry;
      return;
    case unseal:
      if (has(state_.inode[directory_].cancelled, number_)) return answer(again);
      break;
    case take_empty:
      if (applied) {
        hold(state_, client_, me_.ino);
        mine_.known[me_.ino] = all_names;
      }
      me_.snapshot = me_.snapshot_stands = 0;
      break;
    case take:
      if (!applied) break;
      me_.phase = read_what_is_held;
      return;
    case take_over:
      if (!applied) break;
      me_.phase = read_parents;
      return;
    case cancel_seal:
      me_.phase = end_seal;
      return;
    case change_attributes:
      if (!applied) break;
      mine_.attributes[me_.ino] = static_cast<u8>(number_ + 1);
      return answer(ok);
    case point_to:
      if (!applied) break;
      me_.pointed = 1;
      me_.phase = operation_.kind == op_link ? change_entry : set_mark;
      if (operation_.kind == op_move) about_to_mark();
      return;
    case set_mark:
      if (!applied) break;
      return marked();
    case commit_move:
      if (applied) return committed();
      me_.phase = cancel_own;
      return;
    case move_out:
      return moved();
    case cancel_own:
      me_.phase = clear_mark;
      return;
    case clear_mark:
      return answer(again);
    case cancel_mark:
      me_.phase = end_mark;
      return;
    default:
      break;
  }
  me_.phase = starting;
}

void Turn::play_phase() {
  switch (me_.phase) {
    case waiting:
      return wait_for_holder();
    case read_what_is_held:
      return read_taken();
    case read_parents:
      return read_parents_of_taken();
    case read_child:
      return read_child_directory();
    case read_attributes:
      return read_the_inode();
    case open_by_number:
      return open_the_inode();
    case name_is_read:
      return keep_name();
    case read_decision: {
      has_read(state_, client_, me_.awaited);
      const bool is_gone = has(state_.inode[me_.awaited].committed, me_.other - 1);
      if (is_gone) return say(no_entry);
      if (operation_.kind == op_lookup) return say(static_cast<u8>(found + me_.ino));
      return go(operation_.kind == op_chmod ? change_attributes : read_attributes, "has not moved");
    }
    case read_name_again:
      has_read(state_, client_, directory_);
      if (in_conflict(directory_, false)) return;
      if (state_.inode[directory_].entry[operation_.name] == me_.ino) return say(not_empty);
      return go(starting, "the name has changed");
    default:
      return start();
  }
}

/// A client that stood still believes nothing of its memory before it has heard from the store. true: the turn is over.
bool Turn::hears_of_fence() {
  const bool would_believe = holds(directory_) || (two_directories(operation_.kind) && holds(other_));
  if (plan.now->has_log || mine_.stood_still == 0 || !would_believe || !on(hear_first)) return false;
  mine_.is_told = 1;
  put("reads, and hears that it is fenced");
  return true;
}

void Turn::start() {
  if (hears_of_fence()) return;
  if (directory_ == 0 || (two_directories(operation_.kind) && other_ == 0)) return say(no_entry);
  if (synchronizes()) return;
  if (operation_.kind == op_link) return start_link();
  if (operation_.kind == op_move) return start_move();
  if (holds(directory_)) return from_memory();
  from_store();
}

}  // namespace names_model
