// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/file_history.h"

#include <algorithm>

namespace lccfs::crash {

namespace {
constexpr std::chrono::milliseconds attributes_live_for{1001};  // and a request's time
}  // namespace

void FileHistory::View::raise(const View& other) {
  for (std::size_t i = 0; i < most_bytes; ++i) bytes[i] = std::max(bytes[i], other.bytes[i]);
  size = std::max(size, other.size);
}

void FileHistory::settle(const void* write) {
  std::erase_if(unsettled_, [&](const Unsettled& one) { return one.write == write; });
}

bool FileHistory::is_settled(Range range) const {
  return std::ranges::none_of(unsettled_, [&](const Unsettled& one) { return one.range.meets(range); });
}

void FileHistory::changed(unsigned mount, Range range) {
  for (auto i = range.begin; i < std::min<std::uint64_t>(range.end, most_bytes); ++i) seen_[mount].bytes[i] = newest();
}

FileHistory::View FileHistory::all_that_ended() const {
  View view;
  view.bytes.fill(newest());
  view.size = newest();
  for (const Unsettled& one : unsettled_) {
    for (auto i = one.range.begin; i < one.range.end; ++i) view.bytes[i] = std::min(view.bytes[i], one.since - 1);
  }
  return view;
}

FileHistory::View FileHistory::view_of(unsigned mount, std::chrono::nanoseconds now) const {
  View view = seen_[mount];
  for (Version i = 0; i < versions_.size(); ++i) {
    if (versions_[i].since + attributes_live_for <= now) view.size = std::max(view.size, i);
  }
  return view;
}

void FileHistory::keeps_range(unsigned mount, Range range) {
  for (auto i = range.begin; i < range.end; ++i) kept_[mount].bytes[i] = newest();
  kept_[mount].size = newest();
}

bool FileHistory::may_be_byte(const View& view, std::uint64_t at, char byte) const {
  for (auto i = view.bytes[at]; i <= newest(); ++i) {
    const auto& bytes = versions_[i].bytes;
    if ((at < bytes.size() ? bytes[at] : '\0') == byte) return true;
  }
  return false;
}

bool FileHistory::may_be_size(const View& view, std::uint64_t size_bytes) const {
  for (auto i = view.size; i <= newest(); ++i) {
    if (versions_[i].bytes.size() == size_bytes) return true;
  }
  return false;
}

/// Pages may be of several versions: the size that it seems to have then lies between theirs.
bool FileHistory::may_be_read(const View& view, std::uint64_t offset_bytes, std::uint64_t asked_bytes,
                              const std::string& found) const {
  auto least = asked_bytes, most = std::uint64_t{0};
  for (auto i = view.size; i <= newest(); ++i) {
    const auto size_bytes = versions_[i].bytes.size();
    const auto there = std::min<std::uint64_t>(size_bytes > offset_bytes ? size_bytes - offset_bytes : 0, asked_bytes);
    least = std::min(least, there);
    most = std::max(most, there);
  }
  if (found.size() < least || found.size() > most) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!may_be_byte(view, offset_bytes + i, found[i])) return false;
  }
  return true;
}

}  // namespace lccfs::crash
