// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/small_files.h"

#include <algorithm>

namespace lccfs::check {

void SmallFiles::add(const SmallFile& file) {
  const std::lock_guard lock(mutex_);
  if (files_.size() < most_files) files_.push_back(file);
}

std::vector<SmallFile> SmallFiles::find(const std::vector<Ino>& inodes) {
  const std::lock_guard lock(mutex_);
  const auto middle = files_.begin() + static_cast<std::ptrdiff_t>(in_order_);
  std::ranges::sort(middle, files_.end(), {}, &SmallFile::ino);
  std::ranges::inplace_merge(files_.begin(), middle, files_.end(), {}, &SmallFile::ino);
  in_order_ = files_.size();
  std::vector<SmallFile> found;
  auto from = files_.begin();
  for (const Ino ino : inodes) {
    from = std::ranges::lower_bound(from, files_.end(), ino, {}, &SmallFile::ino);
    if (from == files_.end()) break;
    if (from->ino == ino) found.push_back(*from);
  }
  return found;
}

}  // namespace lccfs::check
