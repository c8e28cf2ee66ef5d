// SPDX-License-Identifier: LGPL-2.1-or-later
// How a running program is looked at, and told a few things: by Prometheus on a TCP port, if that is asked for; and by
// its owner and root on a socket in the run folder (lccfs top, lccfs log).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "metrics/exposition.h"
#include "metrics/http_server.h"
#include "options/command_line.h"

namespace lccfs::daemon {

struct MonitorOptions {
  std::optional<std::string> address;                   ///< nullopt: this host alone; goes with a port
  std::optional<std::uint16_t> port;                    ///< nullopt: no metrics by TCP
  std::optional<std::chrono::milliseconds> slow_after;  ///< nullopt: as the program has it
  static constexpr std::chrono::milliseconds usually_slow_after{2000};
};

/// --metrics-port, --metrics-address and --slow-ms, whose default help tells so.
void add_monitor_options(options::CommandLine& line, MonitorOptions& values,
                         const std::string& usually_slow_after = "2000");
options::Store metrics_port(MonitorOptions& values);
options::Store metrics_address(MonitorOptions& values);
options::Store slow_ms(MonitorOptions& values);

/// The program that is looked at.
struct Monitored {
  std::string program;     ///< "lccfs-fuse"
  std::string volume;      ///< VolumeAddress::source()
  std::string mountpoint;  ///< empty: it mounts nothing
};

class Monitor {
 public:
  /// Takes the port, if there is one to take: a program whose port is taken says so before it does anything.
  Result<> listen(const MonitorOptions& options);
  /// From now on it answers, until it is destroyed. `write` is called by a thread of its own. Without the socket in the
  /// run folder it serves, too: the log says why.
  using Write = std::function<void(metrics::Exposition&)>;
  void serve(const Monitored& about, Write write);

 private:
  metrics::HttpServer server_;
};

}  // namespace lccfs::daemon
