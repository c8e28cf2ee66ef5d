// SPDX-License-Identifier: LGPL-2.1-or-later
//
// load: the dump is checked as a whole before the first step. While the feature bit `being_loaded` is set, every program
// refuses the volume, mounts, collectors and fsck among them; and load may be run again, with the same dump.
//
//  # | object  | step                                                              | stop here leaves
//  1 | Super   | [set features] guard: its version, at which no instance has a    | a volume that only load takes
//    |         | record; sets all features, and being_loaded, anew where it is    |
//    |         | set: an earlier load that still runs reads Super before each lot |
//    |         | of steps, and stops                                              |
//  2 | Inode.X | [drop object] what an earlier run, or mkfs, left of it            | the same
//  3 | Inode.X | [load inode] create: without names below it; links and parents    | the same
//    |         | are those of the names that the dump has of it and the load takes |
//    |         | [load map] of a huge file: the blocks that one step has no room  |
//    |         | for; [load attributes] the same of many or long attributes       |
//    |         | If X is there, 2 and 3 are done again: the store may run both     |
//    |         | twice, and answer that of the second run                          |
//  4 | Inode.P | [load entries] once all that they name is there                   | the same
//    |         | This step, [load map] and [load attributes] guard attr as this    |
//    |         | load has made it, with its own birth token. One that comes when   |
//    |         | another load has ended would undo what clients have done since    |
//  5 | Alloc   | [take numbers] next is above all numbers that the dump's volume   | the same
//    |         | had used when the dump began, and above those of all inodes and   |
//    |         | data objects that are there: files may have been made since       |
//  6 | Inode.1 | [settle root] has the birth token that mkfs gives it              | the same
//  7 | Super   | [set features] guard: its version; clears being_loaded           | COMMIT: a volume
#include "survey/load.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/expected_errors.h"
#include "base/mutex.h"
#include "base/parallel.h"
#include "format/features.h"
#include "format/object_names.h"
#include "objects/object.h"
#include "objects/super.h"
#include "survey/allowed_names.h"
#include "survey/dump_lines.h"
#include "survey/ino_set.h"
#include "txn/repair_txn.h"
#include "txn/volume_txn.h"

namespace lccfs::survey {

namespace {

constexpr std::size_t inodes_of_a_batch = 1024;
constexpr std::size_t pages_of_a_batch = 64;
constexpr unsigned tries_of_an_inode = 3;

std::unexpected<Error> not_empty(const std::string& why) {
  return failure(ErrorCode::exists,
                 why + ": only a volume that lccfs mkfs has just made can be loaded; nothing was changed");
}

/// Calls `work` with each line and its number.
Result<std::uint64_t> for_each_line(std::istream& dump, const std::function<Result<>(const DumpLine&)>& work) {
  dump.clear();
  dump.seekg(0);
  DumpReader reader;
  std::uint64_t number = 0;
  const auto at_line = [&number](const Error& error) {
    return failure(error.code, "line " + std::to_string(number) + " of the dump: " + error.context);
  };
  for (std::string line; std::getline(dump, line);) {
    ++number;
    const auto read = reader.read(line);
    if (!read) return at_line(read.error());
    if (const auto worked = work(*read); !worked) return at_line(worked.error());
  }
  if (dump.bad()) return failure(ErrorCode::io, "cannot read the dump");
  return number;
}

// ---- the dump

/// What a whole dump must be, before anything is changed.
class DumpCheck {
 public:
  Result<> look_at(const DumpLine& line) {
    if (end_) return wrong_line("there should be no line after the last one");
    return std::visit([this](const auto& one) { return look_at_one(one); }, line);
  }
  /// After the last line.
  Result<> finish(std::uint64_t lines) const {
    if (end_) return {};
    return failure(ErrorCode::invalid,
                   "line " + std::to_string(lines + 1) + " of the dump: it is cut short: the last line is missing");
  }
  const DumpHeader& header() const { return *header_; }
  const DumpEnd& end() const { return *end_; }
  /// After the last line, with all names taken.
  const AllowedNames& names() const { return names_; }
  /// Of those, by their place among all names of the dump: the inode would not point back to them, and be deleted once
  /// its other names are removed.
  const std::set<std::uint64_t>& left_out_names() const { return left_out_; }

