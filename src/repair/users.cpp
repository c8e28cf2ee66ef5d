// SPDX-License-Identifier: LGPL-2.1-or-later
#include "repair/users.h"

#include "base/expected_errors.h"
#include "base/parallel.h"
#include "format/object_names.h"
#include "instance/liveness_poll.h"
#include "instance/presence.h"
#include "repair/objects.h"

namespace lccfs::repair {

namespace {

Result<bool> watches(ObjectStore& store, InstanceId id, const Bytes& identity) {
  for (const std::string& object : {std::string(format::super_object), format::session_object(id)}) {
    const auto presence = store.presence(object, identity);
    const bool no_identity =
        !presence && (presence.error().code == ErrorCode::corrupt || presence.error().code == ErrorCode::invalid);
    if (!presence && !no_identity) return std::unexpected(presence.error());
    if (presence && *presence == Presence::watching) return true;
  }
  return false;
}

}  // namespace

// No instance answers this message. A watcher that hears it and stays silent is there all the same.
Result<bool> somebody_watches_session(ObjectStore& store, InstanceId id) {
  LCCFS_TRY(const auto reply,
            or_none(store.notify(format::session_object(id), Bytes("anybody there?"), answer_timeout)));
  if (!reply) return false;
  return !reply->answers.empty() || reply->silent > 0;
}

UnrecordedClients::Look UnrecordedClients::look_for(InstanceId id) const {
  const auto began = clock_.elapsed();
  auto watches = somebody_watches_session(store_, id);
  return {std::move(watches), began, clock_.elapsed()};
}

Result<UnrecordedClients::Seen> UnrecordedClients::judge(InstanceId id, const Look& look) {
  if (look.watches && !*look.watches) {
    return absences_.absent(id, look.began, look.ended) ? Seen::gone : Seen::absent;
  }
  absences_.forget(id);
  if (look.watches) return Seen::watching;
  if (look.watches.error().code == ErrorCode::timed_out) return Seen::absent;  // it proves nothing
  return std::unexpected(look.watches.error());
}

Result<std::set<InstanceId>> UnrecordedClients::wait_for(std::set<InstanceId> clients, bool until_one_watches) {
  constexpr unsigned looks_at_once = 16;
  std::set<InstanceId> watching;
  for (;;) {
    const std::vector<InstanceId> to_look_at(clients.begin(), clients.end());
    std::vector<Look> looks(to_look_at.size());
    for_each_in_parallel(looks.size(), looks_at_once, [&](std::size_t i) { looks[i] = look_for(to_look_at[i]); });
    bool in_doubt = false;
    for (std::size_t i = 0; i < looks.size(); ++i) {
      LCCFS_TRY(const auto seen, judge(to_look_at[i], looks[i]));
      in_doubt = in_doubt || seen == Seen::absent;
      if (seen != Seen::watching) continue;
      watching.insert(to_look_at[i]);
      clients.erase(to_look_at[i]);
    }
    if (!in_doubt || (until_one_watches && !watching.empty())) {
      not_seen_ = std::move(clients);
      return watching;
    }
    clock_.sleep_for(look_again_after);
  }
}

Result<bool> UnrecordedClients::is_gone(InstanceId id) {
  LCCFS_TRY(const auto seen, judge(id, look_for(id)));
  if (seen != Seen::absent) return seen == Seen::gone;
  auto clients = not_seen_;
  clients.insert(id);
  LCCFS_TRY(const auto watching, wait_for(std::move(clients), false));
  return !watching.contains(id);
}

Result<std::vector<User>> users_of(ObjectStore& store) {
  std::vector<User> users;
  LCCFS_TRY(const auto super, Objects(store).read(format::super_object, "s/"));
  if (!super) return users;
  for (const auto& [key, value] : super->keys) {
    const auto id = format::parse_instance_key(key);
    auto record = format::decode<format::InstanceRecord>(value);
    if (id && !record) {
      LCCFS_TRY(const bool there, somebody_watches_session(store, *id));
      if (there) users.push_back({*id, {}, true});
      continue;
    }
    if (!id || record->state != format::InstanceRecord::State::live) continue;
    LCCFS_TRY(const bool watching, watches(store, *id, record->identity));
    const bool there = watching && !is_process_gone(store, system_processes(), *record);
    users.push_back({*id, std::move(*record), there});
  }
  return users;
}

std::string describe(const User& user) {
  const auto& record = user.record;
  const std::string client = "instance " + std::to_string(user.id.value);
  if (record.host.empty()) return client + ", whose record is damaged (nothing tells where it is)";
  const bool is_mounted = record.mount_id.starts_with('/');  // a collector has its name there
  return client + ": pid " + std::to_string(record.pid) + " on " + record.host + (record.mount_id.empty() ? "" : ", ") +
         (is_mounted ? "mounted at " : "") + record.mount_id;
}

}  // namespace lccfs::repair
