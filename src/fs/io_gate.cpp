// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/io_gate.h"

#include <algorithm>

#include "base/completions.h"

namespace lccfs {

void IoGate::enter(Waiter waiter) {
  Lock lock(mutex_);
  if (waiter.kind == Kind::write) {
    const auto overlaps = [&waiter](const ByteRange& other) { return other.overlaps(waiter.range); };
    waiter.overlapped = static_cast<std::size_t>(std::ranges::count_if(writes_, overlaps));
    for (const Waiter& before : line_) waiter.overlapped += before.kind == Kind::write && overlaps(before.range);
  }
  line_.push_back(std::move(waiter));
  auto admitted = admit();
  lock.unlock();
  for (auto& go : admitted) go();
}

void IoGate::leave(Kind kind, ByteRange range) {
  Lock lock(mutex_);
  if (kind == Kind::read) --reads_;
  if (kind == Kind::write) end_write(range);
  if (kind == Kind::alone) alone_ = false;
  auto admitted = admit();
  lock.unlock();
  for (auto& go : admitted) go();
}

/// Of one that is before all others that overlap it.
void IoGate::begin_write(const ByteRange& range) {
  writes_.push_back(range);
  for (Waiter& later : line_) {
    if (later.kind == Kind::write && range.overlaps(later.range)) ++later.overlapped;
  }
}

void IoGate::end_write(const ByteRange& range) {
  writes_.erase(std::ranges::find(writes_, range));
  // It was let in before all of them that it overlaps: nothing passes those.
  for (Waiter& later : line_) {
    if (later.kind == Kind::write && range.overlaps(later.range)) --later.overlapped;
  }
}

/// Before others that ask for the same, too: none of them overlaps it.
void IoGate::write_becomes_alone(ByteRange range, Became became) {
  Lock lock(mutex_);
  end_write(range);
  line_.push_front({Kind::alone, range, nullptr, 0, std::move(became)});
  auto admitted = admit();
  lock.unlock();
  for (auto& next : admitted) next();
}

/// The others do not wait until it has left, for that may take as long as its object does not answer.
void IoGate::alone_becomes_write(ByteRange range) {
  std::vector<Became> others;
  Lock lock(mutex_);
  alone_ = false;
  begin_write(range);
  for (; !line_.empty() && line_.front().became; line_.pop_front()) {
    begin_write(line_.front().range);
    others.push_back(std::move(line_.front().became));
  }
  auto admitted = admit();
  lock.unlock();
  for (auto& became : others) became(false);
  for (auto& go : admitted) go();
}

void IoGate::lock() { wait_for(Kind::alone); }

bool IoGate::try_lock() {
  const Lock lock(mutex_);
  if (alone_ || reads_ != 0 || !writes_.empty() || !line_.empty()) return false;
  alone_ = true;
  return true;
}

void IoGate::wait_to_read() { wait_for(Kind::read); }

void IoGate::wait_for(Kind kind) {
  auto [answer, admitted] = promised<bool>();
  enter({kind, {}, [admitted = std::move(admitted)]() mutable { admitted(true); }});
  answer.get();
}

bool IoGate::wait_to_be_alone(ByteRange write) {
  auto [answer, admitted] = promised<bool>();
  write_becomes_alone(write, std::move(admitted));
  return answer.get();
}

/// Whether a waiter may go, if none before it in line is to run alone.
bool IoGate::may_go(const Waiter& waiter) const {
  if (waiter.kind == Kind::write) return waiter.overlapped == 0;
  return waiter.kind == Kind::read || (reads_ == 0 && writes_.empty() && &waiter == &line_.front());
}

/// Lets in all that may go, up to the first that is to run alone.
std::vector<IoGate::Go> IoGate::admit() {
  std::vector<Go> admitted;
  for (auto waiter = line_.begin(); waiter != line_.end() && !alone_;) {
    const bool is_last = waiter->kind == Kind::alone;
    const bool goes = may_go(*waiter);
    const auto here = waiter++;
    if (goes) {
      if (here->kind == Kind::read) ++reads_;
      if (here->kind == Kind::write) writes_.push_back(here->range);
      if (here->kind == Kind::alone) alone_ = true;
      if (here->became) here->go = [became = std::move(here->became)]() mutable { became(true); };
      admitted.push_back(std::move(here->go));
      line_.erase(here);
    }
    if (is_last) break;
  }
  return admitted;
}

}  // namespace lccfs
