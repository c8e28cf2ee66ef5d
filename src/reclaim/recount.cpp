// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reclaim/recount.h"

#include <algorithm>
#include <utility>

#include "format/layout.h"
#include "reclaim/patient_reads.h"
#include "reclaim/settle.h"
#include "txn/reclaim_txn.h"

namespace lccfs::reclaim {

using Kind = Assessment::Kind;

namespace {
constexpr unsigned most_steps = 16;  // each is a race won or lost: after so many it is left for later
constexpr std::uint32_t names_at_once = 512;
constexpr std::chrono::seconds tell_others_every{20}, others_hear_within{1};

/// Or there is no such object any more.
bool is_refusal(const Error& error) {
  return error.code == ErrorCode::guard_failed || error.code == ErrorCode::not_found;
}
}  // namespace

Recount::Recount(Instance& instance, Pace& pace, Tally& tally, std::shared_ptr<Unanswered> unanswered,
                 std::stop_token stop)
    : instance_(instance),
      pace_(pace),
      tally_(tally),
      unanswered_(std::move(unanswered)),
      stop_(std::move(stop)),
      reader_(patient_reader(instance, unanswered_, stop_)),
      others_told_(instance.clock().elapsed()) {}

/// Who hears no poll for a while takes a turn: a large file would be removed by all collectors at once. One that gets no
/// further leaves the others their turn.
void Recount::tell_others() const {
  const auto now = instance_.clock().elapsed();
  const auto removed = tally_.removed();
  if (removed == removed_when_told_) return;
  auto told = others_told_.load();
  if (now - told < tell_others_every || !others_told_.compare_exchange_strong(told, now)) return;
  removed_when_told_ = removed;
  const auto poll = encode(format::LivenessPoll{instance_.id(), {}});
  static_cast<void>(instance_.store().notify(format::super_object, poll, others_hear_within));
}

Result<Applied> Recount::paced(MetaTxn txn) const {
  pace_.wait_for_turn();
  return instance_.run_repeatable(std::move(txn));
}

/// false: refused; the next examine shows why.
Result<bool> Recount::apply(MetaTxn txn) const {
  const auto applied = paced(std::move(txn));
  if (applied) return true;
  if (is_refusal(applied.error())) return false;
  return std::unexpected(applied.error());
}

Result<Assessment> Recount::advance(Horizon& horizon, Ino ino) const {
  bool changed = false;
  for (unsigned steps = 0;; ++steps) {
    LCCFS_TRY(auto assessment, examine(reader_, horizon, ino));
    const auto kind = assessment.kind;
    const bool to_be_changed = kind == Kind::settle_seal || kind == Kind::settle_mark || kind == Kind::trim ||
                               kind == Kind::kill || kind == Kind::clear_names || !assessment.doubles.empty();
    assessment.after_a_change = changed;
    if (!to_be_changed || steps == most_steps || stop_.stop_requested()) return assessment;
    LCCFS_CHECK(take_step(assessment));
    changed = changed || kind != Kind::wait;
  }
}

Result<bool> Recount::take_step(const Assessment& assessment) const {
  const auto& inode = assessment.inode;
  switch (assessment.kind) {
    case Kind::settle_seal:
      pace_.wait_for_turn();
      return settle_seal(instance_, reader_, inode.ino, inode.state);
    case Kind::settle_mark: {
      const auto& marked = assessment.names.marked.front();
      LCCFS_TRY(const bool there, has_mark(reader_, instance_.super().uuid, marked));
      if (!there) return false;
      pace_.wait_for_turn();
      return settle_mark(instance_, reader_, txn::Name(instance_.super().uuid, marked.directory, marked.name),
                         {encode(marked.record), marked.record});
    }
    case Kind::wait:
      return drop(assessment.inode, {assessment.doubles, std::nullopt, std::nullopt});
    case Kind::trim:
      return trim(assessment);
    case Kind::kill:
      return apply(txn::mark_unnamed_dead(inode.ino, inode.version));
    case Kind::clear_names:
      return clear_names(assessment);
    default:
      return false;
  }
}

Result<bool> Recount::trim(const Assessment& assessment) const {
  LCCFS_TRY(const bool applied, drop(assessment.inode, trim_of(assessment)));
  if (applied) ++tally_.inodes_corrected;
  return applied;
}

Result<bool> Recount::drop(const Inode& inode, const Trim& trim) const {
  std::vector<std::string> keys;
  keys.reserve(trim.drop.size());
  for (const auto& pointer : trim.drop) keys.push_back(pointer.key);
  return apply(txn::trim_links(inode.ino, inode.version, keys, trim.attr, trim.first));
}

/// Out of directories that live: an inode that dies has no name, but for damage. An entry of one of those names that is
/// another's stays.
Result<bool> Recount::clear_names(const Assessment& assessment) const {
  const Ino ino = assessment.inode.ino;
  for (const auto& [parent, names] : assessment.names.by_parent) {
    MetaRead read{.object = format::inode_object(parent), .xattrs = true};
    for (const auto& name : names) read.keys.push_back(format::entry_key(instance_.super().uuid, name));
    LCCFS_TRY(const auto directory, objects::find_object(reader_, read));
    if (!directory) continue;
    std::vector<std::string> keys;
    std::uint64_t entries = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      keys.push_back(format::reverse_key(ino, names[i]));
      const auto value = directory->keys.find(read.keys[i]);
      if (value == directory->keys.end()) continue;
      const auto entry = format::decode<format::EntryRecord>(value->second);
      if (!entry || entry->ino != ino) continue;
      keys.push_back(read.keys[i]);
      ++entries;
    }
    std::optional<std::uint64_t> nsub;
    if (assessment.inode.is_directory()) {
      LCCFS_TRY(const auto count, directory->needed<format::NumberRecord>(format::xattr::nsub));
      nsub = count.value - std::min(count.value, entries);
    }
    LCCFS_TRY(const bool cleared, apply(txn::remove_dead_names(parent, directory->version, keys, nsub)));
    if (cleared) tally_.names_removed += entries;
  }
  return true;
}

