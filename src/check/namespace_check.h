// SPDX-License-Identifier: LGPL-2.1-or-later
// The rules over several inodes, when all of them were scanned: entries against the inodes that they name, numbers of
// links, one name and a path from the root for each directory, and what the queue leads to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "check/directory_reader.h"
#include "check/namespace_index.h"
#include "check/streaming.h"
#include "check/volume_facts.h"

namespace lccfs::check {

/// What the rules over several inodes work with. All members outlive them.
struct NamespaceCheck {
  ObjectStore& store;
  const VolumeFacts& facts;
  NamespaceIndex& index;
  DirectoryReader& directories;
  Sink& sink;
  Effort effort;
};

/// Doubts that a d/ key would explain: what is wrong with an inode unless such a key leads to it, in a directory that
/// the queue names. Holds little, and not for long: whenever there are `room` of them, those keys are read, and what no
/// key explains is reported. Any thread.
class UnlessDetached {
 public:
  /// 2 MiB.
  static constexpr std::size_t usual_room = 65536;
  explicit UnlessDetached(const NamespaceCheck& check, std::size_t room = usual_room) : check_(check), room_(room) {}

  /// What else may explain it: an item that leads to the inode; of a sealed one, also that of its directory; or nothing,
  /// not even such a key, where its directory was lost.
  enum class Unless { queued, queued_or_sealed, nothing };
  Unless what_explains(Ino ino, const InodeSummary& nameless) const {
    if (check_.index.has_lost_directory(ino, nameless)) return Unless::nothing;
    return nameless.is_sealed() ? Unless::queued_or_sealed : Unless::queued;
  }

  /// One without any name, as far as entries go.
  Result<> add_orphan(Ino ino, std::uint32_t nlink, Unless unless) {
    return add({.ino = ino, .kind = Finding::Kind::orphan, .nlink = nlink}, unless);
  }
  /// An inode with that many names, which are none or not its nlink. Does nothing where the queue leads to it by
  /// itself.
  Result<> add_links(Ino ino, const InodeSummary& inode, std::uint64_t names);
  /// Sealed.
  Result<> add_seal(Ino ino) { return add({.ino = ino, .kind = Finding::Kind::lost_trace}, Unless::queued_or_sealed); }
  /// It points back to a directory that was lost, and has all its names elsewhere.
  Result<> add_lost_pointer(Ino ino, std::uint64_t names) {
    return add({.ino = ino, .kind = Finding::Kind::lost_trace, .names = names}, Unless::queued);
  }
  /// The topmost of a lost tree.
  Result<> add_unreachable(Ino ino, Unless unless) {
    return add({.ino = ino, .kind = Finding::Kind::unreachable}, unless);
  }
  /// What is left.
  Result<> finish();
  std::size_t held() const;

 private:
  struct Doubt {
    Ino ino;
    Finding::Kind kind;
    std::uint32_t nlink = 0;
    std::uint64_t names = 0;
    Unless unless = Unless::queued;
    auto operator<=>(const Doubt&) const = default;
  };
  Result<> add(Doubt doubt, Unless unless);
  Result<> settle() REQUIRES(mutex_);
  static Finding finding_of(const Doubt& doubt);

  const NamespaceCheck check_;
  const std::size_t room_;
  mutable Mutex mutex_;  // held while they are settled, so that there are no more of them
  std::vector<Doubt> doubts_ GUARDED_BY(mutex_);
};

// -- match.cpp: V, P and types. Directories whose sums agree need no look; of the others the entries are read again,
// and only where that is not enough, inodes.

/// Plain inodes whose names are to be counted, for one was met that is not the one in their parent: with the
/// directories where that was.
using UnclearInodes = std::map<Ino, std::set<Ino>>;
/// After it the index knows the names of all directories and special inodes; plain inodes without any are told.
Result<UnclearInodes> match_entries(const NamespaceCheck& check, UnlessDetached& findings);

// -- links.cpp: after that
/// Numbers of names against nlink; seals.
Result<> check_links(const NamespaceCheck& check, const UnclearInodes& unclear, UnlessDetached& findings);
/// Every directory but the root has one name.
void check_several_names(const NamespaceCheck& check);
/// And a path from the root.
Result<> check_paths(const NamespaceCheck& check, UnlessDetached& findings);

}  // namespace lccfs::check
