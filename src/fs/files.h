// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Regular files: handles, leases, reads, writes, sizes and times (docs/DATA.md). Threads as in
// lccfs/file_system.h.
#pragma once

#include <memory>
#include <optional>

#include "base/tasks.h"
#include "fs/announcements.h"
#include "fs/data_io.h"
#include "fs/idle_leases.h"
#include "fs/inodes.h"
#include "fs/kernel_view.h"
#include "fs/lease_holders.h"
#include "fs/locks.h"
#include "fs/open_files.h"
#include "fs/opener_keys.h"
#include "fs/recalls.h"
#include "fs/space_looks.h"
#include "instance/instance.h"
#include "lccfs/file_system.h"

namespace lccfs {

class Files {
 public:
  Files(Instance& instance, ThreadPool& pool, const FileSystemOptions& options);
  ~Files();

  // -- what the namespace operations use
  /// stat's answer for an inode just read: memory knows better while the lease is ours. TTL 0 while another holds it.
  AttributesReply reply_for(const Inode& view);
  /// The same of a file, where memory knows it. Never blocks.
  std::optional<AttributesReply> known_reply_for(const Inode& view);
  bool is_open(Ino ino) const;
  /// nullopt: no such handle.
  std::optional<Ino> ino_of(HandleId handle) const;
  std::optional<int> flags_of(HandleId handle) const;  ///< as it was opened
  /// Whether its lease is ours.
  bool holds(Ino ino) const;
  /// For a collector: also while an open is reading the inode, so that one that began before the inode died counts; and
  /// while its lease is ours: bytes may still be on their way. A lease that is idle is released, for the next time.
  bool needs(Ino ino);
  /// It has lost a name: if nobody has it open here, its lease is released, so that a collector can remove it.
  /// One of which the store has nothing is left to the log, which discards it.
  enum class Name { one_of_several, the_only_one, the_only_one_of_an_unstored };
  void lost_a_name(Ino ino, Name which);
  /// That of its last name, which was answered before, or just now. Its lease goes, even if its bytes find no room.
  void removal_is_stored(Ino ino);
  /// That was answered, and is lost.
  void has_its_name_again(Ino ino);
  /// The store never had anything of it, nor will it: unless it is open, its bytes are dropped, and its lease.
  void discard(Ino ino);
  /// Of these inodes, read just now, those that another client writes: as they are now, where that client answers
  /// within a second. `read` reads anew, and may leave some out.
  using ReadMany = LeaseHolders::ReadMany;
  void bring_up_to_date(std::map<Ino, Inode>& inodes, const ReadMany& read);
  /// `attr` or ctime of this inode was changed by an operation of this client: open files see it at once.
  void attributes_changed(const Inode& view);
  /// A file that create is about to give its name, born with its lease ours: from now on questions about it are
  /// answered. Followed by open_new, or by unborn if it gets no name.
  void born(const Inode& view);
  void unborn(Ino ino);
  OpenReply open_new(const Inode& view, int flags);
  enum class NewName {
    replaces,  ///< it takes the name of another file: io if the client that wrote it is gone
    adds,      ///< it replaces nothing: a client that is gone, silent or long busy is neither waited for nor fenced
  };
  /// Stores the bytes and the size of a file that is about to get a name: no crash leaves that name with less than the
  /// file had. Where another client holds its lease, that client does. `view`: as read since `since`, or before.
  Result<> store_before_naming(const Inode& view, std::chrono::nanoseconds since, NewName name = NewName::replaces);
  /// security.capability of an open file from memory: nullopt if it is not open here, or memory too old (ask the
  /// store).
  std::optional<bool> has_capability(Ino ino) const;

