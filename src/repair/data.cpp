// SPDX-License-Identifier: LGPL-2.1-or-later
// Data objects: M and T.
#include <algorithm>
#include <variant>

#include "format/layout.h"
#include "repair/outcome.h"
#include "repair/repairs.h"

namespace lccfs::repair {

using Kind = check::Finding::Kind;
using format::MapBlock;
namespace xattr = format::xattr;

/// One pass over the store's listing for all inodes that are missing.
Result<> Repairs::look_ahead(const std::vector<Finding>& findings) {
  lost_data_.clear();
  for (const auto& finding : findings) {
    if (finding.kind == Kind::data_without_inode) lost_data_[finding.ino];
  }
  std::string cursor;
  while (!lost_data_.empty()) {
    LCCFS_TRY(ListPage page, objects_.store().list(cursor));
    for (const auto& name : page.names) {
      const auto parsed = format::parse_object_name(name);
      const auto* data = parsed ? std::get_if<format::DataName>(&*parsed) : nullptr;
      if (data == nullptr) continue;
      const auto lost = lost_data_.find(data->ino);
      if (lost != lost_data_.end()) lost->second.insert(data->index);
    }
    cursor = std::move(page.next_cursor);
    if (cursor.empty()) break;
  }
  return {};
}

/// It keeps its number: an entry for it may still be there. Otherwise the next check finds an orphan.
Result<Repair> Repairs::make_inode_for_data(const Finding& finding) {
  const auto& indexes = lost_data_[finding.ino];
  LCCFS_TRY(const auto inode, objects_.read_inode(finding.ino, "p/"));
  if (indexes.empty() || (inode && inode->is(FileType::regular))) return settled();
  if (inode && !inode->attr()) return left("attr of the inode cannot be read");
  const auto last = *indexes.rbegin();
  if (last.value >= format::file_size_limit_bytes / object_size_bytes()) return left("no file is that large");
  LCCFS_TRY(const auto last_bytes, objects_.read_data(format::data_object(finding.ino, last), 0, object_size_bytes()));
  txn::FoundFile file;
  file.size_bytes = last.value * object_size_bytes() + last_bytes.size();
  if (inode) return move_data(finding.ino, indexes, file.size_bytes);
  file.ino = finding.ino;
  file.token = instance_.next_token();
  file.time = instance_.clock().wall_time();
  for (const auto index : indexes) {
    auto& block = file.map_blocks[index.value / MapBlock::objects];
    block.may_exist.set(index.value % MapBlock::objects);
    block.believed_there.set(index.value % MapBlock::objects);
  }
  LCCFS_TRY(const bool made, objects_.change(txn::make_found_file(file)));
  return stepped(made, "the inode is made anew, with " + std::to_string(file.size_bytes) + " bytes");
}

Result<Repair> Repairs::map_data(const Finding& finding) {
  const std::uint64_t index = finding.number;
  const txn::Part part{format::map_key(index / MapBlock::objects), true};
  LCCFS_TRY(const auto inode, objects_.read_keys(format::inode_object(finding.ino), {part.name}));
  if (!inode || !inode->is(FileType::regular)) return settled();
  const Bytes* stored = inode->value_of(part);
  const auto block = stored == nullptr ? MapBlock{} : format::decode<MapBlock>(*stored);
  if (!block) return left("its block of the map cannot be read");
  if (block->may_exist[index % MapBlock::objects]) return settled();
  const auto size_bytes = inode->number(xattr::size);
  const bool below = !size_bytes || index < format::object_count(object_size_bytes(), *size_bytes);
  if (!below && !inode->xattrs.contains(xattr::lease)) {
    LCCFS_CHECK(objects_.remove_data(finding.object));
    return Repair{true, "removed: it lies past the file's size"};
  }
  auto bits = *block;
  bits.may_exist.set(index % MapBlock::objects);
  bits.believed_there.set(index % MapBlock::objects);
  return put(*inode, part, encode(bits), "its bit is set");
}

Result<Repair> Repairs::cut_tail(const Finding& finding) {
  LCCFS_TRY(const auto inode, objects_.read_inode(finding.ino, "p/"));
  if (!inode || inode->xattrs.contains(xattr::lease)) return settled();
  const auto size_bytes = inode->number(xattr::size);
  if (!size_bytes) return left("the file's size cannot be read");
  const auto below = format::bytes_within(object_size_bytes(), {finding.number}, *size_bytes);
  LCCFS_CHECK(below == 0 ? objects_.remove_data(finding.object) : objects_.cut_data(finding.object, below));
  return Repair{true, below == 0 ? "removed" : "cut at the file's size"};
}

}  // namespace lccfs::repair
