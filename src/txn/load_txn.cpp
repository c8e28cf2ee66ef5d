// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/load_txn.h"

#include <ranges>

#include "txn/parts.h"

namespace lccfs::txn {

static void set_part_of_map(MetaTxn& txn, const LoadedInode& inode, std::size_t blocks_before) {
  for (const auto& [block, bits] :
       inode.map_blocks | std::views::drop(blocks_before) | std::views::take(map_blocks_of_a_step)) {
    add(txn, mutation::SetKey{format::map_key(block), encode(bits)});
  }
}

MetaTxn load_inode(const LoadedInode& inode) {
  auto txn = make_inode(inode.ino, "load inode", inode.attr, inode.atime);
  add(txn, set(xattr::mtime, inode.mtime), set(xattr::ctime, inode.ctime));
  const auto type = inode.attr.type;
  if (type == FileType::regular || type == FileType::symlink) add(txn, set(xattr::size, inode.size_bytes));
  if (type == FileType::directory) set_nsub(txn, 0);
  if (type == FileType::symlink) add(txn, mutation::SetPayload{inode.symlink_target});
  bool is_first = true;
  for (const Ino parent : inode.parents) {
    if (is_first) {
      add(txn, set(xattr::parent, format::BackPointerRecord{parent, token_of_load}));
    } else {
      add(txn, mark(format::back_pointer_key(parent, token_of_load)));
    }
    is_first = false;
  }
  set_part_of_map(txn, inode, 0);
  for (const auto& [name, value] : inode.attributes) add(txn, set_attribute(name, value));
  return txn;
}

MetaTxn load_map(const LoadedInode& inode, std::size_t blocks_before) {
  auto txn = make(inode.ino, "load map", guard::ObjectExists{});
  set_part_of_map(txn, inode, blocks_before);
  return txn;
}

MetaTxn load_entries(const format::VolumeUuid& uuid, Ino directory, const std::vector<LoadedName>& names,
                     std::uint64_t nsub) {
  auto txn = make(directory, "load entries", guard::ObjectExists{});
  for (const auto& [name, ino, type] : names) add_name(txn, {uuid, directory, name}, {ino, type, token_of_load});
  set_nsub(txn, nsub);
  return txn;
}

}  // namespace lccfs::txn
