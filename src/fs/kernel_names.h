// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Names that the kernel keeps for a while, and walks by without asking (docs/NAMES.md section 4). All of them become void
// at once. Any thread; never blocks.
#pragma once

#include <atomic>
#include <chrono>

#include "base/mutex.h"
#include "fs/kernel_view.h"
#include "lccfs/clock.h"

namespace lccfs {

class KernelNames {
 public:
  KernelNames(KernelView& kernel, Clock& clock) : kernel_(kernel), clock_(clock) {}

  /// An answer may be about to give a name. To be called before it is decided whether that is right: what makes it wrong
  /// afterwards is followed by `forget`, which then has something to do. false: the kernel could not be made to forget, or not now.
  bool begin_to_give() EXCLUDES(mutex_) {
    if (!kernel_.can_forget_names()) return false;
    last_given_ = clock_.elapsed();
    if (may_have_some_) return true;
    const Lock lock(mutex_);
    return may_have_some_ = true;
  }
  /// No name is used any more that came with the answer to a request which the kernel has sent before this.
  void forget() EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    if (!may_have_some_.exchange(false)) return;
    const bool have_long_ended =
        !kernel_.can_forget_names() && clock_.elapsed() - last_given_.load() > long_ended_after;
    if (!have_long_ended) kernel_.forget_names();
  }

 private:
  /// Three times as long as a name is given for. Only where to forget would unmount something: no time is proof.
  static constexpr std::chrono::seconds long_ended_after{15};

  KernelView& kernel_;
  Clock& clock_;
  Mutex mutex_;  // held while the kernel is told: who finds nothing to do finds it done
  std::atomic<bool> may_have_some_ = false;
  std::atomic<std::chrono::nanoseconds> last_given_{};
};

}  // namespace lccfs
