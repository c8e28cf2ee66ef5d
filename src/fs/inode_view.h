// SPDX-License-Identifier: LGPL-2.1-or-later
// An inode object as one read shows it.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/records.h"
#include "fs/allocation_map.h"
#include "instance/instance.h"
#include "lccfs/file_system.h"

namespace lccfs {

struct InodeView {
  Ino ino;
  std::uint64_t version = 0;
  std::chrono::nanoseconds sent{0};  // when the read, or the step of ours behind which this is it, was sent
  format::AttrRecord attr;
  Bytes attr_raw;  // for guards, which compare whole values
  format::StateRecord state;
  Bytes state_raw;
  std::optional<format::BackPointerRecord> parent;
  std::uint64_t size_bytes = 0;
  std::uint64_t nsub = 0;
  Bytes nsub_raw;
  TimeSpec atime, mtime, ctime, wtime;
  std::optional<InstanceId> lease;
  bool lease_is_over = false;  // its holder was found to be over
  std::uint64_t fence = 0;     // number of the last fence behind a take-over; 0: never
  AllocationMap map;
  Bytes payload;                      // if asked for
  std::vector<KeyPage> extra_ranges;  // those asked for, in their order
  std::map<std::string, Bytes> keys;  // of those asked for, the ones that are there

  bool live() const { return state.kind != format::StateRecord::Kind::dead; }  // sealed counts as live
  bool is_directory() const { return attr.type == FileType::directory; }
};

struct InodeReadOptions {
  bool payload = false;
  std::vector<KeyRange> extra_ranges;
  std::vector<std::string> keys;
};

/// The read that shows an inode, and what it showed (further reads only for a file with over 1,000 map blocks).
MetaRead inode_read(Ino ino, const InodeReadOptions& options = {});
Result<InodeView> view_of_read(Instance& instance, Ino ino, Result<MetaSnapshot> read,
                               const InodeReadOptions& options = {});
/// Both. not_found: no such object. corrupt names the object.
Result<InodeView> read_inode(Instance& instance, Ino ino, const InodeReadOptions& options = {});

/// For operations on an inode, not on a name in it.
Error gone_is_stale(Error error);

/// What stat shows of it, as stored. st_nlink of a directory is 2 + nsub (0 once it is dead).
Attributes attributes_of(const InodeView& view, std::uint64_t object_size_bytes);

/// Changes `attr` under a guard on its old value, ctime with it (1 read unless `known` is still right, 1 write):
/// `change` edits the record, and may be called again after a lost race. Answers the inode as it is then.
Result<InodeView> change_attr(Instance& instance, Ino ino, const std::function<Result<>(format::AttrRecord&)>& change,
                              const InodeView* known = nullptr);

}  // namespace lccfs
