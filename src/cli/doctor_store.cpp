// SPDX-License-Identifier: LGPL-2.1-or-later

#include "base/completions.h"
#include "base/text.h"
#include "cli/doctor_checks.h"
#include "format/features.h"
#include "format/object_names.h"
#include "instance/liveness_poll.h"
#include "objects/super.h"
#include "txn/volume_txn.h"

namespace lccfs::cli {

namespace {

// Numbers that are never handed out: what is asked of their objects changes nothing.
constexpr InstanceId no_instance{UINT64_MAX};
constexpr Ino no_inode{UINT64_MAX};
constexpr const char* about_keys = "lccfs-fuse(8) says what the key must permit";

class DeafWatch final : public WatchHandler {
 public:
  void on_notify(Bytes, std::move_only_function<void(Bytes)>) override {}
  void on_lost(Error) override {}
};

Result<std::string> may_write_metadata(ObjectStore& store) {
  const auto applied = store.apply(txn::remove_queue_items(no_instance, {1}));
  if (applied || applied.error().code == ErrorCode::not_found) return "permitted";
  return std::unexpected(applied.error());
}

Result<std::string> may_read_data(ObjectStore& store) {
  std::array<char, 1> byte{};
  auto [answer, done] = promised<Result<std::size_t>>();
  store.read_data(format::data_object(no_inode, {0}), 0, byte, std::move(done));
  LCCFS_CHECK(answer.get());
  return "permitted";
}

Result<std::string> may_write_data(ObjectStore& store) {
  auto [answer, done] = promised<Result<>>();
  store.remove_data(format::data_object(no_inode, {0}), std::move(done));
  LCCFS_CHECK(answer.get());
  return "permitted";
}

Result<std::string> may_watch(ObjectStore& store) {
  LCCFS_CHECK(store.watch(format::super_object, std::make_shared<DeafWatch>()));
  return "permitted";
}

Result<std::string> may_fence(ObjectStore& store) {
  LCCFS_CHECK(store.check_may_fence());
  return "this key may bar a dead client";
}

void check_super(Diagnosis& diagnosis, const format::SuperRecord& super) {
  const auto missing = format::missing_features(super);
  if (missing.empty()) return diagnosis.ok("features", "all that this version knows");
  diagnosis.warn("features", "the volume has not " + format::names_of(missing), "see lccfs upgrade");
}

/// One notify to all: an instance that does not answer makes collectors wait.
void check_answers(Diagnosis& diagnosis, ObjectStore& store) {
  const auto poll = poll_liveness(store, {});
  if (!poll) return diagnosis.fail("notify", poll.error().context, about_keys);
  std::string silent;
  std::size_t answered = 0;
  for (const auto& member : poll->members) {
    if (member.standing == Member::Standing::silent)
      add_word(silent, std::to_string(member.id.value) + " on " + member.record.host);
    if (member.standing == Member::Standing::answered) ++answered;
  }
  if (silent.empty()) return diagnosis.ok("notify", std::to_string(answered) + " clients, all have answered");
  diagnosis.warn("notify", "no answer within 10 s of " + silent, "look at these hosts; nothing is reclaimed meanwhile");
}

void check_space(Diagnosis& diagnosis, ObjectStore& store) {
  constexpr std::uint64_t tenth = 10;
  const auto capacity = store.capacity();
  if (!capacity) return diagnosis.fail("space", capacity.error().context, about_keys);
  const auto seen = size_text(capacity->available_bytes) + " of " + size_text(capacity->total_bytes) + " left";
  if (capacity->available_bytes == 0) return diagnosis.fail("space", seen, "add OSDs, or remove files");
  if (capacity->available_bytes < capacity->total_bytes / tenth) return diagnosis.warn("space", seen, "add OSDs soon");
  diagnosis.ok("space", seen);
}

void check_backlog(Diagnosis& diagnosis, ObjectStore& store, Clock& clock) {
  constexpr std::int64_t long_seconds = 3600;
  const auto volume = describe_volume(store);
  if (!volume && volume.error().code == ErrorCode::timed_out)
    return diagnosis.fail("backlog", volume.error().context, "see ceph health detail");
  if (!volume) return diagnosis.fail("backlog", volume.error().context, "run lccfs-fsck");
  if (!volume->backlog_not_known.empty())
    return diagnosis.warn("backlog", volume->backlog_not_known, "see ceph health detail");
  const auto& backlog = volume->backlog;
  const auto seen = count_text(backlog.items) + " items, " + size_text(backlog.bytes) + " to be reclaimed";
  if (backlog.oldest_seconds && *backlog.oldest_seconds < clock.wall_time().seconds - long_seconds)
    return diagnosis.warn("backlog", seen + ", the oldest for more than an hour",
                          "run lccfs-gc on some host, or let a mount collect garbage");
  diagnosis.ok("backlog", seen);
}

}  // namespace

void check_clients(Diagnosis& diagnosis, const std::vector<InstanceInfo>& clients, std::int64_t now_seconds) {
  constexpr std::int64_t some_seconds = 2;
  std::string gone, not_known, fast;
  for (const auto& client : clients) {
    const auto name = std::to_string(client.number) + " on " + client.host;
    if (client.is_live && !client.presence) add_word(not_known, name);
    if (client.is_live && client.presence && *client.presence != Presence::watching) add_word(gone, name);
    if (client.since_seconds > now_seconds + some_seconds) add_word(fast, name);
  }
  if (!gone.empty()) {
    diagnosis.warn("clients", "not seen now: " + gone,
                   "if they are dead, the next client that needs what they held fences them");
  }
  if (!not_known.empty()) diagnosis.warn("presence of clients", "not known: " + not_known, "see ceph health detail");
  if (gone.empty() && not_known.empty())
    diagnosis.ok("clients", std::to_string(clients.size()) + " known, each that should live is seen");
  if (!fast.empty())
    diagnosis.warn("clocks of clients", "began later than it is here now: " + fast, "let chrony or ntp keep the time");
}

void check_store(Diagnosis& diagnosis, ObjectStore& store, Clock& clock) {
  const auto super = objects::read_super(objects::reader_of(store));
  if (!super) return diagnosis.fail("volume", super.error().context, "see lccfs info");
  diagnosis.ok("read metadata", "permitted");
  check_super(diagnosis, super->record);
  const auto used = objects::use_data_pool(store, super->record);
  if (!used) return diagnosis.fail("data pool", used.error().context, "see: ceph osd pool ls");
  diagnosis.run("write metadata", about_keys, [&] { return may_write_metadata(store); });
  diagnosis.run("read data", about_keys, [&] { return may_read_data(store); });
  diagnosis.run("write data", about_keys, [&] { return may_write_data(store); });
  diagnosis.run("watch", about_keys, [&] { return may_watch(store); });
  diagnosis.run("fence", about_keys, [&] { return may_fence(store); });
  if (!Interruption::is_wanted()) check_answers(diagnosis, store);
  if (const auto clients = describe_clients(store)) {
    check_clients(diagnosis, *clients, clock.wall_time().seconds);
  } else {
    diagnosis.fail("clients", clients.error().context, about_keys);
  }
  check_space(diagnosis, store);
  if (!Interruption::is_wanted()) check_backlog(diagnosis, store, clock);
}

}  // namespace lccfs::cli