 private:
  static std::unexpected<Error> wrong_line(const std::string& why) { return failure(ErrorCode::invalid, why); }

  Result<> look_at_one(const DumpHeader& header) {
    if (header_) return wrong_line("a second first line");
    header_ = header;
    return {};
  }
  Result<> look_at_one(const txn::LoadedInode& inode) {
    if (!header_) return wrong_line("the first line is missing");
    if ((inodes_ == 0) != (inode.ino == root_ino)) return wrong_line("the root is not the first inode");
    if (!seen_.insert(inode.ino)) return wrong_line("the inode has a line already");
    if (inode.attr.type == FileType::directory) directories_.insert(inode.ino);
    names_.add(inode);
    ++inodes_;
    return {};
  }
  Result<> look_at_one(const DumpedEntries& entries) {
    if (!directories_.contains(entries.directory)) return wrong_line("its directory has no line before it");
    for (const auto& name : entries.names) {
      if (!seen_.contains(name.ino)) return wrong_line("it names an inode that has no line before it");
      if (directories_.contains(name.ino) != (name.type == FileType::directory)) return wrong_line("a wrong type");
      if (!names_.take(name.ino, entries.directory)) left_out_.insert(names_read_);
      ++names_read_;
    }
    return {};
  }
  Result<> look_at_one(const DumpEnd& end) {
    if (inodes_ == 0 || end.inodes != inodes_) return wrong_line("the number of inodes is wrong");
    end_ = end;
    return {};
  }

  std::optional<DumpHeader> header_;
  std::optional<DumpEnd> end_;
  InoSet seen_, directories_;
  AllowedNames names_;
  std::set<std::uint64_t> left_out_;
  std::uint64_t inodes_ = 0, names_read_ = 0;
};

// ---- the volume

struct Target {
  format::SuperRecord super;
  std::uint64_t version = 0;  ///< of Super
  std::uint64_t next_number = 0;
};

bool is_being_loaded(const format::SuperRecord& super) { return (super.incompat & format::being_loaded) != 0; }

Result<> check_no_inodes(ObjectStore& store, bool being_loaded) {
  LCCFS_CHECK(objects::for_each_object(store, [being_loaded](const std::string& name) -> Result<> {
    const auto parsed = format::parse_object_name(name);
    if (!parsed) return {};
    const auto* inode = std::get_if<format::InodeName>(&*parsed);
    const bool further_inode = inode != nullptr && inode->ino != root_ino && !being_loaded;
    if (!further_inode && !std::holds_alternative<format::SessionName>(*parsed)) return {};
    return not_empty(std::string("there is ").append(name).append(" in the volume"));
  }));
  if (being_loaded) return {};
  LCCFS_TRY(const auto root, objects::read_object(objects::reader_of(store),
                                                  {.object = format::inode_object(root_ino), .ranges = {{"", "", 1}}}));
  return root.ranges.front().entries.empty() ? Result<>() : not_empty("the volume's root is not empty");
}

Result<Target> find_target(ObjectStore& store, const DumpHeader& header) {
  const auto query = objects::reader_of(store);
  const auto super =
      objects::find_object(query, {.object = format::super_object, .xattrs = true, .ranges = {{"s/", "", 1}}});
  if (!super) return std::unexpected(super.error());
  if (!*super) return failure(ErrorCode::not_found, "there is no volume here: make one with lccfs mkfs");
  Target target;
  target.version = (*super)->version;
  LCCFS_TRY(target.super, (*super)->needed<format::SuperRecord>(format::xattr::super));
  const bool being_loaded = is_being_loaded(target.super);
  auto known = target.super;
  known.incompat &= ~format::being_loaded;
  LCCFS_CHECK(format::check_features(known, false));
  if (!(*super)->ranges.front().entries.empty()) return not_empty("the volume is in use, or was");
  if (target.super.object_size_bytes != header.object_size_bytes)
    return failure(ErrorCode::invalid, "the dump is of a volume with objects of " +
                                           std::to_string(header.object_size_bytes) + " bytes, this one has " +
                                           std::to_string(target.super.object_size_bytes) +
                                           ": make it with lccfs mkfs --object-size; nothing was changed");
  LCCFS_CHECK(objects::use_data_pool(store, target.super));
  LCCFS_CHECK(check_no_inodes(store, being_loaded));
  LCCFS_TRY(target.next_number, objects::read_next_number(store));
  return target;
}

class Loading {
 public:
  /// `check`: of all of the dump.
  Loading(ObjectStore& store, Target target, const DumpCheck& check, const LoadOptions& options)
      : store_(store), target_(std::move(target)), check_(check), options_(options) {}

