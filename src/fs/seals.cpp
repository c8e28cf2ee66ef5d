// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Seals, marks, decisions, and names without an inode: rules 3 and 4 of docs/PROTOCOL.md.
//
// How a seal or a mark is settled: src/reclaim/settle.h.
//
// clear a dangling name (P, name -> X, which is gone or dead; invariant V):
//
//  # | object  | step                                                             | stop here leaves
//  - | Inode.P | read the entry again; if it has changed, start over              | nothing
//  1 | Inode.P | [clear dangling entry] guard the entry's whole value; remove     | done
//    |         | both keys; X was a directory: nsub - 1, guarded as read          |
#include "fs/seals.h"

#include "base/expected_errors.h"
#include "base/log.h"
#include "base/text.h"
#include "fs/attempts.h"
#include "reclaim/settle.h"

namespace lccfs {

using format::StateRecord;

namespace {

constexpr std::uint32_t entries_at_once = 1024;

txn::SubdirectoryCount one_less(const Inode& directory) {
  return {directory.nsub_raw, directory.nsub > 0 ? directory.nsub - 1 : 0};
}

}  // namespace

Result<Entries> Seals::find_to_change(std::initializer_list<const txn::Name*> wanted, bool from_memory) {
  for (Attempts attempts(instance_);;) {
    LCCFS_CHECK(attempts.next());
    const auto trust = from_memory && attempts.first() ? Metadata::Trust::in_hints : Metadata::Trust::in_nothing;
    LCCFS_TRY(auto entries, metadata_.find(wanted, trust));
    if (entries.directory && !leases_.is_free_or_ours(*entries.directory)) {
      LCCFS_CHECK(leases_.make_way(*entries.directory));
      continue;
    }
    if (entries.marked.empty()) return entries;
    for (const auto& [name, entry] : entries.marked) {
      LCCFS_CHECK(reclaim::settle_mark(instance_, instance_.reader(), *name, entry));
      metadata_.inodes.drop(name->directory);
    }
  }
}

Result<std::shared_ptr<const Inode>> Seals::target_of(const txn::Name& name, const txn::Entry& entry) {
  if (auto in_memory = metadata_.in_memory(entry.record.ino); in_memory && in_memory->live()) return in_memory;
  LCCFS_TRY(auto view, or_none(metadata_.read(entry.record.ino)));
  if (view && view->live()) return std::make_shared<const Inode>(std::move(*view));
  LCCFS_CHECK(clear_dangling(name, entry));
  return nullptr;
}

Result<> Seals::clear_dangling(const txn::Name& name, const txn::Entry& entry) {
  const auto entries = metadata_.find({&name}, Metadata::Trust::in_nothing);
  if (!entries && entries.error().code == ErrorCode::stale) return {};
  if (!entries) return std::unexpected(entries.error());
  const auto& again = entries->found.front();
  if (!again || again->raw != entry.raw) return {};
  std::optional<txn::SubdirectoryCount> nsub;
  if (entry.record.type == FileType::directory) nsub = one_less(*entries->directory);
  log::warning(format::inode_object(name.directory) + ": removing the entry " + name.name + " of a missing inode");
  const Metadata::Changing changing(metadata_, {&name});
  const auto cleared = leases_.run(txn::clear_dangling_entry(name, entry, nsub));
  metadata_.name_in_doubt(name);
  metadata_.inodes.drop(name.directory);
  LCCFS_CHECK(done_or(ErrorCode::not_found, cleared));
  return {};
}

Result<bool> Seals::takes_names(const std::shared_ptr<const Inode>& directory) {
  if (!directory || !directory->live()) return false;  // memory may hold a dead one: nothing is to point there
  if (!directory->sealed()) return true;
  LCCFS_CHECK(settle(*directory));
  return false;
}

Result<> Seals::settle(const Inode& sealed) {
  return until_done(instance_, [&](bool) {
    metadata_.inodes.drop(sealed.ino);
    return reclaim::settle_seal(instance_, instance_.reader(), sealed.ino, sealed.state);
  });
}

/// Cleans what dangles on its way to the first entry that stands. Keys that are no sound entries are not empty either.
Result<bool> Seals::really_has_entries(Ino directory, const KeyPage& page) {
  const std::string* unsound = nullptr;
  for (const auto& [key, value] : page.entries) {
    const auto parsed = format::parse_entry_key(key);
    const auto record = format::decode<format::EntryRecord>(value);
    if (!parsed || !record) {
      unsound = &key;
      continue;
    }
    const auto name = metadata_.name_in(directory, parsed->name);
    const txn::Entry entry{value, *record};
    const auto standing = metadata_.standing(name, entry);
    if (!standing && objects::is_damage(standing.error())) {
      unsound = &key;
      continue;
    }
    if (!standing) return std::unexpected(standing.error());
    if (*standing) {
      LCCFS_TRY(const auto target, target_of(name, **standing));
      if (target) return true;
    } else if (record->mark) {
      LCCFS_CHECK(reclaim::settle_mark(instance_, instance_.reader(), name, entry));
    }
  }
  if (unsound == nullptr) return false;
  return failure(ErrorCode::corrupt, format::inode_object(directory) +
                                         ": not removed for a key that is no sound entry: " + printable(*unsound));
}

Result<std::optional<StateRecord>> Seals::seal_empty(std::span<const ExpectedEntry> expected, Token token,
                                                     Ino& logged) {
  const auto& name = expected.front().name;
  const auto& entry = *expected.front().entry;
  const Ino ino = entry.record.ino;
  const InodeParts parts{.extra_ranges = {{"n/", "", entries_at_once}}};
  LCCFS_TRY(const auto view, or_none(metadata_.read(ino, parts)));
  if (!view || !view->live()) {
    LCCFS_CHECK(clear_dangling(name, entry));
    return std::nullopt;
  }
  if (!leases_.is_free_or_ours(*view)) {
    LCCFS_CHECK(leases_.make_way(*view));
    return std::nullopt;
  }
  if (view->state.kind == StateRecord::Kind::sealed) {
    LCCFS_CHECK(settle(*view));
    return std::nullopt;
  }
  const auto& page = view->extra_ranges.front();
  if (!page.entries.empty()) {
    LCCFS_TRY(const bool has_entries, really_has_entries(ino, page));
    if (!has_entries) return std::nullopt;
    LCCFS_TRY(const bool same_names, metadata_.unchanged(expected));
    if (!same_names) return std::nullopt;
    return failure(ErrorCode::not_empty, format::inode_object(ino) + " has entries");
  }
  if (logged != ino) LCCFS_CHECK(instance_.log_inode_and_directories(ino, {&name.directory, 1}));
  logged = ino;
  const StateRecord seal{StateRecord::Kind::sealed, token, name.directory, name.name};
  const auto step = leases_.run(txn::seal(ino, view->version, seal));
  metadata_.inodes.drop(ino);
  // Another client has removed it, and a collector was quick: the name is what decides.
  if (!step && step.error().code == ErrorCode::not_found) return std::nullopt;
  if (!step) return std::unexpected(step.error());
  if (step->decided == Decided::refused) return std::nullopt;
  return seal;
}

void Seals::take_back(const StateRecord& seal, Ino sealed) {
  const auto unsealed = reclaim::done_or_needless(instance_.run(txn::unseal(sealed, seal)));
  const auto removed = instance_.run_repeatable(txn::remove_decision(seal.parent, seal.token));
  metadata_.inodes.drop(sealed);
  if (!unsealed || !done_or(ErrorCode::not_found, removed)) {
    log::warning(format::inode_object(sealed) + ": its seal is left to the next change there");
  }
}

Result<std::optional<std::uint64_t>> Seals::commit(const StateRecord& seal, std::shared_ptr<const Inode> parent,
                                                   std::span<const ExpectedEntry> expected, TimeSpec time,
                                                   const CommitStep& step) {
  const Ino sealed = expected.front().entry->record.ino;
  const auto decision = format::decision_key(seal.token);
  InodeParts wanted{.keys = {decision}};
  for (const auto& one : expected) wanted.keys.push_back(one.name.key);
  for (Attempts tries(instance_);;) {
    if (auto next = tries.next(); !next) {
      take_back(seal, sealed);
      return std::unexpected(std::move(next).error());
    }
    const auto nsub = one_less(*parent);
    const auto done = metadata_.run_on_directory(step(nsub), {});
    const bool is_applied = done && done->decided == Decided::applied;
    for (const auto& one : expected) {
      if (!is_applied) metadata_.name_in_doubt(one.name);
    }
    if (!done) {
      if (certainly_not_applied(done.error())) take_back(seal, sealed);
      return std::unexpected(done.error());
    }
    if (is_applied) {
      metadata_.directory_changed(seal.parent, done->version, time, nsub);
      leases_.held.end_unless_logged(sealed);
      instance_.directory_is_gone(sealed);
      return done->version;
    }
    auto again = metadata_.read(seal.parent, wanted);
    const bool only_nsub_moved = again && leases_.is_free_or_ours(*again) && !again->keys.contains(decision) &&
                                 as_expected(again->keys, expected);
    if (!only_nsub_moved) {
      take_back(seal, sealed);
      if (!again && again.error().code != ErrorCode::not_found) return std::unexpected(std::move(again).error());
      return std::nullopt;
    }
    parent = std::make_shared<const Inode>(std::move(*again));
  }
}

}  // namespace lccfs
