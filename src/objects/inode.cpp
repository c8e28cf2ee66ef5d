// SPDX-License-Identifier: LGPL-2.1-or-later
#include "objects/inode.h"

#include <array>

#include "base/completions.h"
#include "format/object_names.h"

namespace lccfs::objects {

namespace xattr = format::xattr;

namespace {

/// 64 GiB of a file with objects of 4 MiB.
constexpr std::uint32_t first_blocks = 16;
/// Whether a directory has any of these: d/, x/ and n/ keys.
constexpr std::array kinds_of_keys{&Inode::has_detached, &Inode::has_decisions, &Inode::has_entries};
constexpr std::array prefixes_of_kinds{"d/", "x/", "n/"};

/// The ranges to read: first those that are read to their end, last those that the caller asked for.
struct Ranges {
  std::vector<KeyRange> ranges;
  std::size_t whole = 0;
};

Ranges ranges_for(const InodeParts& parts) {
  using Map = InodeParts::Map;
  Ranges result;
  auto& ranges = result.ranges;
  if (parts.traces) ranges = {{"p/", "", keys_at_once}, {"l/", "", keys_at_once}};
  if (parts.openers) ranges.push_back({"o/", "", keys_at_once});
  if (parts.map == Map::whole) ranges.push_back({"m/", "", keys_at_once});
  result.whole = ranges.size();
  if (parts.map == Map::first_blocks) ranges.push_back({"m/", "", first_blocks});
  if (parts.traces) {
    for (const char* prefix : prefixes_of_kinds) ranges.push_back({prefix, "", 1});
  }
  ranges.insert(ranges.end(), parts.extra_ranges.begin(), parts.extra_ranges.end());
  return result;
}

/// What operations and their answers need beside the rest. The collector needs none of it: a damaged time must not keep
/// it from an inode.
Result<> decode_attributes(Inode& inode, const Object& object) {
  const auto number = [&object](const char* name, std::uint64_t& target) -> Result<> {
    LCCFS_TRY(const auto record, object.optional<format::NumberRecord>(name));
    if (record) target = record->value;
    return {};
  };
  const auto time = [&object](const char* name, TimeSpec& target) -> Result<> {
    LCCFS_TRY(const auto record, object.optional<format::TimeRecord>(name));
    if (record) target = record->time;
    return {};
  };
  LCCFS_CHECK(number(xattr::nsub, inode.nsub));
  LCCFS_CHECK(number(xattr::fence, inode.fence));
  LCCFS_CHECK(time(xattr::atime, inode.atime));
  LCCFS_CHECK(time(xattr::mtime, inode.mtime));
  LCCFS_CHECK(time(xattr::ctime, inode.ctime));
  LCCFS_CHECK(time(xattr::wtime, inode.wtime));
  if (inode.is_directory()) {
    LCCFS_TRY(const auto held, object.optional<format::DirectoryLeaseRecord>(xattr::lease));
    if (held) inode.directory_lease = held->token;
    LCCFS_TRY(const auto behind, object.optional<format::DirectoryLeaseRecord>(xattr::behind));
    inode.names_behind = behind && held && behind->token == held->token;
  } else {
    LCCFS_TRY(const auto lease, object.optional<format::NumberRecord>(xattr::lease));
    if (lease) inode.lease = InstanceId{lease->value};
  }
  LCCFS_TRY(const auto taken, object.optional<format::TakenRecord>(xattr::taken));
  if (taken) inode.taken = taken->token;
  if (inode.size_bytes > format::file_size_limit_bytes) {
    return failure(ErrorCode::corrupt, object.name + ": size too large");
  }
  return {};
}

Result<> decode_xattrs(Inode& inode, Object& object, const InodeParts& parts) {
  LCCFS_TRY(inode.attr, object.needed<format::AttrRecord>(xattr::attr));
  LCCFS_TRY(inode.state, object.needed<format::StateRecord>(xattr::state));
  LCCFS_TRY(inode.parent, object.optional<format::BackPointerRecord>(xattr::parent));
  LCCFS_TRY(const auto size, object.optional<format::NumberRecord>(xattr::size));
  if (size) inode.size_bytes = size->value;
  if (!parts.traces) LCCFS_CHECK(decode_attributes(inode, object));
  inode.attr_raw = std::move(object.xattrs[xattr::attr]);
  inode.state_raw = std::move(object.xattrs[xattr::state]);
  inode.nsub_raw = std::move(object.xattrs[xattr::nsub]);
  if (inode.parent) inode.pointers.push_back({inode.parent->parent, inode.parent->token, {}});
  return {};
}

/// A key of the map, a back-pointer, a step number, or an opener. Of the last none is needed: one that is damaged is left
/// to lccfs-fsck.
Result<> add_key(Inode& inode, const std::string& object, const std::string& key, const Bytes& value) {
  if (const auto pointer = format::parse_back_pointer_key(key)) {
    inode.pointers.push_back({pointer->parent, pointer->token, key});
    return {};
  }
  if (key.starts_with("o/")) {
    if (const auto opener = format::parse_opener_key(key)) inode.openers.push_back(*opener);
    return {};
  }
  if (const auto instance = format::parse_step_number_key(key)) {
    if (const auto number = format::parse_step_number(value)) {
      inode.step_numbers[*instance] = *number;
      return {};
    }
  }
  if (const auto block = format::parse_map_key(key)) {
    LCCFS_TRY(const auto bits, decode_part<format::MapBlock>(object, key, value));
    inode.map.set_block(*block, bits);
    return {};
  }
  return failure(ErrorCode::corrupt, object + ": key " + key + " or its value is unknown to the format");
}

Result<Inode> inode_of(Ino ino, Object object, const InodeParts& parts, std::size_t whole_ranges) {
  Inode inode;
  inode.ino = ino;
  inode.version = object.version;
  LCCFS_CHECK(decode_xattrs(inode, object, parts));
  inode.map_is_whole = parts.map == InodeParts::Map::whole;
  auto page = object.ranges.begin();
  const auto take_keys = [&]() -> Result<> {
    for (const auto& [key, value] : page->entries) LCCFS_CHECK(add_key(inode, object.name, key, value));
    return {};
  };
  for (std::size_t i = 0; i < whole_ranges; ++i, ++page) LCCFS_CHECK(take_keys());
  if (parts.map == InodeParts::Map::first_blocks) {
    inode.map_is_whole = !page->more;
    LCCFS_CHECK(take_keys());
    ++page;
  }
  if (parts.traces) {
    for (const auto kind : kinds_of_keys) inode.*kind = !(page++)->entries.empty();
  }
  inode.extra_ranges.assign(std::make_move_iterator(page), std::make_move_iterator(object.ranges.end()));
  inode.payload = std::move(object.payload);
  inode.keys = std::move(object.keys);
  return inode;
}

}  // namespace

void read_inode_async(const Query& query, Ino ino, const InodeParts& parts, InodeDone done) {
  auto [ranges, whole] = ranges_for(parts);
  MetaRead read{.object = format::inode_object(ino),
                .payload = parts.payload,
                .xattrs = true,
                .ranges = std::move(ranges),
                .keys = parts.keys};
  read_object_async(query, std::move(read), whole,
                    [ino, parts, whole, done = std::move(done)](Result<Object> object) mutable {
                      if (!object) return done(std::unexpected(std::move(object).error()));
                      done(inode_of(ino, std::move(*object), parts, whole));
                    });
}

Result<Inode> read_inode(const Query& query, Ino ino, const InodeParts& parts) {
  auto [answer, done] = promised<Result<Inode>>();
  read_inode_async(query, ino, parts, std::move(done));
  return answer.get();
}

}  // namespace lccfs::objects
