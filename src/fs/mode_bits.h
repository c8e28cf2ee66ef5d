// SPDX-License-Identifier: LGPL-2.1-or-later
// Bits of a mode, as chmod(2) has them.
#pragma once

#include <cstdint>

namespace lccfs {

inline constexpr std::uint32_t permission_bits = 07777;  // all that chmod sets
inline constexpr std::uint32_t access_bits = 00777;      // what owner, group and others may do
inline constexpr std::uint32_t setuid_bit = 04000;
inline constexpr std::uint32_t setgid_bit = 02000;
inline constexpr std::uint32_t owner_read_bit = 00400;
inline constexpr std::uint32_t owner_write_bit = 00200;
inline constexpr std::uint32_t group_execute_bit = 00010;

/// What a user's write, and any chown, leaves of the mode of a file.
constexpr std::uint32_t without_privileges(std::uint32_t mode) {
  return mode & ~(setuid_bit | ((mode & group_execute_bit) != 0 ? setgid_bit : 0));
}

}  // namespace lccfs
