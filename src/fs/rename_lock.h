// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The volume's rename lock: directories move to other directories one at a time, so that none ends below itself
// (src/fs/move.cpp). One key on Super says which move has the lock: its token, and the directory P2 into which it
// moves.
//
//  # | object     | step                                                     | stop here leaves
//  - | Super      | read. Held by another move: look again after a pause.    |
//    |            | Unchanged for 10 s: continue with 0                      |
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
// Each value of the key has a token, so 2 and 3 carry no step number: if one is refused, or has no answer, the key is
// read. A value comes a second time only if 2 was applied, and the lock was taken over before the answer came: that
// move is cancelled by then, and cannot commit under either value.
#pragma once

#include <optional>

#include "format/records.h"
#include "instance/instance.h"

namespace lccfs {

/// One move's hold on the lock. One thread, inside an Operation; blocks on the store, and on other clients' moves.
class RenameLock {
 public:
  RenameLock(Instance& instance, Token token, Ino to)
      : instance_(instance), mine_{format::RenameLockRecord::Kind::held, token, to} {}
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
  Result<bool> replace(const Seen& seen);
  void release();

  Instance& instance_;
  const format::RenameLockRecord mine_;
  bool is_held_ = false;
};

}  // namespace lccfs
