// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/queue_index.h"

#include <algorithm>
#include <iterator>

namespace lccfs::check {

void QueueIndex::add(const format::QueueItem& item) {
  if (item.kind == format::QueueItem::Kind::inode) inodes_.insert(item.ino);
  if (item.kind == format::QueueItem::Kind::directory) directories_.insert(item.ino);
  if (item.kind != format::QueueItem::Kind::range) return;
  Ino first = item.ino, end = item.end;
  auto next = ranges_.upper_bound(end);
  while (next != ranges_.begin() && std::prev(next)->second >= first) {
    --next;
    first = std::min(first, next->first);
    end = std::max(end, next->second);
    next = ranges_.erase(next);
  }
  ranges_.emplace(first, end);
}

bool QueueIndex::leads_to(Ino ino) const {
  if (inodes_.contains(ino)) return true;
  const auto behind = ranges_.upper_bound(ino);
  return behind != ranges_.begin() && ino < std::prev(behind)->second;
}

}  // namespace lccfs::check
