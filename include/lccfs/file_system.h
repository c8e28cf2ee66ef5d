// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The file-system facade (liblccfs): POSIX meaning on top of an object store. What src/fuse serves the kernel from, and
// what tests drive. One FileSystem is one instance (docs/PROTOCOL.md section 2) of one mounted volume.
//
// Threads: every method may be called by any thread, but for those that block: not by a completion, and a thread that
// receives requests hands over before it waits (base/blocking.h). These never block: read, write, and all that take a
// `done` or say so; a `done` is called once, by any thread, perhaps before the call returns. All others may wait for the
// store, and for other clients.
// Names are single path components. Permission checks are the caller's (the kernel's default_permissions); what POSIX
// leaves to the file system (setgid inheritance, the umask and default ACLs, clearing setuid on writes) is done here.
// Errors: ErrorCode::fenced for everything once this client was fenced; stale for an inode that is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lccfs/clock.h"
#include "lccfs/object_store.h"
#include "lccfs/removed_garbage.h"
#include "lccfs/result.h"
#include "lccfs/types.h"

namespace lccfs {

struct Caller {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t umask = 0;  ///< of the process that makes a name
  std::int32_t pid = 0;     ///< 0: not known here
};

struct Attributes {
  Ino ino;
  FileType type = FileType::regular;
  std::uint32_t mode = 0;  ///< permission bits, 07777
  std::uint32_t nlink = 1;
  std::uint32_t uid = 0, gid = 0;
  std::uint64_t rdev = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t blocks_512 = 0;
  TimeSpec atime, mtime, ctime;
};

/// Attributes, and how long the kernel may trust them from now on.
struct AttributesReply {
  Attributes attributes;
  std::chrono::nanoseconds attributes_ttl{0};
};
struct EntryReply {
  Attributes attributes;
  std::chrono::nanoseconds entry_ttl{0};
  std::chrono::nanoseconds attributes_ttl{0};
};

struct HandleId {
  std::uint64_t value = 0;
  auto operator<=>(const HandleId&) const = default;
};
struct OpenReply {
  HandleId handle;
  bool keep_pages = false;    ///< what the kernel has cached of this file's pages is still right
  bool bypass_pages = false;  ///< reads and writes of this handle are to pass by the kernel's pages
};
struct CreateReply {
  EntryReply entry;
  OpenReply open;
};

struct DirectoryEntry {
  std::string name;
  Ino ino;
  FileType type = FileType::regular;
  std::uint64_t cookie = 0;  ///< list on after this entry; below 2^63
};

/// With what lookup would answer of it. nullopt: ask lookup.
struct ListedEntry {
  DirectoryEntry entry;
  std::optional<EntryReply> reply;
};

struct VolumeUsage {
  std::uint64_t total_bytes = 0, available_bytes = 0;
  std::uint64_t objects = 0;
  std::optional<std::uint64_t> available_objects = std::nullopt;  ///< a quota's; nullopt: there is none
};

/// What setattr changes. For a time that is to be "now", the caller reads the clock.
struct SetAttributes {
  std::optional<std::uint32_t> mode, uid, gid;
  std::optional<std::uint64_t> size_bytes;
  std::optional<TimeSpec> atime, mtime;
};

struct NewNode {
  FileType type = FileType::regular;
  std::uint32_t mode = 0;      ///< permission bits as asked for: the umask is not yet taken off
  std::uint64_t rdev = 0;      ///< devices
  std::string symlink_target;  ///< symlinks
};

/// One write, as its request describes it: what the handle was opened with may have changed since (fcntl).
struct WriteRequest {
  Caller caller = {};
  std::uint64_t offset_bytes = 0;  ///< of an append: where the caller believes that the file ends
  SharedBytes bytes = {};          ///< kept alive by their owner
  int flags = 0;                   ///< the descriptor's, as of open(2), and those that are of this write alone
  bool writes_back_pages = false;  ///< of what was changed through mmap: at its offset, whatever the flags say
};

enum class LockKind {
  range,  ///< fcntl(2): of a process, or of an open file description
  flock,  ///< flock(2): of the whole file, first 0 to last_byte
};
enum class LockType { none, shared, exclusive };
inline constexpr std::uint64_t last_byte = (std::uint64_t{1} << 63) - 1;

/// A lock that is asked for, or is dropped (LockType::none).
struct LockRequest {
  HandleId handle;
  std::uint64_t owner = 0;  ///< the kernel's number for it
  LockKind kind = LockKind::range;
  LockType type = LockType::exclusive;
  std::uint64_t first = 0, last = last_byte;  ///< bytes, both included
  std::uint32_t pid = 0;
  bool waits = false;        ///< until it is granted, or interrupted
  std::uint64_t ticket = 0;  ///< for interrupt_lock; no two are the same
  bool operator==(const LockRequest&) const = default;
};
/// A lock that is in the way of a request. pid 0: another client's.
struct LockHeld {
  LockType type = LockType::exclusive;
  std::uint64_t first = 0, last = last_byte;
  std::uint32_t pid = 0;
};

enum class SeekTo { data, hole };
enum class RenameMode { replace, no_replace, exchange };
enum class XattrMode { create_or_replace, create, replace };
/// The kernel wants the bit to go if a process without privileges, and outside the file's group, sets an access ACL.
enum class SetgidBit { stays, goes };

/// What the file system tells the kernel. The kernel waits for pages that are being read or written back, so no thread
/// that calls for pages holds a lock that a read may need. For attributes it does not wait.
class KernelCache {
 public:
  virtual ~KernelCache() = default;
  virtual void invalidate_attributes(Ino ino) = 0;
  virtual void invalidate_pages(Ino ino) = 0;
  virtual void invalidate_page_range(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes) = 0;
  /// The file has so many bytes, of which that is the last: the kernel's size becomes that, if it is smaller. It may
  /// hold a page then, of which nothing but that byte is right.
  virtual void raise_size(Ino ino, std::uint64_t size_bytes, char last_byte) = 0;
  /// Whether it knows the next two; without them it is given no names to keep.
  virtual bool can_keep_names() const = 0;
  /// From now on the name has no time-out. Waits for calls of programs that change names of that directory: not for
  /// threads that these may wait for.
  virtual void expire_name(Ino directory, const std::string& name) = 0;
  /// From now on the kernel asks again for every name that it got by an earlier request, whatever time-out came with it.
  /// Waits for nothing. For what is rare: files that are in use look removed after it (/proc/PID/exe), and what is
  /// mounted on a directory is unmounted.
  virtual void forget_names() = 0;
};

/// What a pass of the collector has done.
struct GarbageReport {
  std::uint64_t inodes_removed = 0, data_objects_removed = 0, bytes_freed = 0;
  std::uint64_t items_left = 0;  ///< of the queues, for a later pass
  std::uint64_t silent_clients = 0, damaged_objects = 0;
  std::uint64_t refused = 0;        ///< inodes that stay because the store does not remove their data for this client
  bool is_left_to_another = false;  ///< there was no pass
};

/// How often memory had what was wanted of it.
struct CacheCounts {
  std::uint64_t hits = 0, misses = 0;
};

/// For monitors: what a mount holds at this moment, and what it has counted since it began.
struct MountCounts {
  std::uint64_t open_files = 0, open_handles = 0;  ///< regular files
  std::uint64_t leases = 0;
  std::uint64_t leases_recalled = 0;  ///< questions of other clients that leases were to be given up or stored for
  std::uint64_t dirty_bytes = 0;      ///< answered, and not yet in the store
  std::uint64_t locks_waiting = 0;
  CacheCounts names, inodes;
};

struct FileSystemOptions {
  /// How long the kernel may walk by a name without asking: what it opens by an older one may have lost that name.
  /// nullopt: names of directories where leases cover that (docs/NAMES.md section 4).
  std::optional<std::chrono::nanoseconds> entry_ttl;
  std::chrono::nanoseconds attributes_ttl{std::chrono::seconds(1)};
  bool read_only = false;
  /// What buffered writes may keep in memory, of all files together, until the store has it. 0: each write waits for
  /// the store.
  std::uint64_t dirty_limit_bytes = 0;
  /// At most so many closed files keep their leases, and what is dirty, for some seconds. A close of one more waits for
  /// the store, and each does where every write waits.
  unsigned idle_leases = 0;
  /// How many changes of a directory within some seconds make this client take its lease (docs/NAMES.md), or four times
  /// as many lookups; new directories then have it from birth. 0: no directory is ever held.
  unsigned lease_after_changes = 0;
  /// Names in directories that are held are changed before the store has it: what was answered, and neither fsync nor a
  /// second has stored, may be lost with this client. Then each directory is as after some first part of what was
  /// answered on it.
  bool names_behind = false;
  /// What is kept in memory of the names in directories that are held. Beyond, those of directories that were not used
  /// for longest are forgotten, and read again; names that are not stored yet stay.
  std::uint64_t names_memory_bytes = 64 << 20;
  std::string mount_id;  ///< for the instance record; the mountpoint
};

/// Names that one inode may have.
inline constexpr std::uint32_t most_links = 65'000;

class FileSystem {
 public:
  using ReadDone = std::move_only_function<void(Result<std::size_t>)>;
  using WriteDone = std::move_only_function<void(Result<std::size_t>)>;

