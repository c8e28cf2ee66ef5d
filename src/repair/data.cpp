// SPDX-License-Identifier: LGPL-2.1-or-later
// Data objects: M and T. And bytes that belong to no file: they are copied into one in /lost+found before their object
// goes.
//
//  # | object           | step                                             | stop here leaves
//  1 | Inode.X          | [make found file] exclusive, with size and map   | an inode that the range intent leads to
//    |                  | [map found file] the blocks of a huge file that  | the same; unmapped data, which a check finds
//    |                  | one step has no room for                         |
//  2 | Data.X.*         | write                                            | the same
//  3 | Inode.lost+found | [put entry] both keys                            | COMMIT; the next run finds the copy
//  4 | the object       | [drop object], or remove the data                |
#include <algorithm>
#include <variant>

#include "base/text.h"
#include "format/layout.h"
#include "repair/repairs.h"

namespace lccfs::repair {

using check::Kind;
using format::MapBlock;
namespace xattr = format::xattr;

/// One pass over the store's listing for all inodes that are missing.
Result<> Repairs::look_ahead(const std::vector<Finding>& findings) {
  lost_data_.clear();
  for (const auto& finding : findings) {
    if (finding.kind == Kind::data_without_inode) lost_data_[finding.ino];
  }
  if (lost_data_.empty()) return {};
  return objects_.for_each_name([this](const std::string& name) {
    const auto parsed = format::parse_object_name(name);
    const auto* data = parsed ? std::get_if<format::DataName>(&*parsed) : nullptr;
    if (data == nullptr) return;
    const auto lost = lost_data_.find(data->ino);
    if (lost != lost_data_.end()) lost->second.insert(data->index);
  });
}

txn::FoundFile Repairs::file_of(Ino ino, Token token, const std::set<ObjectIndex>& indexes, std::uint64_t size_bytes) {
  txn::FoundFile file{.ino = ino,
                      .parent = std::nullopt,
                      .token = token,
                      .time = clock_.wall_time(),
                      .size_bytes = size_bytes,
                      .map_blocks = {}};
  for (const auto index : indexes) {
    auto& block = file.map_blocks[index.value / MapBlock::objects];
    block.may_exist.set(index.value % MapBlock::objects);
    block.believed_there.set(index.value % MapBlock::objects);
  }
  return file;
}

Result<Repair> Repairs::make_inode_for_data(const Finding& finding) {
  return make_inode_for_data(finding.ino, lost_data_[finding.ino]);
}

/// False: the inode has changed meanwhile. A check finds what is not mapped then.
Result<bool> Repairs::make_file(const txn::FoundFile& file) {
  LCCFS_TRY(bool done, objects_.change(txn::make_found_file(file)));
  constexpr auto blocks = txn::map_blocks_of_a_step;
  for (auto before = blocks; done && before < file.map_blocks.size(); before += blocks) {
    LCCFS_TRY(const auto inode, objects_.read_keys(format::inode_object(file.ino), {}));
    if (!inode) return false;
    LCCFS_TRY(done, objects_.change(txn::map_found_file(inode->as_read(), file, before)));
  }
  return done;
}

/// It keeps its number: an entry for it may still be there. Otherwise the next check finds an orphan. An object of
/// another program, at a place that no file has, is left where it is.
Result<Repair> Repairs::make_inode_for_data(Ino ino, std::set<ObjectIndex> indexes) {
  LCCFS_TRY(const auto inode, objects_.read_inode(ino));
  if (indexes.empty() || (inode && inode->is(FileType::regular))) return settled();
  if (inode && !inode->attr()) return left("attr of the inode cannot be read");
  std::erase_if(indexes, [this](ObjectIndex index) { return !fits_in_a_file(index); });
  if (indexes.empty()) return left("no file is that large");
  const auto last = *indexes.rbegin();
  LCCFS_TRY(const auto last_bytes, objects_.read_data(format::data_object(ino, last), 0, object_size_bytes()));
  const auto size_bytes = last.value * object_size_bytes() + last_bytes.size();
  if (inode) return move_data(ino, indexes, size_bytes);
  LCCFS_TRY(const bool made, make_file(file_of(ino, instance_->next_token(), indexes, size_bytes)));
  if (!made) return changed_meanwhile();
  return Repair{true, "the inode is made anew, with " + std::to_string(size_bytes) + " bytes"};
}

Result<Repair> Repairs::map_data(const Finding& finding) {
  const std::uint64_t index = finding.number;
  const txn::Part part{format::map_key(index / MapBlock::objects), true};
  LCCFS_TRY(const auto inode, objects_.read_keys(format::inode_object(finding.ino), {part.name}));
  if (inode && !inode->attr()) return left("attr of the inode cannot be read");
  if (!inode || !inode->is(FileType::regular)) return settled();
  const Bytes* stored = inode->value_of(part);
  const auto block = stored == nullptr ? MapBlock{} : format::decode<MapBlock>(*stored);
  if (!block) return left("its block of the map cannot be read");
  if (block->may_exist[index % MapBlock::objects]) return settled();
  const auto size_bytes = inode->number(xattr::size);
  const bool below = !size_bytes || index < format::object_count(object_size_bytes(), *size_bytes);
  if (!below && !inode->xattrs.contains(xattr::lease)) {
    if (!may_go({index})) return left("no file is that large");
    LCCFS_TRY(const auto what, keep_past_the_end(finding.ino, {index}));
    LCCFS_CHECK(objects_.remove_data(finding.object));
    return Repair{true, what + ": it lies past the file's size"};
  }
  if (index / MapBlock::objects >= format::most_map_blocks(object_size_bytes())) return left("no file is that large");
  auto bits = *block;
  bits.may_exist.set(index % MapBlock::objects);
  bits.believed_there.set(index % MapBlock::objects);
  return put(*inode, part, encode(bits), "its bit is set");
}

Result<Repair> Repairs::cut_tail(const Finding& finding) {
  LCCFS_TRY(const auto inode, objects_.read_inode(finding.ino));
  if (!inode || inode->xattrs.contains(xattr::lease)) return settled();
  const auto size_bytes = inode->number(xattr::size);
  if (!size_bytes) return left("the file's size cannot be read");
  const auto below = format::bytes_within(object_size_bytes(), {finding.number}, *size_bytes);
  if (!may_go({finding.number})) return left("no file is that large");
  LCCFS_TRY(const auto what, keep_past_the_end(finding.ino, {finding.number}));
  LCCFS_CHECK(below == 0 ? objects_.remove_data(finding.object) : objects_.cut_data(finding.object, below));
  return Repair{true, below == 0 ? what : "cut at the file's size, and what lay past it " + what};
}

bool Repairs::fits_in_a_file(ObjectIndex index) const {
  return index.value < format::file_size_limit_bytes / object_size_bytes();
}

/// What is to be kept needs a place in a file.
bool Repairs::may_go(ObjectIndex index) const { return orphans_ == Orphans::remove || fits_in_a_file(index); }

/// The object as it is, at its place in a file of its own: after the loss of newer metadata all of it may be wanted.
Result<std::string> Repairs::keep_past_the_end(Ino ino, ObjectIndex index) {
  LCCFS_TRY(const auto bytes, objects_.read_data(format::data_object(ino, index), 0, object_size_bytes()));
  const auto name = "data-of-inode-" + std::to_string(ino.value) + "-past-its-end-" + std::to_string(index.value);
  const auto piece = [&bytes](ObjectIndex) -> Result<Bytes> { return bytes; };
  const auto size_bytes = index.value * object_size_bytes() + bytes.size();
  return keep_if_wanted({name, bytes.empty() ? std::set<ObjectIndex>{} : std::set{index}, size_bytes, piece});
}

// ---- bytes that belong to no file

namespace {

/// An object's name for a file: as it is, but for what no file's name can hold. Two names stay two, unless they are
/// cut.
std::string as_name(const std::string& object) {
  if (object == "." || object == "..") return escaped(object.substr(0, 1), ".") + object.substr(1);
  return escaped(object, {"/\\\0", 3}).substr(0, format::name_limit_bytes);
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
  LCCFS_TRY(const Ino parent, lost_and_found_->directory());
  LCCFS_TRY(const Ino ino, instance_->allocate_ino());
  auto file = file_of(ino, token, source.indexes, source.size_bytes);
  file.parent = format::BackPointerRecord{parent, token};
  LCCFS_CHECK(make_file(file));
  for (const auto index : source.indexes) {
    LCCFS_TRY(const auto bytes, source.piece(index));
    if (!bytes.empty()) LCCFS_CHECK(objects_.write_data(format::data_object(file.ino, index), 0, bytes));
  }
  return file.ino;
}

/// A copy that was named is whole; but a user's file may have the name.
Result<bool> Repairs::is_kept(const Source& source, Ino ino) {
  LCCFS_TRY(const auto file, objects_.read_inode(ino));
  if (!file || file->number(xattr::size) != source.size_bytes) return false;
  for (const auto index : source.indexes) {
    LCCFS_TRY(const auto bytes, source.piece(index));
    LCCFS_TRY(const auto copied, objects_.read_data(format::data_object(ino, index), 0, object_size_bytes()));
    if (bytes != copied) return false;
  }
  return true;
}

Result<std::string> Repairs::keep(const Source& source) {
  const auto is_copy = [&](Ino file) { return is_kept(source, file); };
  LCCFS_TRY(const auto kept, lost_and_found_->find(as_name(source.name), is_copy));
  if (kept) return *kept;
  const Token token = instance_->next_token();
  LCCFS_TRY(const Ino file, copy(source, token));
  return lost_and_found_->put(file, FileType::regular, token, as_name(source.name));
}

/// What became of it.
Result<std::string> Repairs::keep_if_wanted(const Source& source) {
  if (orphans_ == Orphans::remove || source.indexes.empty()) return "removed";
  LCCFS_TRY(const auto path, keep(source));
  return "moved to " + path;
}

/// Of an inode that is no regular file: the number is taken.
Result<Repair> Repairs::move_data(Ino ino, const std::set<ObjectIndex>& indexes, std::uint64_t size_bytes) {
  const auto piece = [&](ObjectIndex index) {
    return objects_.read_data(format::data_object(ino, index), 0, object_size_bytes());
  };
  LCCFS_TRY(auto what, keep_if_wanted({"data-of-inode-" + std::to_string(ino.value), indexes, size_bytes, piece}));
  for (const auto index : indexes) LCCFS_CHECK(objects_.remove_data(format::data_object(ino, index)));
  return Repair{true, std::move(what)};
}

// ---- objects of other programs

namespace {

/// Of one that the store does not read: the volume's own objects are to be repaired all the same.
Result<Repair> left_unread(const Error& error) {
  if (error.code == ErrorCode::invalid) return left("no program can read or remove an object of that name");
  if (objects::is_damage(error)) return left("the store cannot read it");
  return std::unexpected(error);
}

}  // namespace

Result<Repair> Repairs::repair_unknown_object(const Finding& finding) {
  const auto object = objects_.read(finding.object, "");
  if (!object) return left_unread(object.error());
  return *object ? keep_metadata(**object) : keep_data(finding.object);
}

Result<Repair> Repairs::keep_metadata(const Object& object) {
  const bool bytes_alone = object.xattrs.empty() && object.keys.empty();
  if (!bytes_alone && orphans_ == Orphans::keep) return left("it has xattrs or keys, which no file can have");
  const auto piece = [&](ObjectIndex index) -> Result<Bytes> {
    return object.payload.substr(index.value * object_size_bytes(), object_size_bytes());
  };
  const std::uint64_t size_bytes = object.payload.size();
  LCCFS_TRY(auto what, keep_if_wanted({object.name, all_indexes(object_size_bytes(), size_bytes), size_bytes, piece}));
  return step(txn::drop_object(object.as_read()), std::move(what));
}

Result<Repair> Repairs::keep_data(const std::string& object) {
  if (!instance_->super().data_pool.empty() && orphans_ == Orphans::keep) {
    return left("it is in the data pool: xattrs and keys that it may have are not seen there");
  }
  const auto piece = [&](ObjectIndex index) {
    return objects_.read_data(object, index.value * object_size_bytes(), object_size_bytes());
  };
  std::uint64_t size_bytes = 0;
  for (std::uint64_t index = 0; size_bytes == index * object_size_bytes(); ++index) {
    const auto bytes = piece({index});
    if (!bytes) return left_unread(bytes.error());
    if (bytes->empty()) break;
    size_bytes += bytes->size();
  }
  if (size_bytes == 0 && orphans_ == Orphans::keep) return left("it has no bytes, but may have xattrs or keys");
  LCCFS_TRY(auto what, keep_if_wanted({object, all_indexes(object_size_bytes(), size_bytes), size_bytes, piece}));
  LCCFS_CHECK(objects_.remove_data(object));
  return Repair{true, std::move(what)};
}

}  // namespace lccfs::repair
