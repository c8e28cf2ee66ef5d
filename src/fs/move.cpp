// SPDX-License-Identifier: LGPL-2.1-or-later
//
// rename across directories (P1, old -> X; P2, new -> Y or nothing): 5 writes one after the other, and one for which
// the answer does not wait. X is a directory: 2 more, and 2 more for Y. A file Y: 1 more, where unlink has it.
//
//  # | object     | step                                                    | stop here leaves
//  W | Data.X.*,  | only if a file Y is replaced: write out what is         | the old names, and an X of which more is
//    | Inode.X    | buffered of X, and its size, as in rename.cpp           | stored
//  L | Super      | X is a directory: [take rename lock] (rename_lock.h)    | the lock is held: the next move of a
//    |            |                                                         | directory takes it over, after 10 s
//  - | Inode.*    | X is a directory: walk up from P2, by the reader rule   |
//    |            | (PROTOCOL section 6). X on the way: invalid             |
//  I | Session.me | a directory Y: [log queue items] item Y, directory item | items that find nothing to do: a
//    |            | P2, in one write                                        | collector drops them
//  S | Inode.Y    | a directory Y: [seal] with t, as in rmdir               | both names, and Y sealed: settled as in
//    |            |                                                         | rmdir
//  P | Inode.P2   | only if it is new, and not stored yet: it and those     | directories without names: a collector
//    |            | above it, as in unstored_inodes.cpp                     | removes them, from the range intent
//  0 | Session.me | [log queue items] item X, directory items P1 and P2     | as after I
//    |            | where none is relied on, in one write                   |
//  1 | Inode.X    | [point to directory] guard live; back-pointer to P2;    | a back-pointer too many: recount drops
//    |            | ctime                                                   | it, from item X
//  - | Inode.*    | wait until names that were added in whichever directory,| both as they were, and a back-pointer
//    |            | and are written behind, are stored (NAMES section 5):   | too many
//    |            | no removal overtakes an addition. EIO if one is lost    |
//  2 | Inode.P1   | [mark entry] guard old's whole value; the same with     | both as they were, and a mark: the next
//    |            | mark(t, P2), in the entry and in the reverse key        | change of old settles it, else recount,
//    |            |                                                         | from item X
//  3 | Inode.P2   | [move entry in] guard open(P2), x/t absent, new as      | COMMIT. By the reader rule, old is
//    |            | read; set both keys; Y replaced: set d/Y/t; x/t =       | absent. Settled as after 2, or from x/t,
//    |            | committed(P1, old); times. X is a directory, and there  | by a collector. Y as in rename.cpp
//    |            | is no Y: nsub + 1, guarded. Only nsub changed: 3 again  |
//  4 | Inode.P1   | [move entry out] guard the marked entry; remove both    | x/t, which a collector drops
//    |            | keys; set d/X/t; times. X is a directory: nsub - 1,     |
//    |            | guarded. Only nsub has changed: 4 again                 |
//  5 | Inode.P2   | [remove decision] x/t; sent once 4 is decided, and not  | done; recount drops the back-pointer to
//    |            | waited for                                              | P1, from d/X/t
//  U | Super      | X is a directory: [release rename lock]                 | done
//  6 | Inode.Y    | a file Y: [change attr] as in unlink; a directory Y:    | as in unlink; a directory: as in rmdir
//    |            | dead, left to recount                                   |
//
// 3 not applied: another instance has cancelled it, or P2 or new have changed. Then the operation starts over, or
// fails:
//
//  # | object     | step                                                    | stop here leaves
//  3'| Inode.P1   | [clear mark] guard the marked entry                     | as after 1, and perhaps x/t, which a
//    |            |                                                         | collector drops, from directory item P2
//  4'| Inode.P2   | [remove decision] the own x/t, whether it is there or   | as after 1
//    |            | not                                                     |
//  S'| Inode.Y    | [unseal] guard sealed(t)                                | as after 0
//  U'| Super      | [release rename lock]                                   | as after 0
//  5'| Inode.X    | [drop back-pointer] if the operation fails              | as after 0
//
// The outcome of 3 is not known: the mark, the seal and the lock stay. The next instance that wants the lock cancels
// x/t first, or finds that 3 was applied.
//
// Why no directory ends below itself: a move that commits with t has walked up after L. Between its L and its 3 no
// other directory has moved: a move that takes the lock from it has decided t before, and a move from which it took the
// lock was decided before L. So what the walk has found still holds at the commit.
//
// How other instances read and settle the mark: src/reclaim/settle.h. Each try has a token of its own: so settling the
// mark of an earlier try never removes a later one. The back-pointer serves all tries with that X. While X points to P2
// without a name there, P2 is not removed (docs/PROTOCOL.md section 5). The same inode under both names: no step,
// success if old, read again, is unchanged.
#include "base/expected_errors.h"
#include "base/log.h"
#include "fs/namespace.h"
#include "fs/rename_lock.h"
#include "reclaim/settle.h"
#include "reclaim/traces.h"