  virtual ~FileSystem() = default;

  // -- names
  /// "." and "..": that inode, or a directory's parent, by number alone; `stale` if nothing leads to it any more.
  virtual Result<EntryReply> lookup(Ino parent, const std::string& name) = 0;
  /// What lookup would answer, where memory knows it, or one read of a file's inode is enough. Never blocks: `done` is
  /// called by this thread, or by a completion of the store. nullopt: ask lookup.
  using KnownDone = std::move_only_function<void(std::optional<Result<EntryReply>>)>;
  virtual void known_entry(Ino parent, const std::string& name, KnownDone done) = 0;
  /// The kernel is about to be told of a directory by that name. Whether it may keep the name until it is told otherwise
  /// (KernelCache), whatever entry_ttl says. `is_known`: it knew the directory before, and does not get the name to keep
  /// now: while it asks anew for what it has, it may miss being told. Never blocks.
  virtual bool begin_to_keep(Ino parent, const std::string& name, Ino directory, bool is_known) = 0;
  /// The same for a name in a listing, which the kernel takes while it has the directory above locked: whether it knew
  /// the directory or not, and with these attributes, which it is not to trust. nullopt: it may not keep it.
  virtual std::optional<Attributes> begin_to_keep_listed(Ino parent, const std::string& name, Ino directory) = 0;
  /// The kernel may keep the directory by name, and knows it, though `forget` was called meanwhile.
  virtual void is_kept_by_name(Ino directory) = 0;
  virtual Result<EntryReply> make_node(const Caller&, Ino parent, const std::string& name, const NewNode&) = 0;
  /// open(2) with O_CREAT, `mode` as in NewNode: makes the file, or opens the one that is there unless O_EXCL is among `flags`.
  virtual Result<CreateReply> create(const Caller&, Ino parent, const std::string& name, std::uint32_t mode,
                                     int flags) = 0;
  /// One more name for an inode that is no directory (not_permitted) and has a name (not_found); too_many_links:
  /// it has `most_links`.
  virtual Result<EntryReply> link(Ino ino, Ino parent, const std::string& name) = 0;
  virtual Result<> unlink(Ino parent, const std::string& name) = 0;
  virtual Result<> rmdir(Ino parent, const std::string& name) = 0;
  virtual Result<> rename(Ino old_parent, const std::string& old_name, Ino new_parent, const std::string& new_name,
                          RenameMode mode) = 0;
  virtual Result<std::string> read_link(Ino ino) = 0;

