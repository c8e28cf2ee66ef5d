// SPDX-License-Identifier: LGPL-2.1-or-later
#include "instance/others.h"

#include <utility>

#include "base/blocking.h"
#include "base/expected_errors.h"
#include "base/log.h"
#include "base/parallel.h"
#include "format/object_names.h"
#include "txn/volume_txn.h"

namespace lccfs {

using format::InstanceRecord;

namespace {
/// A minute, and some: it begins anew where this instance loses a watch, or stands still. Who is not decided by then
/// waits for the next poll.
constexpr std::chrono::seconds longest_wait_for_absent = gone_after + std::chrono::seconds(10);
/// An instance that has not been looked at for longer may have come back.
constexpr auto longest_until_fence = Absences::limits.longest_gap;
constexpr std::chrono::seconds tell_refusals_every{60};
/// Each waits for the store, and a fence for the monitors.
constexpr unsigned looks_at_once = 16;
/// Who is gone after that is fenced after the next look at all: fences take a second or so, and none that is still to be
/// fenced must go without a look for too long meanwhile (Absences::limits).
constexpr std::chrono::seconds fences_begin_within{3};
/// Well within the half minute for which the watch of a dead client stands.
constexpr std::chrono::seconds look_around_every{10};
}  // namespace

Result<Others::RecordOnSuper> Others::read_record(InstanceId whom) {
  const auto key = format::instance_key(whom);
  LCCFS_TRY(auto snapshot, steps_.query({.object = format::super_object, .xattrs = true, .keys = {key}}));
  RecordOnSuper found;
  LCCFS_TRY(found.fences, fences_in(snapshot));
  const auto entry = snapshot.keys.find(key);
  if (entry == snapshot.keys.end()) return found;
  found.raw = entry->second;
  auto record = format::decode<InstanceRecord>(found.raw);
  if (!record) return std::unexpected(format::damage_of("Super: " + key, record.error()));
  found.record = std::move(*record);
  return found;
}

Result<> Others::see_fence(std::uint64_t number) {
  if (number <= fences_seen_.load()) return {};
  // Seen is what Super counts: a damaged number on an inode must not stand for fences to come.
  LCCFS_TRY(auto super, steps_.query({.object = format::super_object, .xattrs = true}));
  LCCFS_TRY(const std::uint64_t fences, fences_in(super));
  return sync_fences(fences);
}

Result<> Others::sync_fences(std::uint64_t number) {
  about_to_block();
  LCCFS_CHECK(store_.sync_fences());
  auto seen = fences_seen_.load();
  while (seen < number && !fences_seen_.compare_exchange_weak(seen, number)) {
  }
  return {};
}

Result<Others::Asked> Others::ask(InstanceId whom, const format::Question& question,
                                  std::chrono::milliseconds time_out) {
  LCCFS_CHECK(steps_.check_not_fenced());
  about_to_block();
  auto reply = store_.notify(format::session_object(whom), encode(question), time_out);
  if (!reply) {
    const bool may_not = !me_.recorded && reply.error().code == ErrorCode::permission_denied;
    if (may_not || reply.error().code == ErrorCode::not_found) return Asked{};
    if (reply.error().code == ErrorCode::timed_out) return Asked{AskResult::unheard};
    return std::unexpected(steps_.noted(std::move(reply).error()));
  }
  for (const auto& bytes : reply->answers) {
    const auto answer = format::decode<format::Answer>(bytes);
    if (!answer) continue;
    return Asked{answer->kind == format::Answer::Kind::done ? AskResult::done : AskResult::busy, answer->work};
  }
  return Asked{reply->answers.empty() && reply->silent == 0 ? AskResult::nobody : AskResult::silent};
}

void Others::begin_looks_anew() {
  const Lock lock(mutex_);
  absences_.begin_anew();
}

Result<Others::Standing> Others::look_for(InstanceId whom, const InstanceRecord& record) {
  const auto began = clock_.elapsed();
  about_to_block();
  auto presence = presence_of(store_, *me_.processes, whom, record);
  const Lock lock(mutex_);
  if (presence && *presence == Presence::absent) {
    return absences_.absent(whom, began, clock_.elapsed()) ? Standing::gone : Standing::absent;
  }
  absences_.forget(whom);
  if (!presence && presence.error().code == ErrorCode::timed_out) return Standing::absent;  // it proves nothing
  if (!presence) return std::unexpected(steps_.noted(std::move(presence).error()));
  return *presence == Presence::dead ? Standing::dead : Standing::watching;
}

Result<PollResult> Others::poll_liveness(const std::vector<Ino>& inodes, const std::stop_token& stop, Turn turn) {
  LCCFS_CHECK(steps_.check_not_fenced());
  look_around();
  auto poll = lccfs::poll_liveness(store_, {turn == Turn::takes ? me_.id : InstanceId{}, inodes});
  if (!poll) return std::unexpected(steps_.noted(std::move(poll).error()));
  LCCFS_CHECK(sync_fences(poll->fences));
  for (auto& member : poll->members) {  // its watch may be lost, and about to be set again
    if (member.standing == Member::Standing::silent && member.id == me_.id) {
      member.heard(answers_.to(format::LivenessPoll{me_.id, inodes}));
    }
  }
  LCCFS_CHECK(fence_the_gone(*poll, stop));
  return poll;
}

/// Looks at all that are silent until none of them is absent. As long as some are fenced, it goes on: many hosts may have
/// died at once.
Result<> Others::fence_the_gone(PollResult& poll, const std::stop_token& stop) {
  std::vector<Member*> to_look_at;
  for (auto& member : poll.members) {
    if (member.standing == Member::Standing::silent) to_look_at.push_back(&member);
  }
  const auto give_up = clock_.elapsed() + longest_wait_for_absent;
  for (bool first_look = true;; first_look = false) {
    const auto looks = look_side_by_side(to_look_at, first_look, stop);
    LCCFS_TRY(const bool was_one_fenced, take_in(looks, to_look_at));
    const bool is_in_vain = clock_.elapsed() > give_up && !was_one_fenced;
    if (to_look_at.empty() || stop.stop_requested() || is_in_vain) return {};
    clock_.sleep_for(look_again_after);
  }
}

std::vector<Others::Look> Others::look_side_by_side(const std::vector<Member*>& members, bool first_look,
                                                    const std::stop_token& stop) {
  std::vector<Look> looks(members.size());
  const auto all_began = clock_.elapsed();
  for_each_in_parallel(members.size(), looks_at_once, [&](std::size_t i) {
    if (stop.stop_requested()) return;
    const auto began = clock_.elapsed();
    const auto if_gone = began - all_began < fences_begin_within ? IfGone::fence : IfGone::leave;
    looks[i].seen = first_look ? look_at(members[i]->id, if_gone) : look_again_at(*members[i], if_gone);
    looks[i].counts = clock_.elapsed() - began < Absences::limits.longest_observation;
  });
  return looks;
}

/// Whether one was fenced. Those that are absent remain in `members`. One that cannot be looked at, or fenced, stays
/// silent; so does one whose look takes too long to count, for the others' sake.
Result<bool> Others::take_in(const std::vector<Look>& looks, std::vector<Member*>& members) {
  bool was_one_fenced = false;
  const auto looked_at = std::exchange(members, {});
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const auto& [seen, counts] = looks[i];
    Member& member = *looked_at[i];
    if (!seen && seen.error().code == ErrorCode::fenced) return std::unexpected(seen.error());
    const bool refused = !seen && seen.error().code == ErrorCode::permission_denied;  // evict has logged it
    if (!seen && !refused) log::warning("instance " + std::to_string(member.id.value) + ": " + seen.error().context);
    member.is_for_others = !seen;
    if (seen && *seen == Seen::absent && counts) members.push_back(&member);
    if (!seen || *seen != Seen::expired) continue;
    member.standing = Member::Standing::expired;
    member.fenced_now = was_one_fenced = true;
  }
  return was_one_fenced;
}

