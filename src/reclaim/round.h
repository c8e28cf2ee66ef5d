// SPDX-License-Identifier: LGPL-2.1-or-later
//
// One round of a pass: one liveness poll, and what can be done under it (docs/PROTOCOL.md section 5).
//
//  # | object       | step                                                          | stop here leaves
//  - | Super        | read the records; then ask all instances; fence those that    |
//    |              | are gone                                                      |
//  0 | ...          | of instances that are expired, range and inode items:         | all of it can be done again
//    |              | recount, but no directory is removed yet; of numbers in a     |
//    |              | range that are no inodes, Data.X.0 (unstored_inodes.h)        |
//  - | Session.*    | *then* read all q/ keys, page by page; leave young items      |
//    |              | alone                                                         |
//  1 | ...          | directory items: recount of each d/ key; a committed x/ is    | all of it can be done again
//    |              | finished (settle.h). Inode items: recount                     |
//  2 | Inode.P      | [remove traces] d/ keys whose inodes were handled; x/ and l/  | keys that find nothing to do
//    |              | keys that are retired                                         |
//  3 | Session.<it> | [drop queue items] those that were handled                    | items that find nothing to do
//  4 | Session.<it> | [remove session] if the instance is expired, and q/ was read  | a record without a session: the
//    |              | empty since                                                   | next round does 5
//  5 | Super        | [remove instance record]                                      | done
//
// A directory is removed when no live inode points to it without a name there, and none ever will: recount takes a
// missing directory for one that the store has lost. What expired instances made in it was handled in 0 (if another
// instance has expired since, the directory stays for the next round; and so does one to which an inode points that 0
// had to leave, because something else in it is not retired). A live instance that makes something in the directory, or
// has a name there in doubt, answers that it is open; otherwise the instance forgets it (PROTOCOL.md
// section 5).
#pragma once

#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/parallel.h"
#include "reclaim/collector.h"
#include "reclaim/examine.h"
#include "reclaim/queue_page.h"
#include "reclaim/recount.h"

namespace lccfs::reclaim {

class Round {
 public:
  /// `damage_told`: in the rounds of this pass.
  Round(Instance& instance, const CollectorOptions& options, const Recount& recount, PassReport& report,
        std::set<std::string>& damage_told, Instance::Turn turn, const std::stop_token& stop);

  /// true: something was done that may let another round do more.
  Result<bool> run();

 private:
  struct Directory;

  struct Due {
    InstanceId session;
    NumberedItem one;
  };
  void note_gone(const PollResult& poll);
  Result<> see_to_what_the_dead_made(const PollResult& poll);
  enum class Items { all, inodes_and_ranges };
  Result<> read_queue(const Member& member, Items which);
  Result<> handle_due();
  Result<> remove_instance(const Member& member);

  // round_directories.cpp
  /// Of these directories, those of which nothing is left to be done.
  Result<std::set<Ino>> handle_directories(const std::vector<Ino>& directories, TimeSpec logged);
  Result<> sort_key(Directory& directory, const std::string& key, const Bytes& value);
  Result<bool> finish_decided(Ino directory, Token token, const std::string& key, const Bytes& value);
  Result<> read_page(Directory& directory);
  Result<> drop_keys(Directory& directory, const std::set<Ino>& dealt_with);

  // round_inodes.cpp
  enum class Numbers { of_inodes, of_a_range };
  /// Of these inodes, those of which nothing is left to be done.
  Result<std::set<Ino>> handle_inodes(const std::vector<Ino>& inodes, TimeSpec logged, Numbers numbers);
  Result<bool> remove_early_bytes(Ino ino);
  void keep_range_of(Ino ino);
  void keep_directories_of(const Inode& left) REQUIRES(mutex_);
  bool must_wait(const Inode& dead) const;
  Result<> remove_dead(const std::vector<Assessment>& dead, TimeSpec logged, std::set<Ino>& dealt_with);
  Result<> remove_asked(const Assessment& dead, const PollResult& poll, TimeSpec logged, std::set<Ino>& dealt_with);
  bool somebody_has_expired_since(const PollResult& later) const;
  Result<bool> handle_range(const format::QueueItem& range);

  void note_damage(const Error& error);
  bool leaves(const Error& error);
  /// work(i) -> Result<>, `jobs` at a time. What cannot be read is left; any other error ends it.
  template <class Work>
  Result<> in_parallel(std::size_t count, const Work& work) {
    Result<> result;
    for_each_in_parallel(count, options_.jobs, [&](std::size_t i) {
      if (stop_.stop_requested()) return;
      Result<> one = work(i);
      if (one) return;
      if (leaves(one.error())) return;
      const Lock lock(mutex_);
      result = std::move(one);
    });
    return result;
  }

  Instance& instance_;
  const CollectorOptions& options_;
  const Recount& recount_;
  PassReport& report_;
  const Instance::Turn turn_;
  const std::stop_token stop_;
  const objects::Query reader_;  // what does not answer is given up
  std::optional<Horizon> horizon_;
  // Taken by parallel work for what it changes: the report, damage_told_, left_unread_, files_left_, ranges_kept_for_,
  // pointed_to_, did_something_, and what its caller has handed it. While none runs, the round's own thread changes these
  // without it.
  Mutex mutex_;
  std::vector<Due> due_;
  std::set<std::string>& damage_told_;
  bool left_unread_ = false;       // something that is damaged, or does not answer
  std::set<InstanceId> expired_;   // as the round began
  std::set<Ino> files_left_;       // whatever is no directory, and something is left to be done about it
  std::set<Ino> ranges_kept_for_;  // numbers that are to be looked at again, inodes or not
  bool directories_wait_ = true;   // for what was made in them by expired instances
  std::set<Ino> pointed_to_;       // directories that wait for live inodes which an expired instance has left in doubt
  bool did_something_ = false;
  unsigned silent_calls_ = 0;  // in a row: liveness polls that not all have answered
};

}  // namespace lccfs::reclaim
