// SPDX-License-Identifier: LGPL-2.1-or-later
//
// check -> repair what an instance rests on -> check ... -> start an instance, fence those gone -> check -> repair ->
// collect -> check ... until a check finds nothing, or nothing that can be repaired.
//
// Features of which this version does not know may have parts of their own anywhere: nothing is repaired before Super's own
// record says that there are none, but this record itself.
//
// Names are repaired before the collector runs: a lost key must never lead it to take an inode for unnamed. So it waits
// for a later check if a repair has met an object that had changed: its key is still missing. And after the repair of an
// entry, of which only a check can tell whether it has its reverse key, and its inode points back.
#include "repair/repair.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/log.h"
#include "format/features.h"
#include "format/records.h"
#include "instance/instance.h"
#include "reclaim/collector.h"
#include "repair/repairs.h"
#include "repair/users.h"

namespace lccfs::repair {

using check::Finding;

namespace {

constexpr unsigned most_checks_in_vain = 100;  // far more than repairs of repairs take
constexpr std::chrono::seconds between_looks{1};

std::unexpected<Error> in_use_by(const User& user) {
  return failure(ErrorCode::busy, "the volume is in use by " + describe(user) +
                                      ": end it there first: systemctl stop lccfs@NAME lccfs-gc@NAME, or umount");
}

bool is_about_the_volume(const Error& error) {
  return error.code == ErrorCode::corrupt || error.code == ErrorCode::unsupported || error.code == ErrorCode::not_found;
}

/// Findings that were left by a repair. A few bytes each, as there may be many; two that are taken for one do no harm.
class LeftBefore {
 public:
  /// False: it was there.
  bool add(const Finding& finding) { return hashes_.insert(hash_of(finding)).second; }
  bool contains(const Finding& finding) const { return hashes_.contains(hash_of(finding)); }

 private:
  static std::size_t hash_of(const Finding& finding) {
    return std::hash<std::string>()(std::string(describe(finding.kind)) + '\0' + finding.object + '\0' + finding.part +
                                    '\0' + finding.name + '\0' + std::to_string(finding.target.value));
  }

  std::unordered_set<std::size_t> hashes_;
};

/// The findings of one check, in the order of their repairs. Of more than there is room for, those that were not left
/// before, and of these those whose repairs come first: what rests on them is found again by a later check.
class Round {
 public:
  Round(std::size_t room, const LeftBefore& left_before) : room_(room), left_before_(left_before) {}

  void add(const Finding& finding) {
    by_rank_[{left_before_.contains(finding), Repairs::rank(finding)}].push_back(finding);
    if (held_ < room_) {
      ++held_;
      return;
    }
    cut_ = true;
    const auto last = std::prev(by_rank_.end());
    last->second.pop_back();
    if (last->second.empty()) by_rank_.erase(last);
  }
  /// Whether some had to be left out.
  bool cut() const { return cut_; }
  std::vector<Finding> take() {
    std::vector<Finding> all;
    for (auto& [place, some] : by_rank_) std::ranges::move(some, std::back_inserter(all));
    std::ranges::stable_sort(all, {}, Repairs::rank);
    return all;
  }

 private:
  using Place = std::pair<bool, unsigned>;  // whether it was left before, and its rank

  const std::size_t room_;
  const LeftBefore& left_before_;
  std::size_t held_ = 0;
  bool cut_ = false;
  std::map<Place, std::vector<Finding>> by_rank_;
};

/// Whether its repair brings a name to light of which no check has judged the rest yet.
bool is_about_an_entry(const Finding& finding) { return finding.is_key && finding.part.starts_with("n/"); }

/// Super's own record says which features there are.
bool is_about_own_record(const Finding& finding) {
  if (finding.object != format::super_object) return false;
  return finding.kind == check::Kind::missing_object || (finding.part == format::xattr::super && !finding.is_key);
}

Repair waits_for_features() { return left("Super's own record is needed first: it says which features there are"); }

Repair waits_for_names() { return {false, "names have come to light: a check comes first", true}; }

class Run {
 public:
  Run(const std::shared_ptr<ObjectStore>& store, Clock& clock, const RepairOptions& options)
      : store_(store),
        clock_(clock),
        options_(options),
        objects_(*store),
        unrecorded_(*store, clock),
        repairs_(objects_, clock, unrecorded_, options.orphans) {}

  Result<RepairReport> run() {
    auto done = check_and_repair();
    if (!done) tell_what_is_left();
    return done;
  }

