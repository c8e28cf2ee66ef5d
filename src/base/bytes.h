// SPDX-License-Identifier: LGPL-2.1-or-later
// Little-endian fields, written and read within bounds. Any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "lccfs/types.h"

namespace lccfs {

class ByteWriter {
 public:
  template <std::unsigned_integral T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }
  void put_raw(std::string_view bytes) { bytes_.append(bytes); }
  /// Led by its length.
  void put_string(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    put_raw(text);
  }
  const Bytes& bytes() const { return bytes_; }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// Reads past the end answer zeros, and are remembered: ask good() once, after the last field.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <std::unsigned_integral T>
  T get() {
    const auto raw = get_raw(sizeof(T));
    T value = 0;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      value = static_cast<T>(value | (static_cast<T>(static_cast<unsigned char>(raw[i])) << (8 * i)));
    }
    return value;
  }
  std::string_view get_raw(std::size_t size) {
    if (size > bytes_.size() - position_) {
      good_ = false;
      return {};
    }
    const auto raw = bytes_.substr(position_, size);
    position_ += size;
    return raw;
  }
  std::string get_string() { return std::string(get_raw(get<std::uint32_t>())); }

  bool good() const { return good_; }
  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }

 private:
  const std::string_view bytes_;
  std::size_t position_ = 0;
  bool good_ = true;
};

/// CRC-32C (Castagnoli).
std::uint32_t crc32c(std::string_view bytes);

}  // namespace lccfs
