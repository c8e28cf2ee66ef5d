// SPDX-License-Identifier: LGPL-2.1-or-later
#include "metrics/collector_counts.h"

namespace lccfs::metrics {

void CollectorCounts::removed(const RemovedGarbage& so_far) {
  inodes_ += so_far.inodes - in_this_pass_.inodes;
  data_objects_ += so_far.data_objects - in_this_pass_.data_objects;
  bytes_ += so_far.bytes - in_this_pass_.bytes;
  in_this_pass_ = so_far;
}

void CollectorCounts::passed(const LeftByPass& pass, std::int64_t wall_seconds) {
  const bool has_failed = pass.refused != 0;
  ++(has_failed ? failures_ : passes_);
  in_this_pass_ = {};
  items_left_ = pass.items_left;
  silent_clients_ = pass.silent_clients;
  damaged_objects_ = pass.damaged_objects;
  if (!has_failed) last_pass_ = static_cast<std::uint64_t>(wall_seconds);
}

void CollectorCounts::failed() {
  ++failures_;
  in_this_pass_ = {};
}

void CollectorCounts::left_to_another() { items_left_ = silent_clients_ = damaged_objects_ = 0; }

void CollectorCounts::write(Exposition& page) const {
  const auto one = [&page](const char* name, Exposition::Type type, const char* help, std::uint64_t value) {
    page.family(name, type, help);
    page.sample({}, value);
  };
  using enum Exposition::Type;
  one("lccfs_collector_passes_total", counter, "Passes that this program's collector has ended.", passes_);
  one("lccfs_collector_failures_total", counter, "Passes that ended with an error, or were refused a remove.",
      failures_);
  one("lccfs_collector_removed_inodes_total", counter, "Inodes removed.", inodes_);
  one("lccfs_collector_removed_objects_total", counter, "Data objects removed.", data_objects_);
  one("lccfs_collector_removed_bytes_total", counter, "Bytes freed.", bytes_);
  one("lccfs_collector_backlog_items", gauge, "Items of the queues that the last pass left for later.", items_left_);
  one("lccfs_collector_silent_clients", gauge, "Clients that did not answer the last pass.", silent_clients_);
  one("lccfs_collector_damaged_objects", gauge, "Damaged objects that the last pass met.", damaged_objects_);
  one("lccfs_collector_last_pass_timestamp_seconds", gauge, "When the last pass ended well; 0: there was none.",
      last_pass_);
}

}  // namespace lccfs::metrics
