// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/rules.h"
#include "check/volume_scan.h"

namespace lccfs::check {

using Kind = Finding::Kind;

void check_numbers(VolumeView& view) {
  if (!view.next_number) return;
  const auto next = *view.next_number;
  const auto check = [&view, next](std::uint64_t number, const std::string& object) {
    if (number >= next)
      view.report(Kind::number_not_given, object, "Alloc hands out " + std::to_string(next) + " next");
  };
  for (const auto& [ino, inode] : view.inodes) check(ino.value, format::inode_object(ino));
  for (const auto& [instance, queue] : view.queues) check(instance.value, format::session_object(instance));
  for (const auto instance : view.records) check(instance.value, format::super_object);
}

void check_entries(VolumeView& view) {
  for (const auto& [ino, directory] : view.inodes) {
    for (const auto& [name, entry] : directory.entries) {
      const auto* inode = view.inode(entry.ino);
      const auto what = "entry \"" + printable(name) + "\" for " + format::inode_object(entry.ino);
      if (inode == nullptr) {
        view.report(Kind::dangling_entry, format::inode_object(ino), what + ", which is not there");
      } else if (inode->is_dead()) {
        view.report(Kind::dangling_entry, format::inode_object(ino), what + ", which is dead");
      } else if (inode->attr && inode->attr->type != entry.type) {
        view.report(Kind::wrong_type, format::inode_object(ino), what + ", which is of another type");
      }
    }
  }
}

void check_reverse_keys(VolumeView& view) {
  for (const auto& [ino, directory] : view.inodes) {
    for (const auto& [name, entry] : directory.entries) {
      if (directory.reverse.contains({entry.ino, name})) continue;
      view.report(Kind::reverse_key, format::inode_object(ino), "entry \"" + printable(name) + "\" has none");
    }
    for (const auto& [target, name] : directory.reverse) {
      const auto entry = directory.entries.find(name);
      if (entry != directory.entries.end() && entry->second.ino == target) continue;
      view.report(Kind::reverse_key, format::inode_object(ino),
                  printable(format::reverse_key(target, name)) + " has no entry");
    }
  }
}

namespace {

void check_subdirectory_count(VolumeView& view, Ino ino, const InodeObject& directory) {
  std::uint64_t found = 0;
  for (const auto& [name, entry] : directory.entries) found += entry.type == FileType::directory ? 1 : 0;
  if (!directory.nsub || *directory.nsub == found) return;
  view.report(Kind::subdirectories, format::inode_object(ino),
              "nsub is " + std::to_string(*directory.nsub) + ", and there are " + std::to_string(found));
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
  std::map<Ino, unsigned> names;
  for (const auto& [ino, directory] : view.inodes) {
    for (const auto& [name, entry] : directory.entries) ++names[entry.ino];
  }
  const auto reached = reachable_inodes(view);
  for (const auto& [ino, inode] : view.inodes) {
    if (inode.is(FileType::directory)) check_subdirectory_count(view, ino, inode);
    if (ino == root_ino && inode.attr && !inode.is(FileType::directory)) {
      view.report(Kind::wrong_type, format::inode_object(ino), "the root is no directory");
    }
    if (!inode.is(FileType::directory)) continue;
    const auto count = names.contains(ino) ? names.at(ino) : 0;
    if (count > (ino == root_ino ? 0U : 1U)) {
      view.report(Kind::several_names, format::inode_object(ino), std::to_string(count) + " entries name it");
    }
    // One without any name is what check_queue judges; one whose name is in a lost directory is lost with its own
    // names.
    if (!reached.contains(ino) && (count > 0 || !inode.entries.empty())) {
      view.report(Kind::unreachable, format::inode_object(ino), "no path from the root leads to it");
    }
  }
}

}  // namespace lccfs::check
