// SPDX-License-Identifier: LGPL-2.1-or-later
// Which thread receives the kernel's requests: one at a time. It serves itself what is mostly answered from memory: a
// change of threads costs more than most answers do. Before it would block, the thread that stands by receives.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/thread_pool.h"
#include "lccfs/clock.h"

namespace lccfs::fuse {

class Receiver {
 public:
  explicit Receiver(Clock& clock) : clock_(clock) {}

  /// `receive` is called by the thread that receives, again and again until it answers false; no two calls at a time,
  /// but for what `serve` runs within them. A call that has served answers true. Returns then, without waiting for what
  /// is still served.
  void run(std::function<bool()> receive);

  /// The receiving thread, within `receive`: a request may be served right here. `fd`: of the session. Not if another
  /// one waits there already, which would have to wait for this one, nor where no thread stands by.
  bool may_serve_here(int fd) const;
  /// The same thread; if `work` is about to block, another thread receives from then on.
  void serve(std::move_only_function<void()> work);

  /// Once a second, by a thread that does nothing else: what blocks unannounced keeps the requests behind it waiting no
  /// longer than that.
  void look();

 private:
  void receive_as(std::uint64_t turn);
  void stand_by_for(std::uint64_t turn);
  void hand_over(std::uint64_t turn);

  Clock& clock_;
  std::function<bool()> receive_;
  std::atomic<std::uint64_t> turn_{0};       // whose it is to receive: each thread that does has another number
  std::atomic<std::uint64_t> stands_by_{0};  // for that turn
  std::atomic<std::uint64_t> served_{0};     // the turn that work is served in; 0: none, or `look` has taken it
  std::atomic<std::chrono::nanoseconds> since_{};
  std::atomic<bool> ended_{false};
  std::atomic<std::size_t> blocked_{0};  // threads that have lost their turn and are not done
  ThreadPool threads_;                   // last: they use all of this
};

}  // namespace lccfs::fuse
