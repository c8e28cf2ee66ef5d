// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/namespace_index.h"

namespace lccfs::check {

void NamespaceIndex::add(Ino ino, const ScannedInode& inode, bool queue_leads_to_it) {
  const auto& summary = inode.summary;
  const bool plain = summary.is_plain(ino);
  const std::lock_guard lock(mutex);
  if (plain) {
    const Ino parent = *summary.parents.begin();
    directories[parent].claims += link(parent, ino, *summary.type);
    if (queue_leads_to_it) queued.push_back({parent, ino, *summary.type});
  } else {
    specials[ino].summary = summary;
  }
  if (!summary.is_directory()) ++other_inodes;
  if (summary.type && !summary.is_directory()) return;
  auto& record = directories[ino];
  if (plain) record.parent = *summary.parents.begin();
  record.entries = inode.entries;
  record.seen = true;
  record.is_directory = summary.is_directory();
  record.has_detached = inode.has_detached;
  record.names_differ = inode.names != inode.reverse;
}

bool NamespaceIndex::is_known_directory(Ino ino) const {
  const auto found = directories.find(ino);
  return found != directories.end() && found->second.seen;
}

}  // namespace lccfs::check
