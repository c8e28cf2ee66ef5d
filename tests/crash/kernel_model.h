// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What Linux's fs/fuse keeps between a program's calls and one FileSystem, as far as it decides what programs see:
// names and attributes for as long as they were given out, pages, and which requests a call becomes. Without the
// kernel's writeback cache, with AUTO_INVAL_DATA, ATOMIC_O_TRUNC and asynchronous direct I/O, as src/fuse asks for.
//
// One program's call runs at a time. Others run in the midst of it: `between` is called before each request is sent and
// when it is done, before its answer is looked at. The file system's own threads may tell of what is to be dropped at
// any time.
#pragma once

#include <fcntl.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lccfs/file_system.h"

namespace lccfs::crash {

/// What the kernel asks for before each buffered write.
inline constexpr const char* capability = "security.capability";
inline bool appends(int flags) { return (flags & O_APPEND) != 0; }

class KernelModel final : public KernelCache {
 public:
  /// Small, so that short files have several.
  static constexpr std::uint64_t page_size_bytes = 16;
  /// Of one request.
  static constexpr std::uint64_t most_pages = 4;
  static constexpr std::uint64_t most_bytes_at_once = most_pages * page_size_bytes;

  struct OpenFile {
    Ino ino;
    HandleId handle;
    int flags = 0;        ///< as fcntl has left them
    bool direct = false;  ///< the file system wants it to pass by the pages
    unsigned maps = 0;
    bool is_closed = false;
  };
  using Descriptor = std::shared_ptr<OpenFile>;
  /// A direct write that nobody waits for: sent, then done by the file system, then known to be done.
  struct AsyncWrite {
    Descriptor file;
    std::uint64_t offset_bytes = 0;
    std::string bytes;
    Result<> result;
  };
  /// What would make another call of this mount wait.
  struct Busy {
    bool names = false;    ///< a directory is locked
    bool inode = false;    ///< an inode is locked
    bool pages = false;    ///< pages are being read or written
    bool request = false;  ///< the file system is at work
  };

  KernelModel(FileSystem& file_system, Clock& clock, std::function<void()> between);
  ~KernelModel() override;

  // -- what programs call
  Result<Descriptor> open(const std::string& path, int flags);
  Result<> close(const Descriptor& file);
  Result<std::string> read(const Descriptor& file, std::uint64_t offset_bytes, std::size_t size_bytes);
  Result<> write(const Descriptor& file, std::uint64_t offset_bytes, const std::string& bytes);
  Result<> truncate(const Descriptor& file, std::uint64_t size_bytes);
  Result<> fsync(const Descriptor& file, bool data_only);
  /// Shared and writable where the descriptor is. unsupported: it cannot be mapped (ENODEV).
  Result<> map(const Descriptor& file);
  Result<> unmap(const Descriptor& file);
  /// Of mapped bytes; invalid: past the last page (SIGBUS).
  Result<std::string> load(const Descriptor& file, std::uint64_t offset_bytes, std::size_t size_bytes);
  Result<> store(const Descriptor& file, std::uint64_t offset_bytes, const std::string& bytes);
  Result<AsyncWrite> begin_write(const Descriptor& file, std::uint64_t offset_bytes, const std::string& bytes);
  void do_write(AsyncWrite& write);
  Result<> end_write(const AsyncWrite& write);

  Result<Attributes> stat(const std::string& path);
  Result<> chmod(const std::string& path, std::uint32_t mode);
  Result<> set_mtime(const std::string& path, TimeSpec mtime);
  Result<> set_xattr(const std::string& path, const std::string& name, const Bytes& value);
  Result<> unlink(const std::string& path);
  Result<> rmdir(const std::string& path);
  Result<> mkdir(const std::string& path, std::uint32_t mode);
  Result<> rename(const std::string& from, const std::string& to);
  Result<std::vector<std::string>> list(const std::string& path);
  /// Memory is short: everything goes that no program holds.
  void forget();

  // -- KernelCache
  void invalidate_attributes(Ino ino) override;
  void invalidate_pages(Ino ino) override;
  void invalidate_page_range(Ino ino, std::uint64_t offset_bytes, std::uint64_t size_bytes) override;
  void raise_size(Ino ino, std::uint64_t size_bytes, char last_byte) override;
  bool can_keep_names() const override { return true; }
  void expire_name(Ino directory, const std::string& name) override;
  void forget_names() override { ++epoch_; }

