// SPDX-License-Identifier: LGPL-2.1-or-later
#include "survey/allowed_names.h"

#include <algorithm>

namespace lccfs::survey {

void AllowedNames::add(const txn::LoadedInode& line) {
  Inode inode;
  inode.has_one_name = line.attr.type == FileType::directory || line.attr.nlink == 1;
  inode.parents.reserve(line.parents.size());
  for (const Ino parent : line.parents) inode.parents.push_back({parent});
  inodes_.emplace(line.ino, std::move(inode));
}

bool AllowedNames::take(Ino ino, Ino directory) {
  const auto found = inodes_.find(ino);
  if (found == inodes_.end()) return false;
  auto& inode = found->second;
  const auto parent = std::ranges::lower_bound(inode.parents, directory, {}, &Parent::directory);
  if (parent == inode.parents.end() || parent->directory != directory) return false;
  if (inode.has_one_name && inode.names > 0) return false;
  parent->has_name = true;
  ++inode.names;
  if (inode.has_one_name && inode.parents.size() == 1) inodes_.erase(found);
  return true;
}

std::uint64_t AllowedNames::without_name() const {
  const auto count =
      std::ranges::count_if(inodes_, [](const auto& one) { return one.first != root_ino && one.second.names == 0; });
  return static_cast<std::uint64_t>(count);
}

void AllowedNames::settle(txn::LoadedInode& line) const {
  const auto found = inodes_.find(line.ino);
  if (found == inodes_.end()) return;
  const auto& inode = found->second;
  // A collector would take a directory that is not there for lost, and keep the inode.
  for (const auto& parent : inode.parents) {
    if (!parent.has_name) line.parents.erase(parent.directory);
  }
  if (line.attr.type != FileType::directory && inode.names > 0) line.attr.nlink = inode.names;
}

}  // namespace lccfs::survey
