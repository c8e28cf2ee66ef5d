// SPDX-License-Identifier: LGPL-2.1-or-later
//
// One regular file that is open or leased here: what memory knows of it, and, under its lease, the size, times and map
// that are still to be stored (docs/DATA.md section 2).
//
// Locks, in this order: the gate; `step_mutex` (lease.h); the table of open files (open_files.h); `mutex`, never held
// during a step; `KernelView::mutex_` (not `cache_mutex_`, which comes before all short locks). docs/ARCHITECTURE.md
// has all of them.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "format/layout.h"
#include "fs/file_locks.h"
#include "fs/inodes.h"
#include "fs/io_gate.h"
#include "fs/kernel_view.h"
#include "fs/lease.h"
#include "fs/opener_key.h"
#include "fs/write_buffer.h"
#include "txn/file_txn.h"

namespace lccfs {

class FileNode final : public Lease {
 public:
  /// A file as it is in the store, or is to be made there, with nobody writing it.
  struct Stored {
    const Inode& file;
    std::uint64_t attr_version;  ///< as of which its mode, owner, flags and ctime are known
    bool is_known;               ///< else its version, and with it all else, may be another one by now
  };
  /// Is told of such. Must not block.
  using StoredHandler = std::function<void(const Stored&)>;

  FileNode(Ino inode, Instance& instance, LeaseHolders& holders, KernelView& kernel, std::shared_ptr<DirtyRoom> room,
           Exchangeable<StoredHandler>& stored_handler)
      : Lease(inode, instance, holders),
        locks(inode, instance),
        buffer(std::make_shared<WriteBuffer>(inode, instance.store(), instance.super().object_size_bytes,
                                             std::move(room))),
        opener_key(std::make_shared<OpenerKey>(instance)),
        kernel_(kernel),
        stored_handler_(stored_handler) {}

  IoGate gate;
  FileLocks locks;
  /// Another client has changed it while somebody here had a lock: the kernel is told once nobody has.
  std::atomic<bool> is_changed_under_lock = false;
  /// Under a lock the kernel drops nothing: earlier changes of others were seen when the lock was granted, and a kernel
  /// that is told to drop a size while it asks for it continues with the old size (docs/DATA.md section 12).
  bool is_put_off_by_lock();
  /// What was written and is not in the store yet.
  const std::shared_ptr<WriteBuffer> buffer;
  /// The key that says that this client has it open.
  const std::shared_ptr<OpenerKey> opener_key;

  // -- what is known of the file
  /// With the lease: what was acknowledged, and stat answers. Without: the inode as it was last read; ino 0: not yet.
  Inode view GUARDED_BY(mutex);
  /// The size that the inode object says. nullopt: not known, a step that stores it is on its way or has failed.
  std::optional<std::uint64_t> stored_size_bytes GUARDED_BY(mutex);
  /// The size that may be stored: all bytes below it have been written out.
  std::uint64_t covered_size_bytes GUARDED_BY(mutex) = 0;
  /// What stat answers while a step sets another size, which may be refused: the kernel would cut its pages by that one.
  std::optional<std::uint64_t> size_before_set GUARDED_BY(mutex);
  /// How often the times were changed, and as of which change they are stored.
  std::uint64_t times_changed GUARDED_BY(mutex) = 0, times_stored GUARDED_BY(mutex) = 0;
  /// The kernel may know the present times: the next write needs new ones.
  bool times_were_told GUARDED_BY(mutex) = true;
  /// Another client has asked for the file. It may read what is stored at any time after that: each write needs new times.
  bool was_asked_for GUARDED_BY(mutex) = false;
  std::set<std::uint64_t> dirty_map_blocks GUARDED_BY(mutex);
  /// Where an object was there in part before, and is so now: only stat needs it.
  std::set<std::uint64_t> dirty_unit_blocks GUARDED_BY(mutex);
  std::optional<std::chrono::nanoseconds> dirty_since GUARDED_BY(mutex);  // or since it was last sent
  /// What the kernel may not know of: as the last holder has left it, or up to an append here that landed behind that.
  std::uint64_t others_size_bytes GUARDED_BY(mutex) = 0;
  /// A failed write may have left bytes past the size: to be cut before anything else.
  bool tail_is_dirty GUARDED_BY(mutex) = false;
  /// When the mode, owner and flags were read that are known: they change without the lease.
  std::chrono::nanoseconds attr_sent GUARDED_BY(mutex){0};

