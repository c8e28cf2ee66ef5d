// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Other instances: asking them, finding out that they are expired, fencing (docs/PROTOCOL.md section 2). Any thread.
// What returns a Result blocks on the store; `ask`, `look_at`, `evict` and `poll_liveness` on other clients, too.
//
//  fence | object  | step                                         | stop here leaves
//  1     | (store) | fence the identity, wait until it holds      | fenced, not marked: the next one does both again
//  2     | Super   | [mark fenced] guard the record as read and   | done
//        |         | counter n; record -> fenced(n + 1), n -> n + 1 |
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <vector>

#include "base/mutex.h"
#include "format/records.h"
#include "instance/answers.h"
#include "instance/liveness_poll.h"
#include "instance/presence.h"
#include "instance/steps.h"
#include "lccfs/clock.h"

namespace lccfs {

/// What an instance is. Final once it has started.
struct Self {
  InstanceId id;
  bool read_only = false;  ///< it fences no client
  bool recorded = true;    ///< false: a read-only one that may write nothing
  const Processes* processes = &system_processes();
};

class Others {
 public:
  Others(Steps& steps, Answers& answers, Clock& clock, const Self& me)
      : steps_(steps), store_(steps.store()), answers_(answers), clock_(clock), me_(me) {}

  struct RecordOnSuper {
    std::optional<format::InstanceRecord> record;  ///< nullopt: there is none
    Bytes raw;
    std::uint64_t fences = 0;
  };
  Result<RecordOnSuper> read_record(InstanceId whom);

  /// To be called with an inode's `fence` before its data is read or its lease taken: syncs fences if that one is new.
  Result<> see_fence(std::uint64_t number);
  /// Syncs fences, and has seen those up to this number.
  Result<> sync_fences(std::uint64_t number);
  /// The fence counter's value that a take-over writes into `fence`; every fence that `look_at` relied on is in it.
  std::uint64_t newest_fence() const { return fences_seen_.load(); }

  enum class AskResult {
    done,
    busy,
    silent,   ///< it watches, and did not answer in time
    nobody,   ///< nobody watches there
    unheard,  ///< its object did not answer, so nothing is known of its watch
  };
  struct Asked {
    AskResult result = AskResult::nobody;
    std::uint64_t work = 0;  ///< busy: what the question, asked again, is to name
    bool operator==(AskResult other) const { return result == other; }
  };
  Result<Asked> ask(InstanceId whom, const format::Question& question, std::chrono::milliseconds time_out);
  enum class Seen { expired, watching, absent };
  /// One look at that instance. Fences it if it is gone: proven dead, or absent in all of this instance's looks of a
  /// minute (presence.h; a read-only one fences none). After `expired` fences are synced: every object is to be read
  /// anew, and nothing of that instance's can change what is read.
  Result<Seen> look_at(InstanceId whom) { return look_at(whom, IfGone::fence); }
  /// The same without its watches, where its session object does not answer: `expired` by its record, or as its process is
  /// proven dead; else `absent`.
  Result<Seen> look_at_record(InstanceId whom);
  /// Fences a live instance, whatever it is doing.
  Result<> evict(InstanceId whom);
  /// The same of one that was dead, or silent for too long, when it was looked at then. false: that was too long ago by
  /// the time when it could be fenced (the monitors were away, or this host stood still): begin anew.
  Result<bool> fence_if_seen_lately(InstanceId whom, std::chrono::nanoseconds seen_at) {
    return fence_on(whom, {seen_at});
  }
  /// To be called about once a second: sees to it that the store may fence the clients that are here now
  /// (ObjectStore::fence). Does not block.
  void look_around() EXCLUDES(mutex_);
  /// This instance has lost a watch: what it has seen of others before may have been an outage. Does not block.
  void begin_looks_anew() EXCLUDES(mutex_);

  /// Whether the others are to hear that a collector is at work (Answers::last_poll).
  enum class Turn { takes, leaves };
  /// Asks all instances how far they have come, and which of these inodes they have open. An instance that answers
  /// drops its directory items. Looks again and again at instances that are silent and do not watch, until each is
  /// seen, or is gone and fenced. That takes about a minute; if stopped, they stay silent.
  Result<PollResult> poll_liveness(const std::vector<Ino>& inodes, const std::stop_token& stop, Turn turn);

 private:
  enum class Standing { watching, absent, gone, dead };  // gone: absent for long enough
  Result<Standing> look_for(InstanceId whom, const format::InstanceRecord& record) EXCLUDES(mutex_);
  enum class IfGone { fence, leave };
  Result<Seen> look_at(InstanceId whom, IfGone if_gone);
  Result<Seen> look_again_at(const Member& member, IfGone if_gone);
  Result<bool> is_expired(const RecordOnSuper& found);

  // -- of a poll
  struct Look {
    Result<Seen> seen = Seen::absent;
    bool counts = true;
  };
  Result<> fence_the_gone(PollResult& poll, const std::stop_token& stop);
  std::vector<Look> look_side_by_side(const std::vector<Member*>& members, bool first_look,
                                      const std::stop_token& stop);
  static Result<bool> take_in(const std::vector<Look>& looks, std::vector<Member*>& members);

  // -- a fence
  struct Ground {
    std::optional<std::chrono::nanoseconds> seen_at;  // nullopt: it does not age
    bool was_absent = false;
  };
  Result<bool> fence_on(InstanceId whom, Ground ground);
  Result<bool> bar(InstanceId whom, const format::InstanceRecord& record, const Ground& ground);
  Result<> mark_fenced(InstanceId whom, const RecordOnSuper& found);
  Result<bool> is_too_late(std::optional<std::chrono::nanoseconds> seen_at);
  void forget_absence(InstanceId whom) EXCLUDES(mutex_);
  bool refusal_is_news(InstanceId whom) EXCLUDES(mutex_);
  bool fence_is_news(InstanceId whom) EXCLUDES(mutex_);

  Steps& steps_;
  ObjectStore& store_;
  Answers& answers_;
  Clock& clock_;
  const Self& me_;
  std::atomic<std::uint64_t> fences_seen_{0};
  Mutex mutex_;
  Absences absences_ GUARDED_BY(mutex_);
  std::map<InstanceId, std::chrono::nanoseconds> refusals_told_ GUARDED_BY(mutex_);
  std::set<InstanceId> fences_told_ GUARDED_BY(mutex_);
  std::optional<std::chrono::nanoseconds> looked_around_ GUARDED_BY(mutex_);
};

}  // namespace lccfs
