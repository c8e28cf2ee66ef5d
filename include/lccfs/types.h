// SPDX-License-Identifier: LGPL-2.1-or-later
// Strong types that every layer shares. Values only: no thread rules.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace lccfs {

/// Bytes of a record, a payload or a key's value. Not text, though a std::string holds them.
using Bytes = std::string;

/// An inode number: never reused within a volume, also the FUSE node id. 0 names no inode.
struct Ino {
  std::uint64_t value = 0;
  auto operator<=>(const Ino&) const = default;
};
inline constexpr Ino root_ino{1};

/// The number of a store client (mount, collector, ...): docs/PROTOCOL.md section 2. 0 names none.
struct InstanceId {
  std::uint64_t value = 0;
  auto operator<=>(const InstanceId&) const = default;
};

/// (instance, number): unique for ever, rising within an instance; every trace of a step carries one.
struct Token {
  InstanceId instance;
  std::uint64_t number = 0;
  auto operator<=>(const Token&) const = default;
};

/// The position of a data object in its file: byte offset divided by the volume's object size.
struct ObjectIndex {
  std::uint64_t value = 0;
  auto operator<=>(const ObjectIndex&) const = default;
};

/// A point of time as POSIX has it; nanoseconds is below 1,000,000,000.
struct TimeSpec {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
  auto operator<=>(const TimeSpec&) const = default;
};

enum class FileType : std::uint8_t {
  regular = 1,
  directory = 2,
  symlink = 3,
  fifo = 4,
  socket = 5,
  character_device = 6,
  block_device = 7,
};

}  // namespace lccfs

template <>
struct std::hash<lccfs::Ino> {
  std::size_t operator()(lccfs::Ino ino) const noexcept { return std::hash<std::uint64_t>{}(ino.value); }
};

template <>
struct std::hash<lccfs::InstanceId> {
  std::size_t operator()(lccfs::InstanceId id) const noexcept { return std::hash<std::uint64_t>{}(id.value); }
};
