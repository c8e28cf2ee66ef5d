// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lccfs::format {

/// SipHash-2-4 (Aumasson and Bernstein, 2012). Pure. By hand: what libraries offer it in Debian bring far more along.
std::uint64_t siphash(const std::array<std::uint8_t, 16>& key, std::string_view bytes);

}  // namespace lccfs::format