/// Width-first (paper section 6.1): its children are looked at in a later round.
Result<> Recount::empty_directory(Ino directory, TimeSpec logged) const {
  pace_.wait_for_turn();
  LCCFS_CHECK(instance_.log_items({{format::QueueItem::Kind::directory, directory, {}, logged}}));
  while (!stop_.stop_requested()) {
    MetaRead read{.object = format::inode_object(directory), .ranges = {{"n/", "", names_at_once}}};
    LCCFS_TRY(const auto page, objects::find_object(reader_, std::move(read)));
    if (!page) return {};
    const auto& entries = page->ranges.front().entries;
    if (entries.empty()) return {};
    std::vector<std::string> keys;
    std::vector<Ino> children;
    for (const auto& [key, value] : entries) {
      const auto name = format::parse_entry_key(key);
      const auto entry = format::decode<format::EntryRecord>(value);
      if (!name || !entry) return failure(ErrorCode::corrupt, format::inode_object(directory) + ": entry " + key);
      children.push_back(entry->ino);
      keys.push_back(key);
      keys.push_back(format::reverse_key(entry->ino, name->name));
    }
    LCCFS_TRY(const bool removed,
              apply(txn::detach_dead_names(directory, page->version, keys, children, instance_.next_token())));
    if (removed) tally_.names_removed += entries.size();
  }
  return {};
}

std::shared_ptr<DataRemoval> Recount::begin_to_remove_data(Ino ino, Tally* tally) const {
  return std::make_shared<DataRemoval>(
      ino, DataRemoval::Pass{instance_.store(), instance_.clock(), pace_, tally, stop_, [this] { tell_others(); }},
      unanswered_);
}

