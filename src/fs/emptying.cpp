// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/emptying.h"

#include <algorithm>
#include <utility>

namespace lccfs {

namespace {
constexpr std::chrono::minutes remembered_for{1};
/// What several programs remove at once in one directory.
constexpr unsigned most_files = 16, most_directories = 4;
/// No more than what goes within a second: for so long a guarded step is tried on what was read.
constexpr std::size_t least_read_ahead = 2, most_read_ahead = 64, read_ahead_of_whole = 32;

bool take_one(unsigned& count) {
  if (count == 0) return false;
  --count;
  return true;
}
}  // namespace

Emptying::Uses& Emptying::uses_of(Ino directory) {
  if (auto* uses = known(directory)) return *uses;
  const auto now = clock_.elapsed();
  uses_.put(directory, {}, now + remembered_for, now);
  return *uses_.get(directory, now);
}

/// Remembered from now on.
void Emptying::was_listed(Ino directory) {
  const Lock lock(mutex_);
  auto* uses = known(directory);
  auto listed = uses != nullptr ? std::move(*uses) : Uses{};
  listed.is_listed = true;
  listed.was_wrong = false;
  const auto now = clock_.elapsed();
  uses_.put(directory, std::move(listed), now + remembered_for, now);
}

bool Emptying::is_first_removal(Ino directory) {
  const Lock lock(mutex_);
  auto* uses = known(directory);
  return uses != nullptr && std::exchange(uses->is_listed, false);
}

bool Emptying::takes_next_directory(Ino parent, Ino directory) {
  const Lock lock(mutex_);
  auto* above = known(parent);
  if (above == nullptr || !take_one(above->directories)) return false;
  auto& uses = uses_of(directory);
  uses.goes_whole = true;
  uses.files = std::max(uses.files, 1U);
  return true;
}

bool Emptying::takes_next_file(Ino directory) {
  const Lock lock(mutex_);
  auto* uses = known(directory);
  return uses != nullptr && !uses->was_wrong && take_one(uses->files);
}

void Emptying::lost_file(Ino directory) {
  const Lock lock(mutex_);
  auto& files = uses_of(directory).files;
  files = std::min(files + 1, most_files);
}

void Emptying::lost_directory(Ino directory) {
  const Lock lock(mutex_);
  auto& directories = uses_of(directory).directories;
  directories = std::min(directories + 1, most_directories);
}

std::optional<std::size_t> Emptying::worth_reading_after(Ino directory, const std::string& key) {
  const Lock lock(mutex_);
  auto& uses = uses_of(directory);
  if (key >= uses.read_from && key < uses.next) return std::nullopt;
  const bool goes_on = key == uses.next;
  uses.window = goes_on ? std::clamp(2 * uses.window, least_read_ahead, most_read_ahead) : 0;
  if (std::exchange(uses.goes_whole, false)) uses.window = read_ahead_of_whole;
  uses.read_from = key;
  return uses.window;
}

void Emptying::is_read_up_to(Ino directory, const std::string& next) {
  const Lock lock(mutex_);
  uses_of(directory).next = next;
}

void Emptying::was_told(Ino directory, Ino file, const format::AttrRecord& attr) {
  const Lock lock(mutex_);
  told_.insert_or_assign(file, Told{directory, attr});
}

std::optional<format::AttrRecord> Emptying::is_used(Ino file) {
  const Lock lock(mutex_);
  const auto told = told_.find(file);
  if (told == told_.end()) return std::nullopt;
  if (auto* uses = known(told->second.directory)) uses->was_wrong = true;
  return told->second.attr;
}

void Emptying::forget(Ino file) {
  const Lock lock(mutex_);
  told_.erase(file);
}

}  // namespace lccfs
