// SPDX-License-Identifier: LGPL-2.1-or-later
//
// rename inside one directory (P, old -> X, new -> Y or nothing): 1 write.
//
//  # | object     | step                                                    | stop here leaves
//  W | Data.X.*,  | a file X that replaces a file: write out what is        | the old names, and an X of which more is
//    | Inode.X    | buffered, and its size (file_node.cpp): after a crash   | stored
//    |            | the new name has all that X had                         |
//  0 | Session.me | [log queue items] only if Y is replaced: directory item | items that find nothing to do: a
//    |            | P, if none is relied on already; a directory Y: items Y | collector drops them
//    |            | and P, in one write                                     |
//  1 | Inode.Y    | [seal] only a directory Y, as in rmdir                  | both names, and Y sealed: settled as in
//    |            |                                                         | rmdir
//  2 | Inode.P    | [rename entries] guard the whole values of both         | COMMIT. Y replaced: it has one name less;
//    |            | entries, or new's absence; a directory Y: x/t absent,   | a collector removes it, or corrects its
//    |            | nsub - 1, guarded. Move the keys; Y replaced: set       | nlink, from item P and d/Y/t
//    |            | d/Y/t; times                                            |
//  2'| Inode.P    | RENAME_EXCHANGE: [exchange entries], the same guards    | COMMIT, and nothing else is left
//  3 | Inode.Y    | a file Y: [change attr] as in unlink; a directory Y:    | as in unlink; a directory: as after 2
//    |            | dead, left to recount                                   |
//  - | Inode.X    | [set ctime], not waited for; exchange: of both inodes   | an old ctime, which stays. Where 2 comes
//    |            |                                                         | behind the answer, this may come first:
//    |            |                                                         | the old name, with the new ctime
//
// Where names are written behind (docs/NAMES.md section 5), and nothing is replaced, or a file that needs no step 3, the
// answer comes after W, and 2 is part of a batch (name_log.cpp). No exchange. Additions of other directories that
// are written behind are stored before 2 takes a name from Y, in a batch or not.
//
// 2 not applied, and Y a directory: the seal is taken back, as in rmdir. The same inode under both names: no step,
// success if one read shows both. Every entry written carries t.
#include "fs/namespace.h"

namespace lccfs {

class Namespace::Rename {
 public:
  Rename(Namespace& its_namespace, txn::Name from, txn::Name to, RenameMode mode)
      : namespace_(its_namespace), from_(std::move(from)), to_(std::move(to)), mode_(mode) {}

  /// One try. false: start over.
  Result<bool> once(bool from_memory);

 private:
  const std::optional<txn::Entry>& from_entry() const { return entries_.found[0]; }
  const std::optional<txn::Entry>& to_entry() const { return entries_.found[1]; }

  Result<bool> onto_other(const Inode& moved, const Inode& replaced);
  Result<bool> exchange();
  Result<bool> rename_entry(const Inode* replaced_file);
  Result<bool> rename_behind(const MetaTxn& step, const Inode* replaced_file);
  Result<bool> replace_directory();
  Result<bool> run(MetaTxn txn);
  void begin_step();
  void has_name(const txn::Name& name, const txn::Entry& entry);
  void has_gone(const txn::Name& name) { namespace_.metadata_.name_changed(name, std::nullopt, sent_, version_); }

