// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/io_gate.h"

#include <algorithm>
#include <future>

namespace lccfs {

void IoGate::enter_read(Go go) { enter({Kind::read, {}, std::move(go)}); }

void IoGate::enter_write(ByteRange range, Go go) { enter({Kind::write, range, std::move(go)}); }

void IoGate::enter(Waiter waiter) {
  std::unique_lock lock(mutex_);
  line_.push_back(std::move(waiter));
  admit(std::move(lock));
}

void IoGate::leave_read() {
  std::unique_lock lock(mutex_);
  --reads_;
  admit(std::move(lock));
}

void IoGate::leave_write(ByteRange range) {
  std::unique_lock lock(mutex_);
  const auto mine = std::find_if(writes_.begin(), writes_.end(), [&range](const ByteRange& other) {
    return other.begin == range.begin && other.end == range.end;
  });
  writes_.erase(mine);
  admit(std::move(lock));
}

void IoGate::lock() {
  std::promise<void> admitted;
  auto answer = admitted.get_future();
  enter({Kind::alone, {}, [admitted = std::move(admitted)]() mutable { admitted.set_value(); }});
  answer.get();
}

void IoGate::unlock() {
  std::unique_lock lock(mutex_);
  alone_ = false;
  admit(std::move(lock));
}

bool IoGate::may_go(const Waiter& waiter) const {
  if (alone_) return false;
  switch (waiter.kind) {
    case Kind::read:
      return true;
    case Kind::write:
      return std::none_of(writes_.begin(), writes_.end(),
                          [&waiter](const ByteRange& range) { return range.overlaps(waiter.range); });
    case Kind::alone:
      return reads_ == 0 && writes_.empty();
  }
  return false;
}

/// Lets in whoever is first in line, as long as they may go.
void IoGate::admit(std::unique_lock<std::mutex> lock) {
  std::vector<Go> admitted;
  while (!line_.empty() && may_go(line_.front())) {
    Waiter& waiter = line_.front();
    if (waiter.kind == Kind::read) ++reads_;
    if (waiter.kind == Kind::write) writes_.push_back(waiter.range);
    if (waiter.kind == Kind::alone) alone_ = true;
    admitted.push_back(std::move(waiter.go));
    line_.pop_front();
  }
  lock.unlock();
  for (auto& go : admitted) go();
}

}  // namespace lccfs
