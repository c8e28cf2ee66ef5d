// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/simulated_time.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>

namespace lccfs::test {

namespace {

long switches(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

/// How often all threads but this one have left their processor. One more of its own, between the calls, would hide one
/// of theirs.
long switches_of_others() {
  for (;;) {
    const auto mine = switches(RUSAGE_THREAD);
    const auto all = switches(RUSAGE_SELF);
    if (switches(RUSAGE_THREAD) == mine) return all - mine;
  }
}

/// The threads of this process, as the kernel sees them.
class Threads {
 public:
  /// Only a thread that runs wakes another: if none has left its processor while they were looked at one by one, and
  /// each was asleep then, all slept at once. Twice: one that is about to sleep, and has woken another before, seems
  /// asleep a moment before it has left.
  bool all_sleep() {
    if (!last_at_work_.empty() && !sleeps(last_at_work_)) return false;
    const auto before = switches_of_others();
    return each_sleeps() && each_sleeps() && switches_of_others() == before;
  }

 private:
  /// A listing leaves out one that lives for each that ends meanwhile, and an end is no switch: so they are counted.
  bool each_sleeps() {
    const auto me = std::to_string(gettid());
    DIR* const threads = opendir("/proc/self/task");
    if (threads == nullptr) throw std::runtime_error("cannot read /proc/self/task");
    const auto there = count(threads);
    nlink_t seen = 0;
    bool each = true;
    for (const dirent* entry = readdir(threads); each && entry != nullptr; entry = readdir(threads)) {
      if (entry->d_name[0] == '.') continue;
      ++seen;
      if (me == entry->d_name) continue;
      each = sleeps(entry->d_name);
      if (!each) last_at_work_ = entry->d_name;
    }
    each = each && seen == there && count(threads) == there;
    closedir(threads);
    return each;
  }

  /// Each thread is a directory there, and so is a link of their directory.
  static nlink_t count(DIR* threads) {
    struct stat status {};
    if (fstat(dirfd(threads), &status) != 0) throw std::runtime_error("cannot count the threads of this process");
    return status.st_nlink - 2;
  }

  /// "12 (name) S 1 ...": S is what sleeps until something wakes it.
  bool sleeps(const std::string& thread) {
    const int file = file_of(thread);
    std::array<char, 128> text{};
    const bool is_there = file >= 0 && pread(file, text.data(), text.size() - 1, 0) > 0;
    const bool is_kept = files_.contains(thread);
    if (file >= 0 && !(is_there && is_kept)) close(file);
    if (!is_there) {  // it has just ended
      files_.erase(thread);
      last_at_work_.clear();
      return false;
    }
    const char* const name_end = std::strrchr(text.data(), ')');
    return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'S';
  }

  /// Opening takes longer than reading; but there may be more threads than descriptors.
  int file_of(const std::string& thread) {
    const auto found = files_.find(thread);
    if (found != files_.end()) return found->second;
    const int file = open(("/proc/self/task/" + thread + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0 && files_.size() < most_files) files_[thread] = file;
    return file;
  }

  static constexpr std::size_t most_files = 256;
  std::map<std::string, int> files_;
  std::string last_at_work_;  // looked at first: most often it still is
};

void wait_until_all_others_sleep() {
  static Threads threads;
  for (unsigned tries = 0; !threads.all_sleep(); ++tries) {
    const timespec pause{0, tries < 20 ? 20'000 : 200'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

SimulatedTime::Nanoseconds SimulatedTime::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

SimulatedTime::Event SimulatedTime::at(Nanoseconds when, std::function<void()> act) {
  const std::lock_guard lock(mutex_);
  const Event event{std::max(when, now_), made_++};
  events_[event] = std::move(act);
  return event;
}

void SimulatedTime::cancel(const Event& event) {
  const std::lock_guard lock(mutex_);
  events_.erase(event);
}

void SimulatedTime::run_until(Nanoseconds end) {
  run_until([] { return false; }, end);
}

bool SimulatedTime::run_until(const std::function<bool()>& done, Nanoseconds end) {
  for (;;) {
    wait_until_all_others_sleep();
    if (done()) return true;
    std::function<void()> act;
    {
      const std::lock_guard lock(mutex_);
      if (events_.empty() || events_.begin()->first.first > end) {
        now_ = std::max(now_, end);
        return false;
      }
      now_ = events_.begin()->first.first;
      act = std::move(events_.begin()->second);
      events_.erase(events_.begin());
    }
    act();
  }
}

/// Wakes one thread that waits, unless it has continued meanwhile.
struct SimulatedClock::Alarm {
  std::mutex mutex;  // held over the call; guards `wake`
  std::function<void()> wake;
};

void SimulatedClock::wait_for_leave() const {
  std::unique_lock lock(mutex_);
  resumed_.wait(lock, [this] { return !stopped_; });
}

std::chrono::nanoseconds SimulatedClock::elapsed() const {
  wait_for_leave();
  return time_.now() + options_.ahead;
}

TimeSpec SimulatedClock::wall_time() const {
  wait_for_leave();
  const auto now = time_.now();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  return {options_.wall_seconds + options_.wall_rate * seconds.count(),
          static_cast<std::uint32_t>((now - seconds).count())};
}

void SimulatedClock::ring(const std::shared_ptr<Alarm>& alarm) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) {
      missed_.push_back(alarm);
      return;
    }
  }
  const std::lock_guard calling(alarm->mutex);
  if (alarm->wake) alarm->wake();
}

bool SimulatedClock::wait_for(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                              std::chrono::nanoseconds duration, const std::function<bool()>& done) {
  const auto alarm = std::make_shared<Alarm>();
  std::atomic<bool> over = false;
  alarm->wake = [&changed, &over] {
    over = true;
    changed.notify_all();
  };
  const auto end = time_.now() + std::max<std::chrono::nanoseconds>(duration, least_pause);
  const auto event = time_.at(end, [this, alarm] { ring(alarm); });
  changed.wait(lock, [&] { return over || done(); });
  time_.cancel(event);
  {
    const std::lock_guard no_call_is_running(alarm->mutex);
    alarm->wake = nullptr;
  }
  return done();
}

void SimulatedClock::sleep_for(std::chrono::nanoseconds duration) {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  wait_for(changed, lock, duration, [] { return false; });
}

void SimulatedClock::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

void SimulatedClock::resume() {
  std::vector<std::shared_ptr<Alarm>> missed;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = false;
    missed.swap(missed_);
    resumed_.notify_all();
  }
  for (const auto& alarm : missed) ring(alarm);
}

}  // namespace lccfs::test
