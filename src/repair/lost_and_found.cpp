// SPDX-License-Identifier: LGPL-2.1-or-later
//
// adopt (X, name): 3 writes, one after the other; /lost+found is there.
//
//  # | object           | step                                                    | stop here leaves
//  1 | Inode.X          | [revive] live, one link, `parent` = (lost+found, token);| X as it was, without this name
//    |                  | where it pointed before becomes a key                   |
//  2 | Inode.lost+found | [put entry] both keys; nsub + 1 if it is a directory    | COMMIT; X with back-pointers too many:
//    |                  |                                                         | a check finds one that leads nowhere
//  3 | Session.me       | [log queue items] inode item X: they are trimmed        | done
//
// Until X has its name, an old pointer to a directory that is lost keeps a collector from taking X for garbage. After that
// it would do so for ever: also once a user has deleted X. The item comes after the name, for where X lost its name in a
// directory that is there, a collector that it leads to X would find none.
//
// Making /lost+found is a mkdir: [create inode] (a range intent covers it), then [put entry] in the root.
#include "repair/lost_and_found.h"

namespace lccfs::repair {

namespace xattr = format::xattr;

namespace {

constexpr const char* directory_name = "lost+found";
constexpr std::uint32_t owner_alone = 0700;

/// The first name, then others beside it.
std::string variant_of(const std::string& name, unsigned number) {
  if (number == 0) return name.substr(0, format::name_limit_bytes);
  const auto suffix = "-" + std::to_string(number + 1);
  return name.substr(0, format::name_limit_bytes - suffix.size()) + suffix;
}

}  // namespace

Result<std::optional<Ino>> LostAndFound::find_in(Ino directory, const std::string& name, FileType type) {
  const auto key = format::entry_key(objects_.uuid(), name);
  LCCFS_TRY(const auto object, objects_.read_keys(format::inode_object(directory), {key}));
  const auto entry = object ? object->entry(key) : std::nullopt;
  if (!entry || entry->record.type != type) return std::nullopt;
  LCCFS_TRY(const auto target, objects_.read_inode(entry->record.ino));
  const bool there = target && target->is(type) && !target->is_dead() && !target->is_sealed();
  return there ? std::optional(entry->record.ino) : std::nullopt;
}

/// False: the name is taken.
Result<bool> LostAndFound::add_entry(Ino directory, const std::string& text, const format::EntryRecord& entry) {
  const txn::Name name(objects_.uuid(), directory, text);
  for (;;) {
    LCCFS_TRY(const auto object, objects_.read_keys(format::inode_object(directory), {name.key}));
    if (!object) return failure(ErrorCode::corrupt, format::inode_object(directory) + " has gone meanwhile");
    if (object->keys.contains(name.key)) {
      const auto there = object->entry(name.key);
      return there && there->record == entry;
    }
    std::optional<std::uint64_t> nsub = object->number(xattr::nsub);
    if (nsub) nsub = entry.type == FileType::directory ? std::optional(*nsub + 1) : std::nullopt;
    LCCFS_TRY(const bool added, objects_.change(txn::put_entry(object->as_read(), name, entry, nsub)));
    if (added) return true;
  }
}

Result<Ino> LostAndFound::make(const std::string& name) {
  const Token token = instance_.next_token();
  txn::NewInode inode;
  LCCFS_TRY(inode.ino, instance_.allocate_ino());
  inode.time = instance_.clock().wall_time();
  inode.attr.type = FileType::directory;
  inode.attr.mode = owner_alone;
  inode.attr.birth = inode.time;
  inode.attr.birth_token = token;
  inode.parent = {root_ino, token};
  LCCFS_CHECK(objects_.change(txn::create_inode(inode)));
  LCCFS_TRY(const bool added, add_entry(root_ino, name, {inode.ino, FileType::directory, token}));
  if (!added) return failure(ErrorCode::busy, "the name " + name + " was taken meanwhile");
  return inode.ino;
}

/// Ends at the directory, or at the first name that is free for it.
Result<> LostAndFound::look_for_directory() {
  for (unsigned number = 0; !known_; ++number) {
    name_ = variant_of(directory_name, number);
    LCCFS_TRY(known_, find_in(root_ino, name_, FileType::directory));
    const auto key = format::entry_key(objects_.uuid(), name_);
    LCCFS_TRY(const auto root, objects_.read_keys(format::inode_object(root_ino), {key}));
    if (!root) return failure(ErrorCode::corrupt, "there is no root directory");
    if (!root->keys.contains(key)) break;
  }
  return {};
}

Result<std::optional<Ino>> LostAndFound::existing() {
  LCCFS_CHECK(look_for_directory());
  return known_;
}

Result<Ino> LostAndFound::directory() {
  LCCFS_CHECK(look_for_directory());
  if (!known_) {
    LCCFS_TRY(known_, make(name_));
  }
  return *known_;
}

Result<std::string> LostAndFound::put(Ino ino, FileType type, Token token, const std::string& text) {
  LCCFS_TRY(const Ino here, directory());
  for (unsigned number = 0;; ++number) {
    const auto name = variant_of(text, number);
    LCCFS_TRY(const bool added, add_entry(here, name, {ino, type, token}));
    if (added) return path_of(name);
  }
}

Result<std::optional<std::string>> LostAndFound::find(const std::string& text, const IsIt& is_it) {
  LCCFS_TRY(const Ino here, directory());
  for (unsigned number = 0;; ++number) {
    const auto name = variant_of(text, number);
    const auto key = format::entry_key(objects_.uuid(), name);
    LCCFS_TRY(const auto object, objects_.read_keys(format::inode_object(here), {key}));
    if (!object || !object->keys.contains(key)) return std::nullopt;
    LCCFS_TRY(const auto file, find_in(here, name, FileType::regular));
    if (!file) continue;
    LCCFS_TRY(const bool found, is_it(*file));
    if (found) return path_of(name);
  }
}

Result<std::optional<std::string>> LostAndFound::adopt(const Object& inode, Ino ino, const std::string& name,
                                                       const std::vector<Holder>& other_names) {
  LCCFS_TRY(const Ino here, directory());
  auto attr = *inode.attr();
  attr.nlink = 1;
  const Token token = instance_.next_token();
  std::vector<format::BackPointerRecord> further;
  further.reserve(other_names.size() + 1);
  for (const auto& other : other_names) further.push_back({other.directory, other.entry.token});
  const auto before = inode.find<format::BackPointerRecord>(xattr::parent);
  if (before && before->parent != here) further.push_back(*before);
  LCCFS_TRY(const bool pointed, objects_.change(txn::revive(inode.as_read(), attr, {here, token}, further)));
  if (!pointed) return std::nullopt;
  LCCFS_TRY(auto path, put(ino, attr.type, token, name));
  LCCFS_CHECK(instance_.log_items({{format::QueueItem::Kind::inode, ino, {}, instance_.clock().wall_time()}}));
  return path;
}

}  // namespace lccfs::repair
