// SPDX-License-Identifier: LGPL-2.1-or-later
// Which names of an inode a dump may have, by the line of that inode: one if it says one link, or of a directory;
// otherwise any in its parents. A dump writes no others, and load takes no others: an inode does not point back to them,
// and a collector deletes it once the others are gone. Little memory: of an inode with one name nothing is kept once it
// has that. One thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "txn/load_txn.h"

namespace lccfs::survey {

class AllowedNames {
 public:
  /// Once, before the names of that inode.
  void add(const txn::LoadedInode& line);
  /// One more name in that directory. false: there can be none.
  bool take(Ino ino, Ino directory);
  /// How many inodes have taken none, but for the root.
  std::uint64_t without_name() const;
  /// As the inode is with the names that were taken: a dump of a volume in use may have met a link that was just made or
  /// removed, or may have left out a directory.
  void settle(txn::LoadedInode& line) const;

 private:
  struct Parent {
    Ino directory;
    bool has_name = false;
  };
  struct Inode {
    std::vector<Parent> parents;  // in order
    std::uint32_t names = 0;
    bool has_one_name = false;
  };

  std::unordered_map<Ino, Inode> inodes_;
};

}  // namespace lccfs::survey
