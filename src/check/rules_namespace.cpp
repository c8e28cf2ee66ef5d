// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>

#include "check/rules.h"
#include "check/volume_scan.h"

namespace lccfs::check {

using Kind = Finding::Kind;

void check_numbers(VolumeView& view) {
  if (!view.next_number) return;
  std::uint64_t highest = 0;
  if (!view.inodes.empty()) highest = view.inodes.rbegin()->first.value;
  if (!view.queues.empty()) highest = std::max(highest, view.queues.rbegin()->first.value);
  if (!view.records.empty()) highest = std::max(highest, view.records.rbegin()->value);
  if (highest < *view.next_number) return;
  view.report({.kind = Kind::number_not_given,
               .object = format::alloc_object,
               .text = "hands out " + std::to_string(*view.next_number) + " next, and " + std::to_string(highest) +
                       " is in use",
               .number = highest});
}

void check_fences(VolumeView& view) {
  if (!view.fences || view.highest_fence <= *view.fences) return;
  view.report({.kind = Kind::fences_behind,
               .object = format::super_object,
               .text = "counts " + std::to_string(*view.fences) + " fences, and there is a number " +
                       std::to_string(view.highest_fence),
               .number = view.highest_fence});
}

void check_entries(VolumeView& view) {
  for (const auto& [ino, directory] : view.inodes) {
    for (const auto& [name, entry] : directory.entries) {
      const auto* inode = view.inode(entry.ino);
      const auto what = "entry \"" + printable(name) + "\" for " + format::inode_object(entry.ino);
      const auto report = [&, holder = ino](Kind kind, const char* why) {
        view.report({.kind = kind,
                     .object = format::inode_object(holder),
                     .text = what + why,
                     .target = entry.ino,
                     .name = name});
      };
      if (inode == nullptr) {
        report(Kind::dangling_entry, ", which is not there");
      } else if (inode->is_dead()) {
        report(Kind::dangling_entry, ", which is dead");
      } else if (inode->attr && inode->attr->type != entry.type) {
        report(Kind::wrong_type, ", which is of another type");
      }
    }
  }
}

void check_reverse_keys(VolumeView& view) {
  for (const auto& [ino, directory] : view.inodes) {
    for (const auto& [name, entry] : directory.entries) {
      if (directory.reverse.contains({entry.ino, name})) continue;
      view.report({.kind = Kind::reverse_key,
                   .object = format::inode_object(ino),
                   .text = "entry \"" + printable(name) + "\" has none",
                   .target = entry.ino,
                   .name = name});
    }
    for (const auto& [target, name] : directory.reverse) {
      const auto entry = directory.entries.find(name);
      if (entry != directory.entries.end() && entry->second.ino == target) continue;
      view.report({.kind = Kind::stray_reverse_key,
                   .object = format::inode_object(ino),
                   .text = printable(format::reverse_key(target, name)) + " has no entry",
                   .target = target,
                   .name = name});
    }
  }
}

namespace {

void check_subdirectory_count(VolumeView& view, Ino ino, const InodeObject& directory) {
  std::uint64_t found = 0;
  for (const auto& [name, entry] : directory.entries) found += entry.type == FileType::directory ? 1 : 0;
  if (!directory.nsub || *directory.nsub == found) return;
  view.report({.kind = Kind::subdirectories,
               .object = format::inode_object(ino),
               .text = "nsub is " + std::to_string(*directory.nsub) + ", and there are " + std::to_string(found),
               .number = found});
}

struct Name {
  Ino parent;
  std::string name;
};

/// Of a directory with a further entry, all but one: its back-pointer's rather than another's.
void check_several_names(VolumeView& view, Ino ino, const InodeObject& directory, std::vector<Name> names) {
  std::ranges::stable_partition(names, [&](const Name& name) { return directory.parents.contains(name.parent); });
  for (std::size_t i = ino == root_ino ? 0 : 1; i < names.size(); ++i) {
    view.report({.kind = Kind::several_names,
                 .object = format::inode_object(names[i].parent),
                 .text = "entry \"" + printable(names[i].name) + "\" is one of " + std::to_string(names.size()) +
                         " for the directory " + format::inode_object(ino),
                 .target = ino,
                 .name = names[i].name});
  }
}

std::set<Ino> reachable_inodes(const VolumeView& view) {
  std::set<Ino> reached{root_ino};
  std::vector<Ino> to_visit{root_ino};
  while (!to_visit.empty()) {
    const auto* directory = view.inode(to_visit.back());
    to_visit.pop_back();
    if (directory == nullptr) continue;
    for (const auto& [name, entry] : directory->entries) {
      if (reached.insert(entry.ino).second) to_visit.push_back(entry.ino);
    }
  }
  return reached;
}

}  // namespace

void check_directories(VolumeView& view) {
  std::map<Ino, std::vector<Name>> names;
  for (const auto& [ino, directory] : view.inodes) {
    for (const auto& [name, entry] : directory.entries) {
      const auto* inode = view.inode(entry.ino);
      if (inode != nullptr && inode->is(FileType::directory)) names[entry.ino].push_back({ino, name});
    }
  }
  const auto reached = reachable_inodes(view);
  for (const auto& [ino, inode] : view.inodes) {
    if (inode.is(FileType::directory)) check_subdirectory_count(view, ino, inode);
    if (ino == root_ino && inode.attr && !inode.is(FileType::directory)) {
      view.report({.kind = Kind::corrupt,
                   .object = format::inode_object(ino),
                   .text = "the root is no directory",
                   .part = format::xattr::attr,
                   .seen = encode(*inode.attr)});
    }
    if (!inode.is(FileType::directory)) continue;
    const auto& own_names = names[ino];
    check_several_names(view, ino, inode, own_names);
    // One without any name is what check_queue judges; one whose name is in a lost directory is lost with its own
    // names.
    if (!reached.contains(ino) && (!own_names.empty() || !inode.entries.empty())) {
      view.report({.kind = Kind::unreachable,
                   .object = format::inode_object(ino),
                   .text = "no path from the root leads to it"});
    }
  }
}

}  // namespace lccfs::check
