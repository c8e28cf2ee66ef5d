// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/read_window.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace lccfs::check {

struct ReadWindow::Answers {
  using Handling = std::move_only_function<Result<>()>;

  void put(Handling handling) {
    const std::lock_guard lock(mutex);
    line.push_back(std::move(handling));
    changed.notify_one();
  }
  Handling take() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return !line.empty(); });
    auto handling = std::move(line.front());
    line.pop_front();
    return handling;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Handling> line;
};

ReadWindow::ReadWindow(ObjectStore& store, unsigned limit)
    : store_(store), limit_(std::max(limit, 1U)), answers_(std::make_shared<Answers>()) {}

ReadWindow::~ReadWindow() {
  for (; in_flight_ > 0; --in_flight_) answers_->take();
}

Result<> ReadWindow::make_room(unsigned most_in_flight) {
  if (handling_) return {};
  while (in_flight_ > most_in_flight) {
    auto handling = answers_->take();
    --in_flight_;
    handling_ = true;
    auto handled = handling();
    handling_ = false;
    if (!handled) return handled;
  }
  return {};
}

Result<> ReadWindow::query(MetaRead read, OnSnapshot handler) {
  LCCFS_CHECK(make_room(limit_ - 1));
  ++in_flight_;
  store_.query_async(std::move(read),
                     [answers = answers_, handler = std::move(handler)](Result<MetaSnapshot> answer) mutable {
                       answers->put([handler = std::move(handler), answer = std::move(answer)]() mutable -> Result<> {
                         if (answer) return handler(std::move(*answer));
                         if (answer.error().code == ErrorCode::not_found) return handler(std::nullopt);
                         return std::unexpected(std::move(answer).error());
                       });
                     });
  return {};
}

Result<> ReadWindow::look_for_byte(std::string object, std::uint64_t offset, OnByte handler) {
  LCCFS_CHECK(make_room(limit_ - 1));
  ++in_flight_;
  auto byte = std::make_unique<std::array<char, 1>>();
  const std::span<char> target(*byte);
  store_.read_data(
      std::move(object), offset, target,
      [answers = answers_, byte = std::move(byte), handler = std::move(handler)](Result<std::size_t> answer) mutable {
        answers->put([handler = std::move(handler), answer = std::move(answer)]() mutable -> Result<> {
          if (!answer) return std::unexpected(std::move(answer).error());
          return handler(*answer > 0);
        });
      });
  return {};
}

Result<> ReadWindow::finish() { return make_room(0); }

}  // namespace lccfs::check