  // -- handles and opens that use it
  std::uint64_t last_write_end GUARDED_BY(mutex) = 0;  // where a sequential writer continues
  unsigned handles GUARDED_BY(mutex) = 0, writers GUARDED_BY(mutex) = 0;
  unsigned direct_handles GUARDED_BY(mutex) = 0;   // that can be mapped
  unsigned openings GUARDED_BY(mutex) = 0;         // opens that have begun: they are going to read the inode
  bool store_is_posted GUARDED_BY(mutex) = false;  // the five-second store is in line or under way
  // as of which late error somebody was told, and how many writes were buffered by then
  std::uint64_t errors_seen GUARDED_BY(mutex) = 0, told_of_puts GUARDED_BY(mutex) = 0;
  bool is_without_name GUARDED_BY(mutex) = false;    // as far as this client knows, and
  bool is_removal_stored GUARDED_BY(mutex) = false;  // else it may be lost
  /// Then nobody misses what of it is lost. One that was open when it lost its last name has no link.
  bool has_no_name() const REQUIRES(mutex) { return is_without_name || has_no_link(); }
  bool is_removed() const REQUIRES(mutex) { return (is_without_name && is_removal_stored) || has_no_link(); }
  bool has_no_link() const REQUIRES(mutex) { return lease_held && view.attr.nlink == 0; }

  // -- idle_leases.h
  std::optional<std::chrono::nanoseconds> idle_since GUARDED_BY(mutex);      // its last writer has closed
  std::optional<std::chrono::nanoseconds> unstored_since GUARDED_BY(mutex);  // it could not be released
  bool release_is_posted GUARDED_BY(mutex) = false;
  bool is_being_made GUARDED_BY(mutex) = false;  // who has made it is about to open it
  bool is_idle() const REQUIRES(mutex) { return lease_held && writers == 0 && !is_being_made; }

  // -- announcements.h
  /// Under the lease: other clients that have it open, and when that was heard of each last: numbers that never come
  /// again, because an answer may come under the next lease.
  std::map<InstanceId, std::uint64_t> openers GUARDED_BY(mutex);
  std::atomic<bool> is_told_of = false;  // whether there are any; for the path of a write
  void add_opener(InstanceId opener) REQUIRES(mutex);
  /// Another client reads what is written here, or may: writes and closes wait for the store.
  bool is_used_elsewhere() const REQUIRES(mutex);

  /// The inode was read anew: without the lease, the newest read is what is known of it.
  void learn(Inode read) EXCLUDES(mutex);
  /// Mode, owner, flags and ctime of it. Versions order what is read and what is changed here; times of two clients'
  /// clocks do not.
  void learn_attr(const Inode& newest) REQUIRES(mutex);
  /// What stat answers after that read, if the lease is ours, and was when it was read: while it is being released,
  /// another client may have it already.
  std::optional<Attributes> acknowledged(const Inode& read) EXCLUDES(mutex);
  /// A new file is born with its lease, before anybody else knows of it.
  void born(Inode made) EXCLUDES(mutex);
  void unborn() EXCLUDES(mutex);
  /// The same of one that lost its name; its bytes are dropped, too. false: it is open, or about to be.
  bool discard_unless_open() EXCLUDES(mutex);

  // -- what is to be stored
  /// Whether fsync has anything to store; fdatasync looks at no times: it needs only what finds the data again.
  bool is_dirty(bool with_times) const REQUIRES(mutex);
  /// Its size, bytes or times were changed here, just now.
  void note_change() REQUIRES(mutex);
  void note_change_of_bytes() REQUIRES(mutex);
  /// Its bytes were changed, up to there: it is no shorter now.
  void note_bytes_up_to(std::uint64_t end_bytes) REQUIRES(mutex);
  /// These bytes are believed there from now on, or are not.
  void note_there(const format::Extent& piece) REQUIRES(mutex);
  void note_gone(const format::Extent& piece) REQUIRES(mutex);
  void set_units_there(ObjectIndex index, std::uint64_t units) REQUIRES(mutex);
  /// Stores what is buffered; and size, times and believed map bits if they are dirty. 0 steps if nothing is.
  Result<> store_dirty(bool with_times) EXCLUDES(step_mutex, mutex);
  /// Releases the lease to another client: the same step tells it that the file is open here, if it is. The caller is
  /// alone in the gate.
  Result<> release_to_another() EXCLUDES(step_mutex, mutex);
  /// Releases the lease, though bytes may be lost that cannot be stored: the programs that have the file open here are
  /// told so. The caller is alone in the gate.
  Result<> release_at_any_price() EXCLUDES(step_mutex, mutex);
  /// A write that has raised the size from there, alone in the gate, is told an error: nothing of it is to stay. Where that
  /// fails, the tail stays dirty.
  Result<> take_back_growth(std::uint64_t size_bytes) REQUIRES(step_mutex) EXCLUDES(mutex);
  /// Stores what is buffered.
  Result<> write_out() EXCLUDES(mutex) { return buffer->write_out(WriteBuffer::everything); }
  /// A program is told that what is buffered by now cannot be stored.
  void is_told_of_buffer() EXCLUDES(mutex);
  /// Bytes are about to go to the store past the buffer.
  void passes_buffer() EXCLUDES(mutex);
  /// Whether the store has no byte of it: it was born here under this lease, and what was written is in the buffer.
  bool is_all_buffered() const REQUIRES(mutex);
  /// Whether all objects of these bytes may exist.
  bool is_mapped(std::uint64_t offset_bytes, std::uint64_t size_bytes) const REQUIRES(mutex);
  /// Marks data objects as "may exist" before they are written to, and what is about to be written as believed there.
  /// The lease is ours.
  Result<> map_objects(ObjectIndex first, std::uint64_t count, std::span<const format::Extent> written)
      REQUIRES(step_mutex) EXCLUDES(mutex);