  Namespace& namespace_;
  const txn::Name from_, to_;
  const RenameMode mode_;
  const std::shared_ptr<const KeptBehind> kept_ = namespace_.keep_behind(from_.directory);
  Ino logged_;  // the replaced directory whose item is in the queue
  // of this try
  std::chrono::nanoseconds sent_{};
  Entries entries_;
  Token token_;
  TimeSpec time_;
  std::uint64_t version_ = 0;  // of the directory, after the step
};

void Namespace::Rename::begin_step() {
  token_ = namespace_.instance_.next_token();
  time_ = namespace_.wall_time();
}

/// false: refused.
Result<bool> Namespace::Rename::run(MetaTxn txn) {
  LCCFS_TRY(const auto step, namespace_.metadata_.run_on_directory(std::move(txn), {&from_, &to_}));
  if (step.decided == Decided::refused) return false;
  version_ = step.version;
  namespace_.metadata_.directory_changed(from_.directory, version_, time_);
  return true;
}

/// The inode of that entry has this name now.
void Namespace::Rename::has_name(const txn::Name& name, const txn::Entry& entry) {
  const format::EntryRecord record{entry.record.ino, entry.record.type, token_};
  namespace_.metadata_.name_changed(name, txn::Entry{encode(record), record}, sent_, version_);
  namespace_.change_ctime_later(record.ino, name.directory, time_);
}

Result<bool> Namespace::Rename::exchange() {
  const Metadata::Changing changing(namespace_.metadata_, {&from_, &to_});
  begin_step();
  LCCFS_TRY(const bool done, run(txn::exchange_entries(from_, *from_entry(), to_, *to_entry(), token_, time_)));
  if (!done) return false;
  has_name(to_, *from_entry());
  has_name(from_, *to_entry());
  return true;
}

/// rename_entry, behind the answer. false: step by step.
Result<bool> Namespace::Rename::rename_behind(const MetaTxn& step, const Inode* replaced_file) {
  LCCFS_TRY(const bool may_be_behind, namespace_.metadata_.may_change_behind(entries_));
  if (!may_be_behind || (replaced_file != nullptr && !namespace_.is_gone_with_its_name(*replaced_file))) return false;
  const format::EntryRecord record{from_entry()->record.ino, from_entry()->record.type, token_};
  NameLog::What what{.named = record.ino, .removes = replaced_file != nullptr};
  if (replaced_file != nullptr) {
    what.unlinked = replaced_file->ino;
    what.own_unlinked = namespace_.token_if_own(replaced_file->ino, token_);
  }
  if (!namespace_.metadata_.change_behind(
          {entries_,
           {{from_, from_entry(), std::nullopt}, {to_, to_entry(), txn::Entry{encode(record), record}}},
           step,
           time_,
           what,
           kept_})) {
    return false;
  }
  namespace_.change_ctime_later(record.ino, from_.directory, time_);
  if (replaced_file != nullptr) namespace_.lost_its_only_name(replaced_file->ino);
  return true;
}

/// To a free name, or over a file.
Result<bool> Namespace::Rename::rename_entry(const Inode* replaced_file) {
  begin_step();
  auto step = txn::rename_entries({from_, *from_entry(), to_, to_entry(), token_, time_, std::nullopt});
  const bool was_gone = replaced_file != nullptr && namespace_.is_gone_with_its_name(*replaced_file);
  LCCFS_TRY(const bool is_behind, rename_behind(step, replaced_file));
  if (is_behind) return true;
  if (replaced_file != nullptr) {
    LCCFS_CHECK(namespace_.instance_.rely_on_directory(to_.directory));
    LCCFS_TRY(const bool are_stored, namespace_.store_additions_before_a_name_goes(*replaced_file, was_gone));
    if (!are_stored) return false;
  }
  const Metadata::Changing changing(namespace_.metadata_, {&from_, &to_});
  LCCFS_TRY(const bool done, run(std::move(step)));
  if (!done) return false;
  has_gone(from_);
  has_name(to_, *from_entry());
  if (replaced_file != nullptr) namespace_.one_link_less(*replaced_file);
  return true;
}

Result<bool> Namespace::Rename::replace_directory() {
  if (!entries_.directory) return false;
  LCCFS_CHECK(namespace_.store_additions());
  const HeldDirectories::NoChangesBehind none(namespace_.leases_.held, to_entry()->record.ino);
  begin_step();
  const std::vector<ExpectedEntry> expected{{to_, to_entry()}, {from_, from_entry()}};
  LCCFS_TRY(const auto seal, namespace_.seals_.seal_empty(expected, token_, logged_));
  if (!seal) return false;
  time_ = namespace_.wall_time();
  const Metadata::Changing changing(namespace_.metadata_, {&from_, &to_});
  const auto step = [this](const txn::SubdirectoryCount& nsub) {
    return txn::rename_entries({from_, *from_entry(), to_, to_entry(), token_, time_, nsub});
  };
  LCCFS_TRY(const auto done, namespace_.seals_.commit(*seal, entries_.directory, expected, time_, step));
  if (!done) return false;
  version_ = *done;
  has_gone(from_);
  has_name(to_, *from_entry());
  return true;
}

/// Both names stand, for different inodes. An error is an answer only to what was read just now.
Result<bool> Namespace::Rename::onto_other(const Inode& moved, const Inode& replaced) {
  if (mode_ == RenameMode::exchange) return exchange();
  const bool no_replace = mode_ == RenameMode::no_replace;
  if (no_replace || moved.is_directory() != replaced.is_directory()) {
    if (!entries_.fresh) return false;
    if (no_replace) return failure(ErrorCode::exists, describe(to_));
    return failure(moved.is_directory() ? ErrorCode::not_directory : ErrorCode::is_directory, describe(to_));
  }
  if (replaced.is_directory()) return replace_directory();
  LCCFS_CHECK(namespace_.files_.store_before_naming(moved, sent_));
  return rename_entry(&replaced);
}

Result<bool> Namespace::Rename::once(bool from_memory) {
  sent_ = namespace_.now();
  LCCFS_TRY(entries_, namespace_.seals_.find_to_change({&from_, &to_}, from_memory));
  const auto missing = [this](const txn::Name& name) -> Result<bool> {
    if (!entries_.fresh) return false;
    return std::unexpected(no_entry(name));
  };
  if (!from_entry()) return missing(from_);
  LCCFS_TRY(const auto moved, namespace_.seals_.target_of(from_, *from_entry()));
  if (!moved) return false;
  if (!to_entry()) return mode_ == RenameMode::exchange ? missing(to_) : rename_entry(nullptr);
  if (to_entry()->record.ino == from_entry()->record.ino) {
    if (!entries_.fresh) return false;
    if (mode_ != RenameMode::no_replace) return true;
    return failure(ErrorCode::exists, describe(to_));
  }
  LCCFS_TRY(const auto replaced, namespace_.seals_.target_of(to_, *to_entry()));
  if (!replaced) return false;
  return onto_other(*moved, *replaced);
}

Result<> Namespace::rename(Ino old_parent, const std::string& old_name, Ino new_parent, const std::string& new_name,
                           RenameMode mode) {
  LCCFS_CHECK(check_change(options_, old_name));
  LCCFS_CHECK(check_name(new_name));
  auto from = metadata_.name_in(old_parent, old_name), to = metadata_.name_in(new_parent, new_name);
  // The kernel tries once more, and no further: it is to ask for all names by then.
  const auto is_asked_for = leases_.make_kernel_ask_before_step({&from, &to});
  if (old_parent != new_parent) LCCFS_CHECK(leases_.make_kernel_ask_before_move(from));
  LCCFS_CHECK(is_asked_for);
  if (old_parent != new_parent) {
    return rename_across(std::move(from), std::move(to), mode);
  }
  Rename renaming(*this, std::move(from), std::move(to), mode);
  return until_done(instance_, [&renaming](bool first) { return renaming.once(first); });
}

}  // namespace lccfs
