// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lccfs {

/// Of a process, as /proc/PID/stat has it.
struct ProcessStat {
  char state = '?';
  std::uint32_t flags = 0;  ///< PF_... of the kernel's sched.h
  std::uint64_t threads = 0;
  std::uint64_t start_ticks = 0;  ///< since boot
};

/// nullopt: that is no such line.
std::optional<ProcessStat> process_stat_in(std::string_view line);
/// `process`: the number of a process, or of a thread (also as PROCESS/task/THREAD), or "self". nullopt: there is none, or
/// it is hidden.
std::optional<ProcessStat> read_process_stat(const std::string& process);

}  // namespace lccfs
