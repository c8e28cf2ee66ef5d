// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/mount_metrics.h"

#include <string>
#include <string_view>
#include <variant>

#include "format/object_names.h"
#include "fuse/operation_kinds.h"
#include "fuse/subject.h"
#include "metrics/measured_store.h"

namespace lccfs::fuse {

using metrics::Exposition;

MountMetrics::MountMetrics(Clock& clock, std::chrono::nanoseconds slow_after)
    : operations(
          clock,
          {.family = "lccfs_operation", .noun = "operation", .kinds = operation_kinds, .slow_after = slow_after}),
      store(clock, metrics::store_operations(slow_after)) {}

namespace {

bool is_object_of(Ino ino, std::string_view object) {
  const auto name = format::parse_object_name(object);
  if (!name) return false;
  if (const auto* const inode = std::get_if<format::InodeName>(&*name)) return inode->ino == ino;
  const auto* const data = std::get_if<format::DataName>(&*name);
  return data != nullptr && data->ino == ino;
}

/// By the inode, not by the request: what others have asked for is told, too.
std::string what_keeps(Ino ino, const FileSystem& fs, const metrics::Operations& store) {
  if (const auto holder = fs.asked_holder(ino)) {
    return "instance " + std::to_string(holder->value) + " is asked for what it holds";
  }
  return store.oldest_of([ino](std::string_view object) { return is_object_of(ino, object); });
}

}  // namespace

void MountMetrics::tick(const FileSystem& fs) {
  operations.tick([this, &fs](std::string_view subject) { return what_keeps(Subject::ino_in(subject), fs, store); });
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
