// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/inodes_as_read.h"

namespace lccfs {

void InodesAsRead::put(const Inode& read) {
  const bool is_small = read.map_is_whole && read.map.blocks().size() <= 1;
  const Lock lock(mutex_);
  if (read.is_directory() || read.lease || !is_small) return inodes_.drop(read.ino);
  const auto now = clock_.elapsed();
  inodes_.put(read.ino, std::make_shared<const Inode>(read), now + kept_for, now);
}

void InodesAsRead::drop(Ino ino) {
  const Lock lock(mutex_);
  inodes_.drop(ino);
}

std::shared_ptr<const Inode> InodesAsRead::get(Ino ino) {
  const Lock lock(mutex_);
  const auto* found = inodes_.get(ino, clock_.elapsed());
  return found != nullptr ? *found : nullptr;
}

}  // namespace lccfs
