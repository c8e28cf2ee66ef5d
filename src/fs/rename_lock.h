// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The volume's rename lock: directories move to other directories one at a time, so that none ends below itself
// (src/fs/move.cpp). One key on Super says which move has the lock: its token, and the directory P2 into which it
// moves.
//
//  # | object     | step                                                     | stop here leaves
//  - | Super      | read. Held by another move: look again after a pause.    |
//    |            | Unchanged for 10 s: ask the owner's instance. No answer, |
//    |            | or this client's patience is at an end: continue with 0  |
//  0 | Session.me | [log queue items] directory item P2 of that move         | an item that finds nothing to do
//  1 | Inode.P2   | [cancel move] guard x/t absent, as in settle.h: now that | that move can commit no more, and x/t,
//    |            | move has committed, or never will                        | which its owner or a collector drops
//  2 | Super      | [take rename lock] guard the value as read; held(t, P2)  | the lock is held: the next move takes it
//    |            | of the own move. *Then* the move reads all that it needs | over, as above
//  3 | Super      | [release rename lock] guard held(t, P2); free(t, P2)     | done
//
// To take over the lock needs no fence, nor a proof that its owner is gone: after 1 the owner's move is decided, and
// what it does later changes no path. An owner that lives finds its commit refused, and begins again. So no client can
// keep the lock: neither one that is stopped, nor one that does not know the outcome of its commit. The others wait
// only if P2 cannot be reached.
//
// But a move may take longer than 10 s: on a slow store, or far down. Clients that each wait no longer would cancel each
// other's moves for ever (docs/COUNTEREXAMPLES.md C45). So a client becomes more patient each time it gives up waiting for
// an instance that may live, and waits longer for an answer, too: where moves are slow, questions are. How long it waits
// decides who waits, and nothing else: a lock may be taken over at any time.
//
// Each value of the key has a token, so 2 and 3 carry no step number: if one is refused, or has no answer, the key is
// read. A value comes a second time only if 2 was applied, and the lock was taken over before the answer came: that
// move is cancelled by then, and cannot commit under either value.
#pragma once

#include <chrono>
#include <optional>

#include "base/mutex.h"
#include "format/records.h"
#include "instance/instance.h"

namespace lccfs {

/// For how long a client leaves a lock that does not change to an owner that lives. Any thread.
class RenamePatience {
 public:
  /// Moves of a store that is well take some ten steps.
  static constexpr std::chrono::seconds shortest{10};
  std::chrono::nanoseconds at(std::chrono::nanoseconds now) const EXCLUDES(mutex_);
  /// This client has waited for such an owner with that patience, and gives up: next time it waits twice as long.
  void was_too_short(std::chrono::nanoseconds patience, std::chrono::nanoseconds now) EXCLUDES(mutex_);

 private:
  static constexpr std::chrono::seconds longest{640};
  /// What made moves slow has passed then.
  static constexpr std::chrono::hours kept_for{1};
  mutable Mutex mutex_;
  std::chrono::nanoseconds patience_ GUARDED_BY(mutex_) = shortest;
  std::chrono::nanoseconds changed_at_ GUARDED_BY(mutex_){};
};

/// One move's hold on the lock. One thread, inside an Operation; blocks on the store, and on other clients' moves.
class RenameLock {
 public:
  RenameLock(Instance& instance, RenamePatience& patience, Token token, Ino to)
      : instance_(instance), patience_(patience), mine_{format::RenameLockRecord::Kind::held, token, to} {}
  ~RenameLock() {
    if (is_held_) release();
  }
  RenameLock(const RenameLock&) = delete;
  RenameLock& operator=(const RenameLock&) = delete;

  Result<> take();
  /// The outcome of the move's commit is not known: the next move that wants the lock decides it, not the owner.
  void leave() { is_held_ = false; }

 private:
  struct Seen {
    std::optional<Bytes> raw;
    std::optional<format::RenameLockRecord> record;
    bool is_held() const { return record && record->kind == format::RenameLockRecord::Kind::held; }
  };
  Result<Seen> look();
  bool is_left_to_owner(const Seen& seen, std::chrono::nanoseconds unchanged_for);
  enum class Owner { answers, is_silent, is_gone };
  Owner ask(const format::RenameLockRecord& held, std::chrono::nanoseconds time_out);
  Result<bool> replace(const Seen& seen);
  void release();

  Instance& instance_;
  RenamePatience& patience_;
  const format::RenameLockRecord mine_;
  bool is_held_ = false;
};

}  // namespace lccfs