  // -- truncate.cpp; the caller is alone in the gate
  Result<> truncate(std::uint64_t size_bytes) EXCLUDES(step_mutex, mutex);
  /// Its size is another one now, and the kernel is told an error all the same: it forgets attributes and pages.
  void changed_though_told_an_error();
  Result<> set_times(const SetAttributes& changes) EXCLUDES(step_mutex, mutex);
  /// Raises the size, if it is less. The lease is ours, the tail is clean.
  Result<> grow(std::uint64_t size_bytes) EXCLUDES(step_mutex, mutex);
  /// Cuts what a failed write, or a cut that failed, may have left past the size.
  Result<> clean_tail() REQUIRES(step_mutex) EXCLUDES(mutex);

  // -- ranges.cpp; the caller is alone in the gate, the lease is ours, the tail is clean
  /// Makes these bytes zeros: whole objects are removed. Answers whether the store did a step on every object of the
  /// range: only then is it known that the lease was ours all the time.
  Result<bool> zero_range(ByteRange range) EXCLUDES(step_mutex, mutex);
  /// Stores the size though it may be stored: a holder that was evicted learns by this step that it is none any more.
  Result<> confirm_lease() EXCLUDES(step_mutex, mutex);

 private:
  Result<> taken(Inode inode, const objects::BytesStamp& unchanged_since) REQUIRES(step_mutex) EXCLUDES(mutex) override;
  Result<MetaTxn> release_step() REQUIRES(step_mutex) EXCLUDES(mutex) override;
  void released(std::optional<std::uint64_t> version) REQUIRES(step_mutex, mutex) override;

  void note_dirty() REQUIRES(mutex);
  void set_wtime(const TimeSpec& now) REQUIRES(mutex);
  /// Whether a write may leave the times as they are.
  bool may_times_stand(const TimeSpec& now) const REQUIRES(mutex);
  /// All of it, but for what is known here of a later version.
  void take(Inode read) REQUIRES(mutex);
  void end_unsent() REQUIRES(mutex);
  txn::FileChanges dirty_changes(bool with_times) REQUIRES(mutex);
  std::optional<Result<>> try_to_store_dirty(bool with_times) EXCLUDES(step_mutex, mutex);
  Result<> store_dirty_now(bool with_times) REQUIRES(step_mutex) EXCLUDES(mutex);
  Result<> store_size(std::uint64_t size_bytes) REQUIRES(step_mutex) EXCLUDES(mutex);
  Result<> change_leased(const txn::FileChanges& changes) REQUIRES(step_mutex) EXCLUDES(mutex);
  void believe_some_there() EXCLUDES(mutex);
  std::uint64_t units_written_by(const format::Extent& piece) const;
  void lose_buffer(const Error& why) EXCLUDES(step_mutex, mutex);
  std::uint64_t lose_what_is_not_stored(const Error& why) EXCLUDES(step_mutex, mutex);
  Result<> cut_data(std::uint64_t size_bytes) REQUIRES(step_mutex) EXCLUDES(mutex);

  KernelView& kernel_;
  Exchangeable<StoredHandler>& stored_handler_;
  std::uint64_t cuts_ GUARDED_BY(mutex) = 0;              // how often the size was not raised, but set
  bool nothing_passed_buffer_ GUARDED_BY(mutex) = false;  // since it was born
  bool to_another_ GUARDED_BY(mutex) = false;             // is it being released so
  std::optional<Token> released_as_ GUARDED_BY(mutex);  // `taken`, where the step that releases the lease is to set it
  std::uint64_t attr_version_ GUARDED_BY(mutex) = 0;    // as of which what is known of mode, owner and flags is right
};

}  // namespace lccfs
