// SPDX-License-Identifier: LGPL-2.1-or-later
#include "format/siphash.h"

#include <bit>

#include "base/bytes.h"

namespace lccfs::format {
namespace {

struct State {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void absorb(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

std::uint64_t siphash(const std::array<std::uint8_t, 16>& key, std::string_view bytes) {
  ByteReader halves({reinterpret_cast<const char*>(key.data()), key.size()});
  const auto k0 = halves.get<std::uint64_t>();
  const auto k1 = halves.get<std::uint64_t>();
  State state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573};
  ByteReader reader(bytes);
  while (reader.left() >= 8) state.absorb(reader.get<std::uint64_t>());
  std::uint64_t last = std::uint64_t{bytes.size()} << 56;
  for (unsigned shift = 0; reader.left() > 0; shift += 8) last |= std::uint64_t{reader.get<std::uint8_t>()} << shift;
  state.absorb(last);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace lccfs::format
