// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/inodes.h"

#include <algorithm>

#include "base/completions.h"
#include "fs/attempts.h"
#include "fs/mode_bits.h"
#include "txn/attribute_txn.h"

namespace lccfs {

Result<Inode> read_inode(Instance& instance, Ino ino, const InodeParts& parts, const std::stop_token& stop) {
  const auto sent = instance.clock().elapsed();
  auto view = objects::read_inode(instance.reader(stop), ino, parts);
  if (view) view->sent = sent;
  return view;
}

Result<Inode> read_inode_and_map(Instance& instance, Ino ino, const std::stop_token& stop) {
  return read_inode(instance, ino, {.map = InodeParts::Map::whole}, stop);
}

Awaited<Result<Inode>> read_ahead(Instance& instance, Ino ino) {
  auto [answer, done] = promised<Result<Inode>>();
  objects::read_inode_async(instance.reader(), ino, {}, std::move(done));
  return std::move(answer);
}

Error gone_is_stale(Error error) {
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::stale;
  return error;
}

Attributes attributes_of(const Inode& view, std::uint64_t object_size_bytes) {
  Attributes attributes;
  attributes.ino = view.ino;
  attributes.type = view.attr.type;
  attributes.mode = view.attr.mode;
  attributes.nlink = view.attr.nlink;
  if (view.is_directory()) attributes.nlink = static_cast<std::uint32_t>(2 + view.nsub);
  if (view.dead()) attributes.nlink = 0;
  attributes.uid = view.attr.uid;
  attributes.gid = view.attr.gid;
  attributes.rdev = view.attr.rdev;
  attributes.size_bytes = view.size_bytes;
  attributes.blocks_512 = view.map.blocks_512(object_size_bytes, view.size_bytes);
  attributes.atime = view.atime;
  attributes.mtime = view.mtime;
  attributes.ctime = view.shown_ctime();
  return attributes;
}

namespace {

std::string access_acl_key() { return format::user_attribute_key(format::attribute::access_acl); }

/// An access ACL that stays says the same as the mode.
bool changes_access_acl(const format::AttrRecord& old, const format::AttrRecord& changed) {
  const bool has_acl = (changed.flags & format::attr_flag::access_acl) != 0;
  return has_acl && ((old.mode ^ changed.mode) & access_bits) != 0;
}

/// nullopt: there is none, whatever the flags say; then it has no flag any more.
Result<std::optional<txn::AccessAclChange>> access_acl_change(const Inode& view, format::AttrRecord& changed) {
  const auto stored = view.keys.find(access_acl_key());
  if (stored == view.keys.end()) {
    changed.flags &= ~format::attr_flag::access_acl;
    return std::nullopt;
  }
  LCCFS_TRY(const auto acl, stored_acl(view.ino, format::attribute::access_acl, stored->second));
  return txn::AccessAclChange{stored->second, encode(with_permissions_of(acl, changed.mode))};
}

}  // namespace

Result<Acl> stored_acl(Ino ino, const std::string& name, const Bytes& stored) {
  auto acl = decode_acl(txn::user_attribute_value(stored));
  if (acl) return acl;
  return failure(ErrorCode::corrupt, format::inode_object(ino) + ": " + name + ": " + acl.error().context);
}

Result<Inode> change_attr(Instance& instance, Ino ino, const std::function<Result<>(format::AttrRecord&)>& change,
                          const Inode* known, const RunStep& on_directory) {
  InodeParts parts{.map = InodeParts::Map::whole};
  std::optional<Inode> view;
  if (known != nullptr) view = *known;
  for (Attempts attempts(instance);;) {
    if (!view) {
      LCCFS_TRY(view, read_inode(instance, ino, parts));
    }
    auto attr = view->attr;
    if (const auto allowed = change(attr); !allowed) {
      if (std::exchange(known, nullptr) == nullptr) return std::unexpected(allowed.error());
      view.reset();  // what is known may be old
      continue;
    }
    std::optional<txn::AccessAclChange> acl;
    if (changes_access_acl(view->attr, attr)) {
      if (parts.keys.empty()) {
        parts.keys = {access_acl_key()};
        view.reset();
        continue;
      }
      LCCFS_TRY(acl, access_acl_change(*view, attr));
    }
    const auto sent = instance.clock().elapsed();
    const auto now = instance.clock().wall_time();
    const auto lost_flags = view->attr.flags & ~attr.flags;
    auto step = txn::change_attr(ino, {view->attr_raw, attr}, now, lost_flags, acl);
    const bool is_guarded = on_directory && view->is_directory();
    LCCFS_TRY(const auto result, is_guarded ? on_directory(std::move(step)) : instance.run(std::move(step)));
    if (result.decided == Decided::applied) {
      if (result.version == 0) return read_inode_and_map(instance, ino);
      view->attr = attr;
      view->attr_raw = encode(attr);
      view->ctime = now;
      view->version = result.version;
      view->sent = sent;
      return *view;
    }
    view.reset();  // lost a race, or what was known is old
    LCCFS_CHECK(attempts.next());
  }
}

}  // namespace lccfs
