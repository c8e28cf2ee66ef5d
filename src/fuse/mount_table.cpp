// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/mount_table.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace lccfs::fuse {
namespace {

bool is_octal(std::string_view digits) {
  return digits.size() == 3 && digits.find_first_not_of("01234567") == std::string_view::npos;
}

/// The kernel writes spaces, tabs, newlines and backslashes as \ooo.
std::string unescape(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || !is_octal(text.substr(i + 1, 3))) {
      result.push_back(text[i]);
      continue;
    }
    result.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0')));
    i += 3;
  }
  return result;
}

}  // namespace

// A line: id parent major:minor root mountpoint options [optional...] - type source superoptions
std::optional<MountEntry> find_mount(std::string_view table, std::string_view mountpoint) {
  std::optional<MountEntry> found;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, directory, word, type;
    words >> id >> parent >> device >> root >> directory;
    while (words >> word && word != "-") {
    }
    words >> type;
    if (words && unescape(directory) == mountpoint) found = MountEntry{std::move(device), std::move(type)};
  }
  return found;
}

std::optional<MountEntry> mounted_at(const std::string& mountpoint) {
  std::ifstream file("/proc/self/mountinfo");
  const std::string table{std::istreambuf_iterator<char>(file), {}};
  return find_mount(table, mountpoint);
}

}  // namespace lccfs::fuse
