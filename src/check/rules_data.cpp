// SPDX-License-Identifier: LGPL-2.1-or-later
#include <array>
#include <future>
#include <memory>

#include "check/rules.h"
#include "format/layout.h"

namespace lccfs::check {

using Kind = Finding::Kind;
using format::MapBlock;

namespace {

bool may_exist(const InodeObject& inode, ObjectIndex index) {
  const auto block = inode.map.find(index.value / MapBlock::objects);
  return block != inode.map.end() && block->second.may_exist[index.value % MapBlock::objects];
}

Result<bool> has_byte_at(ObjectStore& store, const std::string& object, std::uint64_t offset) {
  std::array<char, 1> byte;
  const auto answer = std::make_shared<std::promise<Result<std::size_t>>>();
  store.read_data(object, offset, byte, [answer](Result<std::size_t> read) { answer->set_value(std::move(read)); });
  LCCFS_TRY(const auto bytes, answer->get_future().get());
  return bytes > 0;
}

}  // namespace

void check_map(VolumeView& view) {
  for (const auto& [ino, indexes] : view.data) {
    const auto* inode = view.inode(ino);
    const bool of_no_file = inode != nullptr && inode->attr && !inode->is(FileType::regular);
    if (inode == nullptr || of_no_file) {
      view.report({.kind = Kind::data_without_inode,
                   .object = format::data_object(ino, *indexes.begin()),
                   .text = format::inode_object(ino) + (of_no_file ? " is no regular file" : " is not there") + "; " +
                           std::to_string(indexes.size()) + " such objects",
                   .number = indexes.size()});
      continue;
    }
    for (const auto index : indexes) {
      if (may_exist(*inode, index)) continue;
      view.report({.kind = Kind::unmapped_data,
                   .object = format::data_object(ino, index),
                   .text = "its bit \"may exist\" is not set",
                   .number = index.value});
    }
  }
}

Result<> check_tails(VolumeView& view, ObjectStore& store) {
  if (!view.super) return {};
  const std::uint64_t object_size_bytes = view.super->object_size_bytes;
  for (const auto& [ino, indexes] : view.data) {
    const auto* inode = view.inode(ino);
    if (inode == nullptr || !inode->is(FileType::regular) || inode->lease || !inode->size_bytes) continue;
    // Objects that lie wholly below the size need no look.
    const ObjectIndex boundary{*inode->size_bytes / object_size_bytes};
    for (auto index = indexes.lower_bound(boundary); index != indexes.end(); ++index) {
      const auto object = format::data_object(ino, *index);
      const auto below = format::bytes_within(object_size_bytes, *index, *inode->size_bytes);
      LCCFS_TRY(const bool past, has_byte_at(store, object, below));
      if (!past) continue;
      view.report({.kind = Kind::data_past_size,
                   .object = object,
                   .text = "bytes from " + std::to_string(below) + " on, past the file's size of " +
                           std::to_string(*inode->size_bytes) + "; nobody holds the lease",
                   .number = index->value});
    }
  }
  return {};
}

}  // namespace lccfs::check
