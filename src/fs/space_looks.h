// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How much space there is. While writes and names are answered before the store has them, those that find no room must be
// told in time: the store is asked every few seconds (docs/DATA.md section 3). In Ceph the monitors answer that, which
// nothing else of a mount needs: nothing waits for them for long, not even the end. Any thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "fs/dirty_room.h"
#include "instance/instance.h"

namespace lccfs {

class SpaceLooks {
 public:
  SpaceLooks(Instance& instance, std::shared_ptr<DirtyRoom> room) : instance_(instance), room_(std::move(room)) {}
  /// Waits a moment for an answer that is due, so that the store is mostly closed in order. Who asks keeps it until there
  /// is one.
  ~SpaceLooks();
  SpaceLooks(const SpaceLooks&) = delete;
  SpaceLooks& operator=(const SpaceLooks&) = delete;

  /// To be called about once a second.
  void tick();
  /// What the store says now, or to a look that is under way; where it says nothing for two seconds, what it said last.
  /// Blocks, for longer only where it has said nothing yet.
  Result<Capacity> space();
  /// Whether so much is free, by what the store has said within these seconds, or else by space().
  Result<bool> has_free(std::uint64_t bytes);

 private:
  /// The thread that asks may be there longer than all else.
  struct Look {
    Mutex mutex;
    std::condition_variable ended;
    bool is_under_way GUARDED_BY(mutex) = false;
    std::chrono::nanoseconds next_at GUARDED_BY(mutex){};
    std::uint64_t number GUARDED_BY(mutex) = 0;  // of the next that ends
    std::optional<Capacity> heard GUARDED_BY(mutex);
    std::chrono::nanoseconds heard_at GUARDED_BY(mutex){};
    std::optional<Error> error GUARDED_BY(mutex);  // of the last

    void end(const Result<Capacity>& space, std::chrono::nanoseconds asked_at) EXCLUDES(mutex);
  };

  void begin_look();

  Instance& instance_;
  const std::shared_ptr<DirtyRoom> room_;
  const std::shared_ptr<Look> look_ = std::make_shared<Look>();
};

}  // namespace lccfs
