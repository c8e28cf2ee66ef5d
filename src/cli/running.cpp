// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/running.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "metrics/run_folder.h"
#include "options/command_line.h"

namespace lccfs::cli {
namespace {

constexpr std::chrono::seconds patience{1};

/// What its process has left when it was killed goes.
void look_at_socket(const std::string& path, std::vector<RunningProgram>& found) {
  const metrics::HttpPlace place{.socket = path, .address = "", .port = 0};
  auto page = look_at(place);
  if (page) found.push_back({place, std::move(*page)});
  if (!page && page.error().code == ErrorCode::not_found) metrics::remove_dead_socket(path);
}

/// By its path as it is given, or else by where that leads: a mount that hangs is not asked without need.
std::vector<RunningProgram>::const_iterator find_on(const std::vector<RunningProgram>& running,
                                                    const std::string& mountpoint) {
  const auto found = std::ranges::find(running, options::absolute_path(mountpoint), &RunningProgram::mountpoint);
  if (found != running.end()) return found;
  std::error_code error;
  const auto leads_to = std::filesystem::canonical(mountpoint, error);
  if (error) return running.end();
  return std::ranges::find(running, leads_to.string(), &RunningProgram::mountpoint);
}

/// nullopt: it is no ADDRESS:PORT.
std::optional<metrics::HttpPlace> port_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (text.starts_with('/') || colon == std::string::npos) return std::nullopt;
  const auto port = options::parse_number(text.substr(colon + 1), 1, UINT16_MAX);
  if (!port) return std::nullopt;
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  return metrics::HttpPlace{
      .socket = "", .address = address.empty() ? "127.0.0.1" : address, .port = static_cast<std::uint16_t>(*port)};
}

std::unexpected<Error> none_there(const std::string& what) {
  const std::string whose = geteuid() == 0 ? "root's" : "yours (root sees its own)";
  const auto folder = metrics::run_folder();
  if (folder.empty())
    return failure(ErrorCode::not_found, what + "; XDG_RUNTIME_DIR is not set: yours cannot be found");
  return failure(ErrorCode::not_found,
                 what + "; those of this host that are " + whose + " are looked for in " + folder);
}

}  // namespace

Result<MetricsPage> look_at(const metrics::HttpPlace& place) {
  LCCFS_TRY(const std::string text, metrics::http_ask(place, "GET", "/metrics", "", patience));
  auto page = MetricsPage::parse(text);
  if (!page) return failure(page.error().code, metrics::shown(place) + ": " + page.error().context);
  return page;
}

std::vector<RunningProgram> find_running() {
  std::vector<RunningProgram> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(metrics::run_folder(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".sock") && !name.starts_with('.')) look_at_socket(entry.path().string(), found);
  }
  std::ranges::sort(found, {}, &RunningProgram::mountpoint);
  return found;
}

Result<std::vector<RunningProgram>> find_running(const std::vector<std::string>& wanted) {
  auto here = find_running();
  if (wanted.empty() && here.empty()) return none_there("no mount and no collector answers");
  if (wanted.empty()) return here;
  std::vector<RunningProgram> found;
  for (const std::string& one : wanted) {
    if (const auto place = port_of(one)) {
      LCCFS_TRY(auto page, look_at(*place));
      found.push_back({*place, std::move(page)});
      continue;
    }
    auto match = std::ranges::find(std::as_const(here), one, &RunningProgram::pid);
    if (match == here.end()) match = find_on(here, one);
    if (match == here.end()) return none_there("no mount on " + one + " answers");
    found.push_back(*match);
  }
  return found;
}

}  // namespace lccfs::cli
