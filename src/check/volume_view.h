// SPDX-License-Identifier: LGPL-2.1-or-later
// A whole volume as the rules see it: what could be read of each object. What could not is a finding already, and is
// left out, so that rules say nothing about it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/finding.h"
#include "format/object_names.h"
#include "format/records.h"

namespace lccfs::check {

struct InodeObject {
  std::optional<format::AttrRecord> attr;
  std::optional<format::StateRecord> state;
  std::set<Ino> parents;  // of all back-pointers
  std::optional<std::uint64_t> size_bytes;
  std::optional<std::uint64_t> nsub;
  std::optional<InstanceId> lease;
  std::uint64_t payload_bytes = 0;
  std::map<std::string, format::EntryRecord> entries;
  std::set<std::pair<Ino, std::string>> reverse;
  std::set<Ino> detached;  // of all d/ keys
  bool has_decisions = false;
  std::map<std::uint64_t, format::MapBlock> map;

  bool is(FileType type) const { return attr && attr->type == type; }
  bool is_dead() const { return state && state->kind == format::StateRecord::Kind::dead; }
  bool is_sealed() const { return state && state->kind == format::StateRecord::Kind::sealed; }
};

struct VolumeView {
  std::optional<format::SuperRecord> super;
  std::optional<std::uint64_t> next_number;
  std::optional<std::uint64_t> fences;
  std::uint64_t highest_fence = 0;  // of all that stand anywhere
  std::set<InstanceId> records;     // instances that Super knows of
  std::map<InstanceId, std::vector<format::QueueItem>> queues;
  std::map<Ino, InodeObject> inodes;
  std::map<Ino, std::set<ObjectIndex>> data;
  std::vector<Finding> findings;

  /// Fills in `ino`.
  void report(Finding finding) {
    const auto name = format::parse_object_name(finding.object);
    if (!name) {
      findings.push_back(std::move(finding));
      return;
    }
    if (const auto* inode = std::get_if<format::InodeName>(&*name)) finding.ino = inode->ino;
    if (const auto* piece = std::get_if<format::DataName>(&*name)) finding.ino = piece->ino;
    findings.push_back(std::move(finding));
  }
  const InodeObject* inode(Ino ino) const {
    const auto found = inodes.find(ino);
    return found == inodes.end() ? nullptr : &found->second;
  }
};

}  // namespace lccfs::check
