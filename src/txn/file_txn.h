// SPDX-License-Identifier: LGPL-2.1-or-later
// The transactions on a regular file's inode object that concern its bytes: write lease, size, times, map
// (docs/DATA.md section 2). Pure functions. One of them is in flight per inode; they carry no step number, because
// each is guarded by the lease's owner or by the version (rule 5).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "format/records.h"
#include "lccfs/object_store.h"

namespace lccfs::txn {

struct FileChanges {
  std::optional<std::uint64_t> size_bytes;
  std::optional<TimeSpec> atime, mtime, wtime;
  std::map<std::uint64_t, format::MapBlock> map_blocks;
  bool empty() const { return !size_bytes && !atime && !mtime && !wtime && map_blocks.empty(); }
};

/// `taken`: for the xattr of that name, where the volume or the file has it.
MetaTxn take_lease(Ino ino, InstanceId me, std::uint64_t version, const std::optional<Token>& taken = std::nullopt);
/// From an instance that is expired; `fence` is the fence counter, for instances that read the file or take its lease
/// later.
MetaTxn take_over_lease(Ino ino, InstanceId old_holder, InstanceId me, std::uint64_t fence);
MetaTxn release_lease(Ino ino, InstanceId me, const FileChanges& changes);
MetaTxn change_leased_file(Ino ino, InstanceId me, const FileChanges& changes);
/// Takes the lease, changes, and releases it, in one step.
MetaTxn change_unleased_file(Ino ino, std::uint64_t version, const FileChanges& changes);

/// That client has the file open. `taken`: where the inode has none, so that from now on keys that come and go change no
/// stamp; guarded, because a late run must not bring an old one back.
MetaTxn add_opener(Ino ino, InstanceId opener, const std::optional<Token>& taken);
/// The same beside a step of the lease's holder, which is its guard.
MetaTxn with_opener(MetaTxn txn, InstanceId opener, const std::optional<Token>& taken);
/// That client has it open no more, or is expired.
MetaTxn remove_opener(Ino ino, InstanceId opener);

}  // namespace lccfs::txn
