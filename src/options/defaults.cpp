// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options/defaults.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace lccfs::options {
namespace {

constexpr const char* usual_file = "/etc/lccfs/lccfs.conf";
constexpr std::uintmax_t most_bytes = 1U << 20;
constexpr std::array<std::string_view, 4> programs = {"lccfs", "lccfs-fuse", "lccfs-gc", "lccfs-fsck"};

std::string trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(blanks) - first + 1));
}

std::unexpected<Error> wrong(const std::string& place, const std::string& what) {
  return failure(ErrorCode::invalid, place + ": " + what);
}

Result<std::string> section_of(const std::string& line, const std::string& place) {
  if (!line.ends_with(']')) return wrong(place, "a section is [PROGRAM]");
  std::string name = trimmed(std::string_view(line).substr(1, line.size() - 2));
  if (std::ranges::find(programs, name) != programs.end()) return name;
  return wrong(place, "there is no section [" + name + "]; lccfs.conf(5) lists them");
}

Result<Default> entry_of(const std::string& line, const std::string& section, const std::string& place) {
  const std::size_t equals = line.find('=');
  if (equals == std::string::npos) return wrong(place, "not of the form KEY = VALUE: " + line);
  Default entry{section, trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)), place};
  if (entry.key.empty()) return wrong(place, "not of the form KEY = VALUE: " + line);
  if (entry.value.empty()) return wrong(place, entry.key + " needs a value");
  return entry;
}

}  // namespace

Result<std::vector<Default>> parse_defaults(std::string_view text, const std::string& file) {
  std::vector<Default> entries;
  std::string section;
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string raw; std::getline(lines, raw);) {
    const std::string line = trimmed(raw), place = file + ":" + std::to_string(++number);
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    if (line.starts_with('[')) {
      LCCFS_TRY(section, section_of(line, place));
      continue;
    }
    LCCFS_TRY(auto entry, entry_of(line, section, place));
    const auto same = [&entry](const Default& one) { return one.section == entry.section && one.key == entry.key; };
    if (const auto earlier = std::ranges::find_if(entries, same); earlier != entries.end())
      return wrong(place, entry.key + " is given a second time, after " + earlier->place);
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::vector<Default>> read_defaults() {
  const char* named = std::getenv("LCCFS_CONFIG");
  if (named != nullptr && *named == '\0') return {};
  const std::string file = named == nullptr ? usual_file : named;
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (named == nullptr && status.type() == std::filesystem::file_type::not_found) return {};
  if (std::filesystem::is_directory(status)) return wrong(file, "cannot be read: it is a directory");
  if (std::filesystem::is_regular_file(status) && std::filesystem::file_size(file, error) > most_bytes)
    return wrong(file, "larger than any file of defaults");
  errno = 0;
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad())
    return wrong(file, std::string("cannot be read") + (errno == 0 ? "" : std::string(": ") + std::strerror(errno)));
  return parse_defaults(text, file);
}

}  // namespace lccfs::options
