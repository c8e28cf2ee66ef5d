// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The clients of a volume, for the people who run it. Evicting one has the steps of a fence (src/instance/others.h),
// taken by an instance of its own.
#include "fs/clients.h"

#include <algorithm>

#include "format/object_names.h"
#include "instance/instance.h"
#include "instance/liveness_poll.h"
#include "instance/presence.h"
#include "objects/super.h"

namespace lccfs {

namespace {

const char* text_of(format::InstanceRecord::State state) {
  using State = format::InstanceRecord::State;
  if (state == State::live) return "live";
  return state == State::fenced ? "fenced" : "ended";
}

Result<InstanceInfo> describe_instance(ObjectStore& store, const std::string& key, const Bytes& value) {
  LCCFS_TRY(const auto instance, instance_of(key, value));
  const auto& [id, record] = instance;
  InstanceInfo info;
  info.number = id.value;
  info.host = record.host;
  info.version = record.version;
  info.mount_id = record.mount_id;
  info.state = text_of(record.state);
  info.is_live = record.state == format::InstanceRecord::State::live;
  info.pid = record.pid;
  info.since_seconds = record.since.seconds;
  if (!info.is_live) return info;
  const auto presence = presence_of(store, system_processes(), id, record);
  if (presence) info.presence = *presence;
  return info;
}

}  // namespace

Result<std::vector<InstanceInfo>> describe_instances(ObjectStore& store, const KeyPage& records) {
  std::vector<InstanceInfo> instances;
  for (const auto& [key, value] : records.entries) {
    LCCFS_TRY(auto instance, describe_instance(store, key, value));
    instances.push_back(std::move(instance));
  }
  return instances;
}

Result<std::vector<InstanceInfo>> describe_clients(ObjectStore& store) {
  LCCFS_TRY(const auto super, objects::read_super(objects::reader_of(store), objects::Instances::all));
  return describe_instances(store, super.ranges.front());
}

Result<InstanceInfo> describe_client(ObjectStore& store, std::uint64_t number) {
  LCCFS_TRY(const auto super, objects::read_super(objects::reader_of(store), objects::Instances::all));
  const auto& records = super.ranges.front().entries;
  const auto key = format::instance_key(InstanceId{number});
  const auto found = std::ranges::find(records, key, &std::pair<std::string, Bytes>::first);
  if (found == records.end()) {
    return failure(ErrorCode::not_found,
                   "the volume has no client " + std::to_string(number) + "; lccfs clients lists them");
  }
  return describe_instance(store, found->first, found->second);
}

Result<InstanceInfo> evict_client(std::shared_ptr<ObjectStore> store, Clock& clock, std::uint64_t number) {
  LCCFS_TRY(auto client, describe_client(*store, number));
  if (!client.is_live) return client;
  LCCFS_TRY(const auto me,
            Instance::start(std::move(store), clock, {.mount_id = "lccfs evict", .makes_inodes = false}));
  auto evicted = me->evict(InstanceId{number});
  auto ended = me->end();
  if (!evicted) return std::unexpected(std::move(evicted).error());
  if (!ended) return std::unexpected(std::move(ended).error());
  return client;
}

}  // namespace lccfs
