// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>

#include "check/rules.h"
#include "check/volume_scan.h"

namespace lccfs::check {

using Kind = Finding::Kind;

void check_back_pointers(VolumeView& view) {
  for (const auto& [ino, directory] : view.inodes) {
    for (const auto& [name, entry] : directory.entries) {
      const auto* inode = view.inode(entry.ino);
      if (inode == nullptr || inode->parents.contains(ino)) continue;
      view.report({.kind = Kind::no_back_pointer,
                   .object = format::inode_object(entry.ino),
                   .text = format::inode_object(ino) + " has it as \"" + printable(name) + "\"",
                   .target = ino});
    }
  }
}

namespace {

/// What can be found from the queue, item by item as a collector would.
class Queue {
 public:
  explicit Queue(const VolumeView& view) : view_(view) {
    for (const auto& [instance, items] : view.queues) {
      if (!view.records.contains(instance)) continue;  // nobody looks there
      for (const auto& item : items) add(item);
    }
    Ino furthest;
    for (auto& [first, end] : ranges_) end = furthest = std::max(furthest, end);
  }

  bool names_directory(Ino ino) const { return directories_.contains(ino); }

  bool leads_to(Ino ino) const {
    if (named_.contains(ino)) return true;
    const auto behind = ranges_.upper_bound(ino);
    return behind != ranges_.begin() && ino < std::prev(behind)->second;
  }

 private:
  void add(const format::QueueItem& item) {
    if (item.kind == format::QueueItem::Kind::range) {
      auto& end = ranges_[item.ino];
      end = std::max(end, item.end);
      return;
    }
    const auto* inode = view_.inode(item.ino);
    if (item.kind == format::QueueItem::Kind::inode || (inode != nullptr && inode->is_sealed())) {
      named_.insert(item.ino);
    }
    if (item.kind == format::QueueItem::Kind::directory && inode != nullptr) {
      directories_.insert(item.ino);
      named_.insert(inode->detached.begin(), inode->detached.end());
    }
  }

  const VolumeView& view_;
  std::set<Ino> named_;
  std::set<Ino> directories_;
  std::map<Ino, Ino> ranges_;  // from the first number to one past the last of this and all earlier ranges
};

/// A trace that nobody would ever come to tidy up: its item is logged before it, and goes after it.
void check_traces(VolumeView& view, const Queue& queue) {
  for (const auto& [ino, inode] : view.inodes) {
    if ((!inode.detached.empty() || inode.has_decisions) && !queue.names_directory(ino)) {
      view.report({.kind = Kind::lost_trace,
                   .object = format::inode_object(ino),
                   .text = "has d/ or x/ keys, and no directory item"});
    }
    if (inode.is_sealed() && !queue.leads_to(ino)) {
      view.report({.kind = Kind::lost_trace,
                   .object = format::inode_object(ino),
                   .text = "is sealed, and no item leads there"});
    }
  }
}

}  // namespace

void check_queue(VolumeView& view) {
  for (const auto& [instance, queue] : view.queues) {
    if (view.records.contains(instance)) continue;
    view.report({.kind = Kind::stray_session,
                 .object = format::session_object(instance),
                 .text = "Super has no record of this instance",
                 .number = instance.value});
  }
  std::map<Ino, std::uint32_t> names;
  for (const auto& [ino, directory] : view.inodes) {
    for (const auto& [name, entry] : directory.entries) ++names[entry.ino];
  }
  const Queue queue(view);
  check_traces(view, queue);
  for (const auto& [ino, inode] : view.inodes) {
    if (ino == root_ino || !inode.attr || queue.leads_to(ino)) continue;
    const auto found = names.contains(ino) ? names.at(ino) : 0;
    if (found != 0 && found == inode.attr->nlink) continue;
    if (found > 1 && inode.is(FileType::directory)) continue;  // several names
    view.report({.kind = found == 0 ? Kind::orphan : Kind::wrong_links,
                 .object = format::inode_object(ino),
                 .text = std::to_string(found) + " entries, nlink " + std::to_string(inode.attr->nlink),
                 .number = found});
  }
}

}  // namespace lccfs::check
