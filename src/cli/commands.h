// SPDX-License-Identifier: LGPL-2.1-or-later
// The commands of lccfs. Each takes the words behind its name and answers the exit status: 0, 1 (failed) or 2 (usage).
#pragma once

#include <string>
#include <vector>

#include "lccfs/volume.h"

namespace lccfs::cli {

inline constexpr int exit_success = 0;
inline constexpr int exit_failure = 1;
inline constexpr int exit_usage = 2;

using Words = std::vector<std::string>;

int mkfs(const Words& words);
int info(const Words& words);

/// Prints the error's line on standard error and answers the status.
int complain(const char* command, const Error& error, int status);

// What `info` prints. Ages are told as of `now_seconds`.
std::string info_as_text(const VolumeInfo& info, std::int64_t now_seconds);
std::string info_as_json(const VolumeInfo& info);

}  // namespace lccfs::cli