/// As many removes as there are mapped objects; none is looked for. What is done of a large file stays done: the map
/// forgets each block, but for the last, with which the inode goes. Answers the version of the inode after that. nullopt:
/// left for a later pass; it is to stop, the store does not answer or refuses, or somebody else works on the inode.
Result<Recount::Version> Recount::remove_data(const Inode& file) const {
  Version version = file.version;
  std::optional<std::uint64_t> removed;
  for (const auto& [block, bits] : file.map.blocks()) {
    if (bits.may_exist.none()) continue;
    if (removed) {
      LCCFS_TRY(version, forget(txn::forget_removed_data(file.ino, *version, *removed, {})));
      if (!version) return version;
    }
    LCCFS_TRY(const bool is_removed, remove_block(file, *version, block));
    if (!is_removed) return std::nullopt;
    removed = block;
  }
  return version;
}

Result<Recount::Removal> Recount::wait_for(DataRemoval& removal, Ino ino) const {
  const auto removed = removal.wait();
  if (removed) return *removed ? Removal::of_all : Removal::given_up;
  if (!is_refused_remove(removed.error())) return std::unexpected(removed.error());
  tally_.refusals.add(ino, removed.error());
  return Removal::refused;
}

/// false: not all of it is removed.
Result<bool> Recount::remove_block(const Inode& file, std::uint64_t version, std::uint64_t block) const {
  using format::MapBlock;
  const auto removal = begin_to_remove_data(file.ino, &tally_);
  const auto& may_exist = file.map.blocks().at(block).may_exist;
  for (auto i = may_exist._Find_first(); i < MapBlock::objects; i = may_exist._Find_next(i)) {
    const ObjectIndex index{block * MapBlock::objects + i};
    const auto bytes = file.map.bytes_there(index, instance_.super().object_size_bytes, file.size_bytes);
    if (!removal->send(index, bytes)) break;
    tell_others();
    tally_.tell();  // not in the completion: it waits for nobody
  }
  LCCFS_TRY(const auto ended, wait_for(*removal, file.ino));
  // Where the pass is to stop, or an object does not answer, no further step is begun.
  const bool may_forget = ended == Removal::refused && !stop_.stop_requested();
  if (may_forget) LCCFS_CHECK(forget_some(file, version, block, removal->removed()));
  return ended == Removal::of_all;
}

/// Each later pass would remove them again, beside the one that keeps the block, and count them as freed.
Result<> Recount::forget_some(const Inode& file, std::uint64_t version, std::uint64_t block,
                              const std::vector<ObjectIndex>& removed) const {
  if (removed.empty()) return {};
  auto left = file.map.blocks_of(removed.front(), 1);
  for (const auto index : removed) left.set_removed(index);
  LCCFS_CHECK(forget(txn::forget_removed_data(file.ino, version, block, left.blocks().at(block))));
  return {};
}

/// nullopt: refused, or the inode is gone.
Result<Recount::Version> Recount::forget(MetaTxn removed_data) const {
  const auto forgotten = paced(std::move(removed_data));
  if (forgotten) return forgotten->version;
  if (is_refusal(forgotten.error())) return std::nullopt;
  return std::unexpected(forgotten.error());
}

/// Not counted: most numbers have none.
Result<bool> Recount::remove_early_bytes(Ino ino) const {
  if (!may_be_asked_for(ino)) return false;
  const auto removal = begin_to_remove_data(ino, nullptr);
  removal->send(ObjectIndex{0}, 0);
  LCCFS_TRY(const auto ended, wait_for(*removal, ino));
  return ended == Removal::of_all;
}

Result<bool> Recount::remove(const Assessment& dead, TimeSpec logged) const {
  const auto& inode = dead.inode;
  if (inode.is_directory() && inode.has_entries) {
    LCCFS_CHECK(empty_directory(inode.ino, logged));
    return false;  // its version is another one now: the next round removes it
  }
  LCCFS_TRY(const auto version, remove_data(inode));
  if (!version) return false;
  LCCFS_TRY(const bool removed, apply(txn::remove_dead_inode(inode.ino, *version)));
  if (removed) ++tally_.inodes_removed;
  tally_.tell();
  return removed;
}

}  // namespace lccfs::reclaim
