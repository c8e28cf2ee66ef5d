// SPDX-License-Identifier: LGPL-2.1-or-later
// What data objects are judged by, kept of small files so that their inodes need not be read again. A bounded number of
// them: it only saves reads. Any thread may call any method.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "lccfs/types.h"

namespace lccfs::check {

struct SmallFile {
  static constexpr unsigned most_objects = 64;

  Ino ino;
  std::uint64_t size_bytes : 63 = 0;
  std::uint64_t is_leased : 1 = 0;
  std::uint64_t may_exist = 0;  ///< of the first objects; there are no others
};
static_assert(sizeof(SmallFile) == 24);

class SmallFiles {
 public:
  void add(const SmallFile& file);
  /// Those of these inodes that are known. Both in order.
  std::vector<SmallFile> find(const std::vector<Ino>& inodes);

 private:
  static constexpr std::size_t most_files = 1'000'000;

  std::mutex mutex_;
  std::vector<SmallFile> files_;
  std::size_t in_order_ = 0;  // so many of them, from the first
};

}  // namespace lccfs::check
