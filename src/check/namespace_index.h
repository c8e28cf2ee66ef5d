// SPDX-License-Identifier: LGPL-2.1-or-later
// What is kept in memory of the inodes: a small record for every directory, and those inodes that are not plain.
//
// A plain inode adds its link to the sum of its only parent, and is forgotten. Where that sum is the sum of the
// directory's entries, the entries and their inodes match one to one: all is well there, and both need no second look.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/inode_scan.h"
#include "check/inode_summary.h"
#include "check/link_sums.h"

namespace lccfs::check {

struct DirectoryRecord {
  Ino parent{};               ///< of a plain one
  LinkSum entries;            ///< as they stand in it
  LinkSum claims;             ///< of plain inodes that say that they are in it
  bool seen = false;          ///< otherwise it is only claimed: there is no such directory
  bool is_directory = false;  ///< seen, but attr cannot be read: perhaps
  bool has_detached = false;
  bool names_differ = false;  ///< from the reverse keys
  bool in_order = false;   ///< all plain inodes that claim it have one entry in it, but for those that lost their name
  bool lost_name = false;  ///< it is plain, and its parent does not name it
  bool reached = false;    ///< from the root

  bool matches() const { return entries == claims; }
};
static_assert(sizeof(DirectoryRecord) <= 64, "one for each directory of the volume, with some 40 bytes of the table's");

/// An inode that is not plain: several back-pointers or links, sealed, dead, the root, or not to be read.
struct SpecialInode {
  InodeSummary summary;
  std::uint32_t names = 0;  ///< entries found for it
};

/// A plain inode that the queue leads to: perhaps it never got a name.
struct QueuedClaim {
  Ino directory;
  Ino ino;
  FileType type;
  auto operator<=>(const QueuedClaim&) const = default;
};

/// An entry for a directory, where the sums do not prove it.
struct DirectoryName {
  Ino directory;
  Ino holder;
  std::string name;
  auto operator<=>(const DirectoryName&) const = default;
};

class NamespaceIndex {
 public:
  /// Any thread, as long as nobody uses the members below.
  void add(Ino ino, const ScannedInode& inode, bool queue_leads_to_it);

  // Guarded by `mutex` while several threads are at work; the tables' keys do not change then.
  std::mutex mutex;
  std::unordered_map<Ino, DirectoryRecord> directories;
  std::unordered_map<Ino, SpecialInode> specials;
  std::vector<QueuedClaim> queued;
  std::vector<DirectoryName> names;
  std::uint64_t other_inodes = 0;

  bool is_known_directory(Ino ino) const;
};

}  // namespace lccfs::check
