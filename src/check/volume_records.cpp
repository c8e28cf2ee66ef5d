// SPDX-License-Identifier: LGPL-2.1-or-later
// Super, Alloc and session objects.
#include "check/volume_scan.h"

namespace lccfs::check {

namespace xattr = format::xattr;

namespace {

void report_unknown(VolumeView& view, const std::string& object, const char* what, const std::string& name) {
  view.report(Finding::Kind::corrupt, object, std::string("unknown ") + what + " " + printable(name));
}

/// The record in that xattr, which must be there; all other xattrs and the payload must not.
template <class Record>
std::optional<Record> needed_xattr(VolumeView& view, const WholeObject& object, const char* name) {
  const auto found = object.xattrs.find(name);
  if (found != object.xattrs.end()) return decode_part<Record>(view, object.name, name, found->second);
  view.report(Finding::Kind::corrupt, object.name, std::string("xattr ") + name + " is missing");
  return std::nullopt;
}

void refuse_others(VolumeView& view, const WholeObject& object, const std::set<std::string>& known_xattrs) {
  for (const auto& [name, value] : object.xattrs) {
    if (!known_xattrs.contains(name)) report_unknown(view, object.name, "xattr", name);
  }
  if (!object.payload.empty()) view.report(Finding::Kind::corrupt, object.name, "has a payload");
}

}  // namespace

void scan_super(VolumeView& view, const WholeObject& object) {
  view.super = needed_xattr<format::SuperRecord>(view, object, xattr::super);
  needed_xattr<format::NumberRecord>(view, object, xattr::fences);
  refuse_others(view, object, {xattr::super, xattr::fences});
  for (const auto& [key, value] : object.keys) {
    const auto instance = format::parse_instance_key(key);
    if (!instance) {
      report_unknown(view, object.name, "key", key);
      continue;
    }
    view.records.insert(*instance);
    decode_part<format::InstanceRecord>(view, object.name, key, value);
  }
}

void scan_alloc(VolumeView& view, const WholeObject& object) {
  if (const auto next = needed_xattr<format::NumberRecord>(view, object, xattr::next)) view.next_number = next->value;
  refuse_others(view, object, {xattr::next});
  for (const auto& [key, value] : object.keys) report_unknown(view, object.name, "key", key);
}

void scan_session(VolumeView& view, InstanceId instance, const WholeObject& object) {
  auto& queue = view.queues[instance];
  refuse_others(view, object, {});
  for (const auto& [key, value] : object.keys) {
    if (!format::parse_queue_key(key)) {
      report_unknown(view, object.name, "key", key);
      continue;
    }
    if (const auto item = decode_part<format::QueueItem>(view, object.name, key, value)) queue.push_back(*item);
  }
}

}  // namespace lccfs::check