 private:
  Result<RepairReport> check_and_repair() {
    LCCFS_CHECK(store_->sync_fences());
    LCCFS_CHECK(expect_nobody());
    LCCFS_CHECK(check());
    LCCFS_TRY(const bool sound, repair_volume_objects());
    LCCFS_TRY(const bool somebody_gone, anybody_gone());
    if (findings_.empty() && !somebody_gone) return report_;
    const auto instance = sound ? Instance::start(store_, clock_, {"lccfs-fsck", false})
                                : failure(ErrorCode::corrupt, "Super cannot be read");
    if (!instance && !is_about_the_volume(instance.error())) return std::unexpected(instance.error());
    if (!instance) return give_up("without it nothing can be repaired: " + instance.error().context);
    const auto changes = objects_.changes();
    const auto repaired = repair_all(**instance);
    // Failed in the midst: not ended, so that its range items lead to what is half made.
    if (!repaired && objects_.changes() != changes) return std::unexpected(repaired.error());
    const auto ended = (*instance)->end();
    if (!repaired) return std::unexpected(repaired.error());
    if (!ended) return std::unexpected(ended.error());
    return report_what_is_left();
  }

  /// A record that nobody can read yet may be mended, and says more before the next check.
  Result<> expect_known_features() {
    LCCFS_TRY(const auto super, objects_.read_keys(format::super_object, {}));
    const auto record = super ? super->find<format::SuperRecord>(format::xattr::super) : std::nullopt;
    features_are_known_ = record.has_value();
    return record ? format::check_features_of_repair(*record) : Result<>();
  }

  Result<> check() {
    LCCFS_CHECK(expect_known_features());
    if (!cut_ && ++checks_ > most_checks_in_vain)
      return failure(ErrorCode::io, "the repairs come to no end: this is a bug");
    left_.clear();
    changes_before_ = objects_.changes();
    found_to_leave_ = false;
    names_in_doubt_ = false;
    Round round(options_.findings_at_once, left_before_);
    auto done = check::check_volume(*store_, options_.check, [&round](const Finding& finding) { round.add(finding); });
    findings_ = round.take();
    cut_ = round.cut();
    if (done) report_.check = *done;
    const auto read = done ? check::expect_all_was_read(*done) : std::unexpected(std::move(done).error());
    if (read) return {};
    for (const auto& finding : findings_) left_.emplace_back(finding, left("the check did not end"));
    return read;
  }

  /// What was seen to by another repair was not if there has been none: then repair and check disagree.
  Result<> note(const Finding& finding, Result<Repair> repair) {
    if (!repair) return std::unexpected(repair.error());
    names_in_doubt_ = names_in_doubt_ || repair->found_again || (repair->done && is_about_an_entry(finding));
    if (repair->done && objects_.changes() == changes_before_) repair = left("it is not as the check has found it");
    if (!repair->done) {
      if (features_are_known_) found_to_leave_ = left_before_.add(finding) || found_to_leave_;  // before, it only waits
      left_.emplace_back(finding, std::move(*repair));
      return {};
    }
    ++report_.repaired;
    options_.on_repair(finding, *repair);
    return {};
  }

  Result<Repair> repair(const Finding& finding) {
    if (!features_are_known_ && !is_about_own_record(finding)) return waits_for_features();
    if (names_in_doubt_ && Repairs::is_lost_back_pointer(finding)) return waits_for_names();
    return repairs_.repair(finding);
  }

  /// An error leaves the rest of them.
  Result<> repair_those(bool coming_first) {
    Result<> done;
    for (const auto& finding : findings_) {
      if (Repairs::comes_first(finding) != coming_first) continue;
      if (done) done = note(finding, repair(finding));
      if (!done) left_.emplace_back(finding, left("an error came before its repair was done"));
    }
    return done;
  }

  /// Until the objects that all others rest on are as good as they get. False: no instance can work here.
  Result<bool> repair_volume_objects() {
    for (;;) {
      if (features_are_known_) LCCFS_CHECK(wait_for_unrecorded_clients());  // before, no repair rests on it
      LCCFS_CHECK(repair_those(true));
      if (objects_.changes() == changes_before_) break;
      LCCFS_CHECK(check());
    }
    LCCFS_TRY(const auto super, objects_.read_keys(format::super_object, {}));
    const auto record = super ? super->find<format::SuperRecord>(format::xattr::super) : std::nullopt;
    if (record) objects_.set_uuid(record->uuid);
    return record.has_value();
  }

  Result<> expect_nobody() {
    LCCFS_TRY(const auto users, users_of(*store_));
    const auto there = std::ranges::find_if(users, &User::watches);
    return options_.though_in_use || there == users.end() ? Result<>{} : in_use_by(*there);
  }

