// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/log_options.h"

namespace lccfs::daemon {

namespace po = boost::program_options;

namespace {

Result<log::Level> parse_level(const std::string& text) {
  if (text == "debug") return log::Level::debug;
  if (text == "info") return log::Level::info;
  if (text == "warning") return log::Level::warning;
  if (text == "error") return log::Level::error;
  return failure(ErrorCode::invalid, "'" + text + "' is not a log level: debug, info, warning or error");
}

}  // namespace

options::Description log_and_other_options() {
  options::Description description("Log (default: syslog, or standard error with -f) and others");
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()                                                                        //
      ("log-file", text()->value_name("FILE"), "log to this file; SIGHUP reopens it")              //
      ("log-syslog", "log to syslog, with -f too")                                                 //
      ("log-level", text()->value_name("LEVEL"), "debug, info, warning or error (default: info)")  //
      ("help,h", "show this text")                                                                 //
      ("version", "show the version");
  return description;
}

Result<LogOptions> log_options_of(const options::Values& values, bool foreground) {
  if (values.contains("log-file") && values.contains("log-syslog"))
    return failure(ErrorCode::invalid, "--log-file and --log-syslog exclude each other");
  LogOptions log;
  if (values.contains("log-file")) log.file = options::absolute_path(values["log-file"].as<std::string>());
  log.to_syslog = values.contains("log-syslog") || (!foreground && log.file.empty());
  if (values.contains("log-level")) {
    LCCFS_TRY(log.level, parse_level(values["log-level"].as<std::string>()));
  }
  return log;
}

Result<> open_log(const LogOptions& options, const std::string& program) {
  log::set_level(options.level);
  if (options.to_syslog) log::to_syslog(program);
  if (options.file.empty()) return {};
  const std::string error = log::to_file(options.file);
  return error.empty() ? Result<>{} : failure(ErrorCode::io, "cannot log to " + options.file + ": " + error);
}

}  // namespace lccfs::daemon
