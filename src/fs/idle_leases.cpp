// SPDX-License-Identifier: LGPL-2.1-or-later
//
//  idle lease | object   | step                                                   | stop here leaves
//  0          | Data.X.* | write out what is buffered (write_buffer.cpp)          | what no fsync covered is lost
//  1          | Inode.X  | [release lease] (lease.cpp)                            | done
//
// Before 0, the store has my lease, and less of the file than was answered. If I expire, the lease is taken over.
//
//  new file   | object   | step                                                   | stop here leaves
//  0          | Data.X.0 | write out what is buffered, before its name is stored  | bytes without an inode: a collector removes
//             |          | (name_log.cpp)                                         | them, from the range intent
//  1          | Inode.X  | [create inode] without my lease                        | X without a name: so does it
#include "fs/idle_leases.h"

#include <algorithm>
#include <latch>

#include "base/blocking.h"
#include "base/log.h"
#include "format/object_names.h"
#include "reclaim/traces.h"

namespace lccfs {

namespace {
constexpr std::chrono::seconds released_after{5};
/// What cannot be stored, of a file that nobody has open for writing.
constexpr std::chrono::seconds bytes_kept_for{60};
/// The batch with the names of small new files waits for their bytes. (They go before the inode only if all of them are
/// in the first object.)
constexpr std::uint64_t small_bytes = 64 << 10;
/// And for no longer: one object that does not answer keeps no other names from the store.
constexpr std::chrono::seconds awaited_for{1};
/// At the end, apart from those in line: that line may stand.
constexpr std::size_t most_last_releases = 512;

bool is_idle(const FileNode& node) {
  const Lock lock(node.mutex);
  return node.is_idle();
}
}  // namespace

bool IdleLeases::may_keep(const FileNode& node) const {
  if (kept_ >= limit_ || !room_.is_open() || node.buffer->is_failing() || instance_.fenced()) return false;
  if (instance_.unstored().is_failing()) return false;  // the file's own inode, maybe
  const Lock lock(node.mutex);
  return !node.is_used_elsewhere();
}

bool IdleLeases::keep(FileNode& node) {
  if (!may_keep(node)) return false;
  const Lock lock(node.mutex);
  if (!node.lease_held) return false;
  if (!node.idle_since) ++kept_;
  node.idle_since = instance_.clock().elapsed();
  node.unstored_since.reset();
  return true;
}

/// Where the store refuses every file, they would fill the memory: the rest is lost at once, as the close has told.
bool IdleLeases::keep_unstored(FileNode& node) {
  if (limit_ == 0 || instance_.fenced() || room_.is_exceeded()) return false;
  const Lock lock(node.mutex);
  if (!node.is_idle()) return false;
  node.idle_since = node.unstored_since = instance_.clock().elapsed();
  return true;
}

bool IdleLeases::see_to(const OpenFiles::Use& node) {
  if (limit_ == 0) return false;
  const auto now = instance_.clock().elapsed();
  {
    const Lock lock(node->mutex);
    if (!node->is_idle()) return false;
    if (!node->idle_since) node->idle_since = now;
    ++kept_;
    // Its release may wait for objects that do not answer: what is dirty does not wait with it.
    if (node->release_is_posted && node->dirty_since) return false;
  }
  begin_release(node, now - released_after);
  return true;
}

/// One that is idle, or dirty, since then or before.
void IdleLeases::begin_release(const OpenFiles::Use& node, std::chrono::nanoseconds idle_until) {
  if (instance_.fenced()) return;
  {
    const Lock lock(node->mutex);
    if (!node->is_idle() || node->release_is_posted) return;
    const std::chrono::nanoseconds never_noted{0};
    const bool is_due =
        node->idle_since.value_or(never_noted) <= idle_until || (node->dirty_since && *node->dirty_since <= idle_until);
    if (!is_due) return;
    node->release_is_posted = true;
  }
  node->buffer->begin_write_out();
  releases_.post([this, node = OpenFiles::Use(node)] {
    while (release(*node)) continue;
  });
}

/// Its bytes would be written first.
bool IdleLeases::may_finish(const FileNode& node) const {
  const Lock lock(node.mutex);
  return node.is_idle() && node.buffer->is_empty() && !node.tail_is_dirty;
}

/// A new file without bytes is left to its batch, which needs one step for it.
void IdleLeases::release_if_many(const OpenFiles::Use& node) {
  if (kept_ <= kept_at_leisure()) return;
  if (instance_.unstored().is_unsent(node->ino) && may_finish(*node)) return;
  release_soon(node);
}

bool IdleLeases::is_written_first(const FileNode& node) const {
  if (node.buffer->is_failing()) return false;
  const Lock lock(node.mutex);
  return node.is_idle() && node.view.size_bytes <= small_bytes;
}

void IdleLeases::finish(FileNode& node) {
  if (!instance_.unstored().is_unsent(node.ino) || !node.gate.try_lock()) return;
  const AloneInGate alone(node.gate, std::adopt_lock);
  if (may_finish(node) && node.release_unsent()) one_less();
}

void IdleLeases::finish_new(std::span<const Ino> inodes, Done done) {
  struct AfterAll {
    Done done;
    ~AfterAll() { done(); }
  };
  const auto after_all = std::make_shared<AfterAll>(std::move(done));
  for (const Ino ino : inodes) {
    auto node = files_.use_existing(ino);
    if (!node) continue;
    if (instance_.unstored().is_unsent(ino) && is_written_first(*node)) {
      finish_written(std::move(node), after_all);
    } else {
      finish(*node);
    }
  }
}

/// Once it is written.
void IdleLeases::finish_written(OpenFiles::Use node, std::shared_ptr<const void> others) {
  const auto buffer = node->buffer;
  const auto begun = instance_.clock().elapsed();
  buffer->begin_write_out();
  std::uint64_t number = 0;
  {
    const Lock lock(awaited_->mutex);
    number = ++awaited_->last;
    awaited_->by_number.emplace(number, Awaited{begun, std::move(others), std::move(node)});
  }
  buffer->when_beginning_is_answered([this, awaited = awaited_, number] {
    std::map<std::uint64_t, Awaited>::node_type written;
    {
      const Lock lock(awaited->mutex);
      written = awaited->by_number.extract(number);
    }
    if (!written) return;  // nor is this object there any more, perhaps
    finish(*written.mapped().node);
  });
}

void IdleLeases::stop_waiting() {
  const auto now = instance_.clock().elapsed();
  std::vector<Awaited> late;  // they end once the mutex is free
  {
    const Lock lock(awaited_->mutex);
    for (auto it = awaited_->by_number.begin(); it != awaited_->by_number.end();) {
      const auto next = std::next(it);
      if (now - it->second.since >= awaited_for) late.push_back(std::move(awaited_->by_number.extract(it).mapped()));
      it = next;
    }
  }
}

/// What is buffered goes out before the gate is entered: an object that does not answer keeps no reader of the others
/// waiting. true: it has failed, and the removal of the file was stored meanwhile.
bool IdleLeases::release(FileNode& node) {
  if (discard_if_lost(node)) {
    one_less();
    return false;
  }
  const bool was_removed = [&node] {
    const Lock lock(node.mutex);
    return node.is_removed();
  }();
  bool is_released = false;
  auto done = node.write_out();
  if (done) {
    const AloneInGate alone(node.gate);
    is_released = is_idle(node);
    if (is_released) done = node.release();
  }
  if (done) {
    if (is_released) one_less();
  } else {
    not_released(node, done.error());
  }
  const Lock lock(node.mutex);
  if (done) node.unstored_since.reset();
  node.release_is_posted = !done && !was_removed && node.is_removed();
  return node.release_is_posted;
}

/// The store never had the inode, nor will it.
bool IdleLeases::discard_if_lost(FileNode& node) {
  if (!instance_.unstored().is_lost(node.ino)) return false;
  const AloneInGate alone(node.gate);
  if (!node.discard_unless_open()) return false;
  const Lock lock(node.mutex);
  node.unstored_since.reset();
  node.release_is_posted = false;
  return true;
}

void IdleLeases::one_less() {
  for (unsigned kept = kept_; kept > 0 && !kept_.compare_exchange_weak(kept, kept - 1);) {
  }
}

/// Nobody reads it, nor will: the removal of its last name is stored, and nobody has it open. Another client may have
/// linked it, of which this one knows by a read only: then it has a name. (One that comes by a name that it looked up
/// before is told what is stored, as of any file that finds no room.)
bool IdleLeases::is_removed(FileNode& node) {
  {
    const Lock lock(node.mutex);
    const bool is_open = node.handles > 0 || node.openings > 0 || node.is_used_elsewhere();
    if (!node.is_removed() || is_open) return false;
  }
  const auto now = read_inode(instance_, node.ino);
  const auto named = now ? reclaim::has_a_name(instance_.reader(), node.ino) : std::unexpected(now.error());
  if (!named) return false;
  // A link may be on its way; or a collector may have counted one less.
  const bool is_linked = *named || now->attr.nlink > 1;
  const Lock lock(node.mutex);
  if (is_linked) node.is_without_name = node.is_removal_stored = false;
  return !is_linked;
}

/// It is tried again, until no program is to be expected any more that could be told of the error. A file that is removed
/// is given up at once: its lease keeps all that is stored of it, and whoever removes it wants that room.
void IdleLeases::not_released(FileNode& node, const Error& why) {
  log::failed(log::Level::error, format::inode_object(node.ino) + ": storing it after it was closed", why);
  const auto now = instance_.clock().elapsed();
  bool is_given_up = false;
  {
    const Lock lock(node.mutex);
    if (!node.unstored_since) node.unstored_since = now;
    node.idle_since = now;
    if (node.dirty_since) node.dirty_since = now;
    is_given_up = now - *node.unstored_since >= bytes_kept_for;
  }
  if (!is_given_up && !is_removed(node)) return;
  const AloneInGate alone(node.gate);
  if (is_idle(node)) static_cast<void>(node.release_at_any_price());
}

Result<> IdleLeases::release_all() {
  const auto nodes = files_.use_all();
  std::vector<Result<>> results(nodes.size());
  ThreadPool releases(most_last_releases);
  std::latch all_done(static_cast<std::ptrdiff_t>(nodes.size()));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i]->buffer->begin_write_out();
    releases.post([&node = *nodes[i], &result = results[i], &all_done] {
      {
        const AloneInGate alone(node.gate);
        result = node.release_at_any_price();
      }
      all_done.count_down();
    });
  }
  about_to_block();
  all_done.wait();
  const auto failed = std::ranges::find_if(results, [](const Result<>& result) { return !result; });
  return failed == results.end() ? Result<>{} : std::move(*failed);
}

}  // namespace lccfs
