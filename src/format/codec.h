// SPDX-License-Identifier: LGPL-2.1-or-later
// What all codecs share: how a record begins and ends, and how its errors read.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "lccfs/result.h"
#include "lccfs/types.h"

namespace lccfs::format {

inline constexpr std::uint8_t record_version = 1;
inline constexpr std::size_t checksum_bytes = 4;

/// Begins a record with its version byte, and ends it with the checksum.
class RecordWriter : public ByteWriter {
 public:
  explicit RecordWriter(std::uint8_t version = record_version) { put(version); }
  void put_time(TimeSpec time) {
    put(static_cast<std::uint64_t>(time.seconds));
    put(time.nanoseconds);
  }
  void put_token(Token token) {
    put(token.instance.value);
    put(token.number);
  }
  Bytes finish() {
    put(crc32c(bytes()));
    return take();
  }
};

/// Checks a record's ends, and hands out its fields.
class RecordReader {
 public:
  RecordReader(const char* record, std::string_view bytes)
      : record_(record),
        bytes_(bytes),
        fields_(bytes.substr(0, bytes.size() - std::min(bytes.size(), checksum_bytes))) {
    if (bytes.size() < 1 + checksum_bytes) {
      refuse(bytes.size(), "too short");
      return;
    }
    ByteReader checksum(bytes.substr(bytes.size() - checksum_bytes));
    if (checksum.get<std::uint32_t>() != crc32c(bytes.substr(0, bytes.size() - checksum_bytes))) {
      refuse(bytes.size() - checksum_bytes, "wrong checksum");
    }
  }

  /// The version byte; to be called where it stands.
  std::uint8_t version(std::uint8_t newest = record_version) {
    const auto found = get<std::uint8_t>();
    if ((found >= record_version && found <= newest) || error_) return found;
    if (found > newest) {
      error_ = Error{ErrorCode::unsupported, std::string(record_) + ": written by a newer version"};
    } else {
      refuse(position() - 1, "no such version");
    }
    return found;
  }
  template <class T>
  T get() {
    const auto at = position();
    const T value = fields_.get<T>();
    if (!fields_.good()) refuse(at, "cut short");
    return value;
  }
  std::string_view raw(std::size_t size) {
    const auto at = position();
    const auto value = fields_.get_raw(size);
    if (!fields_.good()) refuse(at, "cut short");
    return value;
  }
  std::string string(std::size_t limit) {
    const auto size = get<std::uint32_t>();
    if (size > limit) {
      refuse(position(), "too long");
      return {};
    }
    return std::string(raw(size));
  }
  TimeSpec time() {
    TimeSpec time;
    time.seconds = static_cast<std::int64_t>(get<std::uint64_t>());
    time.nanoseconds = get<std::uint32_t>();
    require(time.nanoseconds < 1'000'000'000, "nanoseconds out of range");
    return time;
  }
  Token token() {
    Token token;
    token.instance.value = get<std::uint64_t>();
    token.number = get<std::uint64_t>();
    return token;
  }
  /// An enumeration whose values are 1 to `last`.
  template <class Enum>
  Enum enumeration(Enum last) {
    const auto value = get<std::uint8_t>();
    require(value >= 1 && value <= static_cast<std::uint8_t>(last), "no such value");
    return static_cast<Enum>(value);
  }
  void require(bool holds, const char* what) {
    if (!holds) refuse(position(), what);
  }

  bool good() const { return !error_; }

  /// Nothing may be left but the checksum.
  Result<> finish() {
    if (fields_.good() && fields_.left() != 0) refuse(position(), "trailing bytes");
    if (error_) return std::unexpected(std::move(*error_));
    return {};
  }

 private:
  std::size_t position() const { return fields_.position(); }
  void refuse(std::size_t at, const char* what) {
    if (error_) return;
    error_ = Error{ErrorCode::corrupt, std::string(record_) + ": byte " + std::to_string(at) + " of " +
                                           std::to_string(bytes_.size()) + ": " + what};
  }

  const char* const record_;
  const std::string_view bytes_;
  ByteReader fields_;
  std::optional<Error> error_;
};

}  // namespace lccfs::format
