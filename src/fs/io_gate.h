// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Which reads and writes of a file may run at the same time, within one client (docs/DATA.md section 2): reads and
// writes run together, except that writes of overlapping ranges go one after the other (a step may run twice), and that
// what must run alone (truncate, append, clean-up, releasing the lease) waits for all that came before it, and all that
// comes later waits for it.
//
// Each waits for no more than that: a write whose object does not answer holds up those that overlap it, and those that
// overlap them, in the order in which they came. All others pass, so that the file's other objects do not wait. Nothing
// passes a request that runs alone: it gets in once those before it have left.
//
// A write that finds that something has to be done alone first is alone for that long, and keeps its place: else what
// came after it, and is answered, could be overwritten by it.
//
// Any thread. `go` is called by the entering thread, or later by one that leaves: it must not block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace lccfs {

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const ByteRange&) const = default;
  bool is_empty() const { return begin >= end; }
  bool overlaps(const ByteRange& other) const { return begin < other.end && other.begin < end; }
  /// What of it lies in the other.
  ByteRange within(const ByteRange& other) const { return {std::max(begin, other.begin), std::min(end, other.end)}; }
};

class IoGate {
 public:
  using Go = std::move_only_function<void()>;

  void enter_read(Go go) { enter({Kind::read, {}, std::move(go)}); }
  void leave_read() { leave(Kind::read, {}); }
  void enter_write(ByteRange range, Go go) { enter({Kind::write, range, std::move(go)}); }
  void leave_write(ByteRange range) { leave(Kind::write, range); }
  void enter_alone(Go go) { enter({Kind::alone, {}, std::move(go)}); }
  void leave_alone() { leave(Kind::alone, {}); }
  /// `is_alone`: false if another write that asked for the same was alone meanwhile, and this is that write again.
  using Became = std::move_only_function<void(bool is_alone)>;
  /// A write that is in the gate is to be alone there: before all that wait, and nobody else gets in meanwhile. Of several
  /// that ask for that at once one is alone: it does what has to be done for all of them, or they ask again.
  void write_becomes_alone(ByteRange range, Became became) EXCLUDES(mutex_);
  /// It is that write again, before all of its range that wait; and so are the others that asked for the same.
  void alone_becomes_write(ByteRange range) EXCLUDES(mutex_);

  /// The same, by a thread that waits. Not from a completion of the store.
  void wait_to_read();
  bool wait_to_be_alone(ByteRange write);
  void lock();
  /// The same, if nobody is in the gate, nor in line. Never blocks.
  bool try_lock();
  void unlock() { leave_alone(); }

 private:
  enum class Kind { read, write, alone };
  struct Waiter {
    Kind kind;
    ByteRange range;
    Go go;
    std::size_t overlapped = 0;  ///< of a write: how many before it, running or in line, overlap it
    Became became = nullptr;     ///< of a write that is to be alone
  };

  void enter(Waiter waiter) EXCLUDES(mutex_);
  void wait_for(Kind kind) EXCLUDES(mutex_);
  void leave(Kind kind, ByteRange range) EXCLUDES(mutex_);
  void begin_write(const ByteRange& range) REQUIRES(mutex_);
  void end_write(const ByteRange& range) REQUIRES(mutex_);
  bool may_go(const Waiter& waiter) const REQUIRES(mutex_);
  std::vector<Go> admit() REQUIRES(mutex_);

  Mutex mutex_;  // never held while a `go` runs
  std::uint64_t reads_ GUARDED_BY(mutex_) = 0;
  std::vector<ByteRange> writes_ GUARDED_BY(mutex_);
  bool alone_ GUARDED_BY(mutex_) = false;
  std::list<Waiter> line_ GUARDED_BY(mutex_);  // as they came
};

/// Holds a gate alone for its lifetime.
using AloneInGate = std::lock_guard<IoGate>;

/// Is in a gate as a read is, for its lifetime. By a thread that waits, and that is in it nowhere else: what is to run
/// alone may come in between.
class ReadInGate {
 public:
  explicit ReadInGate(IoGate& gate) : gate_(gate) { gate.wait_to_read(); }
  ~ReadInGate() { gate_.leave_read(); }
  ReadInGate(const ReadInGate&) = delete;
  ReadInGate& operator=(const ReadInGate&) = delete;

 private:
  IoGate& gate_;
};

/// A write that is in a gate is alone there for the lifetime of this, and keeps its place; unless another one that wanted
/// the same was. By a thread that waits.
class WriteAloneInGate {
 public:
  WriteAloneInGate(IoGate& gate, ByteRange write)
      : gate_(gate), write_(write), is_alone_(gate.wait_to_be_alone(write)) {}
  ~WriteAloneInGate() {
    if (is_alone_) gate_.alone_becomes_write(write_);
  }
  WriteAloneInGate(const WriteAloneInGate&) = delete;
  WriteAloneInGate& operator=(const WriteAloneInGate&) = delete;
  bool is_alone() const { return is_alone_; }

 private:
  IoGate& gate_;
  const ByteRange write_;
  const bool is_alone_;
};

}  // namespace lccfs
