// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <map>

#include "objects/super.h"
#include "reclaim/collector.h"
#include "reclaim/queue_page.h"

namespace lccfs::reclaim {

using format::QueueItem;

namespace {

class Measure {
 public:
  Measure(ObjectStore& store, std::size_t most_inodes) : store_(store), most_inodes_(most_inodes) {}

  Result<Backlog> run() {
    LCCFS_TRY(const auto super, objects::read_super(query_));
    object_size_bytes_ = super.record.object_size_bytes;
    LCCFS_TRY(const auto poll, read_members(store_));
    for (const auto& member : poll.members) LCCFS_CHECK(unless_damaged(add_queue(member.id)));
    return backlog_;
  }

 private:
  /// lccfs-fsck says so.
  static Result<> unless_damaged(Result<> done) { return !done && is_damage(done.error()) ? Result<>() : done; }

  Result<> add_queue(InstanceId instance) {
    QueuePage page;
    do {
      LCCFS_TRY(page, read_queue_page(query_, instance, page.last_key));
      for (const auto& [number, item] : page.items) {
        if (item.kind == QueueItem::Kind::range) continue;  // stands for inodes to come, not for garbage
        ++backlog_.items;
        backlog_.oldest = std::min(backlog_.oldest.value_or(item.time), item.time);
        LCCFS_CHECK(unless_damaged(item.kind == QueueItem::Kind::directory ? add_directory(item.ino)
                                                                           : add_inode(item.ino, true)));
      }
    } while (page.more);
    return {};
  }

  Result<> add_directory(Ino directory) {
    if (backlog_.is_more) return {};
    return for_each_detached(query_, directory, [this](const format::DetachedKey& detached) {
      return unless_damaged(add_inode(detached.ino, false));
    });
  }

  /// One that is not dead, and to which an item of its own leads, most likely has a name. One that lost a name may have
  /// others, or have moved: if both lead to it (rmdir leaves both), it is looked at again.
  Result<> add_inode(Ino ino, bool only_if_dead) {
    if (backlog_.is_more) return {};
    const auto [seen, is_first] = seen_.try_emplace(ino, Seen::not_in_full);
    if (seen->second == Seen::in_full || (only_if_dead && !is_first)) return {};
    backlog_.is_more = seen_.size() > most_inodes_;
    if (backlog_.is_more) return {};
    LCCFS_TRY(const auto traces, read_traces(query_, ino));
    if (!traces) return {};
    const bool has_seen_enough = traces->dead() || !only_if_dead;
    if (has_seen_enough) seen->second = Seen::in_full;
    if (!traces->dead()) {
      if (only_if_dead) return {};
      LCCFS_TRY(const auto names, count_names(query_, *traces));
      if (names.total() > 0) return {};
    }
    ++backlog_.inodes;
    backlog_.bytes_waiting += traces->map.occupied_bytes(object_size_bytes_, traces->size_bytes);
    return {};
  }

  ObjectStore& store_;
  const std::size_t most_inodes_;
  const Query query_ = objects::reader_of(store_);
  std::uint64_t object_size_bytes_ = 0;
  Backlog backlog_;
  enum class Seen { not_in_full, in_full };
  std::map<Ino, Seen> seen_;
};

}  // namespace

Result<Backlog> measure_backlog(ObjectStore& store, std::size_t most_inodes) {
  return Measure(store, most_inodes).run();
}

}  // namespace lccfs::reclaim
