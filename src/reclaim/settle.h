// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Settling the seal sealed(t, P, name) of a directory X (docs/PROTOCOL.md section 6). An instance that wants to change
// something in X does it, and so does a collector once t is retired.
//
//  # | object     | step                                                      | stop here leaves
//  - | Inode.P    | read. d/X/t there, or x/t = committed: 2, dead.           |
//    |            | x/t = cancelled: 2, live. Neither: 0                      |
//  0 | Session.me | [log queue items] directory item P, if none is relied on  | an item that finds nothing to do
//  1 | Inode.P    | [cancel seal] guard d/X/t and x/t absent; x/t = cancelled | the seal's owner can commit no more
//    |            | Then read P again                                         |
//  2 | Inode.X    | guard sealed(t): [unseal] live, or [mark dead]            | x/t: its owner or a collector drops it
//  P is gone: X has a name somewhere -> live, none -> dead.
#pragma once

#include "format/records.h"
#include "instance/instance.h"

namespace lccfs::reclaim {

/// One attempt. true: X is no longer sealed as it was. false: look again (after a cancel, or a lost race). The caller
/// is inside an Operation. Blocks; any thread.
Result<bool> settle_seal(Instance& instance, Ino sealed, const format::StateRecord& seal);

}  // namespace lccfs::reclaim
