// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/traces.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/expected_errors.h"

namespace lccfs::reclaim {

Result<std::optional<Inode>> read_traces(const Query& query, Ino ino) {
  return or_none(objects::read_inode(query, ino, {.map = objects::InodeParts::Map::whole, .traces = true}));
}

namespace {

/// A directory that is gone has none.
Result<> for_each_key_there(const Query& query, Ino directory, const std::string& prefix,
                            const std::function<Result<>(const std::string& key, const Bytes& value)>& work) {
  return done_or(ErrorCode::not_found, objects::for_each_key(query, format::inode_object(directory), prefix, work));
}

}  // namespace

Result<> for_each_detached(const Query& query, Ino directory,
                           const std::function<Result<>(const format::DetachedKey&)>& work) {
  const auto take = [&work](const std::string& key, const Bytes&) -> Result<> {
    const auto detached = format::parse_detached_key(key);
    return detached ? work(*detached) : Result<>();
  };
  return for_each_key_there(query, directory, "d/", take);
}

Result<> for_each_decision(const Query& query, Ino directory,
                           const std::function<Result<>(Token, const std::string& key, const Bytes& value)>& work) {
  const auto take = [&work](const std::string& key, const Bytes& value) -> Result<> {
    const auto token = format::parse_decision_key(key);
    return token ? work(*token, key, value) : Result<>();
  };
  return for_each_key_there(query, directory, "x/", take);
}

Result<bool> has_mark(const Query& query, const format::VolumeUuid& uuid, const MarkedName& marked) {
  const auto object = format::inode_object(marked.directory);
  const auto entry_key = format::entry_key(uuid, marked.name);
  const auto reverse_key = format::reverse_key(marked.record.ino, marked.name);
  LCCFS_TRY(const auto found, objects::find_object(query, {.object = object, .keys = {entry_key, reverse_key}}));
  if (!found) return false;
  const auto value = encode(marked.record);
  const auto reverse = found->keys.find(reverse_key);
  if (reverse == found->keys.end() || reverse->second != value) return false;
  const auto entry = found->keys.find(entry_key);
  if (entry != found->keys.end() && entry->second == value) return true;
  return failure(ErrorCode::corrupt, object + ": " + entry_key + ": not as its reverse key has it");
}

Result<std::optional<MarkedName>> old_name_of(const Query& query, const format::VolumeUuid& uuid, Token token,
                                              const format::DecisionRecord& committed) {
  const auto object = format::inode_object(committed.from);
  const auto key = format::entry_key(uuid, committed.name);
  LCCFS_TRY(const auto directory, objects::find_object(query, {.object = object, .keys = {key}}));
  if (!directory) return std::nullopt;
  const auto value = directory->keys.find(key);
  if (value == directory->keys.end()) return std::nullopt;
  LCCFS_TRY(const auto record, objects::decode_part<format::EntryRecord>(object, key, value->second));
  if (!record.mark || record.mark->token != token) return std::nullopt;
  return MarkedName{committed.from, committed.name, record};
}

Result<MoveState> state_of_move(const Query& query, const format::EntryRecord::Mark& mark) {
  const auto object = format::inode_object(mark.to);
  const auto key = format::decision_key(mark.token);
  LCCFS_TRY(const auto found, objects::find_object(query, {.object = object, .keys = {key}}));
  if (!found) return MoveState::impossible;
  const auto value = found->keys.find(key);
  if (value == found->keys.end()) return MoveState::undecided;
  LCCFS_TRY(const auto decision, objects::decode_part<format::DecisionRecord>(object, key, value->second));
  const bool committed = decision.kind == format::DecisionRecord::Kind::committed;
  return committed ? MoveState::committed : MoveState::cancelled;
}

namespace {

/// false: it has moved away.
Result<bool> is_name(const Query& query, Ino parent, const std::string& name, const std::string& key,
                     const Bytes& value, Names& names) {
  if (value == format::marker_value) return true;
  LCCFS_TRY(const auto record, objects::decode_part<format::EntryRecord>(format::inode_object(parent), key, value));
  if (!record.mark) return true;
  LCCFS_TRY(const auto state, state_of_move(query, *record.mark));
  names.removals.push_back(record.mark->token);
  names.marked.push_back({parent, name, record});
  return state != MoveState::committed;
}

/// `root` as it was read. Asked only of what lives and has no name: others need not wait for a root that cannot be read.
Result<bool> points_to_lost_root(const Inode& inode, const objects::Object& root) {
  LCCFS_TRY(const auto attr, root.needed<format::AttrRecord>(format::xattr::attr));
  return std::ranges::any_of(inode.pointers, [&](const objects::BackPointer& pointer) {
    return pointer.parent == root_ino &&
           format::leads_to_lost_root(attr.birth_token, inode.ino, pointer.token.instance);
  });
}

}  // namespace

Result<Names> count_names(const Query& query, const Inode& inode) {
  std::set<Ino> parents;
  for (const auto& pointer : inode.pointers) parents.insert(pointer.parent);
  const auto prefix = format::reverse_key(inode.ino, ""), removed = format::detached_prefix(inode.ino);
  Names names;
  std::optional<objects::Object> root;
  for (const Ino parent : parents) {
    MetaRead read{.object = format::inode_object(parent),
                  .xattrs = parent == root_ino,
                  .ranges = {{prefix, "", keys_at_once}, {removed, "", keys_at_once}}};
    LCCFS_TRY(const auto found, objects::find_object(query, std::move(read), 2));
    if (!found) {
      names.missing_parents.push_back(parent);
      continue;
    }
    for (const auto& [key, value] : found->ranges.front().entries) {
      auto name = key.substr(prefix.size());
      LCCFS_TRY(const bool is_there, is_name(query, parent, name, key, value, names));
      if (is_there) names.by_parent[parent].push_back(std::move(name));
    }
    for (const auto& [key, value] : found->ranges.back().entries) {
      if (const auto removal = format::parse_detached_key(key)) names.removals.push_back(removal->token);
    }
    if (parent == root_ino) root = *found;
  }
  if (!root || names.total() > 0 || inode.dead()) return names;
  LCCFS_TRY(const bool lost, points_to_lost_root(inode, *root));
  if (lost) names.missing_parents.push_back(root_ino);
  return names;
}

namespace {

/// The rule for readers of marks (docs/PROTOCOL.md section 6): a marked name whose move had not committed when its
/// decision was read stands if it is unchanged after that.
Result<bool> marks_are_unchanged(const Query& query, Ino ino, const Names& names) {
  for (const auto& [parent, name, record] : names.marked) {
    const auto key = format::reverse_key(ino, name);
    LCCFS_TRY(const auto found, objects::find_object(query, {.object = format::inode_object(parent), .keys = {key}}));
    if (!found || !found->keys.contains(key) || found->keys.at(key) != encode(record)) return false;
  }
  return true;
}

/// A move that is under way may hide the only name from a count, and the next move from the next one. So two counts are
/// believed that found none, if the inode was the same before, between and after them: a move changes it first.
class CountsInVain {
 public:
  /// To be asked before each count.
  bool are_enough(std::uint64_t version) {
    if (std::exchange(version_, version) != version) counts_ = 0;
    return counts_++ == 2;
  }

