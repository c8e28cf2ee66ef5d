// SPDX-License-Identifier: LGPL-2.1-or-later
// Entries against the inodes that they name: V, P, types. Directories whose sums agree need no look; of the others the
// entries are read again, and only where that is not enough, inodes.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "check/namespace_check.h"
#include "check/unless_detached.h"

namespace lccfs::check {

/// Plain inodes whose names are to be counted, for one was met that is not the one in their parent: with the directories
/// where that was.
using UnclearInodes = std::map<Ino, std::set<Ino>>;

class Matcher {
 public:
  Matcher(const NamespaceCheck& check, UnlessDetached& findings) : check_(check), findings_(findings) {}

  /// Behind it the index knows the names of all directories and special inodes; plain inodes without any are told.
  Result<UnclearInodes> run();

 private:
  Result<> examine(ReadWindow& window, Ino directory);
  Result<> examine_missing(Ino directory);
  Result<LinkSum> look_at_specials(Ino directory);
  Result<LinkSum> find_nameless(ReadWindow& window, Ino directory);
  Result<LinkSum> find_queued_nameless(Ino directory);
  using OnNameless = std::function<Result<>(Ino, FileType)>;
  Result<> for_each_detached_nameless(ReadWindow& window, Ino directory, const OnNameless& work);
  Result<> match_one_by_one(ReadWindow& window, Ino directory, const LinkSum& nameless);
  Result<> look_at_lost_detached();
  Result<> look_for_unexplained();
  Result<> look_for_unexplained_among(ReadWindow& window, const std::vector<std::string>& names);

  void judge_entry(Ino directory, const NamedEntry& entry, const InodeSummary* inode);
  void remember_name(Ino directory, const NamedEntry& entry);
  void remember_unclear(Ino ino, Ino met_in);
  void note_lost_name(Ino ino);
  bool is_named_elsewhere(Ino ino);

  const NamespaceCheck check_;
  UnlessDetached& findings_;
  std::mutex mutex_;  // guards what follows
  UnclearInodes unclear_;
  std::unordered_set<Ino> unexplained_;    // directories that inodes claim that were not found yet
  std::unordered_set<Ino> lost_detached_;  // directories with d/ keys that the queue does not name
};

}  // namespace lccfs::check
