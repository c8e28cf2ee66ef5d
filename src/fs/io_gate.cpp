// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/io_gate.h"

#include <algorithm>
#include <future>

namespace lccfs {

void IoGate::enter_read(Go go) { enter({Kind::read, {}, std::move(go)}); }

void IoGate::enter_write(ByteRange range, Go go) { enter({Kind::write, range, std::move(go)}); }

void IoGate::enter_alone(Go go) { enter({Kind::alone, {}, std::move(go)}); }

void IoGate::enter(Waiter waiter) {
  std::unique_lock lock(mutex_);
  if (waiter.kind == Kind::write) {
    const auto overlaps = [&waiter](const ByteRange& other) { return other.overlaps(waiter.range); };
    waiter.overlapped = static_cast<std::size_t>(std::ranges::count_if(writes_, overlaps));
    for (const Waiter& before : line_) waiter.overlapped += before.kind == Kind::write && overlaps(before.range);
  }
  line_.push_back(std::move(waiter));
  admit(std::move(lock));
}

void IoGate::leave_read() {
  std::unique_lock lock(mutex_);
  if (--reads_ == 0) admit(std::move(lock));
}

void IoGate::leave_write(ByteRange range) {
  std::unique_lock lock(mutex_);
  const auto mine = std::ranges::find_if(
      writes_, [&range](const ByteRange& other) { return other.begin == range.begin && other.end == range.end; });
  *mine = writes_.back();
  writes_.pop_back();
  // It was let in before all of them that it overlaps: nobody passes those.
  for (Waiter& behind : line_) {
    if (behind.kind == Kind::write && range.overlaps(behind.range)) --behind.overlapped;
  }
  admit(std::move(lock));
}

void IoGate::leave_alone() {
  std::unique_lock lock(mutex_);
  alone_ = false;
  admit(std::move(lock));
}

void IoGate::lock() {
  std::promise<void> admitted;
  auto answer = admitted.get_future();
  enter_alone([admitted = std::move(admitted)]() mutable { admitted.set_value(); });
  answer.get();
}

/// Whether one may go before whom nobody waits who is to be alone.
bool IoGate::may_go(const Waiter& waiter) const {
  if (waiter.kind == Kind::write) return waiter.overlapped == 0;
  return waiter.kind == Kind::read || (reads_ == 0 && writes_.empty() && &waiter == &line_.front());
}

void IoGate::let_in(Waiter& waiter) {
  if (waiter.kind == Kind::read) ++reads_;
  if (waiter.kind == Kind::write) writes_.push_back(waiter.range);
  if (waiter.kind == Kind::alone) alone_ = true;
}

/// Lets in all who may go, as far as the first who is to be alone.
void IoGate::admit(std::unique_lock<std::mutex> lock) {
  std::vector<Go> admitted;
  for (auto waiter = line_.begin(); waiter != line_.end() && !alone_;) {
    const bool is_last = waiter->kind == Kind::alone;
    const bool goes = may_go(*waiter);
    if (goes) {
      let_in(*waiter);
      admitted.push_back(std::move(waiter->go));
      waiter = line_.erase(waiter);
    } else {
      ++waiter;
    }
    if (is_last) break;
  }
  lock.unlock();
  for (auto& go : admitted) go();
}

}  // namespace lccfs
