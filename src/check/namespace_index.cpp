// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/namespace_index.h"

#include "check/inode_scan.h"
#include "format/object_names.h"

namespace lccfs::check {

namespace xattr = format::xattr;

MetaRead summary_read(Ino ino) {
  return {.object = format::inode_object(ino), .xattrs = true, .ranges = {{"p/", "", objects::keys_at_once}}};
}

InodeSummary summary_of(const objects::Object& inode) {
  InodeSummary summary;
  if (const auto attr = inode.find<format::AttrRecord>(xattr::attr)) {
    summary.type = attr->type;
    summary.nlink = attr->nlink;
    summary.birth_token = attr->birth_token;
  }
  if (const auto state = inode.find<format::StateRecord>(xattr::state)) summary.state = state->kind;
  if (const auto pointer = inode.find<format::BackPointerRecord>(xattr::parent)) {
    summary.first_parent = pointer->parent;
    summary.add_pointer(pointer->parent, pointer->token);
  }
  for (const auto& [key, value] : inode.ranges.front().entries) {
    if (const auto pointer = format::parse_back_pointer_key(key)) summary.add_pointer(pointer->parent, pointer->token);
  }
  return summary;
}

void NamespaceIndex::add(Ino ino, const ScannedInode& inode, bool queue_leads_to_it) {
  const auto& summary = inode.summary;
  const bool plain = summary.is_plain(ino);
  const Lock lock(mutex);
  if (plain) {
    const Ino parent = *summary.parents.begin();
    directories[parent].claims += link(parent, ino, *summary.type);
    if (queue_leads_to_it) queued.push_back({parent, ino, *summary.type, summary.oldest_in_root});
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

bool NamespaceIndex::was_in_lost_root(Ino ino, InstanceId pointer_made_by) const {
  const auto root = specials.find(root_ino);
  return root != specials.end() && format::leads_to_lost_root(root->second.summary.birth_token, ino, pointer_made_by);
}

bool NamespaceIndex::has_lost_directory(Ino ino, const InodeSummary& inode) const {
  if (inode.state != InodeSummary::State::live) return false;
  return misses_a_directory(inode) || was_in_lost_root(ino, inode.oldest_in_root);
}

/// Who has a name in the root keeps the youngest pointer to it.
bool NamespaceIndex::points_to_lost_directory(Ino ino, const SpecialInode& named) const {
  const auto& inode = named.summary;
  if (inode.state != InodeSummary::State::live) return false;
  if (misses_a_directory(inode)) return true;
  const bool keeps_one = named.is_in_root && was_in_lost_root(ino, inode.youngest_in_root);
  return was_in_lost_root(ino, inode.oldest_in_root) && !keeps_one;
}

bool NamespaceIndex::misses_a_directory(const InodeSummary& inode) const {
  return std::ranges::any_of(inode.parents, [this](Ino parent) { return !is_known_directory(parent); });
}

}  // namespace lccfs::check
