// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/log_options.h"

namespace lccfs::daemon {

options::Store log_level(log::Level& level) {
  using log::Level;
  return options::choice(
      level, {{"debug", Level::debug}, {"info", Level::info}, {"warning", Level::warning}, {"error", Level::error}});
}

void add_log_options(options::CommandLine& line, LogOptions& values, const bool& foreground) {
  line.group("Log (default: syslog, or standard error with -f)");
  line.option("--log-file", "FILE", options::path(values.file), "log to this file; SIGHUP reopens it");
  line.flag("--log-syslog", values.to_syslog, "log to syslog, with -f too");
  line.exclude("--log-file", {"--log-syslog"});
  line.option("--log-level", "LEVEL", log_level(values.level), "debug, info, warning or error (default: info)");
  line.configurable(options::CommandLine::Section::of_program, {"--log-file", "--log-level"});
  line.check([&values, &foreground]() -> Result<> {
    values.to_syslog = values.to_syslog || (!foreground && values.file.empty());
    return {};
  });
}

Result<> open_log(const LogOptions& options, const std::string& program) {
  log::set_level(options.level);
  if (options.to_syslog) log::to_syslog(program);
  const std::string error = options.file.empty() ? "" : log::to_file(options.file);
  if (!error.empty()) return failure(ErrorCode::io, "cannot log to " + options.file + ": " + error);
  log::write_behind();
  return {};
}

}  // namespace lccfs::daemon
