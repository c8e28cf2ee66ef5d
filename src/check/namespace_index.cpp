// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/namespace_index.h"

#include "check/inode_scan.h"
#include "format/object_names.h"

namespace lccfs::check {

namespace xattr = format::xattr;

namespace {

constexpr std::uint32_t pointers_at_once = 64;

template <class Record>
std::optional<Record> decode(const MetaSnapshot& answer, const char* name) {
  const auto found = answer.xattrs.find(name);
  if (found == answer.xattrs.end()) return std::nullopt;
  auto record = format::decode<Record>(found->second);
  return record ? std::optional(std::move(*record)) : std::nullopt;
}

}  // namespace

MetaRead summary_read(Ino ino) {
  return {.object = format::inode_object(ino), .xattrs = true, .ranges = {{"p/", "", pointers_at_once}}, .keys = {}};
}

Result<InodeSummary> summary_of(ObjectStore& store, Ino ino, const MetaSnapshot& answer) {
  InodeSummary summary;
  if (const auto attr = decode<format::AttrRecord>(answer, xattr::attr)) {
    summary.type = attr->type;
    summary.nlink = attr->nlink;
  }
  if (const auto state = decode<format::StateRecord>(answer, xattr::state)) summary.state = state->kind;
  if (const auto pointer = decode<format::BackPointerRecord>(answer, xattr::parent)) {
    summary.parents.insert(pointer->parent);
  }
  KeyPage page = answer.ranges.front();
  for (;;) {
    for (const auto& [key, value] : page.entries) {
      if (const auto pointer = format::parse_back_pointer_key(key)) summary.parents.insert(pointer->parent);
    }
    if (!page.more || page.entries.empty()) return summary;
    auto next = store.query({.object = format::inode_object(ino),
                             .ranges = {{"p/", page.entries.back().first, pointers_at_once}},
                             .keys = {}});
    if (!next && next.error().code == ErrorCode::not_found) return summary;
    if (!next) return std::unexpected(std::move(next).error());
    page = std::move(next->ranges.front());
  }
}

Result<std::optional<InodeSummary>> read_summary(ObjectStore& store, Ino ino) {
  const auto answer = store.query(summary_read(ino));
  if (!answer && answer.error().code == ErrorCode::not_found) return std::nullopt;
  if (!answer) return std::unexpected(answer.error());
  LCCFS_TRY(auto summary, summary_of(store, ino, *answer));
  return summary;
}

void NamespaceIndex::add(Ino ino, const ScannedInode& inode, bool queue_leads_to_it) {
  const auto& summary = inode.summary;
  const bool plain = summary.is_plain(ino);
  const Lock lock(mutex);
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
