// SPDX-License-Identifier: LGPL-2.1-or-later
#include "survey/dump.h"

#include <algorithm>

#include <boost/uuid/uuid.hpp>
#include <boost/uuid/uuid_io.hpp>

#include "base/expected_errors.h"
#include "format/object_names.h"
#include "objects/super.h"
#include "survey/allowed_names.h"
#include "survey/dump_lines.h"
#include "survey/ino_set.h"
#include "survey/paths.h"
#include "survey/tree_walk.h"

namespace lccfs::survey {

namespace {

// Extended attributes have up to 64 KiB: those of all inodes at once have room in memory.
constexpr std::uint32_t attributes_of_a_read = 16;
constexpr std::size_t inodes_of_dump_at_once = 128;

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
        uuid_(super.uuid),
        options_(options),
        walk_(query_, super.uuid, parts_of_a_dump(), options.jobs, inodes_of_dump_at_once,
              [this](const std::string& what) { leave_out(what); }) {}

  Result<std::uint64_t> run(const DumpHeader& header) {
    LCCFS_CHECK(put(header));
    LCCFS_TRY(const auto root, objects::read_inode(query_, root_ino, parts_of_a_dump()));
    LCCFS_TRY(const bool is_there, put_inode(root, root_ino));
    if (!is_there) return failure(ErrorCode::corrupt, "nothing can be dumped without the root");
    walk_.enter(root_ino);
    LCCFS_CHECK(walk_.run([this](const WalkedPage& page) { return put_page(page); }));
    LCCFS_CHECK(put(DumpEnd{inodes_, left_out_}));
    return left_out_;
  }

 private:
  Result<> put(const DumpLine& line) {
    LCCFS_TRY(const auto text, text_of(line));
    return options_.on_line(text);
  }

  /// invalid: why `lccfs load` would refuse it, and with it all of the dump. Then the dump goes on as if without it.
  Result<std::string> text_of(const DumpLine& line) {
    auto writer = writer_;
    auto reader = reader_;
    auto text = writer.line(line);
    LCCFS_CHECK(reader.read(std::string_view(text).substr(0, text.size() - 1)));
    writer_ = writer;
    reader_ = reader;
    return text;
  }

  void leave_out(const std::string& what) {
    ++left_out_;
    options_.on_damage(what);
  }

  Result<> put_page(const WalkedPage& page) {
    DumpedEntries entries{page.directory, {}};
    for (const auto& [name, record, inode] : page.entries) {
      if (!seen_.contains(inode.ino)) {
        LCCFS_TRY(const bool is_there, put_inode(inode, page.directory));
        if (!is_there) continue;
      }
      if (!allowed_.take(inode.ino, page.directory)) {
        LCCFS_CHECK(leave_out_name(page.directory, name, inode.ino));
        continue;
      }
      if (inode.is_directory()) walk_.enter(inode.ino);
      entries.names.push_back({name, inode.ino, inode.attr.type});
    }
    options_.on_progress(inodes_);
    if (entries.names.empty()) return {};
    return put(entries);
  }

  /// One to which the inode's line does not point back: it was linked or moved here since. Without a word, unless the
  /// inode does not point back to it now either.
  Result<> leave_out_name(Ino directory, const std::string& name, Ino ino) {
    LCCFS_TRY(const auto entry, find_entry(query_, uuid_, directory, name));
    if (!entry || entry->ino != ino) return {};
    const auto inode = objects::read_inode(query_, ino, {.traces = true});
    if (!inode && inode.error().code == ErrorCode::not_found) return {};
    if (!inode && !objects::is_damage(inode.error())) return std::unexpected(inode.error());
    const auto damage_of = [&](const std::string& what) {
      leave_out(format::inode_object(directory) + ": name " + name + ": " + what);
      return Result<>();
    };
    if (!inode) return damage_of(inode.error().context);
    const auto is_this = [directory](const auto& pointer) { return pointer.parent == directory; };
    if (std::ranges::none_of(inode->pointers, is_this))
      return damage_of(format::inode_object(ino) + " does not point back to it");
    LCCFS_TRY(const bool has_reverse_key, has_name_of(directory, ino));
    return has_reverse_key ? Result<>() : damage_of("it has no reverse key");
  }

  /// false: it is left out.
  Result<bool> put_inode(const objects::Inode& inode, Ino named_in) {
    LCCFS_TRY(const auto line, or_none(line_of(inode, named_in)));
    if (!line) return false;
    const auto text = text_of(*line);
    if (!text) {
      leave_out(format::inode_object(inode.ino) + ": " + text.error().context);
      return false;
    }
    seen_.insert(inode.ino);
    allowed_.add(*line);
    ++inodes_;
    LCCFS_CHECK(options_.on_line(*text));
    return true;
  }

  /// not_found: it was removed while it was read.
  Result<txn::LoadedInode> line_of(const objects::Inode& inode, Ino named_in) {
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
    return line;
  }

  /// One that is damaged is left out by itself: the inode may be a directory with much below it.
  Result<std::map<std::string, Bytes>> attributes_of(const objects::Inode& inode) {
    std::map<std::string, Bytes> attributes;
    const auto add = [&](const KeyPage& page) -> Result<> {
      for (const auto& [key, value] : page.entries) {
        const std::string_view name = std::string_view(key).substr(2);
        if (!value.empty() && may_be_attribute(name, std::string_view(value).substr(1))) {
          attributes[std::string(name)] = value.substr(1);
        } else {
          leave_out(format::inode_object(inode.ino) + ": key " + key + ": no extended attribute can be so");
        }
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
      LCCFS_TRY(const bool names_it, has_name_of(other, inode.ino));
      if (names_it) parents.insert(other);
    }
    return parents;
  }

  Result<bool> has_name_of(Ino directory, Ino ino) const {
    MetaRead read{.object = format::inode_object(directory), .ranges = {{format::reverse_key(ino, ""), "", 1}}};
    LCCFS_TRY(const auto found, objects::find_object(query_, std::move(read)));
    return found && !found->ranges.front().entries.empty();
  }

  const objects::Query query_;
  const format::VolumeUuid uuid_;
  const DumpOptions& options_;
  TreeWalk walk_;
  DumpWriter writer_;
  DumpReader reader_;  // of what is written, as load will read it
  InoSet seen_;
  AllowedNames allowed_;
  std::uint64_t inodes_ = 0, left_out_ = 0;
};

}  // namespace

Result<std::uint64_t> dump_volume(ObjectStore& store, const format::SuperRecord& super, Clock& clock,
                                  const DumpOptions& options) {
  LCCFS_TRY(const auto next_number, objects::read_next_number(store));
  const DumpHeader header{uuid_text(super.uuid), super.label, super.object_size_bytes, next_number, clock.wall_time()};
  return Dumping(store, super, options).run(header);
}

}  // namespace lccfs::survey
