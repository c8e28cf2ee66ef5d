// SPDX-License-Identifier: LGPL-2.1-or-later
// Data objects against their inodes: M, and T while no client has the lease. Names come in as they are listed, and are
// looked at in batches, with at most one read an inode in each. Any thread may call any method.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "check/inode_scan.h"
#include "check/sink.h"
#include "check/streaming.h"
#include "check/volume_facts.h"

namespace lccfs::check {

/// Those of small files, so that their inodes need not be read again. A bounded number of them. Any thread.
class SmallFiles {
 public:
  void add(const SmallFile& file);
  /// Those of these inodes that are known. Both in order.
  std::vector<SmallFile> find(const std::vector<Ino>& inodes);

 private:
  static constexpr std::size_t most_files = 1'000'000;

  Mutex mutex_;
  std::vector<SmallFile> files_ GUARDED_BY(mutex_);
  std::size_t in_order_ GUARDED_BY(mutex_) = 0;  // so many of them, from the first
};

class DataCheck {
 public:
  DataCheck(ObjectStore& store, const VolumeFacts& facts, Sink& sink) : store_(store), facts_(facts), sink_(sink) {}

  void remember(const SmallFile& file) { small_files_.add(file); }
  /// Looks at a batch when there is one.
  Result<> add(ReadWindow& window, Ino ino, ObjectIndex index);
  /// What is left.
  Result<> finish(const Effort& effort);
  std::uint64_t objects();

 private:
  using Object = std::pair<Ino, ObjectIndex>;
  struct WithoutInode {
    ObjectIndex first;
    std::uint64_t count = 0;
    bool is_no_file = false;
  };

  bool is_to_get_its_inode(Ino ino, const WithoutInode& objects) const;
  /// In order.
  Result<> check_batch(ReadWindow& window, std::span<const Object> batch);
  Result<> check_small_file(ReadWindow& window, std::span<const Object> objects, const SmallFile& file);
  Result<> read_file(ReadWindow& window, std::span<const Object> objects);
  Result<> check_objects(ReadWindow& window, std::span<const Object> objects, const ReadWindow::Found& inode);
  void report_unmapped(const Object& object);
  Result<> check_tail(ReadWindow& window, const Object& object, std::uint64_t size_bytes);
  void add_without_inode(std::span<const Object> objects, bool is_no_file);

  ObjectStore& store_;
  const VolumeFacts& facts_;
  Sink& sink_;
  SmallFiles small_files_;
  Mutex mutex_;
  std::vector<Object> batch_ GUARDED_BY(mutex_);
  std::uint64_t objects_ GUARDED_BY(mutex_) = 0;
  std::map<Ino, WithoutInode> without_inode_ GUARDED_BY(mutex_);
};

}  // namespace lccfs::check
