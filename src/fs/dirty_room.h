// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How many bytes the write buffers of a mount may hold together (docs/DATA.md section 10), and where these lie. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "fs/dirty_arena.h"
#include "lccfs/clock.h"
#include "lccfs/result.h"

namespace lccfs {

class WriteBuffer;

class DirtyRoom {
 public:
  /// 0: nothing is buffered, every write waits for the store.
  DirtyRoom(std::uint64_t limit_bytes, Clock& clock) : limit_bytes_(limit_bytes), clock_(clock) {}

  /// Where the buffers have their bytes. Its records may outlive this.
  const std::shared_ptr<DirtyArena>& arena() const { return arena_; }

  bool is_used() const { return limit_bytes_ != 0; }
  /// Whether writes may be answered before the store has them. Not while the volume is nearly full: then they wait, and
  /// closes too, so that what does not fit is told to the program that writes it.
  bool is_open() const { return is_used() && !is_full(); }
  /// The same of names.
  bool is_open_to_names() const { return !is_full() && !names_.was_refused; }
  void set_nearly_full(bool is_nearly_full) { is_nearly_full_ = is_nearly_full; }
  /// A write was refused for want of space, or one has found some since. What needs no room says nothing: a full pool
  /// takes what overwrites. The log hears of the first of each.
  void write_refused(const Error& why) { writes_.refused(why); }
  void write_found_room() { writes_.found_room(); }
  bool is_refused() const { return writes_.was_refused; }
  /// The same of what was made last, while its maker waited for the store. Writes say nothing of that: names may lie in
  /// another pool.
  void name_refused(const Error& why) { names_.refused(why); }
  void name_found_room() { names_.found_room(); }
  /// false: no room at this moment. More than the limit at once has room while nothing else is buffered.
  bool take_now(std::uint64_t bytes) EXCLUDES(mutex_);
  /// Waits for room: all buffers of the mount are written out for it. false: there is none for a while, because objects
  /// do not answer; the caller's may. Not for completions, nor for the thread that receives requests.
  bool take(std::uint64_t bytes) EXCLUDES(mutex_);
  void give_back(std::uint64_t bytes) EXCLUDES(mutex_);
  /// For what nobody asks for beforehand: so much more or less than before, also past the limit. Later writes wait for it.
  void recount(std::uint64_t bytes_before, std::uint64_t bytes_now) EXCLUDES(mutex_);
  /// Whether a buffer is to write out what it has been given, instead of waiting for more.
  bool is_short() const EXCLUDES(mutex_);
  /// Whether what has failed, and counts no longer, is more than the limit.
  bool is_exceeded() const EXCLUDES(mutex_);
  std::uint64_t used_bytes() const EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return used_bytes_;
  }

  /// A buffer has bytes now, or none any more.
  void add(const std::shared_ptr<WriteBuffer>& buffer) EXCLUDES(mutex_);
  void remove(const WriteBuffer* buffer) EXCLUDES(mutex_);

 private:
  struct Refusals {
    const char* const of_what;
    std::atomic<bool> was_refused = false;  // the last one

    void refused(const Error& why);
    void found_room();
  };

  bool has_room(std::uint64_t bytes) const REQUIRES(mutex_) {
    return used_bytes_ == 0 || used_bytes_ + bytes <= limit_bytes_;
  }
  std::uint64_t short_from_bytes() const { return limit_bytes_ / 4 * 3; }
  bool is_full() const { return is_nearly_full_ || writes_.was_refused; }
  std::vector<std::shared_ptr<WriteBuffer>> buffers() const EXCLUDES(mutex_);
  void write_all_out() EXCLUDES(mutex_);

  const std::uint64_t limit_bytes_;
  Clock& clock_;
  const std::shared_ptr<DirtyArena> arena_ = std::make_shared<DirtyArena>();
  std::atomic<bool> is_nearly_full_ = false;
  Refusals writes_{.of_what = "writes"}, names_{.of_what = "new names"};
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t used_bytes_ GUARDED_BY(mutex_) = 0;
  unsigned waiting_ GUARDED_BY(mutex_) = 0;
  bool was_in_vain_ GUARDED_BY(mutex_) = false;  // nobody waits until there is a quarter of the limit
  std::map<const WriteBuffer*, std::weak_ptr<WriteBuffer>> buffers_ GUARDED_BY(mutex_);
};

}  // namespace lccfs
