// SPDX-License-Identifier: LGPL-2.1-or-later
// Instances on a scripted volume, and what they have written.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "format/object_names.h"
#include "format/records.h"
#include "instance/instance.h"
#include "scripted/scripted_store.h"
#include "support/fake_clock.h"
#include "support/hooks.h"
#include "txn/volume_txn.h"

namespace lccfs::test {

struct Running {
  std::shared_ptr<ScriptedClient> client;
  std::unique_ptr<Instance> instance;
  Instance* operator->() const { return instance.get(); }
};

/// Super, Alloc and the root, and nothing else.
class InstanceVolume {
 public:
  explicit InstanceVolume(const ScriptedCluster::Options& options = {}) : cluster(ScriptedCluster::make(options)) {
    const format::SuperRecord super;
    for (const MetaTxn& txn : {txn::make_alloc(), txn::make_root(clock.wall_time()), txn::make_super(super)}) {
      need(looker->apply(txn));
    }
  }

  Running start(const InstanceOptions& options = {}) {
    auto client = cluster->new_client();
    auto instance = need(Instance::start(client, clock, options));
    client->reset_record();
    return {std::move(client), std::move(instance)};
  }

  std::optional<format::InstanceRecord> record_of(InstanceId id) {
    const auto key = format::instance_key(id);
    auto found = need(looker->query({.object = format::super_object, .keys = {key}}));
    if (!found.keys.contains(key)) return std::nullopt;
    return need(format::decode<format::InstanceRecord>(found.keys[key]));
  }

  /// nullopt: there is no session object.
  std::optional<std::vector<format::QueueItem>> queue_of(InstanceId id) {
    auto found = looker->query({.object = format::session_object(id), .ranges = {{"q/", ""}}});
    if (!found) return std::nullopt;
    std::vector<format::QueueItem> items;
    for (const auto& [key, value] : found->ranges.front().entries) {
      items.push_back(need(format::decode<format::QueueItem>(value)));
    }
    return items;
  }

  std::vector<format::QueueItem> queue_of(InstanceId id, format::QueueItem::Kind kind) {
    auto items = queue_of(id).value_or(std::vector<format::QueueItem>{});
    std::erase_if(items, [&](const auto& item) { return item.kind != kind; });
    return items;
  }

  FakeClock clock;
  std::shared_ptr<ScriptedCluster> cluster;
  /// Reads what is there. It does not know of fences made later, so that it tells no object of them.
  std::shared_ptr<ScriptedClient> looker = cluster->new_client();
};

/// Of a watch that answers nothing.
class DeafHandler final : public WatchHandler {
 public:
  void on_notify(Bytes, std::move_only_function<void(Bytes)>) override {}
  void on_lost(Error) override {}
};

/// Looks as often as whoever waits for it does, and answers how long it took until that instance was expired.
inline std::chrono::nanoseconds time_until_over(Instance& looker, InstanceId whom) {
  const auto began = looker.clock().elapsed();
  for (int looks = 0; looks < 1000; ++looks) {
    if (need(looker.ensure_expired(whom))) break;
    looker.clock().sleep_for(look_again_after);
  }
  return looker.clock().elapsed() - began;
}

}  // namespace lccfs::test
