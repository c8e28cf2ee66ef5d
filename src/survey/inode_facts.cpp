// SPDX-License-Identifier: LGPL-2.1-or-later
#include "survey/inode_facts.h"

#include <algorithm>
#include <set>

#include "base/expected_errors.h"
#include "format/object_names.h"
#include "instance/liveness_poll.h"

namespace lccfs::survey {

namespace {

constexpr std::size_t deepest_path = 10'000;
constexpr std::uint32_t attributes_at_once = 64;  // of up to 64 KiB
constexpr objects::InodeParts all_of_it{.payload = true, .map = objects::InodeParts::Map::whole};

using objects::Query;

/// With the xattr `parent`, which is the first.
Result<std::vector<objects::BackPointer>> pointers_of(const Query& query, const objects::Inode& inode) {
  std::vector<objects::BackPointer> pointers;
  if (inode.parent) pointers.push_back({inode.parent->parent, inode.parent->token, {}});
  const auto add = [&](const std::string& key, const Bytes&) -> Result<> {
    if (const auto pointer = format::parse_back_pointer_key(key))
      pointers.push_back({pointer->parent, pointer->token, key});
    return {};
  };
  LCCFS_CHECK(objects::for_each_key(query, format::inode_object(inode.ino), "p/", add));
  return pointers;
}

/// By the reverse keys of the directories to which it points back.
Result<std::vector<NameOf>> names_of(const Query& query, Ino ino, const std::vector<objects::BackPointer>& pointers) {
  std::vector<NameOf> names;
  std::set<Ino> seen;
  for (const auto& pointer : pointers) {
    if (!seen.insert(pointer.parent).second) continue;
    const auto add = [&](const std::string& key, const Bytes&) -> Result<> {
      if (auto reverse = format::parse_reverse_key(key)) names.push_back({pointer.parent, reverse->name, "", ""});
      return {};
    };
    const auto prefix = format::reverse_key(ino, "");
    const auto parent = format::inode_object(pointer.parent);
    LCCFS_CHECK(done_or(ErrorCode::not_found, objects::for_each_key(query, parent, prefix, add)));
  }
  return names;
}

/// Empty: it has none.
Result<std::vector<NameOf>> names_of_directory(const Query& query, Ino directory) {
  const auto inode = objects::read_inode(query, directory, {.map = objects::InodeParts::Map::left_out});
  if (!inode && inode.error().code == ErrorCode::not_found) return std::vector<NameOf>();
  if (!inode) return std::unexpected(inode.error());
  LCCFS_TRY(const auto pointers, pointers_of(query, *inode));
  return names_of(query, directory, pointers);
}

/// Empty: there is none.
Result<std::string> path_of_directory(const Query& query, Ino directory) {
  std::string path = "/";
  for (std::size_t depth = 0; directory != root_ino; ++depth) {
    LCCFS_TRY(const auto names, names_of_directory(query, directory));
    if (names.empty() || depth > deepest_path) return "";
    path.insert(0, "/" + names.front().name);
    directory = names.front().directory;
  }
  return path;
}

/// Of each directory once, and of none after a time-out: the next one may lead to the same object, and take as long.
void add_paths(const Query& query, std::vector<NameOf>& names) {
  std::map<Ino, Result<std::string>> known;
  std::optional<Error> time_out;
  for (auto& name : names) {
    auto found = known.find(name.directory);
    if (found == known.end()) {
      Result<std::string> path = time_out ? std::unexpected(*time_out) : path_of_directory(query, name.directory);
      if (!path && path.error().code == ErrorCode::timed_out) time_out = path.error();
      found = known.emplace(name.directory, std::move(path)).first;
    }
    const auto& directory = found->second;
    if (!directory) name.path_not_known = directory.error().context;
    if (directory && !directory->empty()) name.path = *directory + name.name;
  }
}

Result<std::vector<AttributeFacts>> attributes_of(const Query& query, Ino ino) {
  std::vector<AttributeFacts> attributes;
  const KeyRange range{"u/", "", attributes_at_once};
  const auto add = [&](const KeyPage& page) -> Result<> {
    for (const auto& [key, value] : page.entries)
      attributes.push_back({key.substr(range.prefix.size()), value.empty() ? 0 : value.size() - 1});
    return {};
  };
  LCCFS_CHECK(objects::for_each_page(query, format::inode_object(ino), range, add));
  return attributes;
}

Result<DirectoryFacts> directory_facts(const Query& query, Ino ino) {
  DirectoryFacts facts;
  const auto object = format::inode_object(ino);
  const auto count = [&](const char* prefix, std::uint64_t& counted) {
    return objects::for_each_page(query, object, {prefix, "", objects::keys_at_once},
                                  [&](const KeyPage& page) -> Result<> {
                                    counted += page.entries.size();
                                    return {};
                                  });
  };
  const auto add_name = [&](const std::string& key, const Bytes& value) -> Result<> {
    LCCFS_TRY(const auto entry, objects::decode_part<format::EntryRecord>(object, key, value));
    ++facts.entries;
    facts.marked += entry.mark ? 1 : 0;
    return {};
  };
  LCCFS_CHECK(objects::for_each_key(query, object, "n/", add_name));
  LCCFS_CHECK(count("d/", facts.detached));
  LCCFS_CHECK(count("x/", facts.decisions));
  return facts;
}

Result<> read_locks(const Query& query, InodeFacts& facts) {
  const auto object = format::inode_object(facts.inode.ino);
  LCCFS_TRY(const auto head, objects::read_object(query, {.object = object, .xattrs = true}));
  LCCFS_TRY(facts.lock_state, head.optional<format::LockStateRecord>(format::xattr::locks));
  return objects::for_each_key(query, object, "k/", [&](const std::string& key, const Bytes& value) -> Result<> {
    LCCFS_TRY(auto locks, objects::decode_part<format::LocksRecord>(object, key, value));
    if (const auto instance = format::parse_locks_key(key)) facts.locks[*instance] = std::move(locks);
    return {};
  });
}

/// Who is asked for a directory takes it to be dead, and forgets what it knows of it.
Result<std::vector<OpenAt>> who_has_it_open(ObjectStore& store, Ino ino) {
  LCCFS_TRY(const auto poll, poll_liveness(store, {.asker = {}, .inodes = {ino}}));
  std::vector<OpenAt> open_at;
  for (const auto& member : poll.members) {
    const bool silent = member.standing == Member::Standing::silent;
    if (silent || member.open.contains(ino))
      open_at.push_back({member.id, member.record.host, member.record.mount_id, !silent});
  }
  return open_at;
}

}  // namespace

Result<InodeFacts> read_inode_facts(ObjectStore& store, Ino ino) {
  const auto query = objects::reader_of(store);
  InodeFacts facts;
  LCCFS_TRY(facts.inode, objects::read_inode(query, ino, all_of_it));
  LCCFS_TRY(facts.pointers, pointers_of(query, facts.inode));
  LCCFS_TRY(facts.names, names_of(query, ino, facts.pointers));
  add_paths(query, facts.names);
  LCCFS_TRY(facts.attributes, attributes_of(query, ino));
  if (facts.inode.is_directory()) {
    LCCFS_TRY(facts.directory, directory_facts(query, ino));
  }
  if (facts.inode.is_regular()) LCCFS_CHECK(read_locks(query, facts));
  const bool may_be_asked_for = facts.inode.dead() || !facts.inode.is_directory();
  if (may_be_asked_for) {
    LCCFS_TRY(facts.open_at, who_has_it_open(store, ino));
  }
  return facts;
}

}  // namespace lccfs::survey
