// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/traces.h"

#include <array>
#include <set>

#include "format/layout.h"

namespace lccfs::reclaim {

namespace xattr = format::xattr;

namespace {

constexpr std::array all_of{"p/", "l/", "m/"};
constexpr std::array any_of{"d/", "x/", "n/"};

template <class Record>
Result<Record> decode_part(const std::string& object, const std::string& part, const Bytes& bytes) {
  auto record = format::decode<Record>(bytes);
  if (record) return record;
  return failure(record.error().code, object + ": " + part + ": " + record.error().context);
}

template <class Record>
Result<Record> needed(const std::string& object, const MetaSnapshot& snapshot, const char* name) {
  const auto found = snapshot.xattrs.find(name);
  if (found == snapshot.xattrs.end()) {
    return failure(ErrorCode::corrupt, object + ": xattr " + name + " is missing");
  }
  return decode_part<Record>(object, name, found->second);
}

Result<> add_key(Traces& traces, const std::string& object, const std::string& key, const Bytes& value) {
  if (const auto pointer = format::parse_back_pointer_key(key)) {
    traces.pointers.push_back({pointer->parent, pointer->token, key});
    return {};
  }
  if (const auto instance = format::parse_step_number_key(key)) {
    if (const auto number = format::parse_step_number(value)) {
      traces.step_numbers[*instance] = *number;
      return {};
    }
  }
  if (const auto block = format::parse_map_key(key)) {
    LCCFS_TRY(traces.map[*block], decode_part<format::MapBlock>(object, key, value));
    return {};
  }
  return failure(ErrorCode::corrupt, object + ": key " + key + " or its value is none of the format's");
}

Result<> read_xattrs(Traces& traces, const std::string& object, const MetaSnapshot& snapshot) {
  LCCFS_TRY(traces.attr, needed<format::AttrRecord>(object, snapshot, xattr::attr));
  LCCFS_TRY(traces.state, needed<format::StateRecord>(object, snapshot, xattr::state));
  if (const auto found = snapshot.xattrs.find(xattr::size); found != snapshot.xattrs.end()) {
    LCCFS_TRY(const auto size, decode_part<format::NumberRecord>(object, xattr::size, found->second));
    traces.size_bytes = size.value;
  }
  if (const auto found = snapshot.xattrs.find(xattr::parent); found != snapshot.xattrs.end()) {
    LCCFS_TRY(const auto parent, decode_part<format::BackPointerRecord>(object, xattr::parent, found->second));
    traces.pointers.push_back({parent.parent, parent.token, {}});
  }
  return {};
}

/// What the first read left over of one kind of keys. false: the object has changed, and all is to be read again.
Result<bool> read_further_pages(const Query& query, Traces& traces, const std::string& object, KeyPage page,
                                const std::string& prefix) {
  while (page.more && !page.entries.empty()) {
    auto next = query({.object = object, .ranges = {{prefix, page.entries.back().first, keys_at_once}}, .keys = {}});
    if (!next && next.error().code == ErrorCode::not_found) return false;
    if (!next) return std::unexpected(std::move(next).error());
    if (next->version != traces.version) return false;
    page = std::move(next->ranges.front());
    for (const auto& [key, value] : page.entries) LCCFS_CHECK(add_key(traces, object, key, value));
  }
  return true;
}

/// nullopt: the object changed between two pages.
Result<std::optional<Traces>> assemble(const Query& query, Ino ino, const std::string& object, MetaSnapshot snapshot) {
  Traces traces;
  traces.ino = ino;
  traces.version = snapshot.version;
  LCCFS_CHECK(read_xattrs(traces, object, snapshot));
  for (std::size_t i = 0; i < all_of.size(); ++i) {
    for (const auto& [key, value] : snapshot.ranges[i].entries) LCCFS_CHECK(add_key(traces, object, key, value));
    LCCFS_TRY(const bool whole, read_further_pages(query, traces, object, std::move(snapshot.ranges[i]), all_of[i]));
    if (!whole) return std::nullopt;
  }
  traces.has_detached = !snapshot.ranges[all_of.size()].entries.empty();
  traces.has_decisions = !snapshot.ranges[all_of.size() + 1].entries.empty();
  traces.has_entries = !snapshot.ranges[all_of.size() + 2].entries.empty();
  return traces;
}

}  // namespace

std::uint64_t Traces::mapped_objects() const {
  std::uint64_t count = 0;
  for (const auto& [block, bits] : map) count += bits.may_exist.count();
  return count;
}

std::uint64_t Traces::occupied_bytes(std::uint64_t object_size_bytes) const {
  using format::MapBlock;
  std::uint64_t bytes = 0;
  for (const auto& [block, bits] : map) {
    const auto& there = bits.believed_there;
    for (auto i = there._Find_first(); i < MapBlock::objects; i = there._Find_next(i)) {
      bytes += format::bytes_within(object_size_bytes, ObjectIndex{block * MapBlock::objects + i}, size_bytes);
    }
  }
  return bytes;
}

Result<std::optional<Traces>> read_traces(const Query& query, Ino ino) {
  const auto object = format::inode_object(ino);
  for (;;) {
    MetaRead read{.object = object, .xattrs = true, .ranges = {}, .keys = {}};
    for (const char* prefix : all_of) read.ranges.push_back({prefix, "", keys_at_once});
    for (const char* prefix : any_of) read.ranges.push_back({prefix, "", 1});
    auto snapshot = query(std::move(read));
    if (!snapshot && snapshot.error().code == ErrorCode::not_found) return std::nullopt;
    if (!snapshot) return std::unexpected(std::move(snapshot).error());
    LCCFS_TRY(auto traces, assemble(query, ino, object, std::move(*snapshot)));
    if (traces) return traces;
  }
}

namespace {

/// nullopt: the directory changed between two pages. not_found: it is not there.
Result<std::optional<std::vector<std::string>>> names_in(const Query& query, Ino directory, Ino ino) {
  const auto prefix = format::reverse_key(ino, "");
  std::vector<std::string> names;
  std::optional<std::uint64_t> version;
  for (KeyPage page{{}, true}; page.more;) {
    const auto after = page.entries.empty() ? std::string() : page.entries.back().first;
    auto found =
        query({.object = format::inode_object(directory), .ranges = {{prefix, after, keys_at_once}}, .keys = {}});
    if (!found) return std::unexpected(std::move(found).error());
    if (version && *version != found->version) return std::nullopt;
    version = found->version;
    page = std::move(found->ranges.front());
    if (page.entries.empty()) break;
    for (const auto& [key, value] : page.entries) names.push_back(key.substr(prefix.size()));
  }
  return names;
}

}  // namespace

Result<> for_each_detached(const Query& query, Ino directory,
                           const std::function<Result<>(const format::DetachedKey&)>& work) {
  std::string after;
  for (bool more = true; more;) {
    const auto page =
        query({.object = format::inode_object(directory), .ranges = {{"d/", after, keys_at_once}}, .keys = {}});
    if (!page && page.error().code == ErrorCode::not_found) return {};
    if (!page) return std::unexpected(page.error());
    const auto& keys = page->ranges.front();
    for (const auto& [key, value] : keys.entries) {
      after = key;
      if (const auto detached = format::parse_detached_key(key)) LCCFS_CHECK(work(*detached));
    }
    more = keys.more && !keys.entries.empty();
  }
  return {};
}

Result<Names> count_names(const Query& query, const Traces& inode) {
  std::set<Ino> parents;
  for (const auto& pointer : inode.pointers) parents.insert(pointer.parent);
  Names names;
  for (const Ino parent : parents) {
    for (bool counted = false; !counted;) {
      auto found = names_in(query, parent, inode.ino);
      const bool missing = !found && found.error().code == ErrorCode::not_found;
      if (!found && !missing) return std::unexpected(std::move(found).error());
      counted = missing || found->has_value();
      if (missing) names.missing_parents.push_back(parent);
      if (found && *found && !(*found)->empty()) names.by_parent[parent] = std::move(**found);
    }
  }
  return names;
}

}  // namespace lccfs::reclaim
