// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Sets the features that a volume does not have yet. An instance that has registered before is seen here, and must know
// them. One that registers later finds `super` changed (src/instance/instance.cpp), reads it again, and starts only if
// it knows the features.
//
//  upgrade | object | step                                           | stop here leaves
//  1       | Super  | read it with all instance records, at one      | nothing
//          |        | version: every live one must know the features |
//  2       | Super  | [set features] guard that version; if refused, | COMMIT: done
//          |        | from 1 on                                      |
#include "lccfs/volume.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "format/features.h"
#include "fs/clients.h"
#include "objects/super.h"
#include "txn/volume_txn.h"

namespace lccfs {

namespace {

using format::Feature;
using format::InstanceRecord;

bool knows_all(const InstanceRecord& record, const std::vector<Feature>& features) {
  return std::ranges::all_of(features, [&](const Feature& feature) { return format::knows(record.version, feature); });
}

std::string described(const std::string& key, const InstanceRecord& record) {
  return "instance " + printable(key.substr(key.find('/') + 1)) + " (host " + printable(record.host) + ", pid " +
         std::to_string(record.pid) + ", version " + printable(record.version) + ")";
}

/// Ended and fenced ones do no step any more.
Result<> check_all_know(const KeyPage& records, const std::vector<Feature>& features) {
  std::string blocking;
  for (const auto& [key, value] : records.entries) {
    const auto record = format::decode<InstanceRecord>(value);
    if (!record) return std::unexpected(format::damage_of("Super: " + key, record.error()));
    if (record->state != InstanceRecord::State::live || knows_all(*record, features)) continue;
    add_word(blocking, described(key, *record));
  }
  if (blocking.empty()) return {};
  return failure(ErrorCode::unsupported, "clients of the volume do not know " + format::names_of(features) + ": " +
                                             blocking +
                                             ": nothing was changed; upgrade the program there, and mount again or "
                                             "restart lccfs-gc (which removes those that have died)");
}

/// A mount looks for the feature when it begins. All that have a record began without it. Other programs lock nothing.
bool keeps_local_locks(const InstanceInfo& client) {
  constexpr std::array<std::string_view, 4> of_programs{"", "lccfs-gc", "lccfs-fsck", "lccfs evict"};
  return client.is_live && client.presence != Presence::dead &&
         std::ranges::find(of_programs, client.mount_id) == of_programs.end();
}

Result<std::vector<InstanceInfo>> with_local_locks(ObjectStore& store, const std::vector<Feature>& set_now,
                                                   const KeyPage& records) {
  const auto is_locks = [](const Feature& feature) { return feature.bit == format::feature::locks; };
  if (std::ranges::none_of(set_now, is_locks)) return std::vector<InstanceInfo>{};
  LCCFS_TRY(auto clients, describe_instances(store, records));
  std::erase_if(clients, [](const InstanceInfo& client) { return !keeps_local_locks(client); });
  return clients;
}

/// Who runs it again, and finds it done, is told of no mount any more.
Error maybe_upgraded(Error error, const std::vector<InstanceInfo>& local_locks) {
  if (local_locks.empty()) return error;
  error.context += "; if it is done later, these clients keep locks to themselves until they are mounted anew:";
  for (const auto& client : local_locks) {
    error.context +=
        " " + std::to_string(client.number) + " (" + client.host + ", pid " + std::to_string(client.pid) + ")";
  }
  return error;
}

std::vector<std::string> each_name_of(const std::vector<Feature>& features) {
  std::vector<std::string> names;
  names.reserve(features.size());
  for (const auto& feature : features) names.emplace_back(feature.name);
  return names;
}

}  // namespace

Result<Upgraded> upgrade_volume(ObjectStore& store, UpgradeMode mode) {
  std::optional<Error> unknown;
  std::vector<Feature> features;
  std::vector<InstanceInfo> local_locks;  // as before the step, which may be done though its answer is lost
  const auto as_upgraded = [&] { return Upgraded{each_name_of(features), std::move(local_locks)}; };
  for (;;) {
    LCCFS_TRY(const auto super, objects::read_super(objects::reader_of(store), objects::Instances::all));
    LCCFS_CHECK(format::check_features(super.record, false));
    const auto& records = super.ranges.front();
    const auto missing = format::missing_features(super.record);
    if (missing.empty()) {
      LCCFS_TRY(local_locks, with_local_locks(store, features, records));
      return as_upgraded();
    }
    if (unknown) return std::unexpected(maybe_upgraded(*unknown, local_locks));
    features = missing;
    LCCFS_CHECK(check_all_know(records, missing));
    LCCFS_TRY(local_locks, with_local_locks(store, features, records));
    if (mode == UpgradeMode::only_tell) return as_upgraded();
    auto upgraded = super.record;
    format::set_features(upgraded, missing);
    const auto done = store.apply(txn::set_features(super.version, upgraded));
    if (done) return as_upgraded();
    // Without an answer, or refused: it may have been run twice, somebody may have come or gone meanwhile.
    if (done.error().outcome == Outcome::unknown) unknown = done.error();
    if (!unknown && done.error().code != ErrorCode::guard_failed) return std::unexpected(done.error());
  }
}

}  // namespace lccfs
