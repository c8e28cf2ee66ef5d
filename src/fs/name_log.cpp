// SPDX-License-Identifier: LGPL-2.1-or-later
//
// names that were changed under a lease of ours (create.cpp, unlink.cpp, rename.cpp), behind the answers:
//
//  # | object  | step                                                                | stop here leaves
//  0 | Data.X.0| bytes of small new files that are closed (idle_leases.cpp)          | bytes without inodes; as the next
//  0 | Inode.X | the inodes that get names, where they are not stored yet            | inodes without names: a collector removes
//    |         | (unstored_inodes.h)                                                 | them, from the range intent
//  0 | Session | [log queue items] if an inode loses a name: directory item P, if    | an item that finds nothing to do
//    |         | none is relied on already                                           |
//  1 | Inode.P | [store names] guard the tenure; what the first changes of P that    | COMMIT of these. What comes after them is
//    |         | are not stored leave of its entries and times; d/X/t for each inode | lost: P is as it was after a prefix of
//    |         | that lost its name here                                             | what was answered on it
//
// Before a removal is sent, what was added before it in other directories is stored: whoever copies and then removes
// keeps one of the two. Before the removal of a directory, what was changed in it; before what is changed in a new
// directory, its name. Such waiting always leads to older records, and the oldest waits for none.
//
// The count of subdirectories is not the holder's alone: a move that another client has begun may change it. So a batch
// that changes it reads it first, and guards it: 1 read more, and again where it has changed.
//
// A batch that failed is sent again: under the lease nobody else changes these entries, and it does the same again. A
// late run of it is refused by its number, as of any step (rule 5). One that is refused has lost its lease: this client
// was fenced.
#include "fs/name_log.h"

#include <algorithm>

#include "base/log.h"
#include "format/object_names.h"
#include "fs/inodes.h"
#include "txn/namespace_txn.h"

