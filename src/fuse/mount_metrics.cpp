// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/mount_metrics.h"

#include "fuse/operation_kinds.h"
#include "metrics/measured_store.h"

namespace lccfs::fuse {

using metrics::Exposition;

MountMetrics::MountMetrics(Clock& clock, std::chrono::nanoseconds slow_after)
    : operations(
          clock,
          {.family = "lccfs_operation", .noun = "operation", .kinds = operation_kinds, .slow_after = slow_after}),
      store(clock, {.family = "lccfs_store_operation",
                    .noun = "store operation",
                    .kinds = metrics::store_operation_kinds(),
                    .slow_after = slow_after}) {}

void MountMetrics::tick() {
  operations.tick();
  store.tick();
}

namespace {

void write_caches(Exposition& page, const MountCounts& counts) {
  page.family("lccfs_cache_hits_total", Exposition::Type::counter, "What memory had of names and inodes.");
  page.sample({{"cache", "names"}}, counts.names.hits);
  page.sample({{"cache", "inodes"}}, counts.inodes.hits);
  page.family("lccfs_cache_misses_total", Exposition::Type::counter, "What it had not.");
  page.sample({{"cache", "names"}}, counts.names.misses);
  page.sample({{"cache", "inodes"}}, counts.inodes.misses);
}

void write_counts(Exposition& page, const MountCounts& counts) {
  const auto one = [&page](const char* name, Exposition::Type type, const char* help, std::uint64_t value) {
    page.family(name, type, help);
    page.sample({}, value);
  };
  using enum Exposition::Type;
  one("lccfs_open_files", gauge, "Regular files that are open here.", counts.open_files);
  one("lccfs_open_handles", gauge, "How often they are.", counts.open_handles);
  one("lccfs_leases", gauge, "Files whose write lease is here.", counts.leases);
  one("lccfs_leases_recalled_total", counter, "Recalls begun for other clients.", counts.leases_recalled);
  one("lccfs_dirty_bytes", gauge, "Written, and not yet in the store.", counts.dirty_bytes);
  one("lccfs_locks_waiting", gauge, "Requests for locks that are not answered yet.", counts.locks_waiting);
}

}  // namespace

void MountMetrics::write(Exposition& page, const FileSystem& fs) const {
  operations.write(page);
  store.write(page);
  directories.write(page);
  const MountCounts counts = fs.counts();
  write_counts(page, counts);
  write_caches(page, counts);
  collector.write(page);
}

}  // namespace lccfs::fuse
