// SPDX-License-Identifier: LGPL-2.1-or-later
// Where a program that may go to the background logs to.
#pragma once

#include <string>

#include "base/log.h"
#include "options/command_line.h"

namespace lccfs::daemon {

struct LogOptions {
  bool to_syslog = false;
  std::string file;  ///< empty: standard error, or syslog
  log::Level level = log::Level::info;
};

options::Store log_level(log::Level& level);

/// --log-file, --log-syslog and --log-level. Without them: standard error in the foreground, syslog in the background.
/// `foreground` is looked at after the rules that the line has already.
void add_log_options(options::CommandLine& line, LogOptions& values, const bool& foreground);

/// Logs there from now on, as `program`, by a thread of the log's: after the last fork. The error is one line for people.
Result<> open_log(const LogOptions& options, const std::string& program);

}  // namespace lccfs::daemon
