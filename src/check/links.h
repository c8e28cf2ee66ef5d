// SPDX-License-Identifier: LGPL-2.1-or-later
// Behind the matching: Q, numbers of links, names of directories and paths from the root.
#pragma once

#include <map>
#include <vector>

#include "check/match.h"

namespace lccfs::check {

/// What is wrong with an inode unless a d/ key leads to it, in a directory that the queue names.
class UnlessDetached {
 public:
  /// Does nothing where the queue leads to it by itself.
  void add(const QueueIndex& queue, Ino ino, bool sealed, Finding finding);
  /// Reads the d/ keys, if there is anything to be found at all.
  Result<> report(const NamespaceCheck& check);

 private:
  std::map<Ino, std::vector<Finding>> findings_;
};

// -- links.cpp
/// Numbers of names against nlink; seals.
Result<> check_links(const NamespaceCheck& check, const UnclearInodes& unclear, UnlessDetached& findings);

// -- tree.cpp
void check_several_names(const NamespaceCheck& check);
void check_paths(const NamespaceCheck& check, UnlessDetached& findings);

}  // namespace lccfs::check