  /// Their records are about to say that they have ended.
  Result<> wait_for_unrecorded_clients() {
    std::set<InstanceId> clients;
    for (const auto& finding : findings_) {
      if (const auto id = Repairs::unrecorded_client(finding)) clients.insert(*id);
    }
    if (clients.empty()) return {};
    log::info("clients whose records are missing or damaged: " + std::to_string(clients.size()) +
              "; a minute shows whether they are gone");
    LCCFS_TRY(const auto there, unrecorded_.wait_for(clients, !options_.though_in_use));
    return options_.though_in_use || there.empty() ? Result<>{} : in_use_by({*there.begin(), {}, true});
  }

  Result<bool> anybody_gone() {
    LCCFS_TRY(const auto users, users_of(*store_));
    return std::ranges::any_of(users, [](const User& user) { return !user.watches; });
  }

  /// Repairs need a volume that nothing else changes. True: there was another user, and it is expired.
  Result<bool> fence_the_gone(Instance& instance) {
    LCCFS_TRY(const auto users, users_of(*store_));
    bool fenced = false;
    for (const auto& user : users) {
      if (user.id == instance.id()) continue;
      LCCFS_TRY(const bool expired, wait_until_expired(instance, user));
      fenced = fenced || expired;
    }
    return fenced;
  }

  /// One that is not there may just be starting: a minute shows.
  Result<bool> wait_until_expired(Instance& instance, const User& user) {
    for (bool said = false;; said = true) {
      LCCFS_TRY(const bool expired, instance.ensure_expired(user.id));
      if (expired) return true;
      if (!said) log::info("waiting for " + describe(user) + ": gone, or starting; a minute shows");
      clock_.sleep_for(between_looks);
      const auto now = users_of(*store_);
      if (!now && now.error().code == ErrorCode::timed_out) continue;
      if (!now) return std::unexpected(now.error());
      const auto still = std::ranges::find(*now, user.id, &User::id);
      if (still != now->end() && still->watches) {
        if (options_.though_in_use) return false;
        return in_use_by(*still);
      }
    }
  }

  Result<> repair_all(Instance& instance) {
    LCCFS_TRY(bool to_collect, fence_the_gone(instance));
    if (to_collect) LCCFS_CHECK(check());  // their last steps may have come late
    repairs_.use(instance);
    reclaim::Collector collector(instance, {options_.check.jobs, 0, std::chrono::seconds(0)});
    for (;;) {
      LCCFS_CHECK(repairs_.look_ahead(findings_));
      LCCFS_CHECK(repair_those(false));
      const bool makes_room = cut_ && found_to_leave_;  // for others, in the next check
      if (objects_.changes() == changes_before_ && !makes_room && !std::exchange(to_collect, false)) return {};
      to_collect = to_collect || names_in_doubt_;
      const bool names_wait = cut_ || names_in_doubt_;  // for their repair
      if (!names_wait) LCCFS_CHECK(collector.pass());
      LCCFS_CHECK(check());
      LCCFS_CHECK(repair_volume_objects());
    }
  }

  Result<RepairReport> give_up(const std::string& why) {
    for (const auto& finding : findings_) {
      if (!Repairs::comes_first(finding)) left_.emplace_back(finding, left(why));
    }
    return report_what_is_left();
  }

  void tell_what_is_left() const {
    for (const auto& [finding, repair] : left_) options_.on_repair(finding, repair);
  }

  Result<RepairReport> report_what_is_left() {
    tell_what_is_left();
    report_.left = report_.check.findings;
    return report_;
  }

  const std::shared_ptr<ObjectStore> store_;
  Clock& clock_;
  const RepairOptions& options_;
  Objects objects_;
  UnrecordedClients unrecorded_;
  Repairs repairs_;
  RepairReport report_;
  std::vector<Finding> findings_;
  bool cut_ = false;                 // there are more
  bool features_are_known_ = false;  // to the last check
  std::vector<std::pair<Finding, Repair>> left_;
  LeftBefore left_before_;            // of all checks
  bool found_to_leave_ = false;       // since the last check, for the first time
  bool names_in_doubt_ = false;       // by a repair since the last check
  std::uint64_t changes_before_ = 0;  // the last check
  unsigned checks_ = 0;
};

}  // namespace

Result<RepairReport> repair_volume(const std::shared_ptr<ObjectStore>& store, Clock& clock,
                                   const RepairOptions& options) {
  return Run(store, clock, options).run();
}

}  // namespace lccfs::repair
