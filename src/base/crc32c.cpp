// SPDX-License-Identifier: LGPL-2.1-or-later
#include <boost/crc.hpp>
#include <cstring>

#include "base/bytes.h"

namespace lccfs {

namespace {

std::uint32_t portable_crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

#if defined(__x86_64__)
/// A map block has a kilobyte, and a check reads one for each file: worth the processor's own instruction, which Boost
/// does not use.
__attribute__((target("sse4.2"))) std::uint32_t processor_crc32c(std::string_view bytes) {
  std::uint64_t crc = 0xFFFFFFFF;
  for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    crc = __builtin_ia32_crc32di(crc, word);
  }
  auto narrow = static_cast<std::uint32_t>(crc);
  for (const char byte : bytes) narrow = __builtin_ia32_crc32qi(narrow, static_cast<unsigned char>(byte));
  return ~narrow;
}
#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return processor_crc32c(bytes);
#endif
  return portable_crc32c(bytes);
}

}  // namespace lccfs
