// SPDX-License-Identifier: LGPL-2.1-or-later
// Mounts that answer writes before the store has them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "support/file_calls.h"
#include "support/test_volume.h"

namespace lccfs::test {

inline FileSystemOptions buffered(std::uint64_t limit_bytes = 8 << 20) {
  FileSystemOptions options;
  options.dirty_limit_bytes = limit_bytes;
  return options;
}

/// A file whose first bytes are stored, and nothing of which is dirty.
inline OpenFile stored_file(Mount& mount, const std::string& bytes) {
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, bytes));
  need(mount->fsync(file.handle, false));
  mount.client->reset_record();
  return file;
}

inline std::string whole(FileSystem& fs, HandleId handle) { return need(read_at(fs, handle, 0, 1 << 20)); }

/// What a client without memory of it reads.
inline std::string read_elsewhere(TestVolume& volume, Ino ino) {
  auto other = volume.mount();
  return whole(*other.file_system, open_again(*other.file_system, ino, O_RDONLY));
}

template <class T>
std::optional<ErrorCode> code_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error().code);
}

inline ScriptedClient::Hook fails_writes(ErrorCode code) {
  return [code](const StepInfo& info) {
    return info.kind == StepKind::write ? Fault{Fault::Kind::fail, code} : Fault{};
  };
}

inline ScriptedClient::Hook holds_writes() {
  return [](const StepInfo& info) { return info.kind == StepKind::write ? Fault{Fault::Kind::hold} : Fault{}; };
}

inline std::vector<std::string> steps_of(const Mount& mount) {
  std::vector<std::string> steps;
  for (const auto& line : mount.client->trace()) steps.push_back(line.substr(0, line.find(' ')));
  return steps;
}

inline std::size_t place_of(const Mount& mount, const std::string& step) {
  const auto trace = mount.client->trace();
  const auto found = std::ranges::find_if(trace, [&](const std::string& line) { return line.starts_with(step); });
  return static_cast<std::size_t>(found - trace.begin());
}

}  // namespace lccfs::test
