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

#include "base/process_stat.h"

namespace lccfs::fuse {
namespace {

constexpr std::uint64_t kill_bit = std::uint64_t{1} << (SIGKILL - 1);
// PF_EXITING and PF_KTHREAD of the kernel's sched.h: some kernels send what an ending process closes by a thread of their
// own.
constexpr std::uint32_t nobody_hears_flags = 0x4 | 0x200000;

/// Of a line of the file: the number after that beginning of it. 0: there is none.
template <class Number>
Number number_after(std::string_view status, std::string_view beginning, int base) {
  const auto at = status.find(beginning);
  if (at == std::string_view::npos) return 0;
  const auto digits = status.substr(at + beginning.size());
  Number number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  return number;
}

}  // namespace

ThreadState thread_state_in(std::string_view status) {
  const auto pending =
      number_after<std::uint64_t>(status, "\nSigPnd:\t", 16) | number_after<std::uint64_t>(status, "\nShdPnd:\t", 16);
  return {(pending & kill_bit) != 0, number_after<pid_t>(status, "\nTgid:\t", 10)};
}

/// When it was started comes last: where another thread gets the number in between, it is that one's. Asked for by its
/// process, the kernel adds up no times of the process's other threads.
ThreadState thread_state(pid_t thread) {
  const auto number = std::to_string(thread);
  std::ifstream file("/proc/" + number + "/status");
  auto state = thread_state_in(std::string(std::istreambuf_iterator<char>(file), {}));
  const auto stat = read_process_stat(std::to_string(state.process) + "/task/" + number);
  state.start_ticks = stat ? stat->start_ticks : 0;
  return state;
}

bool is_ending(pid_t thread) {
  const auto stat = read_process_stat(std::to_string(thread));
  return !stat || (stat->flags & nobody_hears_flags) != 0;
}

void KilledCallers::began(fuse_req_t request, const Waiting& waiting) {
  if (waiting.thread == 0 || waiting.number == 0) return;
  const Lock lock(mutex_);
  requests_.insert_or_assign(request, Entry{waiting});
}

void KilledCallers::answered(fuse_req_t request) {
  const Lock lock(mutex_);
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  const auto entry = found->second;
  requests_.erase(found);
  if (entry.let_go) is_done(entry.waiting.handle, *entry.let_go);
}

void KilledCallers::is_done(std::uint64_t handle, pid_t process) {
  const auto found = processes_.find(process);
  if (--found->second.requests == 0) {
    for (const auto closed : found->second.closed) one_less_of(closed);
    processes_.erase(found);
  }
  one_less_of(handle);
}

void KilledCallers::one_less_of(std::uint64_t handle) {
  auto& left = left_.at(handle);
  if (--left.awaited > 0 || left.is_running) return;
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
      left.is_running = left.awaited == 0 && !left.later.empty();
      if (!left.is_running) {
        if (left.awaited == 0) left_.erase(handle);
        has_left_some_ = !left_.empty();
        return;
      }
      later.swap(left.later);
    }
    for (auto& work : later) std::exchange(work, nullptr)();
  }
}

/// Asynchronous I/O goes on when its thread has ended. Who has the number of that thread by then waits for something else.
void KilledCallers::look() {
  if (has_let_some_go_) forget_those_gone();
  std::vector<std::pair<fuse_req_t, Entry>> waiting;
  {
    const Lock lock(mutex_);
    for (const auto& [request, entry] : requests_) {
      if (!entry.let_go) waiting.emplace_back(request, entry);
    }
  }
  std::map<pid_t, ThreadState> threads;  // one may wait for thousands
  for (const auto& [request, entry] : waiting) {
    const auto& its = entry.waiting;
    const auto [known, is_new] = threads.try_emplace(its.thread);
    if (is_new) known->second = look_at_(its.thread);
    const auto& state = known->second;
    if (!entry.start_ticks) has_waited(request, its, state.start_ticks);
    if (!state.is_killed || state.start_ticks == 0 || state.start_ticks != entry.start_ticks) continue;
    its.lock_ticket == 0 ? let_go(request, its, state.process) : interrupt_lock_(its.lock_ticket);
  }
}

void KilledCallers::has_waited(fuse_req_t request, const Waiting& waiting, std::uint64_t start_ticks) {
  const Lock lock(mutex_);
  const auto found = requests_.find(request);
  if (found == requests_.end() || found->second.waiting.number != waiting.number) return;
  found->second.start_ticks = start_ticks;
}

/// With the mutex held: a request that is still here has not got its own answer. The program may run before this returns.
void KilledCallers::let_go(fuse_req_t request, const Waiting& waiting, pid_t process) {
  const fuse_out_header answer{.len = sizeof answer, .error = -EINTR, .unique = waiting.number};
  const Lock lock(mutex_);
  const auto found = requests_.find(request);
  if (found == requests_.end() || found->second.waiting.number != waiting.number) return;
  has_left_some_ = has_let_some_go_ = true;  // who asks waits for the mutex
  if (write(session_fd_, &answer, sizeof answer) != sizeof answer) return;
  found->second.let_go = process;
  ++left_[waiting.handle].awaited;
  ++processes_[process].requests;
  gone_.insert(waiting.thread);
}

/// Their numbers may be others' one day.
void KilledCallers::forget_those_gone() {
  std::set<pid_t> gone;
  {
    const Lock lock(mutex_);
    gone = gone_;
  }
  std::erase_if(gone, [this](pid_t thread) { return look_at_(thread).is_killed; });  // these are still there
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

bool KilledCallers::has_left_some_by(pid_t thread, std::uint64_t handle) {
  if (!has_left_some_) return false;
  const auto process = look_at_(thread).process;
  const Lock lock(mutex_);
  const auto found = processes_.find(process);
  if (found == processes_.end()) return false;
  if (found->second.closed.insert(handle).second) ++left_[handle].awaited;
  return true;
}

bool KilledCallers::after_those_of(std::uint64_t handle, Work work) {
  const Lock lock(mutex_);
  const auto left = left_.find(handle);
  if (left == left_.end()) return false;
  left->second.later.push_back(std::move(work));
  return true;
}

}  // namespace lccfs::fuse
