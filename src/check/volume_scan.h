// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads all objects of a volume. Blocking; any thread.
#pragma once

#include <string_view>

#include "check/volume_view.h"
#include "lccfs/object_store.h"
#include "lccfs/result.h"

namespace lccfs::check {

/// Every object's records, and findings on those that cannot be read.
Result<VolumeView> scan_volume(ObjectStore& store);

/// A whole metadata object: all pages of its keys at one version.
struct WholeObject {
  std::string name;
  Bytes payload;
  std::map<std::string, Bytes> xattrs;
  std::map<std::string, Bytes> keys;
};

// -- one object into the view: volume_records.cpp, inode_scan.cpp
void scan_super(VolumeView& view, const WholeObject& object);
void scan_alloc(VolumeView& view, const WholeObject& object);
void scan_session(VolumeView& view, InstanceId instance, const WholeObject& object);
void scan_inode(VolumeView& view, Ino ino, const WholeObject& object);

struct Part {
  const std::string& name;
  std::string_view value;
  bool is_key = false;
};

void report_part(VolumeView& view, Finding::Kind kind, const std::string& object, const Part& part,
                 const std::string& why);

/// The record, or nullopt and a finding with the decoder's words.
template <class Record>
std::optional<Record> decode_part(VolumeView& view, const std::string& object, const Part& part) {
  auto record = format::decode<Record>(part.value);
  if (record) return std::move(*record);
  const bool newer = record.error().code == ErrorCode::unsupported;
  report_part(view, newer ? Finding::Kind::unsupported : Finding::Kind::corrupt, object, part, record.error().context);
  return std::nullopt;
}

/// Keys may hold any bytes: for people, and in one line.
std::string printable(std::string_view bytes);

}  // namespace lccfs::check