  /// Waits until what the file system was about to say has been heard: who drops pages says first, in the course of a
  /// request, that attributes are old, and then, on a thread of its own, that pages are.
  void settle();
  Busy busy() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Page {
    std::string bytes = std::string(page_size_bytes, '\0');
    bool up_to_date = false, dirty = false, locked = false, to_be_dropped = false;
  };
  struct Inode {
    Attributes attributes;
    std::chrono::nanoseconds attributes_until{0};
    std::uint64_t changed = 0;  ///< fuse_inode::attr_version: answers to older questions are not believed
    bool size_unstable = false;
    std::map<std::uint64_t, Page> pages;
    std::list<std::weak_ptr<OpenFile>> mapped_for_writing;
    unsigned descriptors = 0;
  };
  struct Name {
    Ino ino;
    std::chrono::nanoseconds until{0};
    unsigned epoch = 0;
  };
  struct Place {
    Ino parent;
    std::string name;
  };
  class Held;

  template <class Send>
  auto request(Lock& lock, Send send);
  template <class Function>
  auto on_path(Function function);
  Result<std::string> read_request(Lock& lock, const OpenFile& file, std::uint64_t offset_bytes,
                                   std::size_t size_bytes);
  Result<> write_request(Lock& lock, const OpenFile& file, std::uint64_t offset_bytes, std::string bytes,
                         bool of_pages);

  // -- names and attributes
  Result<Ino> walk(Lock& lock, const std::string& path, bool anew);
  Result<Place> place(Lock& lock, const std::string& path, bool anew);
  Result<EntryReply> told(const Place& at, Result<EntryReply> entry);
  Name name_of(const EntryReply& entry, unsigned epoch) const;
  Result<Ino> look_up(Lock& lock, const Place& at, bool anew);
  Inode& learn(Lock& lock, const EntryReply& entry, std::uint64_t asked_at);
  void learn(Lock& lock, Inode& inode, const Attributes& attributes, std::chrono::nanoseconds ttl,
             std::uint64_t asked_at);
  Result<> refresh(Lock& lock, Inode& inode);
  Result<> set_attributes(Lock& lock, Inode& inode, const SetAttributes& changes);
  void was_written(Inode& inode, std::uint64_t end_bytes);
  Inode& inode(Ino ino) { return inodes_.at(ino); }

  // -- pages
  Result<std::string> page(Lock& lock, Inode& inode, const OpenFile& file, std::uint64_t index, std::uint64_t last);
  Result<> write_back(Lock& lock, Inode& inode, std::uint64_t first, std::uint64_t last);
  void drop(Lock& lock, Inode& inode, std::uint64_t first = 0, std::uint64_t last = ~std::uint64_t{0});
  static void cut_pages(Inode& inode, std::uint64_t size_bytes);
  void unlock(Inode& inode, std::uint64_t index);
  void invalidate(Ino ino, std::uint64_t first, std::uint64_t last);

  // -- parts of the calls
  Result<Descriptor> open_anew(const std::string& path, int flags, bool anew);
  Result<Descriptor> opened(Lock& lock, Inode& inode, const std::string& answer, int flags, bool is_new);
  Result<std::string> read_buffered(Lock& lock, Inode& inode, const OpenFile& file, std::uint64_t offset_bytes,
                                    std::size_t size_bytes);
  Result<std::string> read_direct(Lock& lock, Inode& inode, const OpenFile& file, std::uint64_t offset_bytes,
                                  std::size_t size_bytes);
  Result<> write_buffered(Lock& lock, Inode& inode, const OpenFile& file, std::uint64_t offset_bytes,
                          const std::string& bytes);
  Result<> write_pages(Lock& lock, Inode& inode, const OpenFile& file, std::uint64_t offset_bytes,
                       const std::string& bytes);
  Result<> write_direct(Lock& lock, Inode& inode, const OpenFile& file, std::uint64_t offset_bytes,
                        const std::string& bytes);
  Result<> remove_capability(Lock& lock, Inode& inode);
  Result<> sync(Lock& lock, const OpenFile& file, bool data_only);
  void release(Lock& lock, const OpenFile& file);

  FileSystem& file_system_;
  Clock& clock_;
  const std::function<void()> between_;

  mutable std::mutex mutex_;  // let go of while a request is under way
  std::condition_variable heard_;
  std::uint64_t changes_ = 1;  // fuse_conn::attr_version
  std::map<std::pair<Ino, std::string>, Name> names_;
  std::atomic<unsigned> epoch_ = 0;  // fuse_conn::epoch
  std::map<Ino, Inode> inodes_;
  unsigned names_busy_ = 0, inodes_busy_ = 0, pages_busy_ = 0, requests_ = 0;
  std::uint64_t announced_ = 0, heard_of_ = 0;
};

}  // namespace lccfs::crash