  // -- lccfs/file_system.h
  Result<AttributesReply> get_attributes(Ino ino);
  /// Size and times of a regular file (mode and owner are the namespace's). Answers what they are then, if it knows.
  Result<std::optional<AttributesReply>> set_size_and_times(Ino ino, const SetAttributes& changes);
  /// `believes_leases`: of a file whose lease is ours, the inode need not be read.
  Result<OpenReply> open(const Caller& caller, Ino ino, int flags, bool believes_leases);
  void is_mapped(HandleId handle) { open_files_.is_mapped(handle); }
  void read(HandleId handle, std::uint64_t offset, std::span<char> target, FileSystem::ReadDone done);
  void write(HandleId handle, WriteRequest request, FileSystem::WriteDone done);
  using IsHeard = FileSystem::IsHeard;
  Result<> flush(HandleId handle, const IsHeard& is_heard);
  std::optional<Result<>> known_flush(HandleId handle, const IsHeard& is_heard);
  Result<> fsync(HandleId handle, bool data_only);
  void release(HandleId handle);
  Result<> fallocate(const Caller& caller, HandleId handle, int mode, std::uint64_t offset, std::uint64_t size_bytes);
  Result<std::uint64_t> seek(HandleId handle, std::uint64_t offset, SeekTo what);
  Result<std::uint64_t> copy_file_range(const Caller& caller, HandleId source, std::uint64_t source_offset,
                                        HandleId target, std::uint64_t target_offset, std::uint64_t size_bytes);
  /// The kernel is told an error of that copy all the same, and keeps its pages of the target then. Blocking.
  void drop_pages_of_copy(HandleId target, std::uint64_t target_offset, std::uint64_t copied_bytes);
  Locks& locks() { return locks_; }
  void forget(Ino ino) { kernel_.forget(ino); }
  void tick();
  Result<Capacity> space() { return space_looks_.space(); }
  /// Sets what is of files, leases and locks.
  void count(MountCounts& counts) const;
  /// Whether there is anything of the file here: a handle, a lease, bytes, or a call that works on it.
  bool is_in_use(Ino ino);
  void set_kernel_cache(KernelCache* cache) { kernel_.set(cache); }
  KernelView& kernel() { return kernel_; }
  void write_not_told(Ino ino) {
    kernel_.changed_elsewhere(ino, [] { return true; });
  }
  /// The function that answers questions about directories. Returns when the last one is no longer running.
  void set_directory_handler(Instance::QuestionHandler handler) { directory_handler_.set(std::move(handler)); }
  /// The function that is told of files when they are stored, and their leases released. As above.
  void set_stored_handler(FileNode::StoredHandler handler) { open_files_.stored_handler.set(std::move(handler)); }
  /// idle_leases.h
  void finish_new(std::span<const Ino> inodes, IdleLeases::Done done) {
    idle_leases_.finish_new(inodes, std::move(done));
  }
  /// Whether what is answered before the store has it is likely to find room there.
  bool has_room() const { return room_->is_open_to_names(); }
  /// What was made without that has found room in the store, or was refused for want of it.
  void name_found_room() { room_->name_found_room(); }
  void name_refused(const Error& why) { room_->name_refused(why); }
  Result<> release_everything();
  /// To be called each second while the end of the mount waits for names, one of which may hang: other files are stored.
  void store_meanwhile();
  /// What other instances have asked for of files is done when it returns. From now on they are told "busy", but where
  /// they ask for a directory or a lease of locks.
  void finish_what_was_asked();
  /// Nothing is begun for them any more, and they are told "busy", whatever they ask for, to the end of the instance.
  void stop_answering();

 private:
  // files.cpp
  /// On a question thread, which waits half a second at most for what it has begun, and asks no other instance.
  format::Answer answer(const format::Question& question);
  format::Answer answer_for_directory(const format::Question& question);
  format::Answer answer_at_the_end(const format::Question& question);
  Result<Inode> read_told(Ino ino, LeaseHolders::Ask ask, const std::stop_token& stop = {});
  bool is_old_news(const Inode& read) const;
  Attributes current_attributes(const Inode& read, bool& leased_here) const;
  std::optional<Result<>> flush_at_once(HandleId id, const FileHandle& handle, const IsHeard& is_heard);
  Result<> error_of_close(HandleId id, const IsHeard& is_heard);
  std::chrono::nanoseconds trusted_for(const Inode& read) const;
  AttributesReply reply(const Inode& read);
  // file_handles.cpp
  std::optional<Inode> leased_view(FileNode& node);
  Result<OpenReply> open_node(const Caller& caller, const OpenFiles::Use& node, int flags, bool believes_leases);
  Result<> empty(const Caller& caller, FileNode& node);
  OpenReply opened(const Inode& view, int flags);
  HandleId add_handle(const OpenFiles::Use& node, int flags);
  Result<> refresh(FileNode& node, const std::stop_token& stop);
  void look_again(const Inode& view);
  bool is_put_off_by_lock(Ino ino);
  void changed_elsewhere(Ino ino);
  void begin_anew();
  static bool is_written(const FileNode& node);
  void clean_up_after(OpenFiles::Use node, InstanceId holder);
  enum class Dirty { is_stored, may_stay };
  Result<> release_or_store(FileNode& node, unsigned own_writers, Dirty dirty);
  void begin_to_store(OpenFiles::Use node, std::chrono::nanoseconds since);
  void look_at_space();
  Result<bool> find_room(FileNode& node, const Caller& caller, ByteRange range);
  // truncate.cpp
  Result<std::optional<AttributesReply>> change_node(FileNode& node, const SetAttributes& changes);
  Result<std::optional<Inode>> set_times_unleased(Ino ino, const SetAttributes& changes);

  Instance& instance_;
  Exchangeable<Instance::QuestionHandler> directory_handler_;
  const FileSystemOptions options_;
  KernelView kernel_;
  LeaseHolders holders_;
  const std::shared_ptr<DirtyRoom> room_;
  OpenFiles open_files_;
  Tasks tasks_;  // on the pool, or in line for it
  SpaceLooks space_looks_;
  Announcements announcements_;
  DataIo io_;
  Recalls recalls_;
  IdleLeases idle_leases_;
  Locks locks_;
  OpenerKeys opener_keys_;
};

}  // namespace lccfs
