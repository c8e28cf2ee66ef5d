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

/// --log-file, --log-syslog and --log-level, and what every program has: --help and --version.
options::Description log_and_other_options();
/// What those say. Without them: standard error in the foreground, syslog in the background.
Result<LogOptions> log_options_of(const options::Values& values, bool foreground);

/// Logs there from now on, as `program`. The error is one line for people.
Result<> open_log(const LogOptions& options, const std::string& program);

}  // namespace lccfs::daemon
