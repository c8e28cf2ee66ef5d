// SPDX-License-Identifier: LGPL-2.1-or-later
// Entries against the inodes that they name: V, P, types. Directories whose sums agree need no look; of the others the
// entries are read again, and only where that is not enough, inodes.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "check/names_in.h"
#include "check/namespace_index.h"
#include "check/stream.h"
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

/// Plain inodes whose names are to be counted (more or less than the one in their parent), with the directories where
/// a name was met that is not in their parent.
using UnclearInodes = std::map<Ino, std::set<Ino>>;

class Matcher {
 public:
  explicit Matcher(const NamespaceCheck& check) : check_(check) {}

  /// Behind it the index knows the names of all directories and special inodes.
  Result<UnclearInodes> run();

 private:
  Result<> examine(ReadWindow& window, Ino directory);
  Result<> examine_missing(Ino directory);
  Result<LinkSum> look_at_specials(Ino directory);
  Result<LinkSum> find_nameless(ReadWindow& window, Ino directory);
  Result<LinkSum> find_queued_nameless(Ino directory);
  Result<LinkSum> find_detached_nameless(ReadWindow& window, Ino directory);
  Result<> match_one_by_one(ReadWindow& window, Ino directory, const LinkSum& nameless);
  Result<> look_for_unexplained();
  Result<> look_for_unexplained_among(ReadWindow& window, const std::vector<std::string>& names);

  void judge_entry(Ino directory, const NamedEntry& entry, const InodeSummary* inode);
  void remember_name(Ino directory, const NamedEntry& entry);
  void remember_unclear(Ino ino, Ino met_in);
  void note_lost_name(Ino ino);

  const NamespaceCheck check_;
  std::mutex mutex_;  // guards what follows
  UnclearInodes unclear_;
  std::unordered_set<Ino> unexplained_;  // directories that inodes claim that were not found yet
};

}  // namespace lccfs::check
