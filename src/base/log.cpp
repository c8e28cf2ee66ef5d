// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <syslog.h>

namespace lccfs::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

void use(std::shared_ptr<spdlog::logger> logger) {
  logger->set_level(spdlog::default_logger_raw()->level());
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

// Standard error until somebody says otherwise: spdlog itself would begin with standard output.
[[maybe_unused]] const bool begun = [] {
  use(std::make_shared<spdlog::logger>("lccfs", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
  return true;
}();

}  // namespace

std::string to_file(const std::string& path) {
  try {
    use(std::make_shared<spdlog::logger>("lccfs", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path)));
  } catch (const spdlog::spdlog_ex& error) {
    return error.what();
  }
  return "";
}

void to_syslog(const std::string& ident) {
  use(std::make_shared<spdlog::logger>(
      "lccfs", std::make_shared<spdlog::sinks::syslog_sink_mt>(ident, LOG_PID, LOG_DAEMON, false)));
}

void set_level(Level level) { spdlog::set_level(to_spdlog(level)); }

void write(Level level, std::string_view line) { spdlog::log(to_spdlog(level), "{}", line); }

}  // namespace lccfs::log
