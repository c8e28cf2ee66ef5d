// SPDX-License-Identifier: LGPL-2.1-or-later
// Entries, reverse keys and back-pointers; of directories one name each, a path from the root, and the count of
// subdirectories.
#include <algorithm>

#include "repair/repairs.h"

namespace lccfs::repair {

namespace xattr = format::xattr;

Result<Repair> Repairs::add_reverse_key(const Finding& finding) {
  const auto name = name_of(finding.ino, finding.name);
  const txn::Part reverse{format::reverse_key(finding.target, finding.name), true};
  LCCFS_TRY(const auto directory, objects_.read_keys(finding.object, {name.key, reverse.name}));
  const auto entry = directory ? directory->entry(name.key) : std::nullopt;
  if (!entry || entry->record.ino != finding.target || directory->value_of(reverse) != nullptr) return settled();
  return restore_entry(*directory, name, entry->record, "set");
}

/// The entry went and the reverse key stayed: every step takes both, so that was damage, and an inode that lacks a name
/// gets it back: also if its back-pointer went, too. (Of a name that stands the pointer was set before, so it is counted.)
/// If nobody can read what the name means, it may be this inode: that is no orphan which nobody wants.
Result<Repair> Repairs::repair_stray_reverse_key(const Finding& finding) {
  const auto name = name_of(finding.ino, finding.name);
  const txn::Part reverse{format::reverse_key(finding.target, finding.name), true};
  LCCFS_TRY(const auto directory, objects_.read_keys(finding.object, {name.key, reverse.name}));
  if (!directory || directory->value_of(reverse) == nullptr) return settled();
  const auto entry = directory->entry(name.key);
  if (entry && entry->record.ino == finding.target) return settled();
  if (directory->is_newer<format::EntryRecord>({name.key, true})) return left_to_newer("the entry of that name");
  if (directory->is_dead()) return drop(*directory, reverse, "removed");  // a name in it would go with it
  LCCFS_TRY(const auto target, objects_.read_inode(finding.target));
  const bool may_have_names = target && !target->is_dead() && finding.target != root_ino;
  if (!may_have_names) return drop(*directory, reverse, "removed");
  if (!target->attr()) return left("attr of the inode cannot be read");
  LCCFS_TRY(const auto others, standing_names(*target, finding.target));
  if (others.size() >= target->attr()->nlink) return drop(*directory, reverse, "removed");
  LCCFS_TRY(const auto newer, count_newer_names(*target, finding.target));
  if (others.size() + newer >= target->attr()->nlink) return left_to_newer(may_be_its_name);
  const auto lost = entry_of(*directory->value_of(reverse), finding.target, *target->attr());
  const bool points_here = target->parents().contains(finding.ino);
  if (!directory->keys.contains(name.key)) {
    if (!points_here) {  // comes first: a collector would not find the name
      LCCFS_TRY(auto pointed, point_back(*target, {{finding.ino, finding.name, lost}}));
      if (!pointed.done) return pointed;
    }
    return restore_entry(*directory, name, lost, "its entry is there again");
  }
  if (entry) {
    LCCFS_TRY(const bool wanted, is_wanted_beside_another(finding));
    if (!wanted || !points_here || !others.empty()) return drop(*directory, reverse, "removed");
  }
  if (!others.empty()) return left("the entry of that name cannot be read");
  // It keeps pointing here until it has its new name: a repair that is cut short finds the old one again.
  LCCFS_TRY(auto adopted, adopt(*target, finding.target, finding.name, {{finding.ino, finding.name, lost}}));
  if (!adopted.done) return adopted;
  return drop(*directory, reverse, adopted.text);
}

/// The name means another inode by now: the reverse key alone still tells what a lost inode was called. One that has
/// lost a name here may have lost this one to the other.
Result<bool> Repairs::is_wanted_beside_another(const Finding& finding) {
  if (orphans_ == Orphans::remove) return false;
  LCCFS_TRY(const bool lost_a_name, objects_.has_key(finding.object, format::detached_prefix(finding.target)));
  return !lost_a_name;
}

Result<Repair> Repairs::repair_type(const Finding& finding) {
  const auto name = name_of(finding.ino, finding.name);
  LCCFS_TRY(const auto directory, objects_.read_keys(finding.object, {name.key}));
  const auto entry = directory ? directory->entry(name.key) : std::nullopt;
  if (!entry || entry->record.ino != finding.target) return settled();
  LCCFS_TRY(const auto target, objects_.read_inode(finding.target));
  if (!target || !target->attr()) return left("the type of the inode cannot be read");
  auto right = entry->record;
  right.type = target->attr()->type;
  if (right == entry->record) return settled();
  return step(txn::put_entry(directory->as_read(), name, right, std::nullopt), "the entry has the inode's type");
}

/// Its inode may be there again by now, made anew from its data: then it counts on the name. Bytes of a first object are
/// not told as data without an inode where a range leads to them: that they are no early ones the name proves.
Result<Repair> Repairs::drop_dangling_entry(const Finding& finding) {
  const auto name = name_of(finding.ino, finding.name);
  LCCFS_TRY(const auto directory, objects_.read_keys(finding.object, {name.key}));
  const auto entry = directory ? directory->entry(name.key) : std::nullopt;
  if (!entry || entry->record.ino != finding.target) return settled();
  LCCFS_TRY(auto target, objects_.read_inode(finding.target));
  if (!target && entry->record.type == FileType::regular) {
    LCCFS_TRY(const auto byte, objects_.read_data(format::data_object(finding.target, ObjectIndex{0}), 0, 1));
    if (!byte.empty()) {
      LCCFS_CHECK(make_inode_for_data(finding.target, {ObjectIndex{0}}));
      LCCFS_TRY(target, objects_.read_inode(finding.target));
    }
  }
  if (target && !target->is_dead()) {
    if (target->parents().contains(finding.ino)) return settled();
    return point_back(*target, {{finding.ino, finding.name, entry->record}});
  }
  LCCFS_TRY(const bool done, drop_name({finding.ino, finding.name, entry->record}, finding.target));
  return done ? Repair{true, "the entry is removed"} : changed_meanwhile();
}

// ---- P

/// The first back-pointer is one of a directory that has a name for it; of what is no directory half a name will do: the
/// count of links looks for names that nobody can read where it leads. Others need no key. One that a newer version has written stays.
Result<Repair> Repairs::point_back(const Object& inode, const std::vector<Holder>& names) {
  const auto& first = names.front();
  const txn::Part further{format::back_pointer_key(first.directory, first.entry.token), true};
  const auto parent = inode.find<format::BackPointerRecord>(xattr::parent);
  bool stays = inode.has_newer_pointer();
  if (parent) {
    const Ino ino = first.entry.ino, leads_to = parent->parent;
    if (inode.is(FileType::directory)) {
      LCCFS_TRY(const auto there, objects_.names_in(leads_to, ino));
      stays = !there.empty();
    } else {
      LCCFS_TRY(stays, objects_.has_key(format::inode_object(leads_to), format::reverse_key(ino, "")));
    }
  }
  if (stays) return put(inode, further, Bytes(format::marker_value), "points back there, too");
  return step(txn::point_back(inode.as_read(), {first.directory, first.entry.token}, {}),
              "points back to " + format::inode_object(first.directory));
}

Result<Repair> Repairs::add_back_pointer(const Finding& finding) {
  LCCFS_TRY(const auto names, objects_.names_in(finding.target, finding.ino));
  LCCFS_TRY(const auto inode, objects_.read_inode(finding.ino));
  if (names.empty() || !inode || inode->parents().contains(finding.target)) return settled();
  if (inode->is(FileType::directory)) {  // a further name is found by itself, and goes
    LCCFS_TRY(const auto others, standing_names(*inode, finding.ino));
    if (!others.empty() || finding.ino == root_ino) return settled();
  }
  return point_back(*inode, names);
}

/// An instance that has removed a name may be about to correct the count, and a name with a mark may be none: recount
/// waits for both (docs/PROTOCOL.md section 5). Of directories it counts nothing. A name that nobody can read counts
/// there, as its reverse key does, and is none for a check: the two would never agree.
Result<Repair> Repairs::count_links(const Finding& finding) {
  LCCFS_TRY(const auto inode, objects_.read_inode(finding.ino));
  auto attr = inode ? inode->attr() : std::nullopt;
  if (!attr) return settled();
  LCCFS_TRY(const auto names, objects_.names_of(*inode, finding.ino));
  if (names.empty() || names.size() == attr->nlink) return settled();
  if (!inode->is(FileType::directory)) {
    LCCFS_TRY(const auto unreadable, unreadable_names(*inode, finding.ino));
    if (!unreadable.empty()) return left("one of its names cannot be read");
    LCCFS_CHECK(log_items({{format::QueueItem::Kind::inode, finding.ino, {}, clock_.wall_time()}}));
    return Repair{true, "left to the collector, which counts its names"};
  }
  attr->nlink = static_cast<std::uint32_t>(names.size());
  return put(*inode, {xattr::attr}, encode(*attr), "nlink is " + std::to_string(names.size()));
}

// ---- names of directories

/// False: the entry is no longer as it was read.
Result<bool> Repairs::drop_name(const Holder& holder, Ino ino) {
  const auto name = name_of(holder.directory, holder.name);
  LCCFS_TRY(const auto directory, objects_.read_keys(format::inode_object(holder.directory), {name.key}));
  const auto entry = directory ? directory->entry(name.key) : std::nullopt;
  if (!entry || entry->record != holder.entry) return false;
  auto nsub = directory->number(xattr::nsub);
  if (entry->record.type != FileType::directory || nsub.value_or(0) == 0) nsub.reset();
  if (nsub) --*nsub;
  return objects_.change(txn::drop_entry(directory->as_read(), name, ino, nsub));
}

/// Makes a directory point back to the parent that keeps it, and then removes this name. Of two names of a move that is
/// over it is always the old one: the collector would remove that, too, and then there would be none.
Result<Repair> Repairs::drop_further_name(const Finding& finding) {
  LCCFS_TRY(const auto here, objects_.names_in(finding.ino, finding.target));
  const auto further = std::ranges::find(here, finding.name, &Holder::name);
  if (further == here.end()) return settled();
  Holder dropped = *further;
  if (finding.target != root_ino) {
    LCCFS_TRY(const auto inode, objects_.read_inode(finding.target));
    if (!inode) return settled();
    LCCFS_TRY(auto names, objects_.names_of(*inode, finding.target));
    if (!inode->parents().contains(finding.ino)) names.insert(names.end(), here.begin(), here.end());
    std::vector<Holder> others;
    for (const auto& name : names) {
      LCCFS_TRY(const bool moved_away, has_moved_away(name, names));
      if (moved_away) {
        dropped = name;
      } else {
        others.push_back(name);
      }
    }
    std::erase_if(others, [&](const Holder& other) {
      return other.directory == dropped.directory && other.name == dropped.name;
    });
    if (others.empty()) return settled();
    const auto parent = inode->find<format::BackPointerRecord>(xattr::parent);
    const auto kept =
        std::ranges::find_if(others, [&](const Holder& other) { return parent && other.directory == parent->parent; });
    if (kept == others.end()) {
      if (inode->has_newer_pointer()) return left_to_newer("the directory's back-pointer");
      const auto& first = others.front();
      LCCFS_TRY(const bool pointed,
                objects_.change(txn::point_back(inode->as_read(), {first.directory, first.entry.token},
                                                {{dropped.directory, dropped.entry.token}})));
      if (!pointed) return changed_meanwhile();
    }
  }
  LCCFS_TRY(const bool done, drop_name(dropped, finding.target));
  if (!done) return changed_meanwhile();
  LCCFS_CHECK(log_items({{format::QueueItem::Kind::inode, finding.target, {}, clock_.wall_time()}}));
  const bool is_this = dropped.directory == finding.ino && dropped.name == finding.name;
  return Repair{true, is_this ? "this name is removed" : "it has moved here: its old name is removed"};
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
    LCCFS_TRY(const auto inode, objects_.read_inode(ino));
    if (!inode) continue;
    LCCFS_TRY(const auto names, objects_.names_of(*inode, ino));
    for (const auto& holder : names) to_visit.push_back(holder.directory);
  }
  return around ? Way::around : Way::to_lost_top;
}