  /// Also where an earlier load has begun: what still runs of that finds Super changed, and stops. (So does this one, if
  /// both begin at once: the last one is applied after the others.)
  Result<> begin() {
    auto super = target_.super;
    // The dump may need any of them, and no client is there that would not know them.
    format::set_features(super, format::missing_features(super));
    super.incompat |= format::being_loaded;
    for (;;) {
      const auto applied = store_.apply(txn::set_features(target_.version, super));
      if (!applied && applied.error().code != ErrorCode::guard_failed) return std::unexpected(applied.error());
      if (applied) {
        target_.version = applied->version;
        target_.super = super;
        return {};
      }
      LCCFS_TRY(const auto now, super_now());
      if (now.second != super) return changed_by_another();
      target_.version = now.first;
    }
  }

  Result<> take(const DumpLine& line) {
    if (const auto* inode = std::get_if<txn::LoadedInode>(&line)) {
      auto& taken = inodes_.emplace_back(*inode);
      check_.names().settle(taken);
      taken.attr.birth_token = txn::birth_token_of_load(target_.version);
      if (taken.attr.type == FileType::directory) directories_[taken.ino].attr = taken.attr;
      ++loaded_;
      if (inodes_.size() >= inodes_of_a_batch) return put_inodes();
    } else if (const auto* entries = std::get_if<DumpedEntries>(&line)) {
      return take_entries(*entries);
    }
    return {};
  }

  /// After the last line.
  Result<> end(std::uint64_t next_number) {
    LCCFS_CHECK(put_entries());
    LCCFS_CHECK(check_is_ours());
    LCCFS_TRY(const auto above_all, check_nothing_else_is_there());
    next_number = std::max(next_number, above_all);
    if (next_number > target_.next_number) LCCFS_CHECK(take_numbers(next_number));
    LCCFS_CHECK(settle_root());
    auto super = target_.super;
    super.incompat &= ~format::being_loaded;
    return put_super(super);
  }
  /// After that.
  std::uint64_t data_objects() const { return data_objects_; }

 private:
  struct Page {
    DumpedEntries entries;
    std::uint64_t subdirectories = 0;  // of the directory, with those of this page
  };
  struct Directory {
    format::AttrRecord attr;
    std::uint64_t subdirectories = 0;  // so far
  };

  /// The store may run a step twice, and answer that of the second run.
  Result<> put_super(const format::SuperRecord& super) {
    const auto applied = store_.apply(txn::set_features(target_.version, super));
    if (applied || applied.error().code != ErrorCode::guard_failed)
      return applied ? Result<>() : std::unexpected(applied.error());
    LCCFS_TRY(const auto now, super_now());
    return now.second == super ? Result<>() : changed_by_another();
  }

  /// With its version; other programs refuse what is being loaded.
  Result<std::pair<std::uint64_t, format::SuperRecord>> super_now() {
    LCCFS_TRY(const auto found,
              objects::read_object(objects::reader_of(store_), {.object = format::super_object, .xattrs = true}));
    LCCFS_TRY(auto record, found.needed<format::SuperRecord>(format::xattr::super));
    return std::pair(found.version, std::move(record));
  }

