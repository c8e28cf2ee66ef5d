// SPDX-License-Identifier: LGPL-2.1-or-later
// What the queues of all instances say, item by item as a collector would read them.
#pragma once

#include <map>
#include <unordered_set>

#include "format/records.h"

namespace lccfs::check {

class QueueIndex {
 public:
  void add(const format::QueueItem& item);

  bool names_directory(Ino ino) const { return directories_.contains(ino); }
  /// By an item of its own, or a range. A d/ key may lead to it all the same, or a seal (of a directory that is named).
  bool leads_to(Ino ino) const;
  bool leads_to(Ino ino, bool sealed) const { return leads_to(ino) || (sealed && names_directory(ino)); }

 private:
  std::unordered_set<Ino> inodes_;
  std::unordered_set<Ino> directories_;
  std::map<Ino, Ino> ranges_;  // merged: from the first number to one past the last
};

}  // namespace lccfs::check
