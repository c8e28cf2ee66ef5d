// SPDX-License-Identifier: LGPL-2.1-or-later
//
// An instance's own watches, on Super and on its session object: what comes in is answered, on threads of their own; a
// watch that is lost is set again, if the own record is still live then. Any thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "instance/others.h"

namespace lccfs {

class OwnWatches {
 public:
  OwnWatches(Steps& steps, Answers& answers, Others& others, Clock& clock, const Self& me)
      : steps_(steps), answers_(answers), others_(others), clock_(clock), me_(me) {}
  ~OwnWatches() { end(); }
  OwnWatches(const OwnWatches&) = delete;
  OwnWatches& operator=(const OwnWatches&) = delete;

  /// Sets both, looks for other clients, and reads the own record: `fenced` unless it is as it was written, `record`.
  Result<> start(const Bytes& record);

  class Handler;
  struct Own {
    std::shared_ptr<Handler> handler;
    std::unique_ptr<Watch> watch;
  };
  /// No watch is set any more. Answers those there are, by object: each ends with what is answered here.
  std::map<std::string, Own> end() EXCLUDES(mutex_);

 private:
  Result<> set(const std::string& object) EXCLUDES(mutex_);
  void set_again(const std::string& object) EXCLUDES(mutex_);
  bool set_if_lost(const std::string& object) EXCLUDES(mutex_);
  void check_own_record() EXCLUDES(mutex_);
  bool begins_to_read_record() EXCLUDES(mutex_);
  Result<bool> own_record_is_live();

  Steps& steps_;
  Answers& answers_;
  Others& others_;
  Clock& clock_;
  const Self& me_;
  Bytes record_;  // as written on Super

  Mutex mutex_;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::map<std::string, Own> watches_ GUARDED_BY(mutex_);
  std::set<std::string> waits_to_set_again_ GUARDED_BY(mutex_);
  bool is_record_wanted_ GUARDED_BY(mutex_) = false;   // once more, where it is being read: a watch was set since
  bool is_reading_record_ GUARDED_BY(mutex_) = false;  // one thread does, for both watches
  // One thread sets a watch again: that on Super, that on the session. Held while it does; before mutex_.
  Mutex super_again_, session_again_;
  // Last: they end before what they use.
  ThreadPool question_threads_{256};
  // A liveness poll must not wait for questions: each may wait half a second for a release (fs/recalls.h,
  // fs/directory_leases.h).
  ThreadPool poll_threads_{16};
  ThreadPool watch_threads_{5};  // nor must a lost watch: for each, one sets it again, and one waits; and one reads
};

}  // namespace lccfs
