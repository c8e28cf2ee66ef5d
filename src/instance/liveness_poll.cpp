// SPDX-License-Identifier: LGPL-2.1-or-later
#include "instance/liveness_poll.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "format/object_names.h"
#include "objects/object.h"

namespace lccfs {

namespace {

using format::InstanceRecord;
const Error no_number{ErrorCode::corrupt, "no number of an instance", Outcome::definite};

}  // namespace

Result<std::uint64_t> fences_in(MetaSnapshot& super) {
  const auto fences = format::decode_fence_number(super.xattrs[format::xattr::fences]);
  if (!fences) return std::unexpected(format::damage_of("Super: fences", fences.error()));
  return *fences;
}

Result<std::pair<InstanceId, InstanceRecord>> instance_of(const std::string& key, const Bytes& value) {
  const auto id = format::parse_instance_key(key);
  auto record = format::decode<InstanceRecord>(value);
  if (!id) return std::unexpected(format::damage_of("Super: " + key, no_number));
  if (!record) return std::unexpected(format::damage_of("Super: " + key, record.error()));
  return std::pair(*id, std::move(*record));
}

/// A record that cannot be read is an error: its instance may be alive.
Result<PollResult> read_members(ObjectStore& store) {
  MetaRead read{.object = format::super_object, .xattrs = true, .ranges = {{"s/", "", objects::keys_at_once}}};
  LCCFS_TRY(auto super, objects::read_object(objects::reader_of(store), std::move(read), 1));
  PollResult poll;
  LCCFS_TRY(poll.fences, fences_in(super));
  for (auto& [key, raw] : super.ranges.front().entries) {
    LCCFS_TRY(auto instance, instance_of(key, raw));
    Member member;
    std::tie(member.id, member.record) = std::move(instance);
    const bool is_live = member.record.state == InstanceRecord::State::live;
    member.standing = is_live ? Member::Standing::silent : Member::Standing::expired;
    member.raw = std::move(raw);
    poll.members.push_back(std::move(member));
  }
  return poll;
}

void Member::heard(const format::PollReply& reply) {
  standing = Standing::answered;
  lowest_running = reply.lowest_running;
  open.insert(reply.open.begin(), reply.open.end());
}

bool PollResult::all_answered() const {
  return std::ranges::none_of(members, [](const Member& m) { return m.standing == Member::Standing::silent; });
}

bool PollResult::is_open(Ino ino) const {
  return std::ranges::any_of(members, [ino](const Member& m) { return m.open.contains(ino); });
}

Result<PollResult> poll_liveness(ObjectStore& store, const format::LivenessPoll& call) {
  LCCFS_TRY(auto poll, read_members(store));
  LCCFS_TRY(const auto replies, store.notify(format::super_object, encode(call), answer_timeout));
  std::map<InstanceId, format::PollReply> by_instance;
  for (const auto& bytes : replies.answers) {
    if (auto reply = format::decode<format::PollReply>(bytes)) by_instance[reply->instance] = std::move(*reply);
  }
  for (auto& member : poll.members) {
    const auto reply = by_instance.find(member.id);
    if (member.standing == Member::Standing::expired || reply == by_instance.end()) continue;
    member.heard(reply->second);
  }
  return poll;
}

}  // namespace lccfs
