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
  std::vector<Work> later;
  {
    const Lock lock(mutex_);
    const auto found = requests_.find(request);
    if (found == requests_.end()) return;
    const auto entry = found->second;
    requests_.erase(found);
    if (!entry.is_let_go) return;
    const auto left = left_.find(entry.waiting.ino);
    if (--left->second.requests > 0) return;
    later = std::move(left->second.later);
    left_.erase(left);
    has_left_some_ = !left_.empty();
  }
  if (later.empty()) return;
  post_([later = std::move(later)]() mutable {
    for (auto& work : later) std::exchange(work, nullptr)();
  });
}

void KilledCallers::look() {
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

/// With the mutex held: a request that is still here has not got its own answer.
void KilledCallers::let_go(fuse_req_t request, const Waiting& waiting) {
  const fuse_out_header answer{.len = sizeof answer, .error = -EINTR, .unique = waiting.number};
  const Lock lock(mutex_);
  const auto found = requests_.find(request);
  if (found == requests_.end() || found->second.waiting.number != waiting.number) return;
  if (write(session_fd_, &answer, sizeof answer) != sizeof answer) return;
  found->second.is_let_go = true;
  ++left_[waiting.ino].requests;
  has_left_some_ = true;
}

bool KilledCallers::has_left_some_of(Ino ino) {
  if (!has_left_some_) return false;
  const Lock lock(mutex_);
  return left_.contains(ino);
}

void KilledCallers::after_those_of(Ino ino, Work work) {
  {
    const Lock lock(mutex_);
    const auto left = left_.find(ino);
    if (left != left_.end()) return left->second.later.push_back(std::move(work));
  }
  post_(std::move(work));
}

}  // namespace lccfs::fuse