  // -- directories. A directory handle keeps one page of the listing.
  virtual Result<HandleId> open_directory(Ino ino) = 0;
  /// Entries after `cookie` (0: from the start, "." and ".." first); an empty answer is the end. At most
  /// `max_entries`.
  virtual Result<std::vector<DirectoryEntry>> read_directory(HandleId handle, std::uint64_t cookie,
                                                             std::size_t max_entries) = 0;
  /// The same entries with their attributes, where the kernel may walk by their names without asking (entry_ttl); as
  /// many as `has_room` takes, which is asked for one after the other. What the store does not show for a second comes
  /// without.
  using HasRoom = std::function<bool(const DirectoryEntry&)>;
  virtual Result<std::vector<ListedEntry>> read_directory_plus(HandleId handle, std::uint64_t cookie,
                                                               const HasRoom& has_room) = 0;
  virtual void release_directory(HandleId handle) = 0;

  // -- attributes
  virtual Result<AttributesReply> get_attributes(Ino ino) = 0;
  /// The same, where memory knows it. Never blocks.
  virtual std::optional<AttributesReply> known_attributes(Ino ino) = 0;
  /// not_permitted: mode, owner and ACLs are an owner's to change, whatever the kernel has been told.
  virtual Result<AttributesReply> set_attributes(const Caller&, Ino ino, const SetAttributes&) = 0;
  virtual Result<Bytes> get_xattr(Ino ino, const std::string& name) = 0;
  /// Whether memory knows that get_xattr would find none of that name. Never blocks. The kernel asks for
  /// security.capability before each buffered write, and for the access ACL whenever attributes have timed out.
  virtual bool knows_no_xattr(Ino ino, std::string_view name) = 0;
  virtual Result<std::vector<std::string>> list_xattrs(Ino ino) = 0;
  /// system.posix_acl_access, system.posix_acl_default: ACLs in the kernel's form (`invalid` otherwise), set whatever
  /// `mode` says. An access ACL sets the mode's permissions, and is not kept where they say all of it. `unsupported`:
  /// the volume has no ACLs; or a symlink. permission_denied: a default ACL for what is no directory.
  virtual Result<> set_xattr(Ino ino, const std::string& name, const Bytes& value, XattrMode mode,
                             SetgidBit setgid = SetgidBit::stays, const Caller& caller = {}) = 0;
  /// Of an ACL that is not there: done.
  virtual Result<> remove_xattr(Ino ino, const std::string& name, const Caller& caller = {}) = 0;