/// Without reading its record each time.
Result<Others::Seen> Others::look_again_at(const Member& member, IfGone if_gone) {
  LCCFS_TRY(const auto standing, look_for(member.id, member.record));
  const bool is_gone = standing == Standing::gone || standing == Standing::dead;
  if (is_gone && if_gone == IfGone::fence) return look_at(member.id);
  return standing == Standing::watching ? Seen::watching : Seen::absent;
}

Result<bool> Others::is_expired(const RecordOnSuper& found) {
  if (found.record && found.record->state == InstanceRecord::State::live) return false;
  LCCFS_CHECK(sync_fences(found.fences));  // without a record, the number of its fence is not known
  return true;
}

Result<Others::Seen> Others::look_at_record(InstanceId whom) {
  LCCFS_TRY(const auto found, read_record(whom));
  LCCFS_TRY(bool is_over, is_expired(found));
  if (!is_over && !me_.read_only && is_process_gone(store_, *me_.processes, *found.record)) {
    LCCFS_TRY(is_over, fence_if_seen_lately(whom, clock_.elapsed()));
  }
  return is_over ? Seen::expired : Seen::absent;
}

Result<Others::Seen> Others::look_at(InstanceId whom, IfGone if_gone) {
  LCCFS_TRY(const auto found, read_record(whom));
  LCCFS_TRY(const bool is_over, is_expired(found));
  if (is_over) return Seen::expired;
  LCCFS_TRY(const auto standing, look_for(whom, *found.record));
  if (standing == Standing::watching) return Seen::watching;
  if (standing == Standing::absent || me_.read_only || if_gone == IfGone::leave) return Seen::absent;
  LCCFS_TRY(const bool is_fenced, fence_on(whom, {clock_.elapsed(), standing == Standing::gone}));
  return is_fenced ? Seen::expired : Seen::absent;
}

