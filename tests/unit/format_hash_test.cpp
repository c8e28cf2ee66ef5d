// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/bytes.h"
#include "format/siphash.h"
#include "support/catch.h"

namespace lccfs::format {
namespace {

TEST_CASE("CRC-32C gives its check values") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xE3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);  // RFC 3720, B.4
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43);
}

TEST_CASE("SipHash-2-4 gives the vectors of its reference") {
  std::array<std::uint8_t, 16> key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  std::string message;
  // Of the message 00 01 02 ... of that many bytes.
  const std::uint64_t expected[] = {0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
                                    0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
                                    0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
                                    0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5};
  for (const auto hash : expected) {
    CHECK(siphash(key, message) == hash);
    message.push_back(static_cast<char>(message.size()));
  }
}

}  // namespace
}  // namespace lccfs::format
