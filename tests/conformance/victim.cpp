// SPDX-License-Identifier: LGPL-2.1-or-later
#include "conformance/victim.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace lccfs::conformance {
namespace {

class IgnoringHandler : public WatchHandler {
 public:
  void on_notify(Bytes, std::move_only_function<void(Bytes)> answer) override { answer({}); }
  void on_lost(Error) override {}
};

/// Counts steps in flight and remembers the first failure.
class Window {
 public:
  /// False: a step has failed.
  bool enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return in_flight_ < max_in_flight || failed_; });
    if (failed_) return false;
    ++in_flight_;
    return true;
  }
  template <class T>
  void leave(const Result<T>& result) {
    const std::lock_guard lock(mutex_);
    --in_flight_;
    if (!result && !failed_) {
      failed_ = true;
      first_failure_ = describe(result.error().code);
    }
    changed_.notify_all();
  }
  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return in_flight_ == 0; });
  }
  std::string first_failure() {
    const std::lock_guard lock(mutex_);
    return first_failure_;
  }

 private:
  static constexpr unsigned max_in_flight = 24;
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned in_flight_ = 0;
  bool failed_ = false;
  std::string first_failure_ = "stopped";
};

// Without the suite's short forms: the victim's program is not linked with Catch2.
SharedBytes shared_copy(const Bytes& bytes) {
  const auto owner = std::make_shared<const Bytes>(bytes);
  return {std::shared_ptr<const char>(owner, owner->data()), owner->data(), owner->size()};
}

/// One number into every object. False: a step has failed.
bool write_round(ObjectStore& store, Window& window, const Bytes& number) {
  for (const char* object : victim_metadata) {
    if (!window.enter()) return false;
    store.apply_async({object, "write", {}, {mutation::SetKey{victim_key, number}}},
                      [&window](Result<Applied> result) { window.leave(result); });
  }
  for (const char* object : victim_data) {
    if (!window.enter()) return false;
    store.write_data(object, 0, shared_copy(number), [&window](Result<> result) { window.leave(result); });
  }
  return true;
}

}  // namespace

std::string write_until_stopped(ObjectStore& store, const std::atomic<bool>& stop, std::function<void()> ready) {
  if (const auto made = store.apply({victim_session, "make", {}, {mutation::CreateExclusive{}}}); !made)
    return outcome(made);
  const auto watch = store.watch(victim_session, std::make_shared<IgnoringHandler>());
  if (!watch) return outcome(watch);
  Window window;
  constexpr std::uint64_t first = 10'000'000'000;  // all numbers have the same width
  for (std::uint64_t number = first; !stop && write_round(store, window, std::to_string(number)); ++number) {
    if (number != first) continue;
    window.drain();
    ready();
  }
  window.drain();
  return window.first_failure();
}

}  // namespace lccfs::conformance
