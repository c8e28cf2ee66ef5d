// SPDX-License-Identifier: LGPL-2.1-or-later
// Inode numbers, which are handed out one after the other: a bit for each. One thread.
#pragma once

#include <bitset>
#include <unordered_map>

#include "lccfs/types.h"

namespace lccfs::survey {

class InoSet {
 public:
  /// false: it was there already.
  bool insert(Ino ino) {
    auto bit = blocks_[ino.value / block_bits][ino.value % block_bits];
    const bool is_new = !bit;
    bit = true;
    return is_new;
  }
  bool contains(Ino ino) const {
    const auto block = blocks_.find(ino.value / block_bits);
    return block != blocks_.end() && block->second[ino.value % block_bits];
  }

 private:
  static constexpr std::size_t block_bits = 4096;
  std::unordered_map<std::uint64_t, std::bitset<block_bits>> blocks_;
};

}  // namespace lccfs::survey