  static Result<> changed_by_another() {
    return failure(ErrorCode::busy, "somebody else has changed the volume meanwhile, or loads it, too");
  }

  /// Before what would harm a volume that another load has finished.
  Result<> check_is_ours() {
    LCCFS_TRY(const auto now, super_now());
    return now.first == target_.version ? Result<>() : changed_by_another();
  }

  /// To an inode that this load has made.
  Result<> add_to_ours(const MetaTxn& txn) {
    const auto added = store_.apply(txn);
    if (added) return {};
    return added.error().code == ErrorCode::guard_failed ? changed_by_another() : std::unexpected(added.error());
  }

  /// Where it was done before, by a run of the same step or another load, the last step tells which.
  Result<> settle_root() {
    const auto settled = store_.apply(txn::settle_root(directories_.at(root_ino).attr));
    if (!settled && settled.error().code != ErrorCode::guard_failed) return std::unexpected(settled.error());
    return {};
  }

  /// Before the last step, as check_is_ours.
  Result<> take_numbers(std::uint64_t next_number) {
    const auto taken = store_.apply(txn::take_numbers(target_.next_number, next_number - target_.next_number));
    if (taken) return {};
    if (taken.error().code != ErrorCode::guard_failed) return std::unexpected(taken.error());
    LCCFS_TRY(const auto now, objects::read_next_number(store_));
    return now == next_number ? Result<>() : failure(ErrorCode::busy, "somebody else gives numbers of the volume");
  }

  Result<> take_entries(const DumpedEntries& entries) {
    if (waiting_.contains(entries.directory) || pages_.size() >= pages_of_a_batch) LCCFS_CHECK(put_entries());
    auto& subdirectories = directories_[entries.directory].subdirectories;
    DumpedEntries allowed{entries.directory, {}};
    for (const auto& name : entries.names) {
      if (check_.left_out_names().contains(names_read_++)) continue;
      if (name.type == FileType::directory) ++subdirectories;
      allowed.names.push_back(name);
    }
    waiting_.insert(entries.directory);
    pages_.push_back({std::move(allowed), subdirectories});
    return {};
  }

  /// The first error of steps side by side.
  template <class Work>
  Result<> in_parallel(std::size_t count, const Work& work) {
    Mutex mutex;
    Result<> first;
    for_each_in_parallel(count, options_.jobs, [&](std::size_t i) {
      const Result<> done = work(i);
      const Lock lock(mutex);
      if (!done && first) first = done;
    });
    return first;
  }

  Result<> put_inodes() {
    LCCFS_CHECK(check_is_ours());
    LCCFS_CHECK(in_parallel(inodes_.size(), [this](std::size_t i) { return put_inode(inodes_[i]); }));
    inodes_.clear();
    return {};
  }

  Result<> put_entries() {
    LCCFS_CHECK(put_inodes());
    const auto put_page = [this](std::size_t i) -> Result<> {
      const auto& [entries, subdirectories] = pages_[i];
      const auto& attr = directories_.at(entries.directory).attr;
      return add_to_ours(txn::load_entries(target_.super.uuid, entries.directory, attr, entries.names, subdirectories));
    };
    LCCFS_CHECK(check_is_ours());
    LCCFS_CHECK(in_parallel(pages_.size(), put_page));
    pages_.clear();
    waiting_.clear();
    return {};
  }

  Result<> put_inode(const txn::LoadedInode& inode) {
    LCCFS_CHECK(make_inode(inode));
    constexpr auto blocks = txn::map_blocks_of_a_step;
    for (auto before = blocks; before < inode.map_blocks.size(); before += blocks) {
      LCCFS_CHECK(check_is_ours());
      LCCFS_CHECK(add_to_ours(txn::load_map(inode, before)));
    }
    auto done = txn::count_of_attributes(inode, 0);
    for (; done < inode.attributes.size(); done += txn::count_of_attributes(inode, done)) {
      LCCFS_CHECK(check_is_ours());
      LCCFS_CHECK(add_to_ours(txn::load_attributes(inode, done)));
    }
    return {};
  }

