// SPDX-License-Identifier: LGPL-2.1-or-later
//
// link and rename into another directory: always step by step (src/fs/link.cpp, src/fs/move.cpp), also beside held
// directories. Left out: what is taken back after a refusal (a back-pointer may stay, which a collector corrects), moves
// of directories, and that decisions are removed: so who has read one need not read the marked name again. A move whose
// commit was refused answers "again": it begins anew with another token.
#include <algorithm>

#include "log.h"
#include "rules.h"
#include "turn.h"

namespace names_model {

/// A directory in which a step by step change is about to be made: it is held, known and its log is stored; or it was
/// read, and nobody else has it. false: that is all for this turn.
bool Turn::may_change(int directory) {
  if (holds(directory)) {
    if (has(mine_.removed, directory) && on(removed_takes_none)) {
      say(no_entry);
      return false;
    }
    return !waits_for_recall(directory) && !(on(step_drains) && has_records(mine_, directory));
  }
  has_read(state_, client_, directory);
  if (!is_there(state_.inode[directory])) {
    say(no_entry);
    return false;
  }
  if (in_conflict(directory, false)) return false;
  if (state_.inode[directory].state == sealed) {
    static_cast<void>(settles_seal(directory));
    return false;
  }
  return true;
}

/// What a name leads to. false: that is all for this turn.
bool Turn::see(int directory, int name, u8& ino) {
  if (holds(directory) && !is_hidden(directory, name)) {
    if (!knows(directory, name)) return false;
    ino = mine_.memory[directory][name];
    return true;
  }
  has_read(state_, client_, directory);
  if (settles_mark(directory, name)) return false;
  ino = state_.inode[directory].entry[name];
  return true;
}

// ---- link

/// Which inode gets another name. It is an operation of its own: the kernel has looked the name up before.
bool Turn::resolve_source() {
  u8 ino = 0;
  if (!holds(directory_)) {
    has_read(state_, client_, directory_);
    if (in_conflict(directory_, true)) return false;
  }
  if (!see(directory_, operation_.name, ino)) return false;
  if (ino == 0) {
    say(no_entry);
    return false;
  }
  state_.linked[number_] = ino;
  return true;
}

void Turn::start_link() {
  if (state_.linked[number_] == 0 && !resolve_source()) return;
  const auto ino = state_.linked[number_];
  if (!may_change(other_)) return;
  u8 there = 0;
  if (!see(other_, operation_.to, there)) return;
  if (!holds(other_) && takes_lease(other_)) return;
  if (there != 0) return say(exists);
  if (!is_stored(state_, ino)) {
    const bool will_be = std::any_of(mine_.log, mine_.log + mine_.records, [&](const Record& record) {
      return record.kind == insertion && record.ino == ino;
    });
    return will_be ? void() : say(no_entry);
  }
  if (state_.inode[ino].state != live) return say(no_entry);
  if (on(link_ends_privacy)) mine_.own &= static_cast<Inodes>(~bit(ino));
  me_.ino = ino;
  me_.guards_own = holds(other_) ? 2 : 0;
  me_.keeps = 3;
  go(me_.pointed != 0 ? change_entry : point_to, "has the inode");
}

void Turn::linked(bool applied) {
  if (!applied) {
    me_.phase = starting;
    return;
  }
  if (holds(other_) && has(me_.keeps, 1)) learn(other_, operation_.to, me_.ino);
  kernel_learns(other_, operation_.to, me_.ino);
  answer(ok);
}

// ---- move

/// false: that is all for this turn.
bool Turn::hold_both() {
  if (!plan.now->has_kernel || holds(directory_) == holds(other_) || !on(move_both)) return true;
  const int missing_one = holds(directory_) ? other_ : directory_;
  me_.ino = static_cast<u8>(missing_one);
  go(take, "takes the other lease, too");
  return false;
}

void Turn::start_move() {
  if (!may_change(directory_) || !may_change(other_)) return;
  if (!hold_both()) return;
  if (!holds(directory_) && takes_lease(directory_)) return;
  if (!holds(other_) && takes_lease(other_)) return;
  u8 ino = 0, replaced = 0;
  if (!see(directory_, operation_.name, ino) || !see(other_, operation_.to, replaced)) return;
  if (ino == 0) return say(no_entry);
  if (ino == replaced) return say(ok);
  if (!is_stored(state_, ino)) return;
  if (replaced != 0 && on(barrier_step) && insertions_elsewhere(mine_, other_, mine_.records)) return;
  if (on(link_ends_privacy)) mine_.own &= static_cast<Inodes>(~bit(ino));
  me_.ino = ino;
  me_.other = replaced;
  go(point_to, "has read both names");
}

/// As the lease is when the step is sent. `which`: 0 for the old directory, 1 for the new one.
void Turn::guard(int which) {
  const bool is_own = holds(which == 0 ? directory_ : other_);
  me_.guards_own &= static_cast<u8>(~(bit(which) | bit(which + 2)));
  if (is_own) me_.guards_own |= static_cast<u8>(bit(which));
}

void Turn::about_to_mark() {
  if (on(forget_marked) && !on(forget_once_marked)) forget(directory_, operation_.name);
  guard(0);
}

/// From now on the decision tells what the old name leads to, and memory does not.
void Turn::marked() {
  if (on(forget_marked) && on(forget_once_marked)) forget(directory_, operation_.name);
  guard(1);
  me_.keeps = 3;
  me_.phase = commit_move;
}

void Turn::committed() {
  const bool is_same_tenure = has(me_.guards_own, 1) && !has(me_.guards_own, 3);
  if (holds(other_) && has(me_.keeps, 1) && (is_same_tenure || !on(keep_same_tenure)))
    learn(other_, operation_.to, me_.ino);
  me_.phase = move_out;
}

void Turn::moved() {
  kernel_renames(directory_, operation_.name, other_, operation_.to);
  answer(ok);
}

}  // namespace names_model
