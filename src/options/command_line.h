// SPDX-License-Identifier: LGPL-2.1-or-later
// What the command lines of all programs have in common. Errors are usage errors: one line, for people.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lccfs/result.h"
#include "lccfs/volume_address.h"

namespace lccfs::options {

using Description = boost::program_options::options_description;
using Values = boost::program_options::variables_map;

/// The words behind the program's name. Nothing but options, their names written out.
Result<Values> parse(const std::vector<std::string>& words, const Description& description);

/// -c, -p, -n, --id and --local, with their help.
Description address_options();
/// The volume that those name. Relative paths are made absolute: programs change their directory.
Result<VolumeAddress> address_of(const Values& values);

/// The value of an option that was given. Errors name the option.
Result<std::uint64_t> number_of(const Values& values, const std::string& option, std::uint64_t least,
                                std::uint64_t most);
Result<std::uint64_t> size_of(const Values& values, const std::string& option, std::uint64_t most);
Result<std::chrono::nanoseconds> seconds_of(const Values& values, const std::string& option);

/// "65536", "64K", "4M", "1G", "2T": powers of 1024.
Result<std::uint64_t> parse_size(const std::string& text);
/// "0", "65536": whole, and without any suffix.
Result<std::uint64_t> parse_number(const std::string& text);
/// Seconds with at most nine decimals: "1", "0.5".
Result<std::chrono::nanoseconds> parse_seconds(const std::string& text);

std::string absolute_path(const std::string& path);

}  // namespace lccfs::options
