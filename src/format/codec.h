// SPDX-License-Identifier: LGPL-2.1-or-later
// What all codecs share. Each record has one function, fields(io, record), that names its fields in order, with what
// must hold of them; `io` is a RecordWriter, which takes them, or a RecordReader, which gives and checks them.
// By hand: no serializer promises equal bytes for equal records for as long as volumes last.
#pragma once

#include <algorithm>
#include <bit>
#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "format/records.h"

namespace lccfs::format {

inline constexpr std::uint8_t record_version = 1;
inline constexpr std::size_t checksum_bytes = 4;

/// `const Record` when it is written, `Record` when it is read.
template <class T, class Record>
concept Is = std::same_as<std::remove_const_t<T>, Record>;

void fields(auto& io, Is<Ino> auto& ino) { io(ino.value); }
void fields(auto& io, Is<InstanceId> auto& instance) { io(instance.value); }
void fields(auto& io, Is<Token> auto& token) { io(token.instance, token.number); }
void fields(auto& io, Is<TimeSpec> auto& time) {
  io(time.seconds, time.nanoseconds);
  io.require(time.nanoseconds < 1'000'000'000, "nanoseconds out of range");
}

/// Writes whatever the record holds: only what is read is checked.
class RecordWriter {
 public:
  RecordWriter& begin(const char*) { return *this; }
  std::uint8_t version(std::uint8_t version = record_version, std::uint8_t = record_version) {
    out_.put(version);
    return version;
  }
  void operator()(const auto&... values) { (field(values), ...); }
  void enumeration(auto value, auto) { out_.put(static_cast<std::uint8_t>(value)); }
  void constant(std::string_view bytes, const char*) { out_.put_raw(bytes); }
  void string(const std::string& text, std::size_t) { out_.put_string(text); }
  template <std::size_t size>
  void raw(const std::array<std::uint8_t, size>& bytes) {
    out_.put_raw({reinterpret_cast<const char*>(bytes.data()), size});
  }
  template <std::size_t size>
  void bits(const std::bitset<size>& bits) {
    for (std::size_t byte = 0; byte < size / 8; ++byte) {
      unsigned value = 0;
      for (std::size_t bit = 0; bit < 8; ++bit) value |= (bits[byte * 8 + bit] ? 1U : 0U) << bit;
      out_.put(static_cast<std::uint8_t>(value));
    }
  }
  void list(const auto& values, std::uint32_t, const char*) {
    out_.put(static_cast<std::uint32_t>(values.size()));
    for (const auto& value : values) (*this)(value);
  }
  const auto& present(const auto& optional) { return *optional; }
  void require(bool, const char*) {}
  void know(bool, const std::string&) {}

  Bytes finish() {
    out_.put(crc32c(out_.bytes()));
    return out_.take();
  }

 private:
  template <class T>
  void field(const T& value) {
    if constexpr (std::same_as<T, bool>) {
      out_.put(static_cast<std::uint8_t>(value));
    } else if constexpr (std::integral<T>) {
      out_.put(static_cast<std::make_unsigned_t<T>>(value));
    } else {
      fields(*this, value);
    }
  }

  ByteWriter out_;
};

/// Reads a record; of what is wrong it keeps the first. Fields after that are zero.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes)
      : bytes_(bytes), fields_(bytes.substr(0, bytes.size() - std::min(bytes.size(), checksum_bytes))) {}

  /// Checks the ends. The record's name is for errors.
  RecordReader& begin(const char* record) {
    record_ = record;
    if (bytes_.size() < 1 + checksum_bytes) {
      refuse(bytes_.size(), "too short");
    } else {
      const auto end = bytes_.size() - checksum_bytes;
      if (ByteReader(bytes_.substr(end)).get<std::uint32_t>() != crc32c(bytes_.substr(0, end))) {
        refuse(end, "wrong checksum");
      }
    }
    return *this;
  }
  std::uint8_t version(std::uint8_t = record_version, std::uint8_t newest = record_version) {
    const auto found = get<std::uint8_t>();
    know(found <= newest, "written by a newer version");
    if (found < record_version) refuse(position() - 1, "no such version");
    return found;
  }
  void operator()(auto&... values) { (field(values), ...); }
  /// Its values are 1 to `last`.
  template <class Enum>
  void enumeration(Enum& value, Enum last) {
    const auto found = get<std::uint8_t>();
    require(found >= 1 && found <= static_cast<std::uint8_t>(last), "no such value");
    value = static_cast<Enum>(found);
  }
  void constant(std::string_view bytes, const char* otherwise) { require(take(bytes.size()) == bytes, otherwise); }
  void string(std::string& text, std::size_t limit) {
    const auto size = get<std::uint32_t>();
    require(size <= limit, "too long");
    if (size <= limit) text = take(size);
  }
  template <std::size_t size>
  void raw(std::array<std::uint8_t, size>& bytes) {
    std::ranges::copy(take(size), bytes.begin());
  }
  template <std::size_t size>
  void bits(std::bitset<size>& bits) {
    const auto raw = take(size / 8);
    for (std::size_t byte = 0; byte < raw.size(); ++byte) {
      for (unsigned left = static_cast<unsigned char>(raw[byte]); left != 0; left &= left - 1) {
        bits.set(byte * 8 + static_cast<std::size_t>(std::countr_zero(left)));
      }
    }
  }
  template <class T>
  void list(std::vector<T>& values, std::uint32_t limit, const char* otherwise) {
    const auto count = get<std::uint32_t>();
    require(count <= limit, otherwise);
    for (std::uint32_t i = 0; i < count && !error_; ++i) (*this)(values.emplace_back());
  }
  auto& present(auto& optional) { return optional.emplace(); }
  void require(bool holds, const char* what) {
    if (!holds) refuse(position(), what);
  }
  /// What does not hold is not damage: a newer version has written this.
  void know(bool holds, const std::string& what) {
    if (!holds && !error_) error_ = Error{ErrorCode::unsupported, std::string(record_) + ": " + what};
  }

  /// Nothing may be left but the checksum.
  Result<> finish() {
    if (fields_.good() && fields_.left() != 0) refuse(position(), "trailing bytes");
    if (error_) return std::unexpected(std::move(*error_));
    return {};
  }

 private:
  template <class T>
  void field(T& value) {
    if constexpr (std::same_as<T, bool>) {
      const auto found = get<std::uint8_t>();
      require(found <= 1, "no such value");
      value = found == 1;
    } else if constexpr (std::integral<T>) {
      value = static_cast<T>(get<std::make_unsigned_t<T>>());
    } else {
      fields(*this, value);
    }
  }
  template <class T>
  T get() {
    const auto at = position();
    const T value = fields_.get<T>();
    if (!fields_.good()) refuse(at, "cut short");
    return value;
  }
  std::string_view take(std::size_t size) {
    const auto at = position();
    const auto value = fields_.get_raw(size);
    if (!fields_.good()) refuse(at, "cut short");
    return value;
  }
  std::size_t position() const { return fields_.position(); }
  void refuse(std::size_t at, const char* what) {
    if (error_) return;
    error_ = Error{ErrorCode::corrupt, std::string(record_) + ": byte " + std::to_string(at) + " of " +
                                           std::to_string(bytes_.size()) + ": " + what};
  }

  const char* record_ = "";
  const std::string_view bytes_;
  ByteReader fields_;
  std::optional<Error> error_;
};

template <class Record>
Bytes written(const Record& record) {
  RecordWriter out;
  fields(out, record);
  return out.finish();
}

template <class Record>
Result<Record> read(std::string_view bytes) {
  RecordReader in(bytes);
  Record record;
  fields(in, record);
  LCCFS_CHECK(in.finish());
  return record;
}

/// After the fields of a record, once. (Specialized: where other files are compiled with these, they must not try.)
#define LCCFS_RECORD(Record)                      \
  template <>                                     \
  Bytes encode(const Record& record) {            \
    return written(record);                       \
  }                                               \
  template <>                                     \
  Result<Record> decode(std::string_view bytes) { \
    return read<Record>(bytes);                   \
  }

}  // namespace lccfs::format
