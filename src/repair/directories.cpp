// SPDX-License-Identifier: LGPL-2.1-or-later
// Directories: one name each, a path from the root, and the count of subdirectories.
#include <algorithm>

#include "repair/outcome.h"
#include "repair/repairs.h"

namespace lccfs::repair {

namespace xattr = format::xattr;

/// False: the entry is no longer as it was read.
Result<bool> Repairs::drop_name(const Holder& holder, Ino ino) {
  const auto name = name_of(holder.directory, holder.name);
  LCCFS_TRY(const auto directory, objects_.read_keys(format::inode_object(holder.directory), {name.key}));
  const auto entry = directory ? directory->entry(name.key) : std::nullopt;
  if (!entry || entry->record != holder.entry) return false;
  auto nsub = directory->number(xattr::nsub);
  if (entry->record.type != FileType::directory || nsub.value_or(0) == 0) nsub.reset();
  if (nsub) --*nsub;
  return objects_.change(txn::drop_entry(directory->as_read, name, ino, nsub));
}

/// A directory that points back to whoever keeps it, and then loses this name.
Result<Repair> Repairs::drop_further_name(const Finding& finding) {
  LCCFS_TRY(auto names, objects_.names_in(finding.ino, finding.target));
  const auto further = std::ranges::find(names, finding.name, &Holder::name);
  if (further == names.end()) return settled();
  const Holder dropped = *further;
  if (finding.target != root_ino) {
    LCCFS_TRY(const auto inode, objects_.read_inode(finding.target, "p/"));
    if (!inode) return settled();
    LCCFS_TRY(auto others, objects_.names_of(*inode, finding.target));
    std::erase_if(others, [&](const Holder& other) {
      return other.directory == dropped.directory && other.name == dropped.name;
    });
    if (others.empty()) return settled();
    const auto parent = inode->record<format::BackPointerRecord>(xattr::parent);
    const auto kept =
        std::ranges::find_if(others, [&](const Holder& other) { return parent && other.directory == parent->parent; });
    if (kept == others.end()) {
      const auto& first = others.front();
      LCCFS_TRY(const bool pointed,
                objects_.change(txn::point_back(inode->as_read, {first.directory, first.entry.token},
                                                {{dropped.directory, dropped.entry.token}})));
      if (!pointed) return stepped(false, {});
    }
  }
  LCCFS_TRY(const bool done, drop_name(dropped, finding.target));
  return stepped(done, "this name is removed");
}

// ---- paths from the root

/// From a directory that has a name: to the root, back to itself, or neither: then another directory is to be named.
Result<Repairs::Way> Repairs::way_up(Ino directory) {
  std::set<Ino> seen;
  std::vector<Ino> to_visit{directory};
  bool around = false;
  while (!to_visit.empty()) {
    const Ino ino = to_visit.back();
    to_visit.pop_back();
    if (ino == root_ino) return Way::to_root;
    around = around || (ino == directory && !seen.empty());
    if (!seen.insert(ino).second) continue;
    LCCFS_TRY(const auto inode, objects_.read_inode(ino, "p/"));
    if (!inode) continue;
    LCCFS_TRY(const auto names, objects_.names_of(*inode, ino));
    for (const auto& holder : names) to_visit.push_back(holder.directory);
  }
  return around ? Way::around : Way::to_lost_top;
}

Result<Repair> Repairs::reconnect(const Finding& finding) {
  LCCFS_TRY(const auto inode, objects_.read_inode(finding.ino, "p/"));
  if (!inode) return settled();
  LCCFS_TRY(const auto names, objects_.names_of(*inode, finding.ino));
  if (names.empty()) return repair_orphan(finding);
  LCCFS_TRY(const auto way, way_up(finding.ino));
  return way == Way::around ? break_loop(*inode, finding.ino, names) : settled();
}

/// Cut short behind the new name, it leaves a directory with a further name, and its first back-pointer says which
/// stays.
Result<Repair> Repairs::break_loop(const Object& inode, Ino ino, const std::vector<Holder>& names) {
  if (!inode.attr()) return left("attr cannot be read");
  LCCFS_TRY(const auto path, lost_and_found_.adopt(inode, ino, "inode-" + std::to_string(ino.value), names));
  if (!path) return stepped(false, {});
  for (const auto& holder : names) LCCFS_CHECK(drop_name(holder, ino));
  return Repair{true, "is now " + *path};
}

Result<Repair> Repairs::count_subdirectories(const Finding& finding) {
  LCCFS_TRY(const auto directory, objects_.read_inode(finding.ino, "n/"));
  if (!directory) return settled();
  const auto found = std::ranges::count_if(directory->keys, [&](const auto& key_and_value) {
    const auto entry = directory->entry(key_and_value.first);
    return entry && entry->record.type == FileType::directory;
  });
  const auto count = static_cast<std::uint64_t>(found);
  if (directory->number(xattr::nsub) == count) return settled();
  return put(*directory, {xattr::nsub}, encode(format::NumberRecord{count}), "nsub is " + std::to_string(count));
}

}  // namespace lccfs::repair