namespace lccfs {

namespace {
constexpr std::size_t most_in_batch = 512;
constexpr std::size_t many = 64;
/// So many of these wait: what was made last is likely to be changed still, before its inode is stored.
constexpr std::size_t kept_back = 8;
/// Beyond, changes wait.
constexpr std::size_t most_of_directory = 2048, most_of_all = 4096;

/// One that fails so often for another reason than space is not stored any more; nor one that finds no room for so long:
/// what removes names may wait for it, and that makes room.
constexpr unsigned most_failed_tries = 10;  // of one second one counts, however many wait for it
constexpr std::chrono::seconds kept_without_room{60};

Error lost_error(Ino directory) {
  return {ErrorCode::io, format::inode_object(directory) + ": changes of names that were answered are lost",
          Outcome::definite};
}
}  // namespace

NameLog::~NameLog() {
  Lock lock(mutex_);
  is_ending_ = true;
  lock.wait(changed_, [this]() REQUIRES(mutex_) { return in_flight_ == 0; });
  if (size_ != 0) log::warning(std::to_string(size_) + " changes of names were answered, and are lost");
}

Result<> NameLog::untold_loss() const {
  const Lock lock(mutex_);
  return losses_.empty() ? Result<>{} : std::unexpected(lost_error(*losses_.begin()));
}

/// Where memory still shows what is lost, it is no ground for a change.
std::optional<std::uint64_t> NameLog::add(Ino directory, Token tenure, Record record) {
  const Lock lock(mutex_);
  const auto& what = record.what;
  for (const auto& touched : {std::optional(directory), what.removed, what.attributes_in}) {
    if (is_being_forgotten(touched)) return std::nullopt;
  }
  const auto logged = directories_.find(directory);
  if (logged != directories_.end() && logged->second.tenure != tenure) return std::nullopt;
  if (logged != directories_.end() && logged->second.lost_from != UINT64_MAX) return std::nullopt;
  const auto number = ++last_;
  if (record.what.named) {
    adds_.emplace(number, directory);
    last_names_[*record.what.named] = {number, directory};
  }
  if (record.what.made) unnamed_[*record.what.made] = {number, directory};
  if (record.what.attributes_in) attributes_.insert({*record.what.attributes_in, {number, directory}});
  auto& its = directories_[directory];
  its.tenure = tenure;
  its.records.push_back({number, std::move(record)});
  ++size_;
  return number;
}

// ---- batches

void NameLog::want(Ino directory, std::uint64_t up_to) {
  auto& its = directories_.at(directory);
  its.wanted_to = std::max(its.wanted_to, up_to);
  stop_waiting(directory, its);
  if (its.is_wanted()) to_try_.insert(directory);
}

void NameLog::stop_waiting(Ino ino, Directory& directory) {
  to_try_.erase(ino);
  if (directory.waits_for) blocked_.erase({*directory.waits_for, ino});
  directory.waits_for.reset();
}

std::vector<Ino> NameLog::blocked_by(Ino directory) const {
  std::vector<Ino> blocked;
  for (auto at = blocked_.lower_bound({directory, Ino{}}); at != blocked_.end() && at->first == directory; ++at) {
    blocked.push_back(at->second);
  }
  return blocked;
}

std::optional<NameLog::Place> NameLog::added_elsewhere(Ino directory) const {
  const auto found = std::ranges::find_if(adds_, [directory](const Place& added) { return added.second != directory; });
  return found == adds_.end() ? std::nullopt : std::optional(*found);
}

/// Those that can be sent now. One that waits for another directory makes that wanted, and is not looked at again before
/// records of that one are gone, or it is more urgent: so a chain of directories costs each of them one look for its own
/// batch, and one each time that all are wanted.
std::vector<NameLog::Batch> NameLog::take_batches() {
  std::vector<Batch> batches;
  if (is_ending_) return batches;
  std::vector<Ino> to_try(to_try_.begin(), to_try_.end());
  while (!to_try.empty()) {
    const Ino ino = to_try.back();
    to_try.pop_back();
    if (!to_try_.contains(ino)) continue;
    auto& directory = directories_.at(ino);
    std::optional<Place> blocker;
    if (auto batch = next_batch(ino, directory, blocker)) {
      batches.push_back(std::move(*batch));
    } else if (blocker) {
      wait_for(ino, directory, *blocker);
      if (to_try_.contains(blocker->second)) to_try.push_back(blocker->second);
    }
  }
  return batches;
}

void NameLog::wait_for(Ino ino, Directory& directory, const Place& blocker) {
  to_try_.erase(ino);
  directory.waits_for = blocker.second;
  blocked_.insert({blocker.second, ino});
  auto& first = directories_.at(blocker.second);
  const bool is_more_urgent = directory.is_urgent && !first.is_urgent;
  if (is_more_urgent) first.is_urgent = true;
  first.wanted_to = std::max(first.wanted_to, blocker.first);
  if (!first.waits_for || is_more_urgent) want(blocker.second, blocker.first);
}

/// nullopt: it waits for none.
std::optional<NameLog::Place> NameLog::to_be_stored_before(Ino ino, const Logged& logged,
                                                           const std::optional<Place>& elsewhere) const {
  const auto& what = logged.record.what;
  if (const auto name = unnamed_.find(ino); name != unnamed_.end()) return name->second;
  const auto removed = what.removed ? directories_.find(*what.removed) : directories_.end();
  if (removed != directories_.end()) return Place{removed->second.records.back().number, removed->first};
  if (what.removes && elsewhere && elsewhere->first < logged.number) return elsewhere;
  return std::nullopt;
}

/// Of a directory whose next record may not be sent: what has to be stored first.
std::optional<NameLog::Place> NameLog::blocker_of(Ino ino, const Directory& directory) const {
  return to_be_stored_before(ino, directory.records.front(), added_elsewhere(ino));
}

bool NameLog::is_on_its_way(Ino ino) const {
  const auto found = directories_.find(ino);
  return found != directories_.end() && found->second.in_flight != 0;
}

void NameLog::Batch::add(const Logged& logged) {
  const auto& [number, record] = logged;
  up_to = number;
  keys.insert(keys.end(), record.keys.begin(), record.keys.end());
  if (record.what.named) named.push_back(*record.what.named);
  if (record.what.removed) removed.push_back(*record.what.removed);
  if (record.what.unlinked) unlinked.insert(*record.what.unlinked);
  removes = removes || record.what.removes;
  subdirectories += record.what.subdirectories;
  changes.push_back(&record.change);
}

/// nullopt: its next record has to wait. Or it may, if nobody waits for it, until all are sent again: what is left of a
/// directory that a later one removes is on its way, and one batch will do for both.
std::optional<NameLog::Batch> NameLog::next_batch(Ino ino, Directory& directory, std::optional<Place>& blocker) {
  Batch batch{.directory = ino, .tenure = directory.tenure};
  batch.is_tried_again = directory.to_be_tried_again != 0;
  if (batch.is_tried_again) batch.never_stored = directory.never_stored;
  const auto elsewhere = added_elsewhere(ino);
  for (const auto& logged : directory.records) {
    const auto& [number, record] = logged;
    const auto last = batch.is_tried_again ? directory.to_be_tried_again : directory.wanted_to;
    if (number > last || number >= directory.lost_from || batch.changes.size() == most_in_batch) break;
    if (const auto before = to_be_stored_before(ino, logged, elsewhere)) {
      blocker = before;
      const bool is_removal = record.what.removed == before->second;
      if (is_removal && !directory.is_urgent && is_on_its_way(before->second)) return std::nullopt;
      break;
    }
    batch.add(logged);
  }
  if (batch.changes.empty()) return std::nullopt;
  directory.in_flight = batch.changes.size();
  directory.is_urgent = false;
  stop_waiting(ino, directory);
  ++in_flight_;
  return batch;
}

void NameLog::send(std::vector<Batch> batches) {
  for (auto& batch : batches) {
    leave_out_those_never_stored(batch);
    const auto named = batch.named;
    finish_files_(named, [this, batch = std::move(batch)]() mutable { store_inodes(std::move(batch)); });
  }
}

/// Who has lost its name before it was stored, need not be. A directory is stored first, unless the store refuses it: its
/// release then marks it as removed. false: there is none.
bool NameLog::leave_out_those_never_stored(Batch& batch) {
  const auto& unstored = instance_.unstored();
  const auto left_out = std::erase_if(batch.named, [&](Ino ino) {
    const bool is_removed_directory =
        unstored.is_refused(ino) && std::ranges::find(batch.removed, ino) != batch.removed.end();
    const bool loses_its_name = batch.unlinked.contains(ino) || is_removed_directory;
    const bool is_never_stored = loses_its_name && unstored.is_unstored(ino);
    if (is_never_stored && !batch.is_tried_again) batch.never_stored.insert(ino);
    return batch.never_stored.contains(ino);
  });
  return left_out != 0;
}

/// One that was on its way before, and is refused now, may be left out then.
void NameLog::store_inodes(Batch batch) {
  const auto named = batch.named;
  instance_.when_stored(named, [this, batch = std::move(batch)](const Result<>& stored) mutable {
    if (stored) return send_item(std::move(batch));
    if (leave_out_those_never_stored(batch)) return store_inodes(std::move(batch));
    auto first = is_out_of_space(stored.error()) ? before_what_is_refused(batch) : std::nullopt;
    if (first) return send({std::move(*first)});
    answered(batch, std::unexpected(stored.error()));
  });
}

/// What was answered before is not lost with it. nullopt: there is nothing.
std::optional<NameLog::Batch> NameLog::before_what_is_refused(const Batch& batch) {
  std::set<Ino> refused;
  std::ranges::copy_if(batch.named, std::inserter(refused, refused.end()),
                       [this](Ino ino) { return instance_.unstored().is_refused(ino); });
  if (refused.empty()) return std::nullopt;
  Batch first{.directory = batch.directory, .tenure = batch.tenure};
  const Lock lock(mutex_);
  auto& directory = directories_.at(batch.directory);
  for (const auto& logged : directory.records) {
    const auto& named = logged.record.what.named;
    if (named && refused.contains(*named)) break;
    first.add(logged);
  }
  if (first.changes.empty()) return std::nullopt;
  directory.in_flight = first.changes.size();
  return first;
}

void NameLog::send_item(Batch batch) {
  if (!batch.removes) return send_counted(std::move(batch));
  const Ino directory = batch.directory;
  instance_.rely_on_directory_async(directory, [this, batch = std::move(batch)](const Result<>& logged) mutable {
    if (!logged) return answered(batch, std::unexpected(logged.error()));
    send_counted(std::move(batch));
  });
}

/// The batch may have been applied when it was sent before, with an answer that was lost: what it leaves says so. (The
/// entries are ours alone; each has a token of its own.) So it leaves the same each time.
void NameLog::send_counted(Batch batch) {
  if (batch.subdirectories == 0) return send_step(std::move(batch), std::nullopt);
  const Ino directory = batch.directory;
  const auto proof = txn::proof_of(batch.changes, batch.never_stored);
  auto counted = [this, batch = std::move(batch), proof](const Result<Inode>& now) mutable {
    if (!now) return answered(batch, std::unexpected(now.error()));
    if (now->directory_lease != batch.tenure || !now->live() || now->sealed()) {
      return answered(batch, StepResult{Decided::refused});
    }
    const auto found = now->keys.find(proof.key);
    if (found != now->keys.end() && found->second == proof.value) {
      return answered(batch, StepResult{Decided::applied, now->version});
    }
    if (++batch.tries > most_failed_tries || now->nsub_raw.empty()) {
      return answered(batch, failure(ErrorCode::io, format::inode_object(batch.directory) +
                                                        ": its count of subdirectories cannot be changed"));
    }
    const auto changed = std::max<std::int64_t>(static_cast<std::int64_t>(now->nsub) + batch.subdirectories, 0);
    send_step(std::move(batch), txn::SubdirectoryCount{now->nsub_raw, static_cast<std::uint64_t>(changed)});
  };
  objects::read_inode_async(instance_.reader(), directory, {.keys = {proof.key}}, std::move(counted));
}

/// Refused, it is looked at again: that may have been for its count.
void NameLog::send_step(Batch batch, const std::optional<txn::SubdirectoryCount>& nsub) {
  batch.was_sent = true;
  auto names = txn::store_names(batch.directory, batch.changes, batch.never_stored, nsub);
  auto step = txn::under_lease(std::move(names), batch.tenure);
  instance_.run_async(std::move(step), [this, batch = std::move(batch)](const Result<StepResult>& result) mutable {
    const bool is_refused = result && result->decided == Decided::refused;
    if (is_refused && batch.subdirectories != 0) return send_counted(std::move(batch));
    answered(batch, result);
  });
}

// The first records of a directory are stored, or lost.
void NameLog::remove(Ino ino, std::size_t how_many, std::vector<Record>& removed) {
  auto& records = directories_.at(ino).records;
  for (; how_many > 0; --how_many) {
    auto& [number, record] = records.front();
    if (const auto named = record.what.named) {
      adds_.erase({number, ino});
      const auto last = last_names_.find(*named);
      if (last != last_names_.end() && last->second.first == number) last_names_.erase(last);
    }
    if (record.what.made) unnamed_.erase(*record.what.made);
    if (record.what.attributes_in) attributes_.erase({*record.what.attributes_in, {number, ino}});
    removed.push_back(std::move(record));
    records.pop_front();
  }
  for (const Ino blocked : blocked_by(ino)) want(blocked, 0);
  if (!records.empty()) return;
  stop_waiting(ino, directories_.at(ino));
  directories_.erase(ino);
}

/// All that the log has of it, and of directories that were to get their names there.
void NameLog::lose(Ino directory, Lost& lost) {
  std::vector<Ino> unnamed;  // below are as many as the log has room for
  lose_one(directory, lost, unnamed);
  for (std::size_t i = 0; i < unnamed.size(); ++i) lose_one(unnamed[i], lost, unnamed);
}

void NameLog::lose_one(Ino directory, Lost& lost, std::vector<Ino>& unnamed) {
  const auto& records = directories_.at(directory).records;
  losses_.insert(directory);
  for (auto& awaited : awaited_) {
    if (awaited.directory == directory && awaited.up_to >= records.front().number) awaited.is_lost = true;
  }
  lost.directories.emplace_back(directory, directories_.at(directory).tenure);
  losing_.insert(directory);
  for (const auto& [number, record] : records) {
    const auto& what = record.what;
    const auto last = what.named ? last_names_.find(*what.named) : last_names_.end();
    if (last != last_names_.end() && last->second.first == number) lost_names_.insert(*what.named);
    if (!what.made) continue;
    losing_.insert(*what.made);
    if (directories_.contains(*what.made)) unnamed.push_back(*what.made);
  }
  remove(directory, records.size(), lost.records);
}

/// With an addition go the removals after it, elsewhere, too: one of the two names stays.
void NameLog::lose_with_removals_after(Ino directory, Lost& lost) {
  const auto addition = std::ranges::find(adds_, directory, &Place::second);
  const auto added = addition == adds_.end() ? UINT64_MAX : addition->first;
  lose(directory, lost);
  lose_removals_after(added, lost);
}

/// What removes names makes room: in the end it is sent.
void NameLog::lose_for_want_of_room(Ino directory, Lost& lost) {
  is_unmounting_ ? lose_with_removals_after(directory, lost) : lose(directory, lost);
}

void NameLog::begin_to_end() {
  const Lock lock(mutex_);
  is_unmounting_ = true;
}

/// And what comes after these in their directories; what comes before is stored first.
void NameLog::lose_removals_after(std::uint64_t added, Lost& lost) {
  std::vector<Ino> to_lose;
  for (auto& [ino, other] : directories_) {
    const auto comes_after = [added](const Logged& one) { return one.record.what.removes && one.number > added; };
    const auto first = std::ranges::find_if(other.records, comes_after);
    if (first == other.records.end()) continue;
    other.lost_from = std::min(other.lost_from, first->number);
    if (other.is_only_to_be_lost()) to_lose.push_back(ino);
  }
  for (const Ino ino : to_lose) {
    if (directories_.contains(ino)) lose_with_removals_after(ino, lost);
  }
}

/// So do those that wait for it. They are sent again when somebody wants it.
void NameLog::fail(Ino directory, const Error& error) {
  std::vector<Ino> failed{directory};
  for (std::size_t i = 0; i < failed.size(); ++i) {
    auto& its = directories_.at(failed[i]);
    its.failure = error;
    ++its.failures;
    its.wanted_to = 0;
    stop_waiting(failed[i], its);
    for (const Ino waits : blocked_by(failed[i])) {
      const auto blocker = blocker_of(waits, directories_.at(waits));
      if (blocker && blocker->second == failed[i]) {
        failed.push_back(waits);
      } else {
        want(waits, 0);  // it was held back
      }
    }
  }
}

std::chrono::seconds NameLog::this_second() const {
  return std::chrono::floor<std::chrono::seconds>(instance_.clock().elapsed());
}

/// Whether what the log has of the directory will never be stored.
bool NameLog::is_lost(Ino directory, const Result<StepResult>& result) const {
  if (result) return result->decided == Decided::refused;
  const auto& error = result.error();
  if (error.code == ErrorCode::fenced || error.code == ErrorCode::not_found) return true;
  const Lock lock(mutex_);
  const auto& its = directories_.at(directory);
  if (!is_out_of_space(error)) return its.failed_tries == most_failed_tries && its.failed_at != this_second();
  return its.without_room_since && instance_.clock().elapsed() - *its.without_room_since >= kept_without_room;
}

/// Answers what is lost. What is stored goes into `stored`.
NameLog::Lost NameLog::settle(const Batch& batch, const Result<StepResult>& result, bool is_lost,
                              std::vector<Record>& stored) {
  const Lock lock(mutex_);
  auto& directory = directories_.at(batch.directory);
  const auto sent = std::exchange(directory.in_flight, 0);
  Lost lost;
  if (result && result->decided == Decided::applied) {
    directory.failed_tries = 0;
    directory.without_room_since.reset();
    directory.is_reported = false;
    directory.to_be_tried_again = 0;
    const bool is_more_wanted = directory.wanted_to > batch.up_to && directory.records.size() > sent;
    remove(batch.directory, sent, stored);
    size_ -= sent;
    const auto rest = directories_.find(batch.directory);
    if (rest != directories_.end() && rest->second.is_only_to_be_lost()) {
      lose_with_removals_after(batch.directory, lost);
    } else if (is_more_wanted) {
      want(batch.directory, 0);
    }
  } else if (is_lost && !result && is_out_of_space(result.error())) {
    lose_for_want_of_room(batch.directory, lost);
  } else if (is_lost) {
    lose_with_removals_after(batch.directory, lost);
  } else {
    const bool finds_no_room = is_out_of_space(result.error());
    const auto now = this_second();
    if (!finds_no_room && std::exchange(directory.failed_at, now) != now) ++directory.failed_tries;
    if (finds_no_room && !directory.without_room_since) directory.without_room_since = instance_.clock().elapsed();
    if (batch.was_sent && (batch.subdirectories != 0 || !finds_no_room)) {
      directory.to_be_tried_again = batch.up_to;
      directory.never_stored = batch.never_stored;
    }
    fail(batch.directory, result.error());
  }
  if (!instance_.fenced()) return lost;
  std::vector<Ino> others;
  for (const auto& [ino, other] : directories_) {
    if (other.in_flight == 0) others.push_back(ino);
  }
  for (const Ino ino : others) {
    if (directories_.contains(ino)) lose(ino, lost);
  }
  return lost;
}

/// Of tries that fail, the first.
void NameLog::report(Ino directory, const Result<StepResult>& result, bool is_lost, std::size_t how_many) {
  const auto is_first = [this, directory] {
    const Lock lock(mutex_);
    const auto found = directories_.find(directory);
    return found == directories_.end() || !std::exchange(found->second.is_reported, true);
  };
  if (!is_lost && !is_first()) return;
  const auto why = result ? "its lease is gone" : result.error().context;
  const auto object = format::inode_object(directory);
  if (is_lost) {
    log::error(object + ": " + std::to_string(how_many) + " changes of names were answered, and are lost: " + why);
  } else {
    log::error(object + ": changes of names are not stored yet: " + why);
  }
}

/// What only waits for another directory's names is not lost with them: these are stored, or lost, within a minute.
bool NameLog::give_up(Ino directory, const Error& why) {
  Lost lost;
  {
    const Lock lock(mutex_);
    const auto found = directories_.find(directory);
    if (found == directories_.end()) return true;
    const auto& its = found->second;
    if (its.in_flight != 0 || !its.without_room_since || blocker_of(directory, its)) return false;
    lose_for_want_of_room(directory, lost);
    changed_.notify_all();
  }
  forget(lost);
  report(directory, std::unexpected(why), true, lost.records.size());
  return true;
}

bool NameLog::give_up_attributes_in(Ino above, const Error& why) {
  bool are_all_lost = true;
  for (const auto& [directory, up_to] : changes_of_attributes_in(above)) {
    are_all_lost = give_up(directory, why) && are_all_lost;
  }
  return are_all_lost;
}

bool NameLog::give_up_without_room(const Error& why) {
  bool is_any_lost = false;
  for (const auto& [directory, up_to] : newest()) is_any_lost = give_up(directory, why) || is_any_lost;
  return is_any_lost;
}

bool NameLog::is_being_forgotten(const std::optional<Ino>& directory) const {
  return directory && losing_.contains(*directory);
}

/// An inode that never had its name is lost, too; one that may be stored is left to a collector. A directory that was
/// made and removed stays removed.
void NameLog::forget(const Lost& lost) {
  std::set<Ino> nameless, parents;
  for (const auto& record : lost.records) {
    const auto& what = record.what;
    const auto parent = format::parse_object_name(record.change.object);
    if (what.named) parents.insert(std::get<format::InodeName>(parent.value()).ino);
    if (what.unlinked) removal_is_lost_(*what.unlinked);
    if (!what.made) continue;
    nameless.insert(*what.made);
    held_.name_lost(*what.made, std::get<format::InodeName>(parent.value()).ino);
  }
  for (const auto& [directory, tenure] : lost.directories) held_.lost(directory, tenure);
  for (const auto& record : lost.records) {
    const auto& removed = record.what.removed;
    if (removed && !nameless.contains(*removed)) held_.removal_lost(*removed);
    if (!record.what.named) continue;
    if (!instance_.unstored().lose(*record.what.named)) {
      leave_to_collector(*record.what.named, parents);
    } else if (record.what.made) {
      const auto tenure = held_.tenure_of(*record.what.made);
      if (tenure) held_.end(*record.what.made, *tenure);  // the store never had it, nor a lease of it
    }
  }
  const Lock lock(mutex_);
  for (const auto& [directory, tenure] : lost.directories) losing_.extract(directory);
  for (const Ino directory : nameless) losing_.extract(directory);
  size_ -= lost.records.size();
  changed_.notify_all();
}

/// A directory goes after what points back to it: by the range intent, once this client has ended.
void NameLog::leave_to_collector(Ino lost, const std::set<Ino>& parents) {
  parents.contains(lost) ? instance_.keep_range_of(lost) : instance_.leave_to_collector_async(lost);
}

void NameLog::tell_of_stored(const Batch& batch, const std::vector<Record>& removals) {
  for (const auto& record : removals) {
    const auto& what = record.what;
    if (!what.unlinked || batch.never_stored.contains(*what.unlinked)) continue;
    removal_is_stored_(*what.unlinked);
    if (what.own_unlinked) own_unlinked_({batch.directory, *what.unlinked, *what.own_unlinked});
  }
}

/// Memory is told first: who finds nothing in the log finds it in memory, as stored. The records end, with what they
/// keep, before the end of the log may come.
void NameLog::answered(const Batch& batch, const Result<StepResult>& result) {
  const bool is_applied = result && result->decided == Decided::applied;
  if (is_applied) {
    held_.stored(batch.directory, batch.tenure, batch.keys, batch.up_to, result->version);
    for (const Ino removed : batch.removed) held_.removal_stored(removed);
    for (const Ino ino : batch.never_stored) {  // unless somebody needed it meanwhile
      if (instance_.unstored().forget(ino)) {
        discard_file_(ino);
        continue;
      }
      instance_.leave_to_collector_async(ino);
      removal_is_stored_(ino);
    }
  }
  const bool is_lost = !is_applied && this->is_lost(batch.directory, result);
  {
    std::vector<Record> stored;
    const auto lost = settle(batch, result, is_lost, stored);
    forget(lost);
    if (!is_applied) {
      report(batch.directory, result, is_lost, lost.records.size());
    } else if (!lost.records.empty()) {
      const auto why = failure(ErrorCode::io, "names that were added before them elsewhere are lost");
      report(batch.directory, why, true, lost.records.size());
    }
    tell_of_stored(batch, stored);
  }
  std::vector<Batch> next;
  {
    const Lock lock(mutex_);
    --in_flight_;
    next = take_batches();
    changed_.notify_all();
  }
  send(std::move(next));
}

void NameLog::send_up_to(const Places& wanted) {
  std::vector<Batch> batches;
  {
    const Lock lock(mutex_);
    for (const auto& [directory, up_to] : wanted) {
      if (directories_.contains(directory)) want(directory, up_to);
    }
    batches = take_batches();
  }
  send(std::move(batches));
}

NameLog::Places NameLog::newest() const {
  Places newest;
  const Lock lock(mutex_);
  for (const auto& [ino, directory] : directories_) newest[ino] = directory.records.back().number;
  return newest;
}

void NameLog::send_if_many(Ino directory) {
  std::uint64_t up_to = 0;
  {
    const Lock lock(mutex_);
    const auto found = directories_.find(directory);
    if (found == directories_.end()) return;
    const auto& records = found->second.records;
    if (records.size() < found->second.in_flight + many + kept_back) return;
    up_to = records[records.size() - 1 - kept_back].number;
  }
  send_up_to({{directory, up_to}});
}

void NameLog::send_all() {
  if (size_ == 0) return;
  {
    const Lock lock(mutex_);
    for (auto& [ino, directory] : directories_) directory.is_urgent = directory.is_wanted();
  }
  send_up_to(newest());
}

// ---- waiting for the store

bool NameLog::has(Ino directory) const {
  if (size_ == 0) return false;
  const Lock lock(mutex_);
  return directories_.contains(directory);
}

/// A failure of a batch that is sent meanwhile is the answer.
Result<> NameLog::wait(Ino directory, std::uint64_t up_to) {
  std::optional<unsigned> failures;
  for (;;) {
    {
      Lock lock(mutex_);
      const auto found = directories_.find(directory);
      if (found == directories_.end() || found->second.records.front().number > up_to) return {};
      auto& its = found->second;
      if (failures && its.failures > *failures) return std::unexpected(*its.failure);
      failures = its.failures;
      if (is_ending_) return failure(ErrorCode::io, "the mount ends");
      const bool was_held_back = !std::exchange(its.is_urgent, true);
      if (its.wanted_to >= up_to && !was_held_back) {
        lock.wait(changed_);
        continue;
      }
    }
    send_up_to({{directory, up_to}});
  }
}

/// All are sent before the first is waited for; the first failure is the answer, one for want of room only if all are.
Result<> NameLog::wait_for_all(const Places& wanted) {
  send_up_to(wanted);
  Result<> all;
  for (const auto& [directory, up_to] : wanted) {
    auto stored = wait(directory, up_to);
    if (!stored && (all || is_out_of_space(all.error()))) all = std::move(stored);
  }
  return all;
}

NameLog::Awaiting NameLog::begin_to_await(Ino directory, std::uint64_t up_to) {
  return awaited_.insert(awaited_.end(), {directory, up_to});
}

bool NameLog::ends_as_lost(Awaiting awaited) {
  const Lock lock(mutex_);
  const bool is_lost = awaited->is_lost;
  awaited_.erase(awaited);
  return is_lost;
}

Result<> NameLog::wait(Awaiting awaited) {
  const auto [directory, up_to] = std::pair(awaited->directory, awaited->up_to);  // which stay
  auto stored = wait(directory, up_to);
  const bool is_lost = ends_as_lost(awaited);
  return stored && is_lost ? std::unexpected(lost_error(directory)) : stored;
}

std::uint64_t NameLog::last() const {
  const Lock lock(mutex_);
  return last_;
}

Result<> NameLog::store(Ino directory) { return size_ == 0 ? Result<>() : wait(directory, last()); }

Result<> NameLog::store_name_of_directory(Ino directory) {
  if (size_ == 0) return {};
  Awaiting name;
  {
    Lock lock(mutex_);
    lock.wait(changed_, [this, directory]() REQUIRES(mutex_) { return !is_being_forgotten(directory); });
    const auto found = unnamed_.find(directory);
    if (found == unnamed_.end()) return {};
    name = begin_to_await(found->second.second, found->second.first);
  }
  return wait(name);
}

Result<> NameLog::store_additions() {
  if (size_ == 0) return {};
  Places last_additions;
  std::vector<Awaiting> awaited;
  {
    const Lock lock(mutex_);
    for (const auto& [number, directory] : adds_) last_additions[directory] = number;
    for (const auto& [directory, number] : last_additions) awaited.push_back(begin_to_await(directory, number));
  }
  send_up_to(last_additions);
  Result<> all;
  for (const auto additions : awaited) {
    auto stored = wait(additions);
    if (all && !stored) all = std::move(stored);
  }
  return all;
}

NameLog::Places NameLog::changes_of_attributes_in(Ino above) const {
  Places last_changes;
  const Lock lock(mutex_);
  for (auto it = attributes_.lower_bound({above, {}}); it != attributes_.end() && it->first == above; ++it) {
    const auto& [number, directory] = it->second;
    last_changes[directory] = number;
  }
  return last_changes;
}

Result<> NameLog::store_attributes_in(Ino above) {
  return size_ == 0 ? Result<>() : wait_for_all(changes_of_attributes_in(above));
}

std::optional<bool> NameLog::leaves_named(Ino directory, Ino inode) const {
  const Lock lock(mutex_);
  const auto found = directories_.find(directory);
  if (found == directories_.end()) return std::nullopt;
  std::optional<bool> is_named;
  for (const auto& [number, record] : found->second.records) {
    const auto& what = record.what;
    if (what.named == inode) is_named = true;
    if (what.unlinked == inode || what.removed == inode) is_named = false;
  }
  return is_named;
}

Result<> NameLog::store_all() { return size_ == 0 ? Result<>() : wait_for_all(newest()); }

Result<> NameLog::sync(Ino directory) {
  std::uint64_t up_to = 0;
  Awaiting changes;
  {
    const Lock lock(mutex_);
    up_to = last_;
    changes = begin_to_await(directory, up_to);
  }
  const auto stored = wait(directory, up_to);
  const bool is_lost = ends_as_lost(changes);
  LCCFS_CHECK(stored);
  {
    const Lock lock(mutex_);
    const bool is_new = losses_.erase(directory) != 0 || is_lost;
    if (is_new) return std::unexpected(lost_error(directory));
  }
  return sync_name_of(directory);
}

bool NameLog::has_name_to_sync(Ino inode) {
  const Lock lock(mutex_);
  return last_names_.contains(inode) || lost_names_.contains(inode);
}

Result<> NameLog::sync_name_of(Ino inode) {
  Place last;
  Awaiting name;
  {
    const Lock lock(mutex_);
    const auto found = last_names_.find(inode);
    if (found == last_names_.end()) {
      if (lost_names_.erase(inode) == 0) return {};
      return failure(ErrorCode::io, format::inode_object(inode) + ": the last name that it was given is lost");
    }
    last = found->second;
    name = begin_to_await(last.second, last.first);
  }
  const auto stored = wait(last.second, last.first);
  const bool is_lost = ends_as_lost(name);
  LCCFS_CHECK(stored);
  const Lock lock(mutex_);
  const bool is_new = lost_names_.erase(inode) != 0 || is_lost;
  return is_new ? std::unexpected(lost_error(last.second)) : Result<>();
}

bool NameLog::only_waits_for_others(Ino directory) const {
  const Lock lock(mutex_);
  const auto found = directories_.find(directory);
  return found != directories_.end() && !found->second.without_room_since;
}

/// One of which the log has nothing waits for its own name, if that is there: with names that are made below each other,
/// each is the first change of its directory.
Result<> NameLog::wait_for_room(Ino directory) {
  for (;;) {
    bool is_in_log = false;
    {
      const Lock lock(mutex_);
      const auto found = directories_.find(directory);
      is_in_log = found != directories_.end();
      const bool has_many = is_in_log && found->second.records.size() >= most_of_directory;
      if (size_ < most_of_all && !has_many) return {};
    }
    auto stored = is_in_log ? store(directory) : store_name_of_directory(directory);
    const bool finds_no_room = !stored && is_out_of_space(stored.error());
    if (!finds_no_room || !only_waits_for_others(directory)) return stored;
    instance_.clock().sleep_for(std::chrono::seconds(1));  // in a minute what it waits for is lost
  }
}

}  // namespace lccfs
