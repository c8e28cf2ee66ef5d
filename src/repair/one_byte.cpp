// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A checksum is linear: what a changed byte does to it depends only on the change and on how many bytes follow, never
// on the other bytes. So the difference between the stored checksum and the right one is compared with what each change
// would do, from the last byte to the first.
#include "repair/one_byte.h"

#include <array>
#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace lccfs::repair {

namespace {

constexpr std::size_t checksum_bytes = 4;
constexpr std::uint32_t polynomial = 0x82F63B78;  // CRC-32C, its bits reversed

using PerByte = std::array<std::uint32_t, 256>;

constexpr PerByte effects_of_a_last_byte() {
  PerByte effects{};
  for (std::uint32_t change = 0; change < effects.size(); ++change) {
    std::uint32_t effect = change;
    for (int bit = 0; bit < 8; ++bit) effect = (effect >> 1) ^ ((effect & 1) != 0 ? polynomial : 0);
    effects[change] = effect;
  }
  return effects;
}

constexpr PerByte last_byte = effects_of_a_last_byte();

char changed(char byte, std::uint32_t change) {
  return static_cast<char>(static_cast<unsigned char>(byte) ^ static_cast<unsigned char>(change));
}

std::vector<Bytes> candidates(std::string_view bytes) {
  std::vector<Bytes> found;
  const auto fields = bytes.substr(0, bytes.size() - checksum_bytes);
  ByteReader stored(bytes.substr(fields.size()));
  const auto difference = stored.get<std::uint32_t>() ^ crc32c(fields);
  const auto add = [&](std::size_t position, std::uint32_t change) {
    found.emplace_back(bytes);
    found.back()[position] = changed(bytes[position], change);
  };
  for (std::size_t i = 0; i < checksum_bytes; ++i) {
    const auto change = (difference >> (8 * i)) & 0xFF;
    if (difference == change << (8 * i) && change != 0) add(fields.size() + i, change);
  }
  PerByte effects = last_byte;
  for (std::size_t position = fields.size(); position-- > 0;) {
    for (std::uint32_t change = 1; change < effects.size(); ++change) {
      if (effects[change] == difference) add(position, change);
    }
    for (auto& effect : effects) effect = (effect >> 8) ^ last_byte[effect & 0xFF];
  }
  return found;
}

}  // namespace

std::optional<Bytes> with_one_byte_corrected(std::string_view bytes,
                                             const std::function<bool(std::string_view)>& decodes) {
  if (bytes.size() <= checksum_bytes) return std::nullopt;
  std::optional<Bytes> only;
  for (auto& candidate : candidates(bytes)) {
    if (!decodes(candidate)) continue;
    if (only) return std::nullopt;
    only = std::move(candidate);
  }
  return only;
}

}  // namespace lccfs::repair
