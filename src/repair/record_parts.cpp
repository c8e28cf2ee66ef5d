// SPDX-License-Identifier: LGPL-2.1-or-later
#include "repair/record_parts.h"

#include <array>

#include "format/object_names.h"
#include "format/records.h"
#include "repair/one_byte.h"

namespace lccfs::repair {

namespace xattr = format::xattr;

namespace {

using Decodes = bool (*)(std::string_view bytes);

template <class Record>
bool is(std::string_view bytes) {
  return format::decode<Record>(bytes).has_value();
}

bool is_size(std::string_view bytes) {
  const auto size = format::decode<format::NumberRecord>(bytes);
  return size && size->value <= format::file_size_limit_bytes;
}

bool is_fence_number(std::string_view bytes) { return format::decode_fence_number(bytes).has_value(); }

bool is_next_number(std::string_view bytes) { return format::decode_next_number(bytes).has_value(); }

struct Place {
  std::string_view object;  // how its name starts
  std::string_view part;    // a key: how it starts
  bool is_key;
  Decodes decodes;
};

constexpr Place places[] = {
    {"Super", xattr::super, false, is<format::SuperRecord>},
    {"Super", xattr::fences, false, is_fence_number},
    {"Super", "s/", true, is<format::InstanceRecord>},
    {"Alloc", xattr::next, false, is_next_number},
    {"Session.", "q/", true, is<format::QueueItem>},
    {"Inode.", xattr::attr, false, is<format::AttrRecord>},
    {"Inode.", xattr::state, false, is<format::StateRecord>},
    {"Inode.", xattr::parent, false, is<format::BackPointerRecord>},
    {"Inode.", xattr::size, false, is_size},
    {"Inode.", xattr::nsub, false, is<format::NumberRecord>},
    {"Inode.", xattr::lease, false, is<format::NumberRecord>},
    {"Inode.", xattr::fence, false, is_fence_number},
    {"Inode.", xattr::atime, false, is<format::TimeRecord>},
    {"Inode.", xattr::mtime, false, is<format::TimeRecord>},
    {"Inode.", xattr::ctime, false, is<format::TimeRecord>},
    {"Inode.", xattr::wtime, false, is<format::TimeRecord>},
    {"Inode.", "n/", true, is<format::EntryRecord>},
    {"Inode.", "m/", true, is<format::MapBlock>},
    {"Inode.", "x/", true, is<format::DecisionRecord>},
};

}  // namespace

std::optional<Bytes> corrected(const std::string& object, const txn::Part& part, const Bytes& seen) {
  for (const auto& place : places) {
    const bool here = part.is_key ? part.name.starts_with(place.part) : part.name == place.part;
    if (part.is_key == place.is_key && here && object.starts_with(place.object)) {
      return with_one_byte_corrected(seen, place.decodes);
    }
  }
  return std::nullopt;
}

}  // namespace lccfs::repair
