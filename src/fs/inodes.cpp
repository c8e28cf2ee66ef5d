// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/inodes.h"

#include <algorithm>

#include "base/completions.h"
#include "txn/attribute_txn.h"

namespace lccfs {

Result<Inode> read_inode(Instance& instance, Ino ino, const InodeParts& parts) {
  const auto sent = instance.clock().elapsed();
  auto view = objects::read_inode(instance.reader(), ino, parts);
  if (view) view->sent = sent;
  return view;
}

Result<Inode> read_inode_and_map(Instance& instance, Ino ino) {
  return read_inode(instance, ino, {.map = InodeParts::Map::whole});
}

std::future<Result<Inode>> read_ahead(Instance& instance, Ino ino) {
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
  if (view.is_directory()) attributes.nlink = view.live() ? static_cast<std::uint32_t>(2 + view.nsub) : 0;
  attributes.uid = view.attr.uid;
  attributes.gid = view.attr.gid;
  attributes.rdev = view.attr.rdev;
  attributes.size_bytes = view.size_bytes;
  attributes.blocks_512 = view.map.blocks_512(object_size_bytes, view.size_bytes);
  attributes.atime = view.atime;
  attributes.mtime = view.mtime;
  attributes.ctime = std::max(view.ctime, view.wtime);
  return attributes;
}

Result<Inode> change_attr(Instance& instance, Ino ino, const std::function<Result<>(format::AttrRecord&)>& change,
                          const Inode* known) {
  std::optional<Inode> view;
  if (known != nullptr) view = *known;
  for (;;) {
    if (!view) {
      LCCFS_TRY(view, read_inode_and_map(instance, ino));
    }
    auto attr = view->attr;
    LCCFS_CHECK(change(attr));
    const auto sent = instance.clock().elapsed();
    const auto now = instance.clock().wall_time();
    const bool drop_capability = (view->attr.flags & ~attr.flags & format::attr_flag::capability) != 0;
    LCCFS_TRY(const auto result, instance.run(txn::change_attr(ino, view->attr_raw, attr, now, drop_capability)));
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
  }
}

}  // namespace lccfs