  // -- files. `flags` as of open(2); O_TRUNC is done here.
  virtual Result<OpenReply> open(const Caller&, Ino ino, int flags) = 0;
  /// To be called before a read that fills the kernel's pages though the handle bypasses them: it is mapped.
  virtual void is_mapped(HandleId handle) = 0;
  /// Fills the front of `target`, which lives until done; fewer bytes than asked for: the end of the file.
  virtual void read(HandleId handle, std::uint64_t offset, std::span<char> target, ReadDone done) = 0;
  virtual void write(HandleId handle, WriteRequest request, WriteDone done) = 0;
  /// The kernel was not told that a write is done: it may hold pages, and a size, as they were before. Never blocks.
  virtual void write_not_told(Ino ino) = 0;
  using IsHeard = std::function<bool()>;
  /// At each close(2). What was written has reached the store, size and times too, unless it may be stored later
  /// (FileSystemOptions::idle_leases). An error of a write that was answered before is told by each flush of the handles
  /// that were open then, and once by fsync. `is_heard` is asked only where there is one, and must not block: false if
  /// no program gets the answer; the error then counts as told to nobody.
  virtual Result<> flush(
      HandleId handle, const IsHeard& is_heard = [] { return true; }) = 0;
  /// What flush would answer, where it and drop_range_locks would have nothing to do. Never blocks.
  virtual std::optional<Result<>> known_flush(
      HandleId handle, const IsHeard& is_heard = [] { return true; }) = 0;
  virtual Result<> fsync(HandleId handle, bool data_only) = 0;
  /// fallocate(2), with its modes: 0, KEEP_SIZE, PUNCH_HOLE with KEEP_SIZE, ZERO_RANGE with and without; others are
  /// `unsupported`. Nothing is reserved: `no_space` if what lies past the end is more than there is now. What fails may
  /// have zeroed some of the bytes.
  virtual Result<> fallocate(const Caller&, HandleId handle, int mode, std::uint64_t offset,
                             std::uint64_t size_bytes) = 0;
  /// The first data, or hole, at or after that offset; the end of the file is a hole. `no_such_offset`: there is none.
  virtual Result<std::uint64_t> seek(HandleId handle, std::uint64_t offset, SeekTo what) = 0;
  /// How many bytes were copied: fewer than asked for at the end of the source, or after 1 GiB. Holes stay holes.
  /// `invalid`: the ranges are of one file, and overlap. What fails may have copied some of the bytes.
  virtual Result<std::uint64_t> copy_file_range(const Caller&, HandleId source, std::uint64_t source_offset,
                                                HandleId target, std::uint64_t target_offset,
                                                std::uint64_t size_bytes) = 0;
  /// Drops what was locked through the handle, too.
  virtual void release(HandleId handle) = 0;

