// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/monitor.h"

#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "daemon/log_options.h"
#include "metrics/run_folder.h"

namespace lccfs::daemon {
namespace {

constexpr const char* this_host_alone = "127.0.0.1";
constexpr std::uint64_t longest_slow_ms = 3'600'000;

using metrics::HttpAnswer;
using metrics::HttpRequest;

HttpAnswer change_log_level(const HttpRequest& request) {
  if (!request.from_owner) return {403, "the log level is changed by the socket in the run folder alone\n"};
  log::Level level{};
  if (const auto known = log_level(level)(request.body); !known) return {400, known.error().context};
  const std::string line = "the log level is " + request.body + " from now on";
  if (level > log::Level::info) log::info(line);  // now, or nobody reads it
  log::set_level(level);
  if (level <= log::Level::info) log::info(line);
  return {200, ""};
}

HttpAnswer metrics_page(const Monitored& about, const Monitor::Write& write) {
  metrics::Exposition page;
  page.family("lccfs_info", metrics::Exposition::Type::gauge, "Which program serves what; always 1.");
  page.sample({{"program", about.program},
               {"version", LCCFS_VERSION},
               {"volume", about.volume},
               {"mountpoint", about.mountpoint},
               {"pid", std::to_string(getpid())}},
              std::uint64_t{1});
  write(page);
  return {200, page.text()};
}

}  // namespace

options::Store metrics_port(MonitorOptions& values) { return options::number(values.port, 1, UINT16_MAX); }

options::Store metrics_address(MonitorOptions& values) {
  return [&values](const std::string& text) -> Result<> {
    if (!metrics::is_address(text)) return failure(ErrorCode::invalid, "'" + text + "' is not an address in numbers");
    return values.address = text, Result<>{};
  };
}

options::Store slow_ms(MonitorOptions& values) { return options::number(values.slow_after, 0, longest_slow_ms); }

void add_monitor_options(options::CommandLine& line, MonitorOptions& values, const std::string& usually_slow_after) {
  line.group("Monitoring");
  line.option("--metrics-port", "PORT", metrics_port(values),
              "serve metrics for Prometheus on this TCP port\n(default: none)");
  line.option("--metrics-address", "ADDRESS", metrics_address(values),
              "on this address of the host (default: 127.0.0.1)");
  line.option("--slow-ms", "MILLISECONDS", slow_ms(values),
              "log what takes so long; 0: nothing (default: " + usually_slow_after + ")");
}

Result<> Monitor::listen(const MonitorOptions& options) {
  // No error: lccfs.conf may say the address of a host's mounts, and each of those that are to be watched its port.
  if (!options.port && options.address) log::warning("no metrics are served: metrics-address goes with metrics-port");
  if (!options.port) return {};
  return server_.listen_on_port(options.address.value_or(this_host_alone), *options.port);
}

void Monitor::serve(const Monitored& about, Write write) {
  const std::string folder = metrics::run_folder();
  metrics::remove_dead_sockets(folder);
  const auto listening = folder.empty() ? failure(ErrorCode::not_found, "XDG_RUNTIME_DIR is not set")
                                        : server_.listen_on_socket(folder, std::to_string(getpid()) + ".sock");
  if (!listening) log::warning("lccfs top and lccfs log will not find this program: " + listening.error().context);
  server_.serve([about, write = std::move(write)](const HttpRequest& request) -> HttpAnswer {
    if (request.path == "/log-level" && request.method == "PUT") return change_log_level(request);
    if (request.path != "/metrics") return {404, "there is /metrics\n"};
    if (request.method != "GET" && request.method != "HEAD") return {405, "/metrics is for GET\n"};
    return metrics_page(about, write);
  });
}

}  // namespace lccfs::daemon
