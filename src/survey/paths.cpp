// SPDX-License-Identifier: LGPL-2.1-or-later
#include "survey/paths.h"

#include "format/object_names.h"

namespace lccfs::survey {

Result<std::optional<format::EntryRecord>> find_entry(const objects::Query& query, const format::VolumeUuid& uuid,
                                                      Ino directory, const std::string& name) {
  const auto object = format::inode_object(directory);
  const auto key = format::entry_key(uuid, name);
  LCCFS_TRY(const auto found, objects::find_object(query, {.object = object, .keys = {key}}));
  if (!found || !found->keys.contains(key)) return std::nullopt;
  LCCFS_TRY(const auto entry, objects::decode_part<format::EntryRecord>(object, key, found->keys.at(key)));
  if (!entry.mark) return entry;
  LCCFS_TRY(const bool is_away, has_moved_away(query, *entry.mark));
  return is_away ? std::nullopt : std::optional(entry);
}

Result<Ino> find_inode(const objects::Query& query, const format::VolumeUuid& uuid, std::string_view path) {
  Ino ino = root_ino;
  for (std::size_t at = 0; at < path.size();) {
    const auto end = std::min(path.find('/', at), path.size());
    const std::string name(path.substr(at, end - at));
    at = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") return failure(ErrorCode::invalid, "a path within the volume must not have \"..\"");
    LCCFS_TRY(const auto entry, find_entry(query, uuid, ino, name));
    if (!entry)
      return failure(ErrorCode::not_found, "there is no " + std::string(path.substr(0, end)) + " in the volume");
    ino = entry->ino;
  }
  return ino;
}

Result<bool> has_moved_away(const objects::Query& query, const format::EntryRecord::Mark& mark) {
  const auto object = format::inode_object(mark.to);
  const auto key = format::decision_key(mark.token);
  LCCFS_TRY(const auto found, objects::find_object(query, {.object = object, .keys = {key}}));
  if (!found || !found->keys.contains(key)) return false;
  LCCFS_TRY(const auto decision, objects::decode_part<format::DecisionRecord>(object, key, found->keys.at(key)));
  return decision.kind == format::DecisionRecord::Kind::committed;
}

}  // namespace lccfs::survey
