// SPDX-License-Identifier: LGPL-2.1-or-later
// SIGTERM and SIGINT: end cleanly. While the work has not begun they end the process at once, and so does the second of
// them. SIGHUP does the same for a command that somebody waits for; in a daemon it reopens the log, from the beginning.
#pragma once

#include <condition_variable>
#include <csignal>
#include <functional>
#include <thread>

#include "base/mutex.h"
#include "base/program.h"

namespace lccfs::daemon {

class EndSignals {
 public:
  enum class Hangup { ends, reopens_log };

  /// Before the process has other threads: they inherit that these signals are not for them.
  EndSignals(const Program& program, Hangup hangup);
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  /// From now on a signal waits for a handler: what is being done must not be cut.
  void hold();
  /// Called by a thread of its own, at most once. Waits for an earlier handler that is running.
  void handle_with(std::function<void()> handler);

 private:
  void watch();
  bool is_for_log(int signal) const { return signal == SIGHUP && hangup_ == Hangup::reopens_log; }
  void end();
  bool is_stopping() EXCLUDES(mutex_);

  const Program program_;
  const Hangup hangup_;
  sigset_t awaited_;
  Mutex mutex_;
  std::condition_variable changed_;
  bool held_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::function<void()> handler_ GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses the others
};

}  // namespace lccfs::daemon
