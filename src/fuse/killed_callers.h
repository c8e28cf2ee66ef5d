// SPDX-License-Identifier: LGPL-2.1-or-later
// Programs that are killed while they wait for a store that does not answer. The kernel lets go of a program only with
// the answer to its request: so that gets EINTR, which the program never sees. What was asked for is still done; its own
// answer finds nobody then (Request::answer), and what the kernel sends because the program has ended waits for it.
// (The kernel tells of signals, but not where a program waits for direct I/O. So those who wait for long are looked at.)
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "fuse/fuse_api.h"

namespace lccfs::fuse {

/// Of a thread. Killed: it has a SIGKILL that it has not acted on, as a program's threads have once it is to end for any
/// signal.
struct ThreadState {
  bool is_killed = false;
  pid_t process = 0;              ///< 0: not known; the thread is gone
  std::uint64_t start_ticks = 0;  ///< since boot; 0: the same. Another thread of that number has others
};
/// `status`: of /proc/PID/status; that does not say when the thread was started.
ThreadState thread_state_in(std::string_view status);
ThreadState thread_state(pid_t thread);

/// Whether nobody gets what the thread's close is answered: it is ending, and closes what it has open, or it is gone, or
/// in a namespace that we do not see (0), and may be.
bool is_ending(pid_t thread);

class KilledCallers {
 public:
  using LookAt = std::function<ThreadState(pid_t thread)>;
  using Work = std::move_only_function<void()>;
  using Post = std::function<void(Work)>;
  using InterruptLock = std::function<void(std::uint64_t ticket)>;
  explicit KilledCallers(LookAt look_at = thread_state) : look_at_(std::move(look_at)) {}

  /// Before anything is served. `session_fd`: where the kernel is answered. `post`: to a thread that may block.
  /// `interrupt_lock`: ends what has that ticket.
  void begin(int session_fd, Post post, InterruptLock interrupt_lock) {
    session_fd_ = session_fd;
    post_ = std::move(post);
    interrupt_lock_ = std::move(interrupt_lock);
  }

  struct Waiting {
    std::uint64_t number = 0;  ///< the kernel's, of the request
    pid_t thread = 0;          ///< the caller; 0: it is in another namespace
    std::uint64_t handle = 0;  ///< the kernel's, of the open file or directory; 0: none
    /// Of a lock that is not waited for; 0: it is something else. That is interrupted by nothing but a kill: programs do
    /// not expect it.
    std::uint64_t lock_ticket = 0;
  };
  /// The request may be answered here, from now on. Never blocks.
  void began(fuse_req_t request, const Waiting& waiting) EXCLUDES(mutex_);
  /// It is about to get its own answer.
  void answered(fuse_req_t request) EXCLUDES(mutex_);
  /// Once a second: lets go of those that were killed, and have waited since the look before.
  void look() EXCLUDES(mutex_);
  /// Whether a request of that thread was answered here, in the second or so until the thread is gone.
  bool has_let_go(pid_t thread) EXCLUDES(mutex_);
  /// Whether something of the handle is under way whose caller was let go, or what had to wait for that.
  bool has_left_some_of(std::uint64_t handle) EXCLUDES(mutex_);
  /// The thread closes the handle. Whether something is under way that its process was killed in, of whichever handle:
  /// then what comes after those of this one comes after all of that.
  bool has_left_some_by(pid_t thread, std::uint64_t handle) EXCLUDES(mutex_);
  /// `work` is posted once nothing is; what comes for one handle runs in that order. false: nothing is any more, and the
  /// caller has to do it.
  [[nodiscard]] bool after_those_of(std::uint64_t handle, Work work) EXCLUDES(mutex_);

 private:
  struct Entry {
    Waiting waiting;
    std::optional<std::uint64_t> start_ticks = std::nullopt;  // of the thread, at the first look; 0: it was gone
    std::optional<pid_t> let_go = std::nullopt;               // of that process
  };
  struct Left {
    std::size_t awaited = 0;  // requests whose callers were let go, and processes that have such requests of others
    bool is_running = false;  // what had to wait
    std::vector<Work> later;
  };
  struct Process {
    std::size_t requests = 0;
    std::set<std::uint64_t> closed;  // handles that wait for them
  };

  void forget_those_gone() EXCLUDES(mutex_);
  void has_waited(fuse_req_t request, const Waiting& waiting, std::uint64_t start_ticks) EXCLUDES(mutex_);
  void let_go(fuse_req_t request, const Waiting& waiting, pid_t process) EXCLUDES(mutex_);
  void is_done(std::uint64_t handle, pid_t process) REQUIRES(mutex_);
  void one_less_of(std::uint64_t handle) REQUIRES(mutex_);
  void run_later(std::uint64_t handle) EXCLUDES(mutex_);

  const LookAt look_at_;
  int session_fd_ = -1;
  Post post_;
  InterruptLock interrupt_lock_;
  std::atomic<bool> has_left_some_ = false, has_let_some_go_ = false;
  Mutex mutex_;
  std::unordered_map<fuse_req_t, Entry> requests_ GUARDED_BY(mutex_);
  std::set<pid_t> gone_ GUARDED_BY(mutex_);                // threads that were let go, and may be there still
  std::map<std::uint64_t, Left> left_ GUARDED_BY(mutex_);  // by handle
  std::map<pid_t, Process> processes_ GUARDED_BY(mutex_);  // who gets the number of one that has ended waits, too
};

}  // namespace lccfs::fuse
