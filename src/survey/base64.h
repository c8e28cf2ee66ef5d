// SPDX-License-Identifier: LGPL-2.1-or-later
// Base64 as RFC 4648 has it, section 4, padded. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lccfs::survey {

std::string to_base64(std::string_view bytes);
/// nullopt: no text that to_base64 makes.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace lccfs::survey
