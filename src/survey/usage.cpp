// SPDX-License-Identifier: LGPL-2.1-or-later
#include "survey/usage.h"

#include <unordered_set>

#include "survey/tree_walk.h"

namespace lccfs::survey {

Space& Space::operator+=(const Space& other) {
  bytes += other.bytes;
  apparent_bytes += other.apparent_bytes;
  inodes += other.inodes;
  return *this;
}

namespace {

constexpr std::uint64_t st_blocks_unit_bytes = 512;
constexpr std::size_t inodes_of_usage_at_once = 1024;  // with their maps
constexpr objects::InodeParts::Map whole_map = objects::InodeParts::Map::whole;

class Measuring {
 public:
  Measuring(ObjectStore& store, const format::SuperRecord& super, const UsageOptions& options)
      : query_(objects::reader_of(store)),
        object_size_bytes_(super.object_size_bytes),
        options_(options),
        walk_(query_, super.uuid, {.map = whole_map}, options.jobs, inodes_of_usage_at_once, options.on_damage) {}

  Result<std::vector<DirectoryUsage>> run(Ino start) {
    LCCFS_TRY(const auto first, objects::read_inode(query_, start, {.map = whole_map}));
    if (first.dead()) return failure(ErrorCode::not_found, format::inode_object(start) + " is removed");
    directories_seen_.insert(start);
    add_directory(0, "", first);
    if (first.is_directory()) walk_.enter(start, 0);
    LCCFS_CHECK(walk_.run([this](const WalkedPage& page) { return add(page); }));
    for (auto i = directories_.size() - 1; i > 0; --i)
      directories_[directories_[i].parent].space += directories_[i].space;
    return std::move(directories_);
  }

 private:
  Result<> add(const WalkedPage& page) {
    for (const auto& [name, record, inode] : page.entries) {
      if (inode.is_directory()) {
        if (!directories_seen_.insert(inode.ino).second) continue;
        walk_.enter(inode.ino, add_directory(page.tag, name, inode));
      } else if (inode.attr.nlink < 2 || linked_.insert(inode.ino).second) {
        directories_[page.tag].space += space_of(inode);
      }
    }
    inodes_ += page.entries.size();
    options_.on_progress(inodes_);
    return {};
  }

  std::size_t add_directory(std::size_t parent, const std::string& name, const objects::Inode& inode) {
    directories_.push_back({parent, name, space_of(inode)});
    return directories_.size() - 1;
  }

  Space space_of(const objects::Inode& inode) const {
    return {inode.map.blocks_512(object_size_bytes_, inode.size_bytes) * st_blocks_unit_bytes, inode.size_bytes, 1};
  }

  const objects::Query query_;
  const std::uint64_t object_size_bytes_;
  const UsageOptions& options_;
  TreeWalk walk_;
  std::vector<DirectoryUsage> directories_;
  std::unordered_set<Ino> linked_, directories_seen_;
  std::uint64_t inodes_ = 0;
};

}  // namespace

Result<std::vector<DirectoryUsage>> measure_usage(ObjectStore& store, const format::SuperRecord& super, Ino start,
                                                  const UsageOptions& options) {
  return Measuring(store, super, options).run(start);
}

}  // namespace lccfs::survey