namespace lccfs {

class Namespace::Move {
 public:
  Move(Namespace& its_namespace, txn::Name from, txn::Name to, RenameMode mode)
      : namespace_(its_namespace), from_(std::move(from)), to_(std::move(to)), mode_(mode) {}

  Result<> run();

 private:
  const std::optional<txn::Entry>& from_entry() const { return from_entries_.found.front(); }
  const std::optional<txn::Entry>& to_entry() const { return to_entries_.found.front(); }

  Result<bool> once(bool from_memory);
  Result<bool> both_stand();
  Result<bool> refuse(ErrorCode code);
  Result<bool> onto(const Inode& moved, const Inode& replaced);
  Result<bool> move_file(const Inode& moved, const Inode* replaced);
  Result<bool> move_directory(const Inode& moved, const Inode* replaced);
  Result<bool> take_steps(const Inode& moved);
  Result<bool> prepare(const Inode& moved);
  Result<bool> commit(const txn::Entry& marked, TimeSpec time);
  Result<bool> only_nsub_has_changed();
  void finish(const txn::Entry& marked, TimeSpec time);
  Result<> finish_file(const txn::Entry& marked, TimeSpec time);
  void withdraw(const txn::Entry& marked);
  bool drop_pointer();

  Namespace& namespace_;
  Instance& instance_ = namespace_.instance_;
  Metadata& metadata_ = namespace_.metadata_;
  const txn::Name from_, to_;
  const RenameMode mode_;
  std::optional<Ino> pointing_;        // the inode of step 1
  format::BackPointerRecord pointer_;  // in it
  bool has_name_ = false;              // step 3 was applied
  bool may_have_name_ = false;         // step 3 may have been applied
  Ino logged_;                         // the replaced directory whose item is in the queue
  // of this try
  std::chrono::nanoseconds sent_{};
  Entries from_entries_, to_entries_;
  Token token_;
};

/// Whether both names were read just now, and the old one is still so: what is said of the two rests on that (rule 4).
Result<bool> Namespace::Move::both_stand() {
  if (!from_entries_.fresh || !to_entries_.fresh) return false;
  return metadata_.unchanged({{{from_, from_entry()}}});
}

Result<bool> Namespace::Move::refuse(ErrorCode code) {
  LCCFS_TRY(const bool stand, both_stand());
  if (!stand) return false;
  return failure(code, describe(to_));
}

/// Steps P, 0 and 1, once for an inode, each with a token of its own: a store may drop a pointer twice. false: start over.
Result<bool> Namespace::Move::prepare(const Inode& moved) {
  if (pointing_ == moved.ino) return true;
  if (pointing_ && !drop_pointer()) namespace_.directories_.keep(to_.directory);
  pointing_.reset();
  LCCFS_CHECK(instance_.store_inode(to_.directory));
  LCCFS_CHECK(instance_.log_inode_and_directories(moved.ino, std::array{from_.directory, to_.directory}));
  const auto time = namespace_.wall_time();
  pointing_ = moved.ino;
  metadata_.inodes.share(moved.ino);
  LCCFS_CHECK(namespace_.leases_.log.store(moved.ino));
  pointer_ = {to_.directory, instance_.next_token()};
  const auto step = instance_.run(txn::point_to_directory(moved.ino, pointer_, time));
  if (step && step->decided == Decided::applied) {
    metadata_.inodes.change(moved.ino, step->version, [time](Inode& view) { view.ctime = time; });
    return true;
  }
  metadata_.inodes.drop(moved.ino);
  LCCFS_CHECK(done_or(ErrorCode::not_found, step));
  pointing_.reset();  // certainly not
  return false;
}

/// Whether step 3 would be applied now: then it has read the new directory again.
Result<bool> Namespace::Move::only_nsub_has_changed() {
  const auto decision = format::decision_key(token_);
  const InodeParts parts{.keys = {decision, to_.key}};
  LCCFS_TRY(auto again, or_none(metadata_.read(to_.directory, parts)));
  if (!again) return false;
  const bool is_open = again->live() && !again->sealed() && !again->keys.contains(decision) &&
                       namespace_.leases_.is_free_or_ours(*again);
  if (!is_open || !as_expected(again->keys, {{{to_, to_entry()}}})) return false;
  to_entries_.directory = std::make_shared<const Inode>(std::move(*again));
  return true;
}

/// Step 3. false: refused.
Result<bool> Namespace::Move::commit(const txn::Entry& marked, TimeSpec time) {
  const bool one_more = marked.record.type == FileType::directory && !to_entry();
  const Metadata::Changing changing(metadata_, {&to_});
  for (Attempts tries(instance_);;) {
    LCCFS_CHECK(tries.next());
    std::optional<txn::SubdirectoryCount> nsub;
    if (one_more) nsub = {to_entries_.directory->nsub_raw, to_entries_.directory->nsub + 1};
    const auto step =
        metadata_.run_on_directory(txn::move_entry_in({from_, marked, to_, to_entry(), token_, time, nsub}), {&to_});
    if (!step) {
      may_have_name_ = !certainly_not_applied(step.error());
      return std::unexpected(step.error());
    }
    if (step->decided == Decided::applied) {
      has_name_ = true;
      const format::EntryRecord record{marked.record.ino, marked.record.type, token_};
      metadata_.name_changed(to_, txn::Entry{encode(record), record}, sent_, step->version);
      metadata_.directory_changed(to_.directory, step->version, time, nsub);
      return true;
    }
    LCCFS_TRY(const bool again, nsub ? only_nsub_has_changed() : Result<bool>(false));
    if (!again) return false;
  }
}

/// Steps 4 and 5. It is renamed, whatever becomes of them: what is left undone the collector does.
void Namespace::Move::finish(const txn::Entry& marked, TimeSpec time) {
  Result<> out;
  if (marked.record.type == FileType::directory) {
    out = until_done(instance_, [&](bool) { return reclaim::move_out(instance_, instance_.reader(), from_, marked); });
    metadata_.inodes.drop(from_.directory);
  } else {
    out = finish_file(marked, time);
  }
  if (out) return namespace_.apply_later(txn::remove_decision(to_.directory, marked.record.mark->token));
  log::failed(log::Level::warning, describe(from_) + ": its mark is left to the collector", out.error());
  metadata_.inodes.drop(from_.directory);
}

/// Step 4, without a read.
Result<> Namespace::Move::finish_file(const txn::Entry& marked, TimeSpec time) {
  const auto step = instance_.run(txn::move_entry_out(from_, marked, time, std::nullopt));
  LCCFS_CHECK(done_or(ErrorCode::not_found, step));
  if (step && step->decided == Decided::applied) {
    metadata_.directory_changed(from_.directory, step->version, time);
    metadata_.names.put(from_, std::nullopt, sent_);
  }
  return {};
}

/// By the owner of the mark, whose step 3 has certainly not been applied, and will not be sent again.
void Namespace::Move::withdraw(const txn::Entry& marked) {
  const auto cleared = instance_.run(txn::clear_mark(from_, marked));
  const auto removed = instance_.run_repeatable(txn::remove_decision(to_.directory, marked.record.mark->token));
  if (!done_or(ErrorCode::not_found, cleared) || !done_or(ErrorCode::not_found, removed))
    log::warning(describe(from_) + ": its mark is left to the next change of the name");
  metadata_.inodes.drop(from_.directory);
}

bool Namespace::Move::drop_pointer() {
  const auto dropped = instance_.run_repeatable(txn::drop_back_pointer(*pointing_, pointer_));
  return done_or(ErrorCode::not_found, dropped).has_value();
}

/// Steps 1 to 5. false: start over.
Result<bool> Namespace::Move::take_steps(const Inode& moved) {
  LCCFS_TRY(const bool is_prepared, prepare(moved));
  if (!is_prepared) return false;
  const auto time = namespace_.wall_time();
  const auto marked = txn::marked(*from_entry(), {token_, to_.directory});
  LCCFS_CHECK(namespace_.store_additions());
  metadata_.names.drop(from_);
  {
    const Metadata::Changing changing(metadata_, {&from_});
    LCCFS_TRY(const auto step, metadata_.run_on_directory(txn::mark_entry(from_, *from_entry(), marked), {&from_}));
    metadata_.name_in_doubt(from_);  // what it leads to is decided elsewhere from now on
    if (step.decided == Decided::refused) return false;
  }
  const auto committed = commit(marked, time);
  if (!committed && may_have_name_) return std::unexpected(committed.error());
  if (!committed || !*committed) {
    withdraw(marked);
    return committed;
  }
  finish(marked, time);
  return true;
}

Result<bool> Namespace::Move::move_file(const Inode& moved, const Inode* replaced) {
  token_ = instance_.next_token();
  LCCFS_TRY(const bool done, take_steps(moved));
  if (done && replaced != nullptr) namespace_.one_link_less(*replaced);
  return done;
}

Result<bool> Namespace::Move::move_directory(const Inode& moved, const Inode* replaced) {
  if (moved.sealed()) {
    LCCFS_CHECK(namespace_.seals_.settle(moved));
    return false;
  }
  token_ = instance_.next_token();
  RenameLock lock(instance_, namespace_.rename_patience_, token_, to_.directory);
  LCCFS_CHECK(lock.take());
  LCCFS_TRY(const bool inside, reclaim::is_inside(instance_.reader(), to_.directory, moved.ino));
  if (inside) return refuse(ErrorCode::invalid);
  std::optional<format::StateRecord> seal;
  std::optional<HeldDirectories::NoChangesBehind> none;
  if (replaced != nullptr) {
    none.emplace(namespace_.leases_.held, replaced->ino);
    auto sealed = namespace_.seals_.seal_empty({{{to_, to_entry()}}}, token_, logged_);
    if (!sealed && sealed.error().code == ErrorCode::not_empty) return refuse(ErrorCode::not_empty);
    LCCFS_TRY(seal, std::move(sealed));
    if (!seal) return false;
  }
  auto done = take_steps(moved);
  if (may_have_name_) lock.leave();
  if (seal && has_name_) {
    namespace_.leases_.held.end_unless_logged(replaced->ino);
    instance_.directory_is_gone(replaced->ino);
  }
  if (seal && !has_name_ && !may_have_name_) namespace_.seals_.take_back(*seal, replaced->ino);
  return done;
}

/// Both names stand, for different inodes.
Result<bool> Namespace::Move::onto(const Inode& moved, const Inode& replaced) {
  if (mode_ == RenameMode::no_replace) return refuse(ErrorCode::exists);
  if (moved.is_directory() != replaced.is_directory()) {
    return refuse(moved.is_directory() ? ErrorCode::not_directory : ErrorCode::is_directory);
  }
  if (moved.is_directory()) return move_directory(moved, &replaced);
  LCCFS_CHECK(namespace_.files_.store_before_naming(moved, sent_));
  return move_file(moved, &replaced);
}

Result<bool> Namespace::Move::once(bool from_memory) {
  sent_ = namespace_.now();
  LCCFS_TRY(from_entries_, namespace_.seals_.find_to_change({&from_}, from_memory));
  LCCFS_TRY(to_entries_, namespace_.seals_.find_to_change({&to_}, from_memory));
  if (!from_entry()) {
    if (!from_entries_.fresh) return false;
    return std::unexpected(no_entry(from_));
  }
  LCCFS_TRY(const auto moved, namespace_.seals_.target_of(from_, *from_entry()));
  if (!moved) return false;
  LCCFS_TRY(const bool takes_names, namespace_.seals_.takes_names(to_entries_.directory));
  if (!takes_names) return false;
  if (!to_entry()) return moved->is_directory() ? move_directory(*moved, nullptr) : move_file(*moved, nullptr);
  if (to_entry()->record.ino == moved->ino) {
    return mode_ == RenameMode::no_replace ? refuse(ErrorCode::exists) : both_stand();
  }
  LCCFS_TRY(const auto replaced, namespace_.seals_.target_of(to_, *to_entry()));
  if (!replaced) return false;
  return onto(*moved, *replaced);
}

Result<> Namespace::Move::run() {
  const DirectoriesInUse::Making making(namespace_.directories_, to_.directory);
  const auto moved = until_done(instance_, [this](bool first) { return once(first); });
  if (has_name_) return moved;
  const bool may_point_there = may_have_name_ || (pointing_ && !drop_pointer());
  if (may_point_there) namespace_.directories_.keep(to_.directory);
  return moved;
}

Result<> Namespace::rename_across(txn::Name from, txn::Name to, RenameMode mode) {
  if (mode == RenameMode::exchange) return failure(ErrorCode::invalid, "exchange across directories");
  if (!instance_.super().has(format::feature::moves)) {
    return failure(ErrorCode::cross_device, "the volume has no feature \"moves\": see lccfs upgrade");
  }
  return Move(*this, std::move(from), std::move(to), mode).run();
}

}  // namespace lccfs
