// SPDX-License-Identifier: LGPL-2.1-or-later
// The property of all decoders: what one takes is what its encoder makes of it, and no bytes harm it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "base/bytes.h"
#include "format/records.h"

namespace lccfs::fuzz {

/// Fuzzers end a process that breaks a property.
inline void require(bool holds) {
  if (!holds) std::abort();
}

template <class Record>
void round_trip_of(std::string_view bytes) {
  const auto decoded = format::decode<Record>(bytes);
  if (decoded) {
    require(format::encode(*decoded) == bytes);
  } else {
    require(!decoded.error().context.empty());
  }
}

/// As it is, and under a right checksum, which no fuzzer finds by itself.
template <class Record>
void round_trip(std::string_view bytes) {
  round_trip_of<Record>(bytes);
  ByteWriter sealed;
  sealed.put_raw(bytes);
  sealed.put(crc32c(bytes));
  round_trip_of<Record>(sealed.bytes());
}

/// The first byte of the input chooses one of the records.
template <class... Records>
int choose_and_round_trip(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t chosen = data[0] % sizeof...(Records);
  std::size_t at = 0;
  ((at++ == chosen ? round_trip<Records>(bytes) : void()), ...);
  return 0;
}

}  // namespace lccfs::fuzz
