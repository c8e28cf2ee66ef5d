// SPDX-License-Identifier: LGPL-2.1-or-later
// Other instances: asking them, finding out that they are over, fencing (docs/ORDERING.md section 2).
//
//  fence | object  | step                                        | stop here leaves
//  1     | (store) | fence the identity, wait until it holds     | fenced, not marked: the next one does both again
//  2     | Super   | record -> fenced(n + 1), counter n -> n + 1 | done
#include "base/log.h"
#include "instance/instance.h"
#include "instance/roll_call.h"
#include "txn/instance_txn.h"

namespace lccfs {

using format::InstanceRecord;

Result<Instance::RecordOnSuper> Instance::read_record(InstanceId whom) {
  const auto key = format::instance_key(whom);
  LCCFS_TRY(auto snapshot, query({.object = format::super_object, .xattrs = true, .ranges = {}, .keys = {key}}));
  RecordOnSuper found;
  auto fences = format::decode<format::NumberRecord>(snapshot.xattrs[format::xattr::fences]);
  if (!fences) return failure(fences.error().code, "Super: fences: " + fences.error().context);
  found.fences = fences->value;
  const auto entry = snapshot.keys.find(key);
  if (entry == snapshot.keys.end()) return found;
  found.raw = entry->second;
  auto record = format::decode<InstanceRecord>(found.raw);
  if (!record) return failure(record.error().code, "Super: " + key + ": " + record.error().context);
  found.record = std::move(*record);
  return found;
}

Result<> Instance::see_fence(std::uint64_t number) {
  if (number <= fences_seen_.load()) return {};
  return sync_fences(number);
}

Result<> Instance::sync_fences(std::uint64_t number) {
  LCCFS_CHECK(store_->sync_fences());
  auto seen = fences_seen_.load();
  while (seen < number && !fences_seen_.compare_exchange_weak(seen, number)) {
  }
  return {};
}

Result<Instance::AskResult> Instance::ask(InstanceId whom, const format::Question& question) {
  if (fenced_) return failure(ErrorCode::fenced, "this client was fenced");
  auto reply = store_->notify(format::session_object(whom), encode(question), answer_timeout);
  if (!reply) {
    if (reply.error().code == ErrorCode::not_found) return AskResult::silent;
    return std::unexpected(noted(std::move(reply).error()));
  }
  for (const auto& bytes : reply->answers) {
    const auto answer = format::decode<format::Answer>(bytes);
    if (answer) return answer->kind == format::Answer::Kind::done ? AskResult::done : AskResult::busy;
  }
  return AskResult::silent;
}

Result<bool> Instance::is_gone(InstanceId whom, const InstanceRecord& record) {
  for (const std::string& object : {std::string(format::super_object), format::session_object(whom)}) {
    LCCFS_TRY(const bool watching, store_->is_watching(object, record.identity));
    if (watching) {
      const std::lock_guard lock(others_mutex_);
      unwatched_since_.erase(whom);
      return false;
    }
  }
  // Young by its own clock: it may just be setting its watches. Our own clock decides where that one is wrong.
  if (clock_.wall_time().seconds - record.since.seconds > gone_after.count()) return true;
  const std::lock_guard lock(others_mutex_);
  const auto [first_seen, inserted] = unwatched_since_.emplace(whom, clock_.elapsed());
  return clock_.elapsed() - first_seen->second > gone_after;
}

Result<Roll> Instance::call_roll(const std::vector<Ino>& inodes) {
  if (fenced_) return failure(ErrorCode::fenced, "this client was fenced");
  auto roll = lccfs::call_roll(*store_, {id_, inodes});
  if (!roll) return std::unexpected(noted(std::move(roll).error()));
  LCCFS_CHECK(sync_fences(roll->fences));
  for (auto& member : roll->members) {
    if (member.standing != Member::Standing::silent) continue;
    if (member.id == id_) {  // its watch is lost, and about to be set again
      member.heard(answer(format::RollCall{id_, inodes}));
      continue;
    }
    const auto over = ensure_over(member.id);
    if (!over && over.error().code == ErrorCode::fenced) return std::unexpected(over.error());
    if (!over) log::warning("instance " + std::to_string(member.id.value) + ": " + over.error().context);
    if (!over || !*over) continue;
    member.standing = Member::Standing::over;
    member.fenced_now = true;
  }
  return roll;
}

Result<bool> Instance::ensure_over(InstanceId whom) {
  LCCFS_TRY(const auto found, read_record(whom));
  if (!found.record || found.record->state != InstanceRecord::State::live) {
    LCCFS_CHECK(sync_fences(found.fences));  // who finds no record cannot know under which number it went
    return true;
  }
  if (read_only_) return false;
  LCCFS_TRY(const bool gone, is_gone(whom, *found.record));
  if (!gone) return false;
  LCCFS_CHECK(evict(whom));
  return true;
}

Result<> Instance::evict(InstanceId whom) {
  LCCFS_TRY(auto found, read_record(whom));
  while (found.record && found.record->state == InstanceRecord::State::live) {
    log::warning("fencing instance " + std::to_string(whom.value) + " (" + found.record->host + ", pid " +
                 std::to_string(found.record->pid) + ")");
    LCCFS_CHECK(store_->fence(found.record->identity));
    auto fenced = *found.record;
    fenced.state = InstanceRecord::State::fenced;
    fenced.fence_number = found.fences + 1;
    auto marked = apply_until_known(txn::fence_instance_record(whom, found.raw, encode(fenced), found.fences));
    if (!marked && marked.error().code != ErrorCode::guard_failed) return std::unexpected(std::move(marked).error());
    LCCFS_TRY(found, read_record(whom));  // also when it was refused: the store may have run it twice
  }
  return sync_fences(found.fences);
}

}  // namespace lccfs