Result<Repair> Repairs::reconnect(const Finding& finding) {
  LCCFS_TRY(const auto inode, objects_.read_inode(finding.ino));
  if (!inode) return settled();
  LCCFS_TRY(const auto names, objects_.names_of(*inode, finding.ino));
  if (names.empty()) return repair_orphan(finding);
  LCCFS_TRY(const auto way, way_up(finding.ino));
  return way == Way::around ? break_loop(*inode, finding.ino, names) : settled();
}

/// Cut short after the new name, it leaves a directory with a further name, and its first back-pointer says which
/// stays.
Result<Repair> Repairs::break_loop(const Object& inode, Ino ino, const std::vector<Holder>& names) {
  if (!inode.attr()) return left("attr cannot be read");
  LCCFS_TRY(auto adopted, adopt(inode, ino, "", names));
  if (!adopted.done) return adopted;
  for (const auto& holder : names) LCCFS_CHECK(drop_name(holder, ino));
  return adopted;
}

Result<Repair> Repairs::count_subdirectories(const Finding& finding) {
  LCCFS_TRY(const auto directory, objects_.read_keys(finding.object, {}));
  if (!directory) return settled();
  std::uint64_t count = 0;
  bool newer = false;
  LCCFS_CHECK(objects_.for_each_key(finding.object, "n/", [&](const std::string&, const Bytes& value) -> Result<> {
    const auto entry = format::decode<format::EntryRecord>(value);
    if (entry && entry->type == FileType::directory) ++count;
    newer = newer || is_of_newer_version<format::EntryRecord>(value);
    return {};
  }));
  if (newer) return left_to_newer("one of its entries");
  if (directory->number(xattr::nsub) == count) return settled();
  return put(*directory, {xattr::nsub}, encode(format::NumberRecord{count}), "nsub is " + std::to_string(count));
}

}  // namespace lccfs::repair
