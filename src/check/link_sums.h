// SPDX-License-Identifier: LGPL-2.1-or-later
// Sets of links as sums: two sets that have the same sum and number are taken for the same. Each link adds 64
// well-mixed bits, so sets that differ have one sum once in 2^64. Pure functions.
#pragma once

#include <cstdint>

#include "lccfs/types.h"

namespace lccfs::check {

struct LinkSum {
  std::uint64_t sum = 0;
  std::uint64_t count = 0;

  LinkSum& operator+=(const LinkSum& other) {
    sum += other.sum;
    count += other.count;
    return *this;
  }
  friend LinkSum operator-(const LinkSum& left, const LinkSum& right) {
    return {left.sum - right.sum, left.count - right.count};
  }
  bool operator==(const LinkSum&) const = default;
};

/// The finalizer of MurmurHash3.
constexpr std::uint64_t mix_bits(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdU;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53U;
  return value ^ (value >> 33);
}
constexpr std::uint64_t mix_bits(std::uint64_t first, std::uint64_t second) {
  return mix_bits(mix_bits(first + 0x9e3779b97f4a7c15U) + second);
}

/// That `directory` names the inode.
constexpr LinkSum link(Ino directory, Ino ino, FileType type) {
  return {mix_bits(mix_bits(directory.value, ino.value), static_cast<std::uint64_t>(type)), 1};
}
/// That a directory names the inode by that name.
constexpr LinkSum name_link(Ino ino, std::uint64_t name_hash) { return {mix_bits(ino.value, name_hash), 1}; }

}  // namespace lccfs::check
