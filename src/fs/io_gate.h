// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Who may touch a file's bytes at the same time, within one client (docs/ORDERING.md section 7): reads and writes run
// together, except that writes of overlapping ranges go one after the other (a step may run twice), and that what must
// run alone (truncate, append, clean-up, giving the lease back) waits for all that is in flight and holds back what
// comes. First come, first served.
//
// Any thread. `go` is called by the entering thread, or later by one that leaves: it must not block.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <vector>

namespace lccfs {

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

class IoGate {
 public:
  using Go = std::move_only_function<void()>;

  void enter_read(Go go);
  void leave_read();
  void enter_write(ByteRange range, Go go);
  void leave_write(ByteRange range);

  /// Blocks the calling thread until it is alone. Not from a completion of the store.
  void lock();
  void unlock();

 private:
  enum class Kind { read, write, alone };
  struct Waiter {
    Kind kind;
    ByteRange range;
    Go go;
  };

  void enter(Waiter waiter);
  bool may_go(const Waiter& waiter) const;
  void admit(std::unique_lock<std::mutex> lock);

  std::mutex mutex_;  // guards all below; never held while a `go` runs
  std::uint64_t reads_ = 0;
  std::list<ByteRange> writes_;
  bool alone_ = false;
  std::deque<Waiter> line_;
};

/// Holds a gate alone for its lifetime.
using AloneInGate = std::lock_guard<IoGate>;

}  // namespace lccfs