 private:
  std::optional<std::uint64_t> version_;
  unsigned counts_ = 0;
};

}  // namespace

Result<std::optional<Ino>> parent_of(const Query& query, Ino directory) {
  if (directory == root_ino) return std::nullopt;
  for (CountsInVain in_vain;;) {
    LCCFS_TRY(const auto traces, read_traces(query, directory));
    if (!traces) return std::nullopt;
    std::set<Ino> parents;
    for (const auto& pointer : traces->pointers) parents.insert(pointer.parent);
    if (parents.size() == 1) return *parents.begin();  // every directory that names it is among them
    if (in_vain.are_enough(traces->version)) return std::nullopt;
    LCCFS_TRY(const auto names, count_names(query, *traces));
    LCCFS_TRY(const bool stand, marks_are_unchanged(query, directory, names));
    if (!stand) {
      in_vain = {};
      continue;
    }
    if (!names.by_parent.empty()) return names.by_parent.begin()->first;
  }
}

Result<bool> is_inside(const Query& query, Ino directory, Ino above) {
  std::set<Ino> passed;
  while (directory != above && directory != root_ino) {
    if (!passed.insert(directory).second) {
      return failure(ErrorCode::corrupt, format::inode_object(directory) + ": its path leads back to itself");
    }
    LCCFS_TRY(const auto parent, parent_of(query, directory));
    if (!parent) return failure(ErrorCode::stale, format::inode_object(directory) + " has no name");
    directory = *parent;
  }
  return directory == above;
}

Result<bool> has_a_name(const Query& query, Ino ino) {
  for (CountsInVain in_vain;;) {
    LCCFS_TRY(const auto traces, read_traces(query, ino));
    if (!traces || in_vain.are_enough(traces->version)) return false;
    LCCFS_TRY(const auto names, count_names(query, *traces));
    if (names.total() > 0) return true;
  }
}

}  // namespace lccfs::reclaim
