// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/object_head.h"

#include <concepts>
#include <utility>

namespace lccfs::local {
namespace {

template <std::unsigned_integral Number>
void append(Bytes& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) out.push_back(static_cast<char>((number >> (8 * i)) & 0xff));
}

void append(Bytes& out, std::string_view text) {
  append(out, static_cast<std::uint32_t>(text.size()));
  out.append(text);
}

/// Takes values off the front of `bytes`; false: there are not enough of them.
template <std::unsigned_integral Number>
bool take(std::string_view& bytes, Number& number) {
  if (bytes.size() < sizeof number) return false;
  number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number |= static_cast<Number>(Number{static_cast<unsigned char>(bytes[i])} << (8 * i));
  bytes.remove_prefix(sizeof number);
  return true;
}

bool take(std::string_view& bytes, std::string& text) {
  std::uint32_t size = 0;
  if (!take(bytes, size) || bytes.size() < size) return false;
  text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

}  // namespace

Bytes encode(const ObjectHead& head) {
  Bytes out;
  append(out, head.version);
  append(out, head.payload);
  append(out, static_cast<std::uint32_t>(head.xattrs.size()));
  for (const auto& [name, value] : head.xattrs) {
    append(out, name);
    append(out, value);
  }
  return out;
}

std::optional<ObjectHead> decode_head(std::string_view bytes) {
  ObjectHead head;
  std::uint32_t xattrs = 0;
  if (!take(bytes, head.version) || !take(bytes, head.payload) || !take(bytes, xattrs)) return std::nullopt;
  for (; xattrs > 0; --xattrs) {
    std::string name;
    Bytes value;
    if (!take(bytes, name) || !take(bytes, value)) return std::nullopt;
    head.xattrs.insert_or_assign(std::move(name), std::move(value));
  }
  if (!bytes.empty()) return std::nullopt;
  return head;
}

Bytes encode_number(std::uint64_t number) {
  Bytes out;
  append(out, number);
  return out;
}

std::optional<std::uint64_t> decode_number(std::string_view bytes) {
  std::uint64_t number = 0;
  if (!take(bytes, number) || !bytes.empty()) return std::nullopt;
  return number;
}

}  // namespace lccfs::local
