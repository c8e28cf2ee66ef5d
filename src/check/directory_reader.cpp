// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/directory_reader.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/expected_errors.h"
#include "format/object_names.h"
#include "objects/object.h"

namespace lccfs::check {

namespace {

constexpr std::size_t inodes_at_once = 64;
constexpr std::uint32_t names_of_one_inode = 256;

/// nullopt: the entry is a finding by itself.
std::optional<NamedEntry> read_entry(const format::VolumeUuid& uuid, const std::string& key, const Bytes& value) {
  const auto parsed = format::parse_entry_key(key);
  const auto record = format::decode<format::EntryRecord>(value);
  if (!parsed || !record || parsed->hash != format::name_hash(uuid, parsed->name)) return std::nullopt;
  if (parsed->name == "." || parsed->name == "..") return std::nullopt;
  return NamedEntry{parsed->name, *record};
}

/// What of a directory these keys hold. Nothing, if it is gone.
Result<std::map<std::string, Bytes>> values_of(ObjectStore& store, Ino directory, std::vector<std::string> keys) {
  if (keys.empty()) return std::map<std::string, Bytes>();
  MetaRead read{.object = format::inode_object(directory), .keys = std::move(keys)};
  LCCFS_TRY(auto found, objects::find_object(objects::reader_of(store), std::move(read)));
  return found ? std::move(found->keys) : std::map<std::string, Bytes>();
}

bool is_entry_for(const std::map<std::string, Bytes>& values, const std::string& key, Ino ino) {
  const auto found = values.find(key);
  if (found == values.end()) return false;
  const auto record = format::decode<format::EntryRecord>(found->second);
  return record && record->ino == ino;
}

}  // namespace

Result<> DirectoryReader::for_each_key_page(Ino directory, const std::string& prefix,
                                            const std::function<Result<>(const Keys&)>& work) {
  const auto work_on = [&work](const KeyPage& page) { return work(page.entries); };
  return done_or(ErrorCode::not_found,
                 objects::for_each_page(objects::reader_of(store_), format::inode_object(directory),
                                        {prefix, "", objects::keys_at_once}, work_on));
}

Result<> DirectoryReader::for_each_page(Ino directory,
                                        const std::function<Result<>(const std::vector<NamedEntry>&)>& work) {
  return for_each_key_page(directory, "n/", [&](const Keys& keys) {
    std::vector<NamedEntry> entries;
    for (const auto& [key, value] : keys) {
      if (auto entry = read_entry(uuid_, key, value)) entries.push_back(std::move(*entry));
    }
    return work(entries);
  });
}

Result<> DirectoryReader::for_each_detached(Ino directory,
                                            const std::function<Result<>(const std::vector<Ino>&)>& work) {
  Ino last;  // keys of one inode stand beside each other
  return for_each_key_page(directory, "d/", [&](const Keys& keys) {
    std::vector<Ino> inodes;
    for (const auto& [key, value] : keys) {
      const auto detached = format::parse_detached_key(key);
      if (!detached || detached->ino == last) continue;
      last = detached->ino;
      inodes.push_back(last);
    }
    return work(inodes);
  });
}

Result<std::vector<std::uint32_t>> DirectoryReader::count_names(Ino directory, std::span<const Ino> inodes) {
  std::vector<std::uint32_t> counts;
  for (std::size_t begin = 0; begin < inodes.size(); begin += inodes_at_once) {
    LCCFS_TRY(const auto some,
              count_some_names(directory, inodes.subspan(begin, std::min(inodes_at_once, inodes.size() - begin))));
    counts.insert(counts.end(), some.begin(), some.end());
  }
  return counts;
}

/// By the reverse keys; an entry must confirm each of them.
Result<std::vector<std::uint32_t>> DirectoryReader::count_some_names(Ino directory, std::span<const Ino> inodes) {
  std::vector<std::uint32_t> counts;
  MetaRead read{.object = format::inode_object(directory)};
  for (const Ino ino : inodes) {
    read.ranges.push_back({format::reverse_key(ino, ""), "", names_of_one_inode});
    const Lock lock(mutex_);
    counts.push_back(static_cast<std::uint32_t>(unreversed_.count({directory, ino})));
  }
  LCCFS_TRY(const auto answer, objects::find_object(objects::reader_of(store_), std::move(read)));
  if (!answer) return counts;
  std::vector<std::pair<std::size_t, std::string>> confirming;  // which inode, and the entry's key
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < inodes.size(); ++i) {
    for (const auto& [key, value] : answer->ranges[i].entries) {
      const auto reverse = format::parse_reverse_key(key);
      if (!reverse) continue;
      confirming.emplace_back(i, format::entry_key(uuid_, reverse->name));
      keys.push_back(confirming.back().second);
    }
  }
  LCCFS_TRY(const auto values, values_of(store_, directory, std::move(keys)));
  for (const auto& [i, key] : confirming) counts[i] += is_entry_for(values, key, inodes[i]) ? 1 : 0;
  return counts;
}

// ---- reverse keys

Result<> DirectoryReader::check_reverse_keys(Ino directory, Sink& sink) {
  LCCFS_CHECK(check_entries_have_reverse_keys(directory, sink));
  return check_reverse_keys_have_entries(directory, sink);
}

Result<> DirectoryReader::check_entries_have_reverse_keys(Ino directory, Sink& sink) {
  return for_each_page(directory, [&](const std::vector<NamedEntry>& entries) -> Result<> {
    std::vector<std::string> keys;
    keys.reserve(entries.size());
    for (const auto& [name, entry] : entries) keys.push_back(format::reverse_key(entry.ino, name));
    LCCFS_TRY(const auto values, values_of(store_, directory, std::move(keys)));
    for (const auto& entry : entries) check_reverse_key(directory, entry, values, sink);
    return {};
  });
}

/// `values`: of reverse keys. One that cannot be read is a finding by itself.
void DirectoryReader::check_reverse_key(Ino directory, const NamedEntry& entry,
                                        const std::map<std::string, Bytes>& values, Sink& sink) {
  const Ino ino = entry.record.ino;
  const auto report = [&](Kind kind, const char* why) {
    sink.report(finding_on_name(kind, directory, entry.name, ino, entry_text(entry.name, ino) + why));
  };
  const auto reverse = values.find(format::reverse_key(ino, entry.name));
  if (reverse == values.end()) {
    report(Kind::reverse_key, " has none");
    const Lock lock(mutex_);
    unreversed_.emplace(directory, ino);
    return;
  }
  const Bytes& value = reverse->second;
  const bool sound = value == format::marker_value || format::marked_entry(value, ino);
  if (sound && value != format::reverse_value(entry.record)) {
    report(Kind::marks_differ, " has another mark than its reverse key");
  }
}

Result<> DirectoryReader::check_reverse_keys_have_entries(Ino directory, Sink& sink) {
  return for_each_key_page(directory, "i/", [&](const Keys& page) -> Result<> {
    std::vector<std::string> keys;
    for (const auto& [key, value] : page) {
      if (const auto reverse = format::parse_reverse_key(key)) keys.push_back(format::entry_key(uuid_, reverse->name));
    }
    LCCFS_TRY(const auto values, values_of(store_, directory, std::move(keys)));
    for (const auto& [key, value] : page) {
      const auto reverse = format::parse_reverse_key(key);
      if (!reverse || is_entry_for(values, format::entry_key(uuid_, reverse->name), reverse->ino)) continue;
      sink.report(
          finding_on_name(Kind::stray_reverse_key, directory, reverse->name, reverse->ino, key + " has no entry"));
    }
    return {};
  });
}

}  // namespace lccfs::check
