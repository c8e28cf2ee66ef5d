// SPDX-License-Identifier: LGPL-2.1-or-later
// A collector on a scripted volume, and what is left in the volume behind it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "format/object_names.h"
#include "reclaim/collector.h"
#include "scripted/scripted_store.h"
#include "support/hooks.h"

namespace lccfs::test {

/// An instance that only collects.
class TestCollector {
 public:
  TestCollector(ScriptedCluster& cluster, Clock& clock, std::chrono::seconds grace = std::chrono::seconds(0),
                unsigned jobs = 1)
      : client_(cluster.new_client()),
        instance_(need(Instance::start(client_, clock, {"collector", false, false}))),
        collector_(*instance_, reclaim::CollectorOptions{.jobs = jobs, .grace = grace}) {
    client_->reset_record();
  }

  ScriptedClient& client() { return *client_; }
  std::shared_ptr<ScriptedClient> store() { return client_; }
  Instance& instance() { return *instance_; }
  Result<reclaim::PassReport> try_pass(const std::stop_token& stop = {}) { return collector_.pass(stop); }
  reclaim::PassReport pass() { return need(collector_.pass()); }
  bool another_is_at_work(std::chrono::nanoseconds interval) const { return collector_.another_is_at_work(interval); }
  void end() { need(instance_->end()); }

 private:
  std::shared_ptr<ScriptedClient> client_;
  std::unique_ptr<Instance> instance_;
  reclaim::Collector collector_;
};

/// One pass of a collector of its own, without a grace period.
inline reclaim::PassReport collect(ScriptedCluster& cluster, Clock& clock) {
  TestCollector collector(cluster, clock);
  auto report = collector.pass();
  collector.end();
  return report;
}

/// Names of all objects in the store.
inline std::set<std::string> object_names(ScriptedCluster& cluster) {
  std::set<std::string> names;
  cluster.with_objects([&names](scripted::Objects& objects) {
    for (const auto& [name, object] : objects.metadata()) names.insert(name);
    for (const auto& [name, object] : objects.data()) names.insert(name);
  });
  return names;
}

/// Keys that steps leave behind, "<object> <key>": d/ and x/ keys.
inline std::set<std::string> traces_left(ScriptedCluster& cluster) {
  std::set<std::string> traces;
  cluster.with_objects([&traces](scripted::Objects& objects) {
    for (const auto& [name, object] : objects.metadata()) {
      for (const auto& [key, value] : object.keys) {
        if (key.starts_with("d/") || key.starts_with("x/")) traces.insert(name + " " + key);
      }
    }
  });
  return traces;
}

}  // namespace lccfs::test
