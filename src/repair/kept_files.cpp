// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Bytes that belong to no file are copied into one in /lost+found before their object goes.
//
//  # | object           | step                                          | stop here leaves
//  1 | Inode.X          | create exclusive, with its size and map        | an inode that the range intent names
//  2 | Data.X.*         | write                                         | the same
//  3 | Inode.lost+found | both keys                                     | COMMIT; the next run finds the copy
//  4 | the object       | remove                                        |
#include <algorithm>
#include <limits>

#include "base/text.h"
#include "format/layout.h"
#include "repair/outcome.h"
#include "repair/repairs.h"

namespace lccfs::repair {

using format::MapBlock;
namespace xattr = format::xattr;

namespace {

/// With '/', and what a terminal would not show, as \xNN, and two names for two; cut to what a name may have.
std::string as_name(const std::string& text) {
  std::string name;
  for (const char c : text) name += c == '/' ? "\\x2f" : c == '\\' ? "\\x5c" : std::string(1, c);
  return printable(name).substr(0, format::name_limit_bytes);
}

std::set<ObjectIndex> all_indexes(std::uint64_t object_size_bytes, std::uint64_t size_bytes) {
  std::set<ObjectIndex> indexes;
  for (std::uint64_t index = 0; index < format::object_count(object_size_bytes, size_bytes); ++index) {
    indexes.insert({index});
  }
  return indexes;
}

}  // namespace

Result<Ino> Repairs::copy(const Source& source, Token token) {
  LCCFS_TRY(const Ino parent, lost_and_found_.directory());
  txn::FoundFile file;
  LCCFS_TRY(file.ino, instance_.allocate_ino());
  file.parent = format::BackPointerRecord{parent, token};
  file.token = token;
  file.time = instance_.clock().wall_time();
  file.size_bytes = source.size_bytes;
  for (const auto index : source.indexes) {
    auto& block = file.map_blocks[index.value / MapBlock::objects];
    block.may_exist.set(index.value % MapBlock::objects);
    block.believed_there.set(index.value % MapBlock::objects);
  }
  LCCFS_CHECK(objects_.change(txn::make_found_file(file)));
  for (const auto index : source.indexes) {
    LCCFS_TRY(const auto bytes, source.piece(index));
    if (!bytes.empty()) LCCFS_CHECK(objects_.write_data(format::data_object(file.ino, index), 0, bytes));
  }
  return file.ino;
}

/// A copy that was named is whole; but a user's file may have the name.
Result<bool> Repairs::is_kept(const Source& source, Ino ino) {
  LCCFS_TRY(const auto file, objects_.read_inode(ino, "p/"));
  if (!file || file->number(xattr::size) != source.size_bytes) return false;
  for (const auto index : source.indexes) {
    LCCFS_TRY(const auto bytes, source.piece(index));
    LCCFS_TRY(const auto copied, objects_.read_data(format::data_object(ino, index), 0, object_size_bytes()));
    if (bytes != copied) return false;
  }
  return true;
}

Result<std::string> Repairs::keep(const Source& source) {
  LCCFS_TRY(const auto there, lost_and_found_.find(as_name(source.name)));
  if (there) {
    LCCFS_TRY(const bool kept, is_kept(source, *there));
    if (kept) return "/lost+found/" + as_name(source.name);
  }
  const Token token = instance_.next_token();
  LCCFS_TRY(const Ino file, copy(source, token));
  return lost_and_found_.put(file, FileType::regular, token, as_name(source.name));
}

/// Of an inode that is no regular file: the number is taken.
Result<Repair> Repairs::move_data(Ino ino, const std::set<ObjectIndex>& indexes, std::uint64_t size_bytes) {
  if (orphans_ == Orphans::keep) {
    const auto piece = [&](ObjectIndex index) {
      return objects_.read_data(format::data_object(ino, index), 0, object_size_bytes());
    };
    LCCFS_TRY(const auto path, keep({"data-of-inode-" + std::to_string(ino.value), indexes, size_bytes, piece}));
    for (const auto index : indexes) LCCFS_CHECK(objects_.remove_data(format::data_object(ino, index)));
    return Repair{true, "moved to " + path};
  }
  for (const auto index : indexes) LCCFS_CHECK(objects_.remove_data(format::data_object(ino, index)));
  return Repair{true, "removed"};
}

// ---- objects of other programs

Result<Repair> Repairs::repair_unknown_object(const Finding& finding) {
  LCCFS_TRY(const auto object, objects_.read(finding.object, ""));
  return object ? keep_metadata(*object) : keep_data(finding.object);
}

Result<Repair> Repairs::keep_metadata(const Object& object) {
  std::string what = "removed";
  const bool bytes_alone = object.xattrs.empty() && object.keys.empty();
  if (!bytes_alone && orphans_ == Orphans::keep) return left("it has xattrs or keys, which no file can have");
  if (!object.payload.empty() && orphans_ == Orphans::keep) {
    const auto piece = [&](ObjectIndex index) -> Result<Bytes> {
      return object.payload.substr(index.value * object_size_bytes(), object_size_bytes());
    };
    const std::uint64_t size_bytes = object.payload.size();
    LCCFS_TRY(const auto path,
              keep({object.as_read.object, all_indexes(object_size_bytes(), size_bytes), size_bytes, piece}));
    what = "moved to " + path;
  }
  LCCFS_TRY(const bool dropped, objects_.change(txn::drop_object(object.as_read)));
  return stepped(dropped, std::move(what));
}

Result<Repair> Repairs::keep_data(const std::string& object) {
  const auto piece = [&](ObjectIndex index) {
    return objects_.read_data(object, index.value * object_size_bytes(), object_size_bytes());
  };
  std::uint64_t size_bytes = 0;
  for (std::uint64_t index = 0; size_bytes == index * object_size_bytes(); ++index) {
    LCCFS_TRY(const auto bytes, piece({index}));
    if (bytes.empty()) break;
    size_bytes += bytes.size();
  }
  std::string what = "removed";
  if (size_bytes > 0 && orphans_ == Orphans::keep) {
    LCCFS_TRY(const auto path, keep({object, all_indexes(object_size_bytes(), size_bytes), size_bytes, piece}));
    what = "moved to " + path;
  }
  LCCFS_CHECK(objects_.remove_data(object));
  return Repair{true, std::move(what)};
}

}  // namespace lccfs::repair
