// SPDX-License-Identifier: LGPL-2.1-or-later
// Inodes without a name, and what the queue should lead to.
#include "repair/repairs.h"
#include "txn/reclaim_txn.h"

namespace lccfs::repair {

using format::QueueItem;
namespace xattr = format::xattr;

Result<Repair> Repairs::repair_orphan(const Finding& finding) {
  LCCFS_TRY(const auto inode, objects_.read_inode(finding.ino));
  if (!inode || finding.ino == root_ino) return settled();
  LCCFS_TRY(const auto names, objects_.names_of(*inode, finding.ino));
  if (!names.empty()) return settled();
  if (inode->is_dead()) return leave_to_collector(*inode, finding.ino, "it is dead");
  if (!inode->attr()) return left("attr cannot be read");
  LCCFS_TRY(const auto newer, count_newer_names(*inode, finding.ino));
  if (newer != 0) return left_to_newer(may_be_its_name);
  LCCFS_TRY(const bool wanted, is_wanted(*inode, finding.ino));
  if (!wanted) return leave_to_collector(*inode, finding.ino, "orphans are not wanted");
  LCCFS_TRY(const bool content, has_content(*inode, finding.ino));
  return content ? adopt(*inode, finding.ino, "", {}) : leave_to_collector(*inode, finding.ino, "it is empty");
}

/// Nobody means a whole volume by its orphans: what was there when the store lost the root is as wanted as it was before.
/// So is what an entry of noise may have named, or a repair that was cut was about to name in /lost+found.
Result<bool> Repairs::is_wanted(const Object& inode, Ino ino) {
  if (orphans_ == Orphans::keep) return true;
  LCCFS_TRY(const auto lost_and_found, lost_and_found_->existing());
  LCCFS_TRY(const auto root, objects_.read_keys(format::inode_object(root_ino), {}));
  if (!root || is_of_lost_root(*root, ino)) return true;
  if (lost_and_found && inode.parents().contains(*lost_and_found)) return true;
  LCCFS_TRY(const auto unreadable, unreadable_names(inode, ino));
  return !unreadable.empty();
}

/// Why entries that may be its names cannot be read, in the directories that it points back to.
Result<std::multiset<ErrorCode>> Repairs::unreadable_names(const Object& inode, Ino ino) {
  std::multiset<ErrorCode> why;
  for (const Ino parent : inode.parents()) {
    LCCFS_TRY(const auto directory, objects_.read_inode(parent, format::reverse_key(ino, "")));
    if (directory) LCCFS_CHECK(add_unreadable_names(why, *directory, parent, ino));
  }
  return why;
}

/// Of a newer version, and perhaps its own: these may be the names that it seems to lack.
Result<std::size_t> Repairs::count_newer_names(const Object& inode, Ino ino) {
  LCCFS_TRY(const auto unreadable, unreadable_names(inode, ino));
  return unreadable.count(ErrorCode::unsupported);
}

/// `directory` with the reverse keys of that inode.
Result<> Repairs::add_unreadable_names(std::multiset<ErrorCode>& why, const Object& directory, Ino parent, Ino ino) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : directory.keys) {
    const auto reverse = format::parse_reverse_key(key);
    if (reverse && reverse->ino == ino) keys.push_back(name_of(parent, reverse->name).key);
  }
  if (keys.empty()) return {};
  LCCFS_TRY(const auto entries, objects_.read_keys(directory.name, keys));
  if (!entries) return {};
  for (const auto& [key, value] : entries->keys) {
    const auto entry = format::decode<format::EntryRecord>(value);
    if (!entry) why.insert(entry.error().code);
  }
  return {};
}

/// A root that was made anew tells with its birth token which inodes were there before it.
bool Repairs::is_of_lost_root(const Object& root, Ino ino) {
  const auto attr = root.attr();
  return !attr || ino.value <= attr->birth_token.number;
}

Result<bool> Repairs::has_content(const Object& inode, Ino ino) {
  if (inode.is(FileType::directory)) return objects_.has_key(inode.name, "n/");
  if (!inode.is(FileType::regular) || inode.number(xattr::size) != 0) return true;
  LCCFS_TRY(const auto with_map, objects_.read_inode(ino, "m/"));
  if (!with_map) return false;
  for (const auto& [key, value] : with_map->keys) {
    const auto block = format::parse_map_key(key);
    const auto bits = format::decode<format::MapBlock>(value);
    if (!block || !bits) return true;
    std::vector<ObjectIndex> indexes;
    for (std::uint64_t bit = 0; bit < format::MapBlock::objects; ++bit) {
      if (bits->may_exist[bit]) indexes.push_back({*block * format::MapBlock::objects + bit});
    }
    LCCFS_TRY(const auto there, objects_.with_bytes(ino, indexes));
    if (!there.empty()) return true;
  }
  return false;
}

Result<Repair> Repairs::adopt(const Object& inode, Ino ino, const std::string& old_name,
                              const std::vector<Holder>& pointed_to) {
  if (inode.has_newer_state_or_pointer()) return left_to_newer("its state or back-pointer");
  const auto name = "inode-" + std::to_string(ino.value) + (old_name.empty() ? "" : "-" + old_name);
  LCCFS_TRY(const auto path, lost_and_found_->adopt(inode, ino, name, pointed_to));
  return path ? Repair{true, "is now " + *path} : changed_meanwhile();
}

/// Marked here: of one whose directory was lost the collector does not decide that it is garbage.
Result<Repair> Repairs::leave_to_collector(const Object& inode, Ino ino, std::string why) {
  if (inode.has_newer_state_or_pointer()) return left_to_newer("its state or back-pointer");
  LCCFS_CHECK(log_items({{QueueItem::Kind::inode, ino, {}, clock_.wall_time()}}));
  if (!inode.is_dead()) {
    LCCFS_TRY(const bool marked, objects_.change(txn::mark_unnamed_dead(ino, inode.version)));
    if (!marked) return changed_meanwhile();
  }
  return Repair{true, std::move(why) + ": left to the collector"};
}

Result<> Repairs::log_items(const std::vector<QueueItem>& items) {
  LCCFS_CHECK(instance_->log_items(items));
  objects_.note_change();
  return {};
}

/// The collector finds those names that have a reverse key, in directories that the inode points back to. Without any it
/// would drop the item.
Result<Repair> Repairs::lead_to_lost_pointer(Ino ino) {
  LCCFS_TRY(const auto inode, objects_.read_inode(ino));
  if (!inode) return settled();
  LCCFS_TRY(const auto names, objects_.names_of(*inode, ino));
  if (names.empty()) return settled();
  LCCFS_CHECK(log_items({{QueueItem::Kind::inode, ino, {}, clock_.wall_time()}}));
  return Repair{true, "left to the collector, which trims its back-pointers"};
}

Result<Repair> Repairs::log_traces(const Finding& finding) {
  if (finding.number != 0) return lead_to_lost_pointer(finding.ino);
  const auto now = clock_.wall_time();
  LCCFS_CHECK(
      log_items({{QueueItem::Kind::inode, finding.ino, {}, now}, {QueueItem::Kind::directory, finding.ino, {}, now}}));
  return Repair{true, "logged for the collector"};
}

}  // namespace lccfs::repair
