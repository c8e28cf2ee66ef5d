// SPDX-License-Identifier: LGPL-2.1-or-later
#include "txn/load_txn.h"

#include <ranges>

#include "txn/parts.h"

namespace lccfs::txn {

namespace {

// Ceph takes no step of more than 90 MB (osd_max_write_size).
constexpr std::size_t attributes_of_a_step = 64;
constexpr std::size_t attribute_bytes_of_a_step = std::size_t{1} << 20;

guard::XattrEquals is_as_loaded(const format::AttrRecord& attr) { return {xattr::attr, encode(attr)}; }

void set_some_attributes(MetaTxn& txn, const LoadedInode& inode, std::size_t attributes_before) {
  const auto count = count_of_attributes(inode, attributes_before);
  for (const auto& [name, value] : inode.attributes | std::views::drop(attributes_before) | std::views::take(count)) {
    add(txn, set_attribute(name, value));
  }
}

}  // namespace

std::size_t count_of_attributes(const LoadedInode& inode, std::size_t attributes_before) {
  std::size_t count = 0, size_bytes = 0;
  for (const auto& [name, value] : inode.attributes | std::views::drop(attributes_before)) {
    size_bytes += name.size() + value.size();
    if (count == attributes_of_a_step || (count > 0 && size_bytes > attribute_bytes_of_a_step)) break;
    ++count;
  }
  return count;
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
  set_part_of_map(txn, inode.map_blocks, 0);
  set_some_attributes(txn, inode, 0);
  return txn;
}

MetaTxn load_map(const LoadedInode& inode, std::size_t blocks_before) {
  auto txn = make(inode.ino, "load map", guard::ObjectExists{}, is_as_loaded(inode.attr));
  set_part_of_map(txn, inode.map_blocks, blocks_before);
  return txn;
}

MetaTxn load_attributes(const LoadedInode& inode, std::size_t attributes_before) {
  auto txn = make(inode.ino, "load attributes", guard::ObjectExists{}, is_as_loaded(inode.attr));
  set_some_attributes(txn, inode, attributes_before);
  return txn;
}

MetaTxn load_entries(const format::VolumeUuid& uuid, Ino directory, const format::AttrRecord& attr,
                     const std::vector<LoadedName>& names, std::uint64_t nsub) {
  auto txn = make(directory, "load entries", guard::ObjectExists{}, is_as_loaded(attr));
  for (const auto& [name, ino, type] : names) add_name(txn, {uuid, directory, name}, {ino, type, token_of_load});
  set_nsub(txn, nsub);
  return txn;
}

MetaTxn settle_root(format::AttrRecord attr) {
  auto txn = make(root_ino, "settle root", guard::ObjectExists{}, is_as_loaded(attr));
  attr.birth_token = token_of_load;
  add(txn, set(xattr::attr, attr));
  return txn;
}

}  // namespace lccfs::txn