  /// Of an inode that is there nobody can tell whether this load has made it, in a step that the store has run twice.
  Result<> make_inode(const txn::LoadedInode& inode) {
    for (unsigned tries = 1;; ++tries) {
      const auto made = store_.apply(txn::load_inode(inode));
      if (made) return {};
      if (made.error().code != ErrorCode::exists || tries == tries_of_an_inode) return std::unexpected(made.error());
      LCCFS_CHECK(drop_inode(inode.ino));
    }
  }

  Result<> drop_inode(Ino ino) {
    LCCFS_TRY(const auto version, version_of(ino));
    LCCFS_CHECK(check_is_ours());
    const auto dropped = store_.apply(txn::drop_object({format::inode_object(ino), version}));
    return done_or(ErrorCode::not_found, dropped);  // the answer of a second run
  }

  Result<std::uint64_t> version_of(Ino ino) {
    LCCFS_TRY(const auto found, store_.query({.object = format::inode_object(ino)}));
    return found.version;
  }

  /// No inode of an earlier load, of another dump. Answers a number above theirs, and those of all data objects, which
  /// it counts.
  Result<std::uint64_t> check_nothing_else_is_there() {
    std::uint64_t found = 0, above_all = 0;
    LCCFS_CHECK(objects::for_each_object(store_, [&](const std::string& name) -> Result<> {
      const auto parsed = format::parse_object_name(name);
      if (!parsed) return {};
      const auto* inode = std::get_if<format::InodeName>(&*parsed);
      const auto* data = std::get_if<format::DataName>(&*parsed);
      if (inode != nullptr) ++found;
      if (data != nullptr) ++data_objects_;
      const auto number = inode != nullptr ? inode->ino.value : data != nullptr ? data->ino.value : 0;
      if (number < format::numbers_end - 1) above_all = std::max(above_all, number + 1);
      return {};
    }));
    if (found == loaded_) return above_all;
    return failure(ErrorCode::exists, "there are " + std::to_string(found) + " inodes in the volume, and " +
                                          std::to_string(loaded_) +
                                          " in the dump: another dump was loaded before; make the volume anew");
  }

  ObjectStore& store_;
  Target target_;
  const DumpCheck& check_;
  const LoadOptions& options_;
  std::vector<txn::LoadedInode> inodes_;
  std::vector<Page> pages_;
  std::set<Ino> waiting_;  // directories of pages_
  std::map<Ino, Directory> directories_;
  std::uint64_t loaded_ = 0, names_read_ = 0;
  std::uint64_t data_objects_ = 0;
};

}  // namespace

Result<Loaded> load_volume(ObjectStore& store, std::istream& dump, const LoadOptions& options) {
  DumpCheck check;
  std::uint64_t done = 0, lines = 0;
  const auto tell = [&] { options.on_progress(++done, 2 * lines); };
  LCCFS_TRY(lines, for_each_line(dump, [&](const DumpLine& line) -> Result<> {
              tell();
              return check.look_at(line);
            }));
  LCCFS_CHECK(check.finish(lines));
  LCCFS_TRY(const auto target, find_target(store, check.header()));
  Loading loading(store, target, check, options);
  LCCFS_CHECK(loading.begin());
  LCCFS_TRY(const auto loaded, for_each_line(dump, [&](const DumpLine& line) -> Result<> {
              tell();
              return loading.take(line);
            }));
  if (loaded != lines)
    return failure(ErrorCode::invalid, "the dump was changed while it was loaded: run lccfs load again");
  LCCFS_CHECK(loading.end(check.header().next_number));
  return Loaded{check.end().inodes, check.end().left_out, check.left_out_names().size(), check.names().without_name(),
                loading.data_objects()};
}

}  // namespace lccfs::survey
