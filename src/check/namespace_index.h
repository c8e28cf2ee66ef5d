// SPDX-License-Identifier: LGPL-2.1-or-later
// What is kept in memory of the inodes: a small record for every directory, and those inodes that are not plain.
//
// A plain inode adds its link to the sum of its only parent, and is forgotten. Where that sum is the sum of the
// directory's entries, the entries and their inodes match one to one: all is well there, and both need no second look.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "format/records.h"
#include "objects/object.h"

namespace lccfs::check {

// ---- links as sums

/// A set of links: two sets that have the same sum and number are taken for the same. Each link adds 64 well-mixed
/// bits, so sets that differ have one sum once in 2^64.
struct LinkSum {
  std::uint64_t sum = 0;
  std::uint64_t count = 0;

  LinkSum& operator+=(const LinkSum& other) {
    sum += other.sum;
    count += other.count;
    return *this;
  }
  friend LinkSum operator-(const LinkSum& left, const LinkSum& right) {
    return {left.sum - right.sum, left.count - right.count};
  }
  bool operator==(const LinkSum&) const = default;
};

/// The finalizer of MurmurHash3.
constexpr std::uint64_t mix_bits(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdU;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53U;
  return value ^ (value >> 33);
}
constexpr std::uint64_t mix_bits(std::uint64_t first, std::uint64_t second) {
  return mix_bits(mix_bits(first + 0x9e3779b97f4a7c15U) + second);
}

/// That `directory` names the inode.
constexpr LinkSum link(Ino directory, Ino ino, FileType type) {
  return {mix_bits(mix_bits(directory.value, ino.value), static_cast<std::uint64_t>(type)), 1};
}
/// That a directory names the inode by that name, with that mark. 0: without one.
constexpr LinkSum name_link(Ino ino, std::uint64_t name_hash, std::uint64_t mark_hash) {
  return {mix_bits(mix_bits(ino.value, name_hash), mark_hash), 1};
}

// ---- inodes

/// What other objects are judged by, of an inode. What could not be read is left out, so that no rule says anything
/// about it.
struct InodeSummary {
  using State = format::StateRecord::Kind;

  std::optional<FileType> type;
  std::uint32_t nlink = 0;
  std::optional<State> state;
  std::set<Ino> parents;  ///< of all back-pointers
  Ino first_parent{};     ///< of the first one, the xattr
  /// Of those to the root, the lowest and the highest number of an instance that made one.
  InstanceId oldest_in_root{~std::uint64_t{0}}, youngest_in_root{0};
  Token birth_token;

  void add_pointer(Ino parent, Token token) {
    parents.insert(parent);
    if (parent != root_ino) return;
    oldest_in_root = std::min(oldest_in_root, token.instance);
    youngest_in_root = std::max(youngest_in_root, token.instance);
  }

  bool is_directory() const { return type == FileType::directory; }
  bool is_dead() const { return state == State::dead; }
  bool is_sealed() const { return state == State::sealed; }
  /// As nearly all are: it says of itself that it has one name, in one directory, which must be as its only parent has
  /// it. What is not so plain is kept in memory.
  bool is_plain(Ino ino) const {
    return ino != root_ino && type && state == State::live && nlink == 1 && parents.size() == 1;
  }
};

/// The read that `summary_of` needs, with its range whole.
MetaRead summary_read(Ino ino);
InodeSummary summary_of(const objects::Object& inode);

// ---- the index

struct ScannedInode;

struct DirectoryRecord {
  Ino parent{};               ///< of a plain one
  LinkSum entries;            ///< as they stand in it
  LinkSum claims;             ///< of plain inodes that say that they are in it
  bool seen = false;          ///< otherwise it is only claimed: there is no such directory
  bool is_directory = false;  ///< seen, but attr cannot be read: perhaps
  bool has_detached = false;
  bool names_differ = false;  ///< from the reverse keys, or in their marks
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
  bool is_in_root = false;  ///< one of them
};

/// A plain inode that the queue leads to: perhaps it never got a name.
struct QueuedClaim {
  Ino directory;
  Ino ino;
  FileType type;
  InstanceId oldest_in_root;
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
  /// Any thread, as long as no thread uses the members below.
  void add(Ino ino, const ScannedInode& inode, bool queue_leads_to_it);

  // Guarded by `mutex` while several threads are at work; the tables' keys do not change then.
  Mutex mutex;
  std::unordered_map<Ino, DirectoryRecord> directories;
  std::unordered_map<Ino, SpecialInode> specials;
  std::vector<QueuedClaim> queued;
  std::vector<DirectoryName> names;
  std::uint64_t other_inodes = 0;

  bool is_known_directory(Ino ino) const;
  /// Whether a directory that it points back to was lost: it is not there, or is a root that was made anew since. If such
  /// an inode has no name, that is damage, whatever the queue says (docs/PROTOCOL.md section 5, "Directories go last").
  bool has_lost_directory(Ino ino, const InodeSummary& inode) const;
  /// The same of the root alone; of the pointer that this instance made.
  bool was_in_lost_root(Ino ino, InstanceId pointer_made_by) const;
  /// Whether one that lives and has names still points to a directory that was lost. A collector that counts the names
  /// trims that pointer. Otherwise it keeps the inode for ever once its names are removed.
  bool points_to_lost_directory(Ino ino, const SpecialInode& named) const;

 private:
  bool misses_a_directory(const InodeSummary& inode) const;
};

}  // namespace lccfs::check
