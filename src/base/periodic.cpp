// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/periodic.h"

#include <condition_variable>
#include <utility>

#include "base/mutex.h"

namespace lccfs {

bool pause(Clock& clock, std::chrono::nanoseconds duration, const std::stop_token& stop) {
  Mutex mutex;
  std::condition_variable stopped;
  const std::stop_callback wake(stop, [&] {
    const Lock lock(mutex);  // a thread about to wait has looked, or waits already
    stopped.notify_all();
  });
  Lock lock(mutex);
  clock.wait_for(stopped, lock, duration, [&stop] { return stop.stop_requested(); });
  return !stop.stop_requested();
}

std::jthread run_periodically(Clock& clock, std::function<std::chrono::nanoseconds()> period,
                              std::function<bool(const std::stop_token&)> work) {
  return std::jthread([&clock, period = std::move(period), work = std::move(work)](const std::stop_token& stop) {
    while (pause(clock, period(), stop) && work(stop)) continue;
  });
}

std::jthread run_each_second(Clock& clock, std::function<void()> work) {
  return run_periodically(
      clock, [] { return std::chrono::seconds(1); },
      [work = std::move(work)](const std::stop_token&) { return work(), true; });
}

}  // namespace lccfs
