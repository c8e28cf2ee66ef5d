// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options/progress.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace lccfs::options {

namespace {

constexpr std::uint64_t bar_width = 30;
constexpr std::chrono::milliseconds between_shows{200};
constexpr const char* clear_line = "\r\x1b[K";

std::string duration_text(std::uint64_t seconds) {
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds % 3600 / 60) + " min";
}

}  // namespace

std::string progress_line(const Progress& progress, std::chrono::nanoseconds since_start) {
  const auto done = progress.done;
  const auto expected = progress.expected;
  const bool known = expected > 0 && done <= expected;  // statistics come late, or count a part of the objects only
  std::string line;
  if (known) {
    const auto filled = static_cast<std::size_t>(done * bar_width / expected);
    const auto percent = std::to_string(done * 100 / expected);
    line = "[" + std::string(filled, '#') + std::string(bar_width - filled, '.') + "] " +
           std::string(3 - percent.size(), ' ') + percent + "%, ";
  }
  line += std::to_string(done) + (known ? " of " + std::to_string(expected) : "") + " " + std::string(progress.unit);
  const auto seconds = std::chrono::duration<double>(since_start).count();
  if (seconds < 1 || done == 0) return line;
  const double rate = static_cast<double>(done) / seconds;
  line += ", " + std::to_string(static_cast<std::uint64_t>(rate)) + "/s";
  if (known)
    line += ", " + duration_text(static_cast<std::uint64_t>(static_cast<double>(expected - done) / rate)) + " left";
  return line;
}

std::function<void(const std::string&)> terminal(bool wanted) {
  if (!wanted || isatty(STDERR_FILENO) == 0) return nullptr;
  return [](const std::string& text) { std::cerr << text << std::flush; };
}

void ProgressBar::show(const Progress& progress) {
  if (!write_) return;
  const Lock lock(mutex_);
  const auto now = clock_.elapsed();
  if (!shown_ || progress.done < done_) started_ = now;
  done_ = progress.done;
  if (shown_ && now - *shown_ < between_shows) return;
  shown_ = now;
  on_screen_ = true;
  write_(clear_line + progress_line(progress, now - started_));
}

void ProgressBar::clear() {
  if (!write_) return;
  const Lock lock(mutex_);
  if (on_screen_) write_(clear_line);
  on_screen_ = false;
}

}  // namespace lccfs::options