/// A caller that waits tries every second.
bool Others::refusal_is_news(InstanceId whom) {
  const auto now = clock_.elapsed();
  const Lock lock(mutex_);
  const auto [told, is_first] = refusals_told_.try_emplace(whom, now);
  if (!is_first && now - told->second < tell_refusals_every) return false;
  told->second = now;
  return true;
}

/// Several threads may find it gone at once, and each fences it before one marks it.
bool Others::fence_is_news(InstanceId whom) {
  const Lock lock(mutex_);
  return fences_told_.insert(whom).second;
}

void Others::look_around() {
  const auto now = clock_.elapsed();
  {
    const Lock lock(mutex_);
    if (looked_around_ && now - *looked_around_ < look_around_every) return;
    looked_around_ = now;
  }
  store_.look_at_watchers(format::super_object);
}

Result<> Others::evict(InstanceId whom) {
  const auto evicted = fence_on(whom, {});
  return evicted ? Result<>() : std::unexpected(evicted.error());
}

/// Where the monitors are away, a fence would be sent once they are back. A way to them and back says that they are here.
Result<bool> Others::is_too_late(std::optional<std::chrono::nanoseconds> seen_at) {
  if (!seen_at) return false;
  LCCFS_CHECK(store_.sync_fences());
  return clock_.elapsed() - *seen_at > longest_until_fence;
}

void Others::forget_absence(InstanceId whom) {
  const Lock lock(mutex_);
  absences_.forget(whom);
}

Result<bool> Others::fence_on(InstanceId whom, Ground ground) {
  LCCFS_TRY(auto found, read_record(whom));
  Bytes barred;  // the record of whom the store has fenced: another fence may move the counter before it is marked
  while (found.record && found.record->state == InstanceRecord::State::live) {
    if (found.raw != barred) {
      LCCFS_TRY(const bool is_barred, bar(whom, *found.record, ground));
      if (!is_barred) return false;
      barred = found.raw;
      ground = {};  // it is fenced, and to be marked
    }
    LCCFS_CHECK(mark_fenced(whom, found));
    LCCFS_TRY(found, read_record(whom));  // also when it was refused: the store may have run it twice
  }
  forget_absence(whom);
  LCCFS_CHECK(sync_fences(found.fences));
  return true;
}

/// Fences it in the store. false: too late, or it is back.
Result<bool> Others::bar(InstanceId whom, const InstanceRecord& record, const Ground& ground) {
  const auto name =
      "instance " + std::to_string(whom.value) + " (" + record.host + ", pid " + std::to_string(record.pid) + ")";
  about_to_block();
  // A last chance to see where it watches from: for up to half a minute after its death it does.
  const auto presence = store_.presence(format::super_object, record.identity);
  const bool is_back = ground.was_absent && presence && *presence == Presence::watching;
  LCCFS_TRY(const bool is_late, is_too_late(ground.seen_at));
  if (is_late || is_back) {
    forget_absence(whom);
    return false;
  }
  if (const auto barred = store_.fence(record.identity); !barred) {
    if (refusal_is_news(whom)) log::warning(name + " is to be fenced, and is not: " + barred.error().context);
    return std::unexpected(barred.error());
  }
  if (fence_is_news(whom)) log::warning("fenced " + name);
  return true;
}

/// Refused where the record or the counter is not as it was read any more: that is no error.
Result<> Others::mark_fenced(InstanceId whom, const RecordOnSuper& found) {
  if (found.fences + 1 == format::fences_end) {
    return std::unexpected(
        format::damage_of("Super: fences", {ErrorCode::corrupt, "counted to the end", Outcome::definite}));
  }
  auto fenced = *found.record;
  fenced.state = InstanceRecord::State::fenced;
  fenced.fence_number = found.fences + 1;
  auto mark = txn::fence_instance_record(whom, found.raw, encode(fenced), found.fences);
  return done_or(ErrorCode::guard_failed, steps_.apply_until_known(std::move(mark)));
}

}  // namespace lccfs
