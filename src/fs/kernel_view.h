// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the kernel holds of each file, and when it has to drop it (docs/DATA.md section 9): the attributes that it was
// told, and the pages that it has cached.
//
// Its pages are right as of a stamp of the inode, or, while the lease is ours, as of now: no other client changes the
// bytes then, and what changes them here passes through this kernel. Attributes say nothing about pages: another client
// may have put the times back, and a program may ask for attributes between a change and the next open.
//
// Any thread. Methods that say so block while the kernel reads a page: not for completions, nor for the thread that
// receives requests.
#pragma once

#include <condition_variable>
#include <functional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "fs/inodes.h"
#include "lccfs/file_system.h"

namespace lccfs {

class KernelView {
 public:
  /// nullptr: none to tell; waits for calls that are under way.
  void set(KernelCache* cache);
  /// The kernel holds nothing of the inode any more.
  void forget(Ino ino);

  // -- attributes
  void told(const Attributes& attributes);
  /// Drops them if they are not what the kernel was last told.
  void drop_attributes_unless(const Attributes& now);
  void drop_attributes(Ino ino);
  /// Whether it was told that the file has so many bytes at least.
  bool knows_size(Ino ino, std::uint64_t size_bytes) EXCLUDES(mutex_);

  // -- names
  bool can_keep_names();
  void expire_name(Ino directory, const std::string& name);
  void forget_names();
  /// The same because of a directory. A listing of it that the kernel works on gives its names after that, with the
  /// directory locked: once it is done, all are forgotten again, on a thread of its own.
  void forget_names_of(Ino directory);

  // -- pages
  enum class Holder { nobody, me, another };
  /// An open has read `view`, with that holder of its lease. Drops the pages unless they are right, which it answers;
  /// may block. `buffered`: reads and writes of the handle go through the kernel's pages. To be followed by closed
  /// then.
  bool opened(const Inode& view, Holder holder, bool buffered);
  /// `may_be_mapped`: another handle, that was not counted until now, may be.
  void closed(Ino ino, bool may_be_mapped);
  /// A handle that is not buffered is mapped: it uses pages, too, from now on until it is closed.
  void mapped(Ino ino);
  /// The lease is ours: the bytes have not changed since they were as that stamp says. false: pages of the kernel may be
  /// old.
  bool lease_taken(Ino ino, const objects::BytesStamp& since);
  /// It is not ours any more; the inode was left so.
  void lease_released(Ino ino, const objects::BytesStamp& left);
  /// An own step without the lease has left the bytes alone.
  void stamp_moved(Ino ino, const objects::BytesStamp& from, const objects::BytesStamp& to);
  /// The kernel has put something into its pages that the file has elsewhere: they go, later.
  void pages_are_wrong(Ino ino);
  /// A write has passed by the kernel's pages: they go, and then `done` is called, by this thread or another.
  void drop_written_pages(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes, ThreadPool::Work done);
  /// All of them, if no handle is counted that uses them, which it answers: whoever has mapped the file through a direct
  /// descriptor, and found them there, reads them anew, and is counted then. May block.
  bool drop_unused_pages(Ino ino) EXCLUDES(mutex_);
  void drop_pages_later(Ino ino);
  bool may_hold_pages(Ino ino) EXCLUDES(mutex_);
  /// The kernel, which may not know that another client has made the file larger, is told. Then `done` is called, by
  /// another thread. Where it may hold pages, the last byte has to be right.
  void tell_size(Ino ino, std::uint64_t size_bytes, char last_byte, ThreadPool::Work done);
  /// The lease is about to go to another client: the kernel writes back what programs have changed through a mapping, and
  /// then `done` is called, by this thread or another. Later it would undo what that client writes.
  void write_back_pages(Ino ino, ThreadPool::Work done);
  /// The same of all files that are open. Waits for it, for so long at most.
  void write_back_all(Clock& clock, std::chrono::nanoseconds at_most, const std::function<bool(Ino)>& is_open)
      EXCLUDES(mutex_);
  /// Another client has changed the file: attributes and pages go, as soon as may be, unless `may_go` forbids it. Many
  /// such are one, if they come while pages are being dropped.
  void changed_elsewhere(Ino ino, const std::function<bool()>& may_go) EXCLUDES(mutex_);
  /// `drop` does so, on this thread, unless `may_go` forbids it.
  void drop_now(Ino ino, const std::function<bool()>& may_go, const std::function<void()>& drop) EXCLUDES(mutex_);
  /// Returns when nothing that these two began for the file is under way any more. Blocks.
  void wait_for_changes(Ino ino) EXCLUDES(mutex_);

 private:
  /// What of a file's attributes decides whether the kernel's are still right.
  struct Told {
    std::uint64_t size_bytes = 0;
    TimeSpec mtime, ctime;
    bool operator==(const Told&) const = default;
  };
  /// There is one for each file whose pages the kernel may hold, or whose lease is ours.
  struct Pages {
    bool may_be_held = false;
    /// Forgotten with a handle open: a close is still to come, or a create has found the file, whose answer comes.
    bool is_forgotten = false;
    bool leased = false;
    bool right = true;
    objects::BytesStamp stamp = {};  // not leased: as of which they are right
    unsigned buffered_handles = 0;
    std::uint64_t opens = 0, leases = 0;  // how often so far: tells whether anything came in between
  };
  static Told told_of(const Attributes& attributes);
  static bool right_for(const Pages& pages, const Inode& view, Holder holder);
  static void are_right(Pages& pages, const Inode& view, Holder holder);
  /// nullptr: there is none.
  Pages* find(Ino ino) REQUIRES(mutex_);
  void drop_if_needless(Ino ino) REQUIRES(mutex_);
  std::vector<Ino> with_pages() EXCLUDES(mutex_);
  void drop_pages(Ino ino);
  void drop_changed_pages(Ino ino) EXCLUDES(mutex_);
  void begin_change(Ino ino) EXCLUDES(mutex_);
  void end_change(Ino ino) EXCLUDES(mutex_);
  void drop_written_pages_now(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes) EXCLUDES(mutex_);
  void tell(const std::function<void(KernelCache&)>& what);

  std::shared_mutex cache_mutex_;  // shared by calls to the kernel; exclusive where it is set or taken away
  KernelCache* cache_ = nullptr;
  Mutex mutex_;  // never held during a call
  std::unordered_map<Ino, Told> told_ GUARDED_BY(mutex_);
  std::unordered_map<Ino, Pages> pages_ GUARDED_BY(mutex_);
  // changed_elsewhere and drop_now
  std::unordered_map<Ino, bool> dropping_ GUARDED_BY(mutex_);  // pages; and once more after that
  std::unordered_map<Ino, unsigned> changes_ GUARDED_BY(mutex_);
  std::condition_variable dropped_;
  // Apart from all others: the kernel may let these wait for pages that are being read, and reads may need the file
  // pool.
  ThreadPool page_threads_;
  ThreadPool name_threads_;  // wait for programs that change a directory's names
};

}  // namespace lccfs
