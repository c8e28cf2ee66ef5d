// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/killed_callers.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace lccfs::fuse {
namespace {

constexpr std::uint64_t kill_bit = std::uint64_t{1} << (SIGKILL - 1);

/// Of a line of the file: a word of hexadecimal digits after the name and a tab. 0: there is none.
std::uint64_t signals_at(std::string_view status, std::string_view name) {
  const auto at = status.find(name);
  if (at == std::string_view::npos) return 0;
  const auto digits = status.substr(at + name.size());
  std::uint64_t signals = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), signals, 16);
  return signals;
}

}  // namespace

bool tells_of_kill(std::string_view status) {
  return ((signals_at(status, "\nSigPnd:\t") | signals_at(status, "\nShdPnd:\t")) & kill_bit) != 0;
}

bool is_killed(pid_t thread) {
  std::ifstream file("/proc/" + std::to_string(thread) + "/status");
  return tells_of_kill(std::string(std::istreambuf_iterator<char>(file), {}));
}

void KilledCallers::began(fuse_req_t request, const Waiting& waiting) {
  if (waiting.thread == 0 || waiting.number == 0) return;
  const Lock lock(mutex_);
  requests_.try_emplace(request, Entry{waiting});
}

void KilledCallers::answered(fuse_req_t request) {
  const Lock lock(mutex_);
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  const auto entry = found->second;
  requests_.erase(found);
  if (entry.is_let_go) one_less_of(entry.waiting.handle);
}

void KilledCallers::one_less_of(std::uint64_t handle) {
  auto& left = left_.at(handle);
  if (--left.requests > 0 || left.is_running) return;
  left.is_running = true;
  post_([this, handle] { run_later(handle); });
}

/// What comes meanwhile runs here, too, after the rest.
void KilledCallers::run_later(std::uint64_t handle) {
  for (;;) {
    std::vector<Work> later;
    {
      const Lock lock(mutex_);
      auto& left = left_.at(handle);
      left.is_running = left.requests == 0 && !left.later.empty();
      if (!left.is_running) {
        if (left.requests == 0) left_.erase(handle);
        has_left_some_ = !left_.empty();
        return;
      }
      later.swap(left.later);
    }
    for (auto& work : later) std::exchange(work, nullptr)();
  }
}

void KilledCallers::look() {
  if (has_let_some_go_) forget_those_gone();
  std::vector<std::pair<fuse_req_t, Waiting>> waiting;
  {
    const Lock lock(mutex_);
    for (auto& [request, entry] : requests_) {
      if (std::exchange(entry.is_old, true) && !entry.is_let_go) waiting.emplace_back(request, entry.waiting);
    }
  }
  std::map<pid_t, bool> killed;  // one may wait for thousands
  for (const auto& [request, its] : waiting) {
    const auto [known, is_new] = killed.try_emplace(its.thread);
    if (is_new) known->second = is_killed_(its.thread);
    if (known->second) let_go(request, its);
  }
}

/// With the mutex held: a request that is still here has not got its own answer. The program may run before this returns.
void KilledCallers::let_go(fuse_req_t request, const Waiting& waiting) {
  const fuse_out_header answer{.len = sizeof answer, .error = -EINTR, .unique = waiting.number};
  const Lock lock(mutex_);
  const auto found = requests_.find(request);
  if (found == requests_.end() || found->second.waiting.number != waiting.number) return;
  found->second.is_let_go = true;
  ++left_[waiting.handle].requests;
  has_left_some_ = true;
  gone_.insert(waiting.thread);
  has_let_some_go_ = true;
  if (write(session_fd_, &answer, sizeof answer) == sizeof answer) return;
  found->second.is_let_go = false;
  one_less_of(waiting.handle);
}

/// Their numbers may be others' one day.
void KilledCallers::forget_those_gone() {
  std::set<pid_t> gone;
  {
    const Lock lock(mutex_);
    gone = gone_;
  }
  std::erase_if(gone, is_killed_);  // these are still there
  const Lock lock(mutex_);
  for (const pid_t thread : gone) gone_.erase(thread);
  has_let_some_go_ = !gone_.empty();
}

bool KilledCallers::has_let_go(pid_t thread) {
  if (!has_let_some_go_) return false;
  const Lock lock(mutex_);
  return gone_.contains(thread);
}

bool KilledCallers::has_left_some_of(std::uint64_t handle) {
  if (!has_left_some_) return false;
  const Lock lock(mutex_);
  return left_.contains(handle);
}

void KilledCallers::after_those_of(std::uint64_t handle, Work work) {
  {
    const Lock lock(mutex_);
    const auto left = left_.find(handle);
    if (left != left_.end()) return left->second.later.push_back(std::move(work));
  }
  post_(std::move(work));
}

}  // namespace lccfs::fuse
