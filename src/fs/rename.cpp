// SPDX-License-Identifier: LGPL-2.1-or-later
//
// rename inside one directory (P, old -> X, new -> Y or nothing): 1 write.
//
//  # | object     | step                                                          | stop here leaves
//  0 | Session.me | Y replaced: directory item P, if none is relied on already;   |
//    |            | a directory Y: items Y and P, in one write                    |
//  1 | Inode.Y    | a directory Y: seal, as in rmdir                              | as in rmdir
//  2 | Inode.P    | guard the whole values of both entries, or new's absence;     | COMMIT
//    |            | a directory Y: x/t absent; nsub - 1, guarded. Swap or move    |
//    |            | the keys; Y replaced: set d/Y/t; times                        |
//  3 | Inode.Y    | a file Y: nlink as in unlink. A directory: dead, by recount   | recount repairs it
//  - | Inode.X    | ctime, behind the answer                                      | an old ctime
//
// The same inode under both names: no step, success if one read shows both. Every entry written carries t.
#include "base/log.h"
#include "fs/namespace_private.h"
#include "txn/attribute_txn.h"

namespace lccfs {

struct Namespace::Private::Renaming {
  txn::Name from;
  txn::Name to;
  RenameMode mode;
  Ino logged;                       // the replaced directory whose item is in the queue
  std::chrono::nanoseconds sent{};  // of this try; what it saw:
  Seen seen;
  const std::optional<txn::Entry>& from_entry() const { return seen.entries[0]; }
  const std::optional<txn::Entry>& to_entry() const { return seen.entries[1]; }
};

void Namespace::Private::change_ctime_behind(Ino moved, TimeSpec time) {
  inodes.change_behind(moved, [time](InodeView& view) { view.ctime = time; });
  {
    const std::lock_guard lock(background_mutex);
    ++in_background;
  }
  instance.store().apply_async(txn::set_ctime(moved, time), [this](const Result<Applied>& applied) {
    if (!applied) log::debug("a moved inode keeps its ctime: " + applied.error().context);
    const std::lock_guard lock(background_mutex);
    --in_background;
    background_done.notify_all();
  });
}

/// What memory holds of an inode that now has the other name.
void Namespace::Private::moved_to(const Renaming& renaming, Ino moved, Token token, TimeSpec time) {
  const format::EntryRecord record{moved, renaming.from_entry()->record.type, token};
  names.put(renaming.from, std::nullopt, renaming.sent);
  names.put(renaming.to, txn::Entry{encode(record), record}, renaming.sent);
  change_ctime_behind(moved, time);
}

Result<bool> Namespace::Private::exchange(const Renaming& renaming, const InodeView& moved, const InodeView& other) {
  const auto& first = *renaming.from_entry();
  const auto& second = *renaming.to_entry();
  const Token token = instance.next_token();
  const auto time = wall_time();
  LCCFS_TRY(const auto step,
            run_in_directory(txn::exchange_entries(renaming.from, first, renaming.to, second, token, time)));
  if (step.decided == Decided::refused) return false;
  directory_changed(renaming.from.directory, step.version, time, nullptr);
  moved_to(renaming, moved.ino, token, time);
  const format::EntryRecord record{other.ino, second.record.type, token};
  names.put(renaming.from, txn::Entry{encode(record), record}, renaming.sent);
  change_ctime_behind(other.ino, time);
  return true;
}

/// To a free name, or over a file.
Result<bool> Namespace::Private::move(const Renaming& renaming, const InodeView& moved,
                                      const InodeView* replaced_file) {
  if (replaced_file != nullptr) LCCFS_CHECK(instance.rely_on_directory(renaming.to.directory));
  const Token token = instance.next_token();
  const auto time = wall_time();
  LCCFS_TRY(const auto step, run_in_directory(txn::rename_entries({renaming.from, *renaming.from_entry(), renaming.to,
                                                                   renaming.to_entry(), token, time, std::nullopt})));
  if (step.decided == Decided::refused) return false;
  directory_changed(renaming.from.directory, step.version, time, nullptr);
  moved_to(renaming, moved.ino, token, time);
  if (replaced_file != nullptr) one_name_less(*replaced_file);
  return true;
}

Result<bool> Namespace::Private::replace_directory(Renaming& renaming, const InodeView& moved) {
  if (!renaming.seen.directory) return false;
  const Token token = instance.next_token();
  const std::vector<ExpectedEntry> expected{{renaming.to, renaming.to_entry()}, {renaming.from, renaming.from_entry()}};
  LCCFS_TRY(const auto seal, seal_empty(expected, token, renaming.logged));
  if (!seal) return false;
  const auto time = wall_time();
  const auto step = [&](const txn::SubdirectoryCount& nsub) {
    return txn::rename_entries(
        {renaming.from, *renaming.from_entry(), renaming.to, renaming.to_entry(), token, time, nsub});
  };
  LCCFS_TRY(const bool committed, commit_sealed(*seal, renaming.seen.directory, expected, time, step));
  if (committed) moved_to(renaming, moved.ino, token, time);
  return committed;
}

/// Both names stand, for different inodes. An error is an answer only to what was read just now.
Result<bool> Namespace::Private::rename_to_other(Renaming& renaming, const InodeView& moved,
                                                 const InodeView& replaced) {
  if (renaming.mode == RenameMode::exchange) return exchange(renaming, moved, replaced);
  const auto where = format::inode_object(renaming.to.directory) + ": " + renaming.to.name;
  const bool no_replace = renaming.mode == RenameMode::no_replace;
  if (no_replace || moved.is_directory() != replaced.is_directory()) {
    if (!renaming.seen.fresh) return false;
    if (no_replace) return failure(ErrorCode::exists, where);
    return failure(moved.is_directory() ? ErrorCode::not_directory : ErrorCode::is_directory, where);
  }
  return replaced.is_directory() ? replace_directory(renaming, moved) : move(renaming, moved, &replaced);
}

Result<bool> Namespace::Private::rename_once(Renaming& renaming, bool from_memory) {
  renaming.sent = now();
  LCCFS_TRY(renaming.seen, see({&renaming.from, &renaming.to}, from_memory));
  const auto& from_entry = renaming.from_entry();
  const auto& to_entry = renaming.to_entry();
  const auto missing = [&](const txn::Name& name) -> Result<bool> {
    if (!renaming.seen.fresh) return false;
    return failure(ErrorCode::not_found, format::inode_object(name.directory) + ": no entry " + name.name);
  };
  if (!from_entry) return missing(renaming.from);
  LCCFS_TRY(const auto moved, target_of(renaming.from, *from_entry));
  if (!moved) return false;
  if (!to_entry) {
    return renaming.mode == RenameMode::exchange ? missing(renaming.to) : move(renaming, *moved, nullptr);
  }
  if (to_entry->record.ino == from_entry->record.ino) {
    if (!renaming.seen.fresh) return false;
    if (renaming.mode != RenameMode::no_replace) return true;
    return failure(ErrorCode::exists, format::inode_object(renaming.to.directory) + ": " + renaming.to.name);
  }
  LCCFS_TRY(const auto replaced, target_of(renaming.to, *to_entry));
  if (!replaced) return false;
  return rename_to_other(renaming, *moved, *replaced);
}

Result<> Namespace::rename(Ino old_parent, const std::string& old_name, Ino new_parent, const std::string& new_name,
                           RenameMode mode) {
  LCCFS_CHECK(private_->check_change(old_name));
  LCCFS_CHECK(check_name(new_name));
  if (old_parent != new_parent) return failure(ErrorCode::cross_device, "rename across directories");
  Private::Renaming renaming{
      private_->name_in(old_parent, old_name), private_->name_in(new_parent, new_name), mode, {}, {}, {}};
  for (auto tries = private_->attempts();;) {
    LCCFS_CHECK(tries.next());
    LCCFS_TRY(const bool done, private_->rename_once(renaming, tries.first()));
    if (done) return {};
  }
}

}  // namespace lccfs
