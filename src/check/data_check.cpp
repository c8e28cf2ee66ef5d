// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/data_check.h"

#include <algorithm>
#include <optional>
#include <string>

#include "format/layout.h"
#include "format/object_names.h"
#include "format/records.h"

namespace lccfs::check {

namespace xattr = format::xattr;

using format::MapBlock;

namespace {

constexpr std::size_t batch_objects = 32'768;
constexpr std::size_t blocks_at_once = 256;

std::uint64_t block_of(ObjectIndex index) { return index.value / MapBlock::objects; }

/// nullopt: it is not there, or cannot be read.
std::optional<MapBlock> block_in(const objects::Object& inode, std::uint64_t block) {
  const auto found = inode.keys.find(format::map_key(block));
  if (found == inode.keys.end()) return std::nullopt;
  const auto bits = format::decode<MapBlock>(found->second);
  return bits ? std::optional(*bits) : std::nullopt;
}

/// After the objects of one inode from `begin` on, for which not too many blocks of the map are to be read.
std::size_t end_of_some_blocks(std::span<const std::pair<Ino, ObjectIndex>> batch, std::size_t begin) {
  std::size_t blocks = 0, end = begin;
  for (; end < batch.size() && batch[end].first == batch[begin].first; ++end) {
    const bool next_block = end == begin || block_of(batch[end].second) != block_of(batch[end - 1].second);
    if (next_block && ++blocks > blocks_at_once) break;
  }
  return end;
}

}  // namespace

// ---- small files

void SmallFiles::add(const SmallFile& file) {
  const Lock lock(mutex_);
  if (files_.size() < most_files) files_.push_back(file);
}

std::vector<SmallFile> SmallFiles::find(const std::vector<Ino>& inodes) {
  const Lock lock(mutex_);
  const auto middle = files_.begin() + static_cast<std::ptrdiff_t>(in_order_);
  std::ranges::sort(middle, files_.end(), {}, &SmallFile::ino);
  std::ranges::inplace_merge(files_.begin(), middle, files_.end(), {}, &SmallFile::ino);
  in_order_ = files_.size();
  std::vector<SmallFile> found;
  auto from = files_.begin();
  for (const Ino ino : inodes) {
    from = std::ranges::lower_bound(from, files_.end(), ino, {}, &SmallFile::ino);
    if (from == files_.end()) break;
    if (from->ino == ino) found.push_back(*from);
  }
  return found;
}

// ---- data objects

Result<> DataCheck::add(ReadWindow& window, Ino ino, ObjectIndex index) {
  std::vector<Object> full;
  {
    const Lock lock(mutex_);
    ++objects_;
    batch_.emplace_back(ino, index);
    if (batch_.size() < batch_objects) return {};
    full.swap(batch_);
  }
  std::ranges::sort(full);
  return check_batch(window, full);
}

Result<> DataCheck::finish(const Effort& effort) {
  std::vector<Object> batch;
  {
    const Lock lock(mutex_);
    batch.swap(batch_);
  }
  std::ranges::sort(batch);
  const std::size_t share = batch.size() / effort.threads + 1;
  LCCFS_CHECK(for_each_number(store_, effort, effort.threads, [&](ReadWindow& window, std::size_t i) {
    const auto begin = std::min(batch.size(), i * share), end = std::min(batch.size(), begin + share);
    return check_batch(window, std::span(batch).subspan(begin, end - begin));
  }));
  const Lock lock(mutex_);
  for (const auto& [ino, objects] : without_inode_) {
    if (is_to_get_its_inode(ino, objects)) continue;
    sink_.report({Kind::data_without_inode, format::data_object(ino, objects.first),
                  format::inode_object(ino) + (objects.is_no_file ? " is no regular file" : " is not there") +
                      "; objects: " + std::to_string(objects.count),
                  objects.count});
  }
  return {};
}

/// The first bytes of a new file go before its inode (instance/unstored_inodes.h).
bool DataCheck::is_to_get_its_inode(Ino ino, const WithoutInode& objects) const {
  const bool is_first_alone = objects.first.value == 0 && objects.count == 1;
  return is_first_alone && !objects.is_no_file && facts_.queue.has_in_a_range(ino);
}

std::uint64_t DataCheck::objects() {
  const Lock lock(mutex_);
  return objects_;
}

Result<> DataCheck::check_batch(ReadWindow& window, std::span<const Object> batch) {
  std::vector<Ino> inodes;
  for (const auto& [ino, index] : batch) {
    if (inodes.empty() || inodes.back() != ino) inodes.push_back(ino);
  }
  const auto small_files = small_files_.find(inodes);
  auto small = small_files.begin();
  for (std::size_t begin = 0, end = 0; begin < batch.size(); begin = end) {
    const Ino ino = batch[begin].first;
    end = end_of_some_blocks(batch, begin);
    const auto objects = batch.subspan(begin, end - begin);
    while (small != small_files.end() && small->ino < ino) ++small;
    const bool is_small = small != small_files.end() && small->ino == ino;
    LCCFS_CHECK(is_small ? check_small_file(window, objects, *small) : read_file(window, objects));
  }
  return window.finish();  // answers use the batch
}

Result<> DataCheck::check_small_file(ReadWindow& window, std::span<const Object> objects, const SmallFile& file) {
  for (const auto& object : objects) {
    const auto index = object.second.value;
    if (index >= SmallFile::most_objects || ((file.may_exist >> index) & 1U) == 0) report_unmapped(object);
    if (facts_.super && file.is_leased == 0) LCCFS_CHECK(check_tail(window, object, file.size_bytes));
  }
  return {};
}

/// Objects of one file, in order.
Result<> DataCheck::read_file(ReadWindow& window, std::span<const Object> objects) {
  MetaRead read{.object = format::inode_object(objects.front().first), .xattrs = true};
  for (const auto& [ino, index] : objects) {
    auto key = format::map_key(block_of(index));
    if (read.keys.empty() || read.keys.back() != key) read.keys.push_back(std::move(key));
  }
  return window.query(std::move(read), [this, &window, objects](const ReadWindow::Found& inode) {
    return check_objects(window, objects, inode);
  });
}

Result<> DataCheck::check_objects(ReadWindow& window, std::span<const Object> objects, const ReadWindow::Found& inode) {
  const auto attr = inode ? inode->find<format::AttrRecord>(xattr::attr) : std::nullopt;
  const bool is_no_file = attr && attr->type != FileType::regular;
  if (!inode || is_no_file) {
    add_without_inode(objects, is_no_file);
    return {};
  }
  const auto size = inode->find<format::NumberRecord>(xattr::size);
  const bool tail_is_to_be_clean = facts_.super && attr && size && !inode->xattrs.contains(xattr::lease);
  std::optional<MapBlock> block;
  std::optional<std::uint64_t> block_number;
  for (const auto& object : objects) {
    const auto index = object.second;
    if (block_number != block_of(index)) {
      block_number = block_of(index);
      block = block_in(*inode, *block_number);
    }
    if (!block || !block->may_exist[index.value % MapBlock::objects]) report_unmapped(object);
    if (tail_is_to_be_clean) LCCFS_CHECK(check_tail(window, object, size->value));
  }
  return {};
}

void DataCheck::report_unmapped(const Object& object) {
  sink_.report({Kind::unmapped_data, format::data_object(object.first, object.second),
                "its bit \"may exist\" is not set", object.second.value});
}

/// Objects that lie wholly below the size need no look.
Result<> DataCheck::check_tail(ReadWindow& window, const Object& object, std::uint64_t size_bytes) {
  const std::uint64_t object_size_bytes = facts_.super->object_size_bytes;
  if (object.second.value < size_bytes / object_size_bytes) return {};
  const auto below = format::bytes_within(object_size_bytes, object.second, size_bytes);
  auto name = format::data_object(object.first, object.second);
  return window.look_for_byte(name, below, [this, name, below, size_bytes, object](bool there) -> Result<> {
    if (!there) return {};
    sink_.report({Kind::data_past_size, name,
                  "bytes from " + std::to_string(below) + " on, past the file's size of " + std::to_string(size_bytes) +
                      "; nobody holds the lease",
                  object.second.value});
    return {};
  });
}

void DataCheck::add_without_inode(std::span<const Object> objects, bool is_no_file) {
  const Lock lock(mutex_);
  const auto [found, first_time] = without_inode_.try_emplace(objects.front().first);
  auto& all = found->second;
  const auto lowest = objects.front().second;
  all.first = first_time ? lowest : std::min(all.first, lowest);
  all.count += objects.size();
  all.is_no_file = is_no_file;
}

}  // namespace lccfs::check
