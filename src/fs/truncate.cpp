// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Size and times that a program sets, and the bytes that a truncate cuts.
//
//  truncate   | object   | step                                                   | stop here leaves
//  0          | Inode.X  | the lease (lease.cpp), if it is not held               |
//  -          | Data.X.* | write out what is buffered (write_buffer.cpp)          | the same as a write
//  1          | Inode.X  | [store size, times, map] guard lease = me; size, times | COMMIT; my lease, bytes past size
//  2          | Data.X.* | cut the boundary object, remove mapped ones past it    | the same: cut at the take-over
//
//  grow       | object   | step (fallocate)                                       | stop here leaves
//  -          | Data.X.* | write out what is buffered                             | the same as a write
//  1          | Inode.X  | [store size, times, map] guard lease = me; size, times | done
//
//  set times  | object   | step                                                   | stop here leaves
//  1          | Inode.X  | [change unleased file] guard lease absent, version as  | done
//             |          | read; times                                            |
//  1'         | memory   | the lease is held, or a writer is here: stored later   | times that no fsync covered are lost
#include <algorithm>
#include <set>

#include "base/completions.h"
#include "format/layout.h"
#include "format/object_names.h"
#include "fs/checks.h"
#include "fs/files.h"

namespace lccfs {

Result<> FileNode::truncate(std::uint64_t size_bytes) {
  LCCFS_CHECK(check_bytes(0, size_bytes));
  const Lock one_step(step_mutex);  // nobody else stores a size that is then taken back
  LCCFS_CHECK(ensure());
  static_cast<void>(write_out());  // what cannot be written stays buffered, and its error is told: a cut gives space
  LCCFS_CHECK(clean_tail());
  LCCFS_CHECK(store_size(size_bytes));
  auto cut = clean_tail();
  if (!cut) changed_though_told_an_error();
  return cut;
}

/// The kernel keeps what it has of the file where it is told an error. It may have its pages locked: they go later.
void FileNode::changed_though_told_an_error() {
  kernel_.pages_are_wrong(ino);
  kernel_.drop_attributes(ino);
}

Result<> FileNode::grow(std::uint64_t size_bytes) {
  const Lock one_step(step_mutex);
  {
    const Lock lock(mutex);
    if (view.size_bytes >= size_bytes) return {};
  }
  static_cast<void>(write_out());
  return store_size(size_bytes);
}

/// What it cuts off is still to be cut. A size past bytes that could not be written is stored when they are.
Result<> FileNode::store_size(std::uint64_t size_bytes) {
  std::uint64_t size_before = 0, covered_before = 0;
  {
    const Lock lock(mutex);
    size_before = std::exchange(view.size_bytes, size_bytes);
    size_before_set = size_before;
    covered_before = covered_size_bytes;
    const bool is_covered = !buffer->has_any_of({0, size_bytes});
    covered_size_bytes = is_covered ? size_bytes : std::min(covered_before, size_bytes);
    ++cuts_;
    // Also where the size stays: a holder that was evicted learns by this step that it is none any more.
    stored_size_bytes.reset();
    note_change_of_bytes();
  }
  auto stored = store_dirty_now(true);
  const bool shorter = size_bytes < size_before;
  {
    const Lock lock(mutex);
    ++cuts_;
    size_before_set.reset();
    if (!stored) view.size_bytes = size_before, covered_size_bytes = covered_before;
    if (stored) others_size_bytes = std::min(others_size_bytes, size_bytes);
    if (stored && shorter) tail_is_dirty = true;  // should the cut fail: nothing else is done before it is made good
  }
  return stored;
}

/// As a truncate does, it stores the size first: a crash that leaves a larger one leaves the bytes, too. (By a step of an
/// append that was told an error, or by somebody else's fsync beside it.)
Result<> FileNode::clean_tail() {
  std::uint64_t size_bytes = 0;
  bool may_be_stored = false;
  {
    const Lock lock(mutex);
    if (!tail_is_dirty) return {};
    size_bytes = view.size_bytes;
    may_be_stored = !stored_size_bytes || *stored_size_bytes > size_bytes;  // a larger one
  }
  // A file whose inode is lost has no size, and nobody comes to it.
  if (may_be_stored && !instance_.unstored().is_lost(ino)) LCCFS_CHECK(store_dirty_now(false));
  return cut_data(size_bytes);
}

/// Cuts the boundary object at the size and removes every mapped object past it.
Result<> FileNode::cut_data(std::uint64_t size_bytes) {
  buffer->drop({size_bytes, UINT64_MAX});
  const auto object_size = instance_.super().object_size_bytes;
  const auto kept = format::object_count(object_size, size_bytes);
  const auto boundary_bytes = size_bytes % object_size;
  std::set<std::uint64_t> beyond;
  bool boundary_mapped = false;
  {
    const Lock lock(mutex);
    beyond = view.map.mapped_from(ObjectIndex{kept});
    boundary_mapped = boundary_bytes != 0 && view.map.may_exist(ObjectIndex{kept - 1});
  }
  StepsInFlight steps;
  auto& store = instance_.store();
  if (boundary_mapped) {
    store.truncate_data(format::data_object(ino, ObjectIndex{kept - 1}), boundary_bytes, steps.next());
  }
  for (const auto index : beyond) store.remove_data(format::data_object(ino, ObjectIndex{index}), steps.next());
  LCCFS_CHECK(steps.wait());
  const Lock lock(mutex);
  for (const auto index : beyond) set_units_there(ObjectIndex{index}, 0);
  if (boundary_bytes != 0) note_gone({ObjectIndex{kept - 1}, boundary_bytes, object_size - boundary_bytes, size_bytes});
  if (!(dirty_map_blocks.empty() && dirty_unit_blocks.empty())) note_dirty();
  tail_is_dirty = false;
  return {};
}

Result<> FileNode::set_times(const SetAttributes& changes) {
  LCCFS_CHECK(instance_.check_not_fenced());
  const Lock one_step(step_mutex);
  LCCFS_CHECK(ensure());
  const Lock lock(mutex);
  view.atime = changes.atime.value_or(view.atime);
  view.mtime = changes.mtime.value_or(view.mtime);
  note_change();
  return {};
}

Result<std::optional<AttributesReply>> Files::set_size_and_times(Ino ino, const SetAttributes& changes) {
  return or_stale(change_node(*open_files_.use(ino), changes));
}

Result<std::optional<AttributesReply>> Files::change_node(FileNode& node, const SetAttributes& changes) {
  bool wants_lease = changes.size_bytes.has_value();
  {
    const Lock lock(node.mutex);
    wants_lease = wants_lease || node.lease_held || node.writers > 0;
  }
  if (!wants_lease) {
    LCCFS_TRY(const auto changed, set_times_unleased(node.ino, changes));
    if (changed) return reply_for(*changed);
  }
  const auto change_alone = [&]() -> Result<> {
    const AloneInGate alone(node.gate);
    if (changes.size_bytes) LCCFS_CHECK(node.truncate(*changes.size_bytes));
    return changes.atime || changes.mtime ? node.set_times(changes) : Result<>{};
  };
  const auto changed = change_alone();
  announcements_.changed(node);
  LCCFS_CHECK(changed);
  auto released = release_or_store(node, 0, Dirty::may_stay);
  if (!released && changes.size_bytes) node.changed_though_told_an_error();
  LCCFS_CHECK(released);
  return std::nullopt;
}

/// Of a file whose lease this client does not need. nullopt: the lease is to be taken over first.
Result<std::optional<Inode>> Files::set_times_unleased(Ino ino, const SetAttributes& changes) {
  for (;;) {
    LCCFS_TRY(auto view, read_inode_and_map(instance_, ino));
    if (view.lease == instance_.id()) return std::nullopt;
    if (view.lease) {
      LCCFS_TRY(const auto holder, holders_.settle(*view.lease, {format::Question::Kind::release_lease, ino, false}));
      if (holder == LeaseHolders::Holder::expired) return std::nullopt;
      continue;
    }
    view.atime = changes.atime.value_or(view.atime);
    view.mtime = changes.mtime.value_or(view.mtime);
    view.wtime = instance_.clock().wall_time();
    const txn::FileChanges times{
        .size_bytes = {}, .atime = view.atime, .mtime = view.mtime, .wtime = view.wtime, .map_blocks = {}};
    LCCFS_TRY(const auto result, instance_.run(txn::change_unleased_file(ino, view.version, times)));
    if (result.decided == Decided::refused) continue;
    const auto before = view.bytes_stamp();
    view.version = result.version;
    kernel_.stamp_moved(ino, before, view.bytes_stamp());
    open_files_.stored_handler.call([&view](const auto& tell) { tell({view, view.version, view.version != 0}); });
    return view;
  }
}

}  // namespace lccfs
