// SPDX-License-Identifier: LGPL-2.1-or-later
// Super, Alloc and session objects.
#include <algorithm>

#include "check/volume_scan.h"

namespace lccfs::check {

namespace xattr = format::xattr;

using Kind = Finding::Kind;

namespace {

/// The record in that xattr, which must be there.
template <class Record>
std::optional<Record> needed_xattr(VolumeView& view, const WholeObject& object, const char* name) {
  const auto found = object.xattrs.find(name);
  if (found != object.xattrs.end()) return decode_part<Record>(view, object.name, {found->first, found->second});
  view.report({.kind = Kind::missing_part,
               .object = object.name,
               .text = std::string("xattr ") + name + " is missing",
               .part = name});
  return std::nullopt;
}

void refuse_key(VolumeView& view, const WholeObject& object, const std::string& key, const Bytes& value) {
  report_part(view, Kind::unknown_part, object.name, {key, value, true}, "none of the format's");
}

/// All other xattrs, and a payload.
void refuse_others(VolumeView& view, const WholeObject& object, const std::set<std::string>& known_xattrs) {
  for (const auto& [name, value] : object.xattrs) {
    if (known_xattrs.contains(name)) continue;
    report_part(view, Kind::unknown_part, object.name, {name, value}, "none of the format's");
  }
  if (object.payload.empty()) return;
  view.report({.kind = Kind::corrupt, .object = object.name, .text = "has a payload", .seen = object.payload});
}

}  // namespace

void scan_super(VolumeView& view, const WholeObject& object) {
  view.super = needed_xattr<format::SuperRecord>(view, object, xattr::super);
  const auto fences = needed_xattr<format::NumberRecord>(view, object, xattr::fences);
  if (fences) view.fences = fences->value;
  refuse_others(view, object, {xattr::super, xattr::fences});
  for (const auto& [key, value] : object.keys) {
    const auto instance = format::parse_instance_key(key);
    if (!instance) {
      refuse_key(view, object, key, value);
      continue;
    }
    view.records.insert(*instance);
    const auto record = decode_part<format::InstanceRecord>(view, object.name, {key, value, true});
    if (record) view.highest_fence = std::max(view.highest_fence, record->fence_number);
  }
}

void scan_alloc(VolumeView& view, const WholeObject& object) {
  if (const auto next = needed_xattr<format::NumberRecord>(view, object, xattr::next)) view.next_number = next->value;
  refuse_others(view, object, {xattr::next});
  for (const auto& [key, value] : object.keys) refuse_key(view, object, key, value);
}

void scan_session(VolumeView& view, InstanceId instance, const WholeObject& object) {
  auto& queue = view.queues[instance];
  refuse_others(view, object, {});
  for (const auto& [key, value] : object.keys) {
    if (!format::parse_queue_key(key)) {
      refuse_key(view, object, key, value);
      continue;
    }
    const auto item = decode_part<format::QueueItem>(view, object.name, {key, value, true});
    if (item) queue.push_back(*item);
  }
}

}  // namespace lccfs::check
