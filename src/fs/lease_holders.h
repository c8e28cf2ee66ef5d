// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Other clients that hold the lease of an inode: they are asked to store what they keep in memory, or to release it;
// waited for while they are at work, and evicted when they are silent (docs/DATA.md sections 2 to 4). Blocking.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <stop_token>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "fs/inodes.h"
#include "instance/holder.h"

namespace lccfs {

class LeaseHolders {
 public:
  explicit LeaseHolders(Instance& instance) : instance_(instance) {}

  using Holder = Settled;
  /// Of the write lease: asks until the holder has answered, or has expired; with `stop`, until a stop is requested, and
  /// answers `interrupted` then, once the question that is under way has ended.
  Result<Holder> settle(InstanceId holder, const format::Question& question, const std::stop_token& stop = {});

  enum class Ask {
    nobody,
    for_attributes,  ///< the answer may be what is stored: a holder that is silent or absent is not waited for
    for_reading,     ///< until it has answered, or has expired
    for_opening,     ///< the same
  };
  /// The inode read anew, with all of its map but for opening. Asked, another holder of the lease stores size and times
  /// first. `stop`: as above, also of the reads.
  Result<Inode> read_current(Ino ino, Ask ask, const std::stop_token& stop = {});
  using ReadMany = std::function<std::map<Ino, Inode>(const std::vector<Ino>&)>;
  /// Of these inodes, read just now, those whose lease another client holds: as they are now, where that client stores
  /// size and times within a second. One question carries many. `read` reads anew, and may leave some out.
  void bring_up_to_date(std::map<Ino, Inode>& inodes, const ReadMany& read);

 private:
  Result<> ask_briefly(InstanceId holder, const format::Question& question);
  enum class Heard { done, busy, expired, nothing };
  Result<Heard> ask_once_briefly(InstanceId holder, const format::Question& question);
  Result<Heard> ask_for(std::chrono::nanoseconds at_most, InstanceId holder, const format::Question& question);
  void bring_up_to_date(InstanceId holder, std::vector<Ino> wanted, std::chrono::nanoseconds give_up_at,
                        std::map<Ino, Inode>& inodes, const ReadMany& read);
  bool was_silent_just_now(InstanceId holder, Ino ino);
  void note_silence(InstanceId holder, Ino ino);

  Instance& instance_;
  Mutex silent_mutex_;
  /// Of inode 0: of all that it holds.
  std::map<std::pair<InstanceId, Ino>, std::chrono::nanoseconds> silent_until_ GUARDED_BY(silent_mutex_);
  std::multiset<InstanceId> still_asked_ GUARDED_BY(silent_mutex_);  // by callers that continued without an answer
  ThreadPool brief_questions_;                                       // last: its threads use all of this
};

}  // namespace lccfs
