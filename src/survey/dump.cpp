// SPDX-License-Identifier: LGPL-2.1-or-later
#include "survey/dump.h"

#include <algorithm>

#include <boost/uuid/uuid.hpp>
#include <boost/uuid/uuid_io.hpp>

#include "format/object_names.h"
#include "survey/dump_lines.h"
#include "survey/ino_set.h"
#include "survey/tree_walk.h"

namespace lccfs::survey {

namespace {

constexpr std::uint32_t attributes_of_a_read = 64;  // of up to 64 KiB

/// With the first page of the extended attributes.
objects::InodeParts parts_of_a_dump() {
  return {.payload = true, .extra_ranges = {{"u/", "", attributes_of_a_read}}, .map = objects::InodeParts::Map::whole};
}

std::string uuid_text(const format::VolumeUuid& uuid) {
  boost::uuids::uuid same;
  std::ranges::copy(uuid, same.begin());
  return to_string(same);
}

class Dumping {
 public:
  Dumping(ObjectStore& store, const format::SuperRecord& super, const DumpOptions& options)
      : query_(objects::reader_of(store)),
        options_(options),
        walk_(query_, super.uuid, parts_of_a_dump(), options.jobs,
              [this](const std::string& what) { leave_out(what); }) {}

  Result<std::uint64_t> run(const DumpHeader& header) {
    LCCFS_CHECK(put(header));
    LCCFS_TRY(const auto root, objects::read_inode(query_, root_ino, parts_of_a_dump()));
    LCCFS_CHECK(put_inode(root, root_ino));
    walk_.enter(root_ino);
    LCCFS_CHECK(walk_.run([this](const WalkedPage& page) { return put_page(page); }));
    LCCFS_CHECK(put(DumpEnd{inodes_, left_out_}));
    return left_out_;
  }

 private:
  Result<> put(const DumpLine& line) { return options_.on_line(writer_.line(line)); }

  void leave_out(const std::string& what) {
    ++left_out_;
    options_.on_damage(what);
  }

  Result<> put_page(const WalkedPage& page) {
    DumpedEntries entries{page.directory, {}};
    for (const auto& [name, record, inode] : page.entries) {
      // A second name of what has one name only: it is being moved, and was met on the way.
      const bool is_new = !seen_.contains(inode.ino);
      if (!is_new && (inode.is_directory() || inode.attr.nlink < 2)) continue;
      if (is_new) LCCFS_CHECK(put_inode(inode, page.directory));
      if (inode.is_directory()) walk_.enter(inode.ino);
      entries.names.push_back({name, inode.ino, inode.attr.type});
    }
    options_.on_progress(inodes_);
    if (entries.names.empty()) return {};
    return put(entries);
  }

  Result<> put_inode(const objects::Inode& inode, Ino named_in) {
    txn::LoadedInode line;
    line.ino = inode.ino;
    line.attr = inode.attr;
    line.atime = inode.atime;
    line.mtime = inode.mtime;
    line.ctime = inode.shown_ctime();
    if (inode.is_regular()) line.size_bytes = inode.size_bytes;
    if (inode.is_regular()) line.map_blocks = inode.map.blocks();
    if (inode.attr.type == FileType::symlink) {
      line.symlink_target = inode.payload;
      line.size_bytes = inode.payload.size();
    }
    LCCFS_TRY(line.attributes, attributes_of(inode));
    if (inode.ino != root_ino) {
      LCCFS_TRY(line.parents, parents_of(inode, named_in));
    }
    seen_.insert(inode.ino);
    ++inodes_;
    return put(line);
  }

  Result<std::map<std::string, Bytes>> attributes_of(const objects::Inode& inode) const {
    std::map<std::string, Bytes> attributes;
    const auto add = [&attributes](const KeyPage& page) -> Result<> {
      for (const auto& [key, value] : page.entries) {
        if (key.size() > 2 && !value.empty()) attributes[key.substr(2)] = value.substr(1);
      }
      return {};
    };
    const auto& first = inode.extra_ranges.front();
    LCCFS_CHECK(add(first));
    if (first.more && !first.entries.empty()) {
      const KeyRange rest{"u/", first.entries.back().first, attributes_of_a_read};
      LCCFS_CHECK(objects::for_each_page(query_, format::inode_object(inode.ino), rest, add));
    }
    return attributes;
  }

  /// The directories that name it, of those to which it points back.
  Result<std::set<Ino>> parents_of(const objects::Inode& inode, Ino named_in) const {
    std::set<Ino> parents{named_in}, others;
    if (inode.is_directory() || inode.attr.nlink < 2) return parents;
    if (inode.parent) others.insert(inode.parent->parent);
    const auto add = [&others](const std::string& key, const Bytes&) -> Result<> {
      if (const auto pointer = format::parse_back_pointer_key(key)) others.insert(pointer->parent);
      return {};
    };
    LCCFS_CHECK(objects::for_each_key(query_, format::inode_object(inode.ino), "p/", add));
    for (const Ino other : others) {
      MetaRead read{
          .object = format::inode_object(other), .ranges = {{format::reverse_key(inode.ino, ""), "", 1}}, .keys = {}};
      LCCFS_TRY(const auto found, objects::find_object(query_, std::move(read)));
      if (found && !found->ranges.front().entries.empty()) parents.insert(other);
    }
    return parents;
  }

  const objects::Query query_;
  const DumpOptions& options_;
  TreeWalk walk_;
  DumpWriter writer_;
  InoSet seen_;
  std::uint64_t inodes_ = 0, left_out_ = 0;
};

}  // namespace

Result<std::uint64_t> dump_volume(ObjectStore& store, const format::SuperRecord& super, Clock& clock,
                                  const DumpOptions& options) {
  LCCFS_TRY(const auto alloc,
            objects::read_object(objects::reader_of(store),
                                 {.object = format::alloc_object, .xattrs = true, .ranges = {}, .keys = {}}));
  LCCFS_TRY(const auto next, alloc.needed<format::NumberRecord>(format::xattr::next));
  const DumpHeader header{uuid_text(super.uuid), super.label, super.object_size_bytes, next.value, clock.wall_time()};
  return Dumping(store, super, options).run(header);
}

}  // namespace lccfs::survey
