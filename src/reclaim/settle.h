// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Settling the seal sealed(t, P, name) of a directory X (docs/PROTOCOL.md section 6). It is done by an instance that
// wants to change something in X, and by a collector once t is retired.
//
//  # | object     | step                                                      | stop here leaves
//  - | Inode.P    | read. d/X/t there, or x/t = committed: 2, dead.           |
//    |            | x/t = cancelled: 2, live. Neither: 0                      |
//  0 | Session.me | [log queue items] directory item P, if none is relied on  | an item that finds nothing to do
//  1 | Inode.P    | [cancel seal] guard d/X/t and x/t absent; x/t = cancelled | the seal's owner can commit no more
//    |            | Then read P again                                         |
//  2 | Inode.X    | guard sealed(t): [unseal] live, or [mark dead]            | x/t: its owner or a collector drops it
//  P is gone: X has a name somewhere -> live, none -> dead.
//
// Settling the mark mark(t, P2) of an entry P1/old -> X, which a rename across directories has set (src/fs/move.cpp).
// It is done by an instance that wants to change something under that name, and by a collector, from item X or from the
// x/ key in P2.
//
//  # | object     | step                                                      | stop here leaves
//  - | Inode.P2   | read. x/t = committed: 2a. x/t = cancelled, or P2 gone:   |
//    |            | 2b. Not there: 0                                          |
//  0 | Session.me | [log queue items] directory item P2, or P1 for 2a, if     | an item that finds nothing to do
//    |            | none is relied on                                         |
//  1 | Inode.P2   | [cancel move] guard x/t absent; x/t = cancelled. Then     | the mark's owner can commit no more
//    |            | read P2 again                                             |
//  2a| Inode.P1   | [move entry out] guard the marked entry; both keys        | done; x/t: its owner or a collector
//    |            | removed; d/X/t; times; X is a directory: nsub - 1, guarded| drops it
//    |            | as read with the entry. Only nsub has changed: 2a again   |
//  2b| Inode.P1   | [clear mark] guard the marked entry; without its mark     | the same
//
// Settling the lease of a directory P that another instance holds (docs/NAMES.md). It is done by an instance that wants
// to change something that the lease covers; a collector never needs to.
//
//  # | object     | step                                                      | stop here leaves
//  - |            | the holder is asked (kind "release directory") until it   |
//    |            | has released it, or is expired: fenced, fences synced     |
//  1 | Inode.P    | only then: [release directory lease] guard the tenure as  | done
//    |            | read                                                      |
//  1'| Inode.P    | P is empty, has no name, and a directory above has a key  | done: a collector removes it, from that
//    |            | d/P/: the holder has removed it without a seal:           | key
//    |            | [mark removed directory dead] guard that tenure; dead,    |
//    |            | lease removed                                             |
#pragma once

#include "format/records.h"
#include "instance/holder.h"
#include "instance/instance.h"
#include "objects/object.h"
#include "txn/namespace_txn.h"

namespace lccfs::reclaim {

/// true, or why it failed: of a step that another client may have done, on an object that may be gone.
Result<bool> done_or_needless(const Result<StepResult>& step);

// `query` below reads for the instance: with its `reader()`, or with one that a stop ends.

/// One attempt. true: X is no longer sealed as it was. false: look again (after a cancel, or a lost race). The caller
/// is inside an Operation. Blocks; any thread.
Result<bool> settle_seal(Instance& instance, const objects::Query& query, Ino sealed, const format::StateRecord& seal);

/// One attempt, of an entry that has a mark. true: the entry does not stand there with that mark any more. Otherwise as
/// settle_seal.
Result<bool> settle_mark(Instance& instance, const objects::Query& query, const txn::Name& name,
                         const txn::Entry& entry);

/// Afterwards no instance but this one holds the directory's lease under that tenure; but for a read-only instance,
/// which fences nobody. Answers what became of the holder.
Result<Settled> settle_directory_lease(Instance& instance, Ino directory, Token tenure);
/// The first step of that. A holder that is expired leaves its lease there.
Result<Settled> ask_to_release(Instance& instance, Ino directory, Token tenure);
/// The last step of that, of a lease of our own. A read-only instance does nothing.
Result<> end_directory_lease(Instance& instance, Ino directory, Token tenure);
/// The same of a holder that is expired: it may have removed the directory without a seal. Then it is dead afterwards. 2
/// reads more, and 2 to 4 if it was.
Result<> end_lease_of_expired(Instance& instance, Ino directory, Token tenure);
/// The same of our own lease of a directory that we have removed.
Result<> end_removed_directory(Instance& instance, Ino directory, Token tenure);

/// Of a committed move: the marked entry goes. As settle_mark.
Result<bool> move_out(Instance& instance, const objects::Query& query, const txn::Name& name, const txn::Entry& marked);

/// Afterwards the move that the mark announces (it need not stand anywhere) has committed, or never will.
Result<> decide_move(Instance& instance, const format::EntryRecord::Mark& mark);

/// Of a committed move (its decision): the old name goes, if it still stands. As settle_mark.
Result<bool> finish_move(Instance& instance, const objects::Query& query, Token token,
                         const format::DecisionRecord& committed);

}  // namespace lccfs::reclaim
