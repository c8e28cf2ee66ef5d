// SPDX-License-Identifier: LGPL-2.1-or-later
// Data objects against their inodes: M, and T while nobody holds the lease. Names come in as they are listed, and are
// looked at in batches, with at most one read an inode in each. Any thread may call any method.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "check/read_window.h"
#include "check/sink.h"
#include "check/small_files.h"
#include "check/stream.h"
#include "check/volume_facts.h"

namespace lccfs::check {

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

  /// In order.
  Result<> check_batch(ReadWindow& window, std::span<const Object> batch);
  Result<> check_small_file(ReadWindow& window, std::span<const Object> objects, const SmallFile& file);
  Result<> read_file(ReadWindow& window, std::span<const Object> objects);
  Result<> check_objects(ReadWindow& window, std::span<const Object> objects, const ReadWindow::Snapshot& inode);
  void report_unmapped(const Object& object);
  Result<> check_tail(ReadWindow& window, const Object& object, std::uint64_t size_bytes);
  void add_without_inode(std::span<const Object> objects, bool is_no_file);

  ObjectStore& store_;
  const VolumeFacts& facts_;
  Sink& sink_;
  SmallFiles small_files_;
  std::mutex mutex_;  // guards what follows
  std::vector<Object> batch_;
  std::uint64_t objects_ = 0;
  std::map<Ino, WithoutInode> without_inode_;
};

}  // namespace lccfs::check
