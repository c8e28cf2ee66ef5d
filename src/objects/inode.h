// SPDX-License-Identifier: LGPL-2.1-or-later
// An inode object, decoded (docs/FORMAT.md): the one reader of inodes for operations, for the collector and for dry
// runs. Any thread; what is read is a value.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "objects/allocation_map.h"
#include "objects/object.h"

namespace lccfs::objects {

/// What to read of an inode beside its xattrs.
struct InodeParts {
  bool payload = false;
  std::vector<KeyRange> extra_ranges = {};  ///< one page of each
  std::vector<std::string> keys = {};
  /// `first_blocks` is all there is of most files; where it is not, the map is a part (Inode::map_is_whole).
  enum class Map { left_out, first_blocks, whole } map = Map::first_blocks;
  bool openers = false;  ///< the instances that have the file open
  /// All back-pointers and step numbers, and which kinds of keys a directory has; for the collector, which needs neither
  /// times nor nsub, fence and lease: they are left out.
  bool traces = false;
};

struct BackPointer {
  Ino parent;
  Token token;
  std::string key;  ///< empty: the xattr `parent`
};

/// As of when a file's bytes are known: they are the same under the same stamp, while no instance holds the lease. The
/// token `taken` where the file has one; else the inode's version, which changes more often.
struct BytesStamp {
  std::optional<Token> taken = std::nullopt;
  std::uint64_t version = 0;  ///< 0 with `taken`; without: not known
  bool is_known() const { return taken || version != 0; }
  bool operator==(const BytesStamp&) const = default;
};

struct Inode {
  Ino ino;
  std::uint64_t version = 0;         ///< all of it is of this version
  std::chrono::nanoseconds sent{0};  ///< when the read, or the step of ours after which this is it, was sent
  format::AttrRecord attr;
  Bytes attr_raw;  ///< for guards, which compare whole values
  format::StateRecord state;
  Bytes state_raw;
  std::optional<format::BackPointerRecord> parent;
  std::uint64_t size_bytes = 0;
  std::uint64_t nsub = 0;
  Bytes nsub_raw;
  TimeSpec atime, mtime, ctime, wtime;
  std::optional<InstanceId> lease;       ///< regular files: the instance that writes it
  std::optional<Token> directory_lease;  ///< directories: the tenure of its holder
  bool names_behind = false;             ///< the holder may have answered changes of names that are not stored
  bool holder_is_expired = false;        ///< its holder was found to be expired
  std::uint64_t fence = 0;               ///< number of the last fence before a take-over; 0: never
  std::optional<Token> taken;            ///< of the step that took the lease last; nullopt: the file has no such xattr
  std::vector<InstanceId> openers;       ///< if asked for; of o/ keys
  AllocationMap map;
  bool map_is_whole = true;
  Bytes payload;                      ///< if asked for
  std::vector<KeyPage> extra_ranges;  ///< those asked for, in their order
  std::map<std::string, Bytes> keys;  ///< of those asked for, the ones that are there

  // -- traces, if asked for
  std::vector<BackPointer> pointers;
  std::map<InstanceId, std::uint64_t> step_numbers;  ///< of l/ keys
  bool has_detached = false, has_decisions = false, has_entries = false;

  bool dead() const { return state.kind == format::StateRecord::Kind::dead; }
  /// What stat shows: of the changes of attributes, and of the writes.
  TimeSpec shown_ctime() const { return std::max(ctime, wtime); }
  bool sealed() const { return state.kind == format::StateRecord::Kind::sealed; }
  BytesStamp bytes_stamp() const { return taken ? BytesStamp{taken} : BytesStamp{std::nullopt, version}; }
  bool live() const { return !dead(); }  ///< a sealed one, too
  bool is_regular() const { return attr.type == FileType::regular; }
  bool is_directory() const { return attr.type == FileType::directory; }
};

using InodeDone = std::move_only_function<void(Result<Inode>)>;

/// not_found: no such object. corrupt, unsupported: the error names object and part. 1 read, unless the inode has over
/// 1,024 map blocks or links and all were asked for.
void read_inode_async(const Query& query, Ino ino, const InodeParts& parts, InodeDone done);
/// The same; blocks.
Result<Inode> read_inode(const Query& query, Ino ino, const InodeParts& parts = {});

}  // namespace lccfs::objects
