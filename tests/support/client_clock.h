// SPDX-License-Identifier: LGPL-2.1-or-later
// The clock of a client that may die while others live. The threads of a dead one may go on for as long as the test
// does: what they sleep passes for nobody. Any thread.
#pragma once

#include <algorithm>
#include <memory>
#include <thread>

#include "lccfs/clock.h"
#include "scripted/scripted_store.h"

namespace lccfs::test {

class ClientClock final : public Clock {
 public:
  ClientClock(Clock& of_all, std::shared_ptr<const ScriptedClient> client)
      : of_all_(of_all), client_(std::move(client)) {}

  std::chrono::nanoseconds elapsed() const override { return of_all_.elapsed(); }
  TimeSpec wall_time() const override { return of_all_.wall_time(); }
  void sleep_for(std::chrono::nanoseconds duration) override {
    if (!client_->crashed()) return of_all_.sleep_for(duration);
    std::this_thread::sleep_for(brief);
  }
  bool wait_for(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds duration,
                const std::function<bool()>& done) override {
    if (!client_->crashed()) return of_all_.wait_for(changed, lock, duration, done);
    return changed.wait_for(lock, std::min(duration, brief), done);
  }

 private:
  static constexpr std::chrono::nanoseconds brief = std::chrono::milliseconds(1);
  Clock& of_all_;
  const std::shared_ptr<const ScriptedClient> client_;
};

}  // namespace lccfs::test
