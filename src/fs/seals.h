// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Seals of directories that are to go, and entries whose inode is gone (rules 3 and 4 of docs/PROTOCOL.md).
// Any thread, inside an Operation; all block on the store.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "fs/metadata.h"

namespace lccfs {

class Seals {
 public:
  /// The step in the parent that completes a seal.
  using CommitStep = std::function<MetaTxn(const txn::SubdirectoryCount&)>;

  Seals(Instance& instance, Metadata& metadata, DirectoryLeases& leases)
      : instance_(instance), metadata_(metadata), leases_(leases) {}

  /// Metadata::find for operations that change something there: none of the names is marked.
  Result<Entries> find_to_change(std::initializer_list<const txn::Name*> wanted, bool from_memory);
  /// The inode of an entry, from memory or read. nullptr: it is gone, and so is its name now: start over.
  Result<std::shared_ptr<const Inode>> target_of(const txn::Name& name, const txn::Entry& entry);
  /// Whether something may point to the directory that was found. false: start over; a seal is settled by then.
  Result<bool> takes_names(const std::shared_ptr<const Inode>& directory);
  /// Afterwards the directory is no longer sealed as it was: live, or dead.
  Result<> settle(const Inode& sealed);
  /// Seals the empty directory of the first of these names. nullopt: things have changed, start over. not_empty:
  /// it is not, and the names are still what they were. `logged`: the inode whose item this operation has logged.
  Result<std::optional<format::StateRecord>> seal_empty(std::span<const ExpectedEntry> expected, Token token,
                                                        Ino& logged);
  /// Runs the parent's step of the directory that seal_empty sealed, and takes the seal back if it is not applied.
  /// The parent's version after it (0: not known); nullopt: start over.
  Result<std::optional<std::uint64_t>> commit(const format::StateRecord& seal, std::shared_ptr<const Inode> parent,
                                              std::span<const ExpectedEntry> expected, TimeSpec time,
                                              const CommitStep& step);
  /// By the owner of the seal, whose step in the parent has certainly not been applied, and will not be sent again.
  void take_back(const format::StateRecord& seal, Ino sealed);

 private:
  Result<> clear_dangling(const txn::Name& name, const txn::Entry& entry);
  Result<bool> really_has_entries(Ino directory, const KeyPage& page);

  Instance& instance_;
  Metadata& metadata_;
  DirectoryLeases& leases_;
};

}  // namespace lccfs
