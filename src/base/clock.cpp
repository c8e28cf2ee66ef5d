// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lccfs/clock.h"

#include <ctime>
#include <thread>

#include "base/blocking.h"

namespace lccfs {
namespace {

class SystemClock final : public Clock {
 public:
  std::chrono::nanoseconds elapsed() const override {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  }
  TimeSpec wall_time() const override {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return {now.tv_sec, static_cast<std::uint32_t>(now.tv_nsec)};
  }
  void sleep_for(std::chrono::nanoseconds duration) override {
    about_to_block();
    std::this_thread::sleep_for(duration);
  }
  bool wait_for(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds duration,
                const std::function<bool()>& done) override {
    about_to_block();
    return Clock::wait_for(changed, lock, duration, done);
  }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace lccfs
