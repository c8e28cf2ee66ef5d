// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/local/object_head.h"

#include <utility>

#include "base/bytes.h"

namespace lccfs::local {

Bytes encode(const ObjectHead& head) {
  ByteWriter out;
  out.put(head.version);
  out.put_string(head.payload);
  out.put(static_cast<std::uint32_t>(head.xattrs.size()));
  for (const auto& [name, value] : head.xattrs) {
    out.put_string(name);
    out.put_string(value);
  }
  return out.take();
}

std::optional<ObjectHead> decode_head(std::string_view bytes) {
  ByteReader in(bytes);
  ObjectHead head;
  head.version = in.get<std::uint64_t>();
  head.payload = in.get_string();
  for (auto xattrs = in.get<std::uint32_t>(); xattrs > 0 && in.good(); --xattrs) {
    auto name = in.get_string();
    head.xattrs.insert_or_assign(std::move(name), in.get_string());
  }
  if (!in.good() || in.left() > 0) return std::nullopt;
  return head;
}

Bytes encode_number(std::uint64_t number) {
  ByteWriter out;
  out.put(number);
  return out.take();
}

std::optional<std::uint64_t> decode_number(std::string_view bytes) {
  ByteReader in(bytes);
  const auto number = in.get<std::uint64_t>();
  if (!in.good() || in.left() > 0) return std::nullopt;
  return number;
}

}  // namespace lccfs::local