  // -- locks of regular files (docs/LOCKS.md). None of these blocks; `done` is called by any thread, once.
  using LockDone = std::move_only_function<void(Result<>)>;
  using FindLockDone = std::move_only_function<void(Result<std::optional<LockHeld>>)>;
  /// would_block: another owner has a lock there, and the request does not wait; deadlock; interrupted; no_locks: more
  /// than can be kept. To drop a lock never fails, but for a bad handle.
  virtual void set_lock(const LockRequest& request, LockDone done) = 0;
  /// What would be in the way of that request; nullopt: nothing. LockType::none asks for the owner's own locks.
  virtual void find_lock(const LockRequest& request, FindLockDone done) = 0;
  /// The request for a lock is answered `interrupted`, unless it is answered already; one that is still to come, as soon
  /// as it would have to wait. If a step that was sent before grants the lock later, the lock is dropped again, unless the
  /// owner had one there before.
  virtual void interrupt_lock(std::uint64_t ticket) = 0;
  /// All that wait, and all that would have to from now on, are answered `io`.
  virtual void interrupt_all_locks() = 0;
  /// A process has closed a descriptor of the file: all its range locks go, whatever descriptor they were taken with.
  /// Blocks on the store.
  virtual void drop_range_locks(HandleId handle, std::uint64_t owner) = 0;
  /// The owner has ended, and its range locks of the file stay (nullopt: the handle is closed, and all that was locked
  /// through it stays), because what they were for is not done. Until they are dropped, or the handle is released, they
  /// are `nobody`'s: the kernel may give the owner's number to another. May wait for the store.
  virtual void disown_locks(HandleId handle, std::optional<std::uint64_t> owner, std::uint64_t nobody) = 0;

  virtual Result<> sync_directory(Ino ino) = 0;
  virtual Result<VolumeUsage> usage() = 0;

  // -- the mount
  /// The kernel has forgotten this inode: what was remembered of what it was told goes.
  virtual void forget(Ino ino) = 0;
  /// To be called about once a second: stores what has been dirty for 5 s, looks for other clients.
  virtual void tick() = 0;
  /// Whether this client was fenced, as far as it has heard of it.
  virtual bool fenced() const = 0;
  /// The volume's: how long what was removed is left alone at least.
  virtual std::chrono::seconds grace_period() const = 0;
  /// To be called about once a grace period, or not at all: a pass of the collector (docs/PROTOCOL.md section 5) on
  /// behalf of all clients, with few operations at a time; nothing if another collector has begun one within the
  /// period. By one thread at a time; stopped, it returns after the steps in flight. Not for read-only mounts.
  virtual Result<GarbageReport> collect_garbage(const std::stop_token& stop, const OnGarbageRemoved& on_removed) = 0;
  /// Never waits for the store.
  virtual MountCounts counts() const = 0;
  /// Whom it is asking at this moment to give up, or to store, what it holds of this inode: requests wait for that.
  virtual std::optional<InstanceId> asked_holder(Ino ino) const = 0;
  /// Before the first operation; nullptr: none to tell. Returns when no call to the last one is under way.
  virtual void set_kernel_cache(KernelCache* cache) = 0;
  /// Has the kernel write back what programs have changed through mappings. Waits for that, for so long at most, while
  /// requests are served: not for the thread that receives them.
  virtual void write_back_pages(std::chrono::nanoseconds at_most) = 0;
  /// A clean end: nothing may be in flight. Stores what is dirty, releases leases, ends the instance. An error comes also
  /// after all that, if something that was answered is lost and no program was told (docs/DATA.md section 10).
  virtual Result<> unmount() = 0;
};

/// Starts an instance on the volume in `store`. not_found: there is no volume; unsupported: it is newer than we are.
Result<std::unique_ptr<FileSystem>> mount_volume(std::shared_ptr<ObjectStore> store, Clock& clock,
                                                 const FileSystemOptions& options);

}  // namespace lccfs
