// SPDX-License-Identifier: LGPL-2.1-or-later
// The file of defaults, lccfs.conf(5): lines "key = value", in sections named after the programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lccfs/result.h"

namespace lccfs::options {

struct Default {
  std::string section;  ///< empty: above the first one, for all programs
  std::string key, value;
  std::string place;  ///< "FILE:LINE", for messages
};

/// By hand: no parser at hand tells the line of a key that the program does not know. The error names file and line.
Result<std::vector<Default>> parse_defaults(std::string_view text, const std::string& file);

/// What is in the file that the environment's LCCFS_CONFIG names (empty: no file), or else in /etc/lccfs/lccfs.conf if
/// that is there.
Result<std::vector<Default>> read_defaults();

}  // namespace lccfs::options
