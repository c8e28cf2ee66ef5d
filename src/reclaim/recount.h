// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Recount, its writing half (docs/PROTOCOL.md section 5). Every step may be done twice, and stop anywhere:
//
//  case                  | object     | step                                         | stop here leaves
//  live X, wrong links   | Inode.X    | [trim links] guard version; nlink and        | done
//                        |            | back-pointers corrected                      |
//  X waits for a later   | Inode.X    | [trim links] guard version; of the retired   | the same, fewer keys
//  pass                  |            | back-pointers to one directory keep one      |
//  live X without a name | Inode.X    | [mark unnamed dead] guard version            | dead X, found by the same item
//  sealed X              | settle.h   |                                              |
//  X with a marked name  | settle.h   |                                              |
//  dead X, a name in P   | Inode.P    | [remove dead names] guard version            | the same
//  dead X, open nowhere: |            |                                              |
//  - it has entries      | Session.me | [log queue items] directory item X           | an item that finds nothing to do
//                        | Inode.X    | [detach dead names] guard version; as an     | the same
//                        |            | unlink of each: entry removed, d/<child>/t   |
//  - it has none         | Data.X.*   | removed where "may exist" is set, a block of | the same, fewer objects
//                        |            | the map at a time                            |
//                        | Inode.X    | [forget removed data] guard version; that    | the same, a smaller map
//                        |            | block; all but the last. What is gone of a   |
//                        |            | block that cannot go whole                   |
//                        | Inode.X    | [remove dead inode] guard version            | gone
//
// If a dead directory has entries (it lost its name by damage, or a repair was told to remove orphans), each becomes a
// d/ key. The directory stays until each child was handled: so no child is left that points to a missing directory.
//
// What leads to X (a queue item, a d/ key) is removed after all that. Several collectors may do it at once. Any thread;
// blocks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "instance/instance.h"
#include "lccfs/removed_garbage.h"
#include "reclaim/data_removal.h"
#include "reclaim/examine.h"
#include "reclaim/pace.h"
#include "reclaim/refusals.h"

namespace lccfs::reclaim {

/// What was done, by all threads, and what the store has refused.
struct Tally {
  std::atomic<std::uint64_t> inodes_removed{0}, data_objects_removed{0}, bytes_freed{0};
  std::atomic<std::uint64_t> names_removed{0}, inodes_corrected{0};
  Refusals refusals;
  OnGarbageRemoved on_removed = nullptr;

  /// By one thread at a time: a reader never sees fewer than before.
  void tell() {
    if (!on_removed || telling_.test_and_set()) return;
    on_removed({inodes_removed, data_objects_removed, bytes_freed});
    telling_.clear();
  }
  std::uint64_t removed() const { return inodes_removed + data_objects_removed; }

 private:
  std::atomic_flag telling_;
};

class Recount {
 public:
  Recount(Instance& instance, Pace& pace, Tally& tally, std::shared_ptr<Unanswered> unanswered, std::stop_token stop);

  /// Whether the data of a dead inode may be removed, or something of it still has no answer from an earlier try, or was
  /// refused in this pass.
  bool may_be_removed(const Inode& inode) const { return inode.map.mapped() == 0 || may_be_asked_for(inode.ino); }

  /// All that can be done about an inode before the instances are asked for it. kind `gone` or `right`: there is
  /// nothing more to do. `reclaim`: dead; to be removed if no client has it open. Anything else: left for a later pass.
  Result<Assessment> advance(Horizon& horizon, Ino ino) const;

  /// Removes an inode that `advance` called dead; every instance has been asked since, and none has it open. false:
  /// left for a later pass. `logged`: when what led here was logged, for the item of a directory that is emptied.
  Result<bool> remove(const Assessment& dead, TimeSpec logged) const;

  /// The first data object of a number that is no inode, nor will be: an instance that is expired had handed it out, and
  /// may have ended between the bytes of a new file and its inode. false: it may still be there.
  Result<bool> remove_early_bytes(Ino ino) const;

  const objects::Query& reader() const { return reader_; }
  /// A step that may be done twice, at the collector's pace.
  Result<Applied> paced(MetaTxn txn) const;

 private:
  bool may_be_asked_for(Ino ino) const { return unanswered_->takes(ino) && tally_.refusals.takes(ino); }
  Result<bool> apply(MetaTxn txn) const;
  Result<bool> take_step(const Assessment& assessment) const;
  Result<bool> trim(const Assessment& assessment) const;
  Result<bool> drop(const Inode& inode, const Trim& trim) const;
  Result<bool> clear_names(const Assessment& assessment) const;
  Result<> empty_directory(Ino directory, TimeSpec logged) const;
  std::shared_ptr<DataRemoval> begin_to_remove_data(Ino ino, Tally* tally) const;
  using Version = std::optional<std::uint64_t>;
  Result<Version> remove_data(const Inode& file) const;
  Result<bool> remove_block(const Inode& file, std::uint64_t version, std::uint64_t block) const;
  Result<> forget_some(const Inode& file, std::uint64_t version, std::uint64_t block,
                       const std::vector<ObjectIndex>& removed) const;
  enum class Removal { of_all, given_up, refused };
  Result<Removal> wait_for(DataRemoval& removal, Ino ino) const;
  Result<Version> forget(MetaTxn removed_data) const;
  void tell_others() const;

  Instance& instance_;
  Pace& pace_;
  Tally& tally_;
  const std::shared_ptr<Unanswered> unanswered_;
  const std::stop_token stop_;
  const objects::Query reader_;  // what does not answer is given up
  mutable std::atomic<std::chrono::nanoseconds> others_told_;
  mutable std::atomic<std::uint64_t> removed_when_told_{0};
};

}  // namespace lccfs::reclaim
