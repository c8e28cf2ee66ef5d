// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/streaming.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <thread>

#include "base/mutex.h"
#include "base/parallel.h"

namespace lccfs::check {

// ---- reads

struct ReadWindow::Answers {
  using Handling = std::move_only_function<Result<>()>;

  void put(Handling handling) {
    const Lock lock(mutex);
    line.push_back(std::move(handling));
    changed.notify_one();
  }
  Handling take() {
    Lock lock(mutex);
    lock.wait(changed, [this]() REQUIRES(mutex) { return !line.empty(); });
    auto handling = std::move(line.front());
    line.pop_front();
    return handling;
  }

  Mutex mutex;
  std::condition_variable changed;
  std::deque<Handling> line GUARDED_BY(mutex);
};

ReadWindow::ReadWindow(ObjectStore& store, unsigned limit, OnUnreadable on_unreadable)
    : store_(store),
      limit_(std::max(limit, 1U)),
      on_unreadable_(std::move(on_unreadable)),
      answers_(std::make_shared<Answers>()) {}

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

Result<> ReadWindow::handle_error(const std::string& object, Error error) const {
  const bool is_about_the_object = error.code == ErrorCode::io || error.code == ErrorCode::corrupt;
  if (!is_about_the_object || !on_unreadable_) return std::unexpected(std::move(error));
  on_unreadable_(object, error);
  return {};
}

Result<> ReadWindow::query(MetaRead read, OnFound handler, std::size_t whole_ranges) {
  LCCFS_CHECK(make_room(limit_ - 1));
  ++in_flight_;
  auto handle = [this, object = read.object, handler = std::move(handler)](Result<objects::Object> answer) mutable {
    if (answer) return handler(std::move(*answer));
    if (answer.error().code == ErrorCode::not_found) return handler(std::nullopt);
    return handle_error(object, std::move(answer).error());
  };
  auto put = [answers = answers_, handle = std::move(handle)](Result<objects::Object> answer) mutable {
    answers->put(
        [handle = std::move(handle), answer = std::move(answer)]() mutable { return handle(std::move(answer)); });
  };
  objects::read_object_async(objects::reader_of(store_), std::move(read), whole_ranges, std::move(put));
  return {};
}

Result<> ReadWindow::look_for_byte(std::string object, std::uint64_t offset, OnByte handler) {
  LCCFS_CHECK(make_room(limit_ - 1));
  ++in_flight_;
  auto byte = std::make_unique<std::array<char, 1>>();
  const std::span<char> target(*byte);
  auto handle = [this, object, handler = std::move(handler)](Result<std::size_t> answer) mutable {
    return answer ? handler(*answer > 0) : handle_error(object, std::move(answer).error());
  };
  store_.read_data(
      std::move(object), offset, target,
      [answers = answers_, byte = std::move(byte), handle = std::move(handle)](Result<std::size_t> answer) mutable {
        answers->put(
            [handle = std::move(handle), answer = std::move(answer)]() mutable { return handle(std::move(answer)); });
      });
  return {};
}

Result<> ReadWindow::finish() { return make_room(0); }

// ---- names

namespace {

constexpr std::uint64_t small_volume_objects = 2000;
constexpr unsigned most_threads = 8;
constexpr unsigned parts_per_thread = 4;

/// The first error of several threads.
class FirstError {
 public:
  void put(const Result<>& result) {
    if (result) return;
    const Lock lock(mutex_);
    if (!error_) error_ = result.error();
    is_set_ = true;
  }
  bool is_set() const { return is_set_; }
  Result<> result() {
    const Lock lock(mutex_);
    return error_ ? Result<>(std::unexpected(*error_)) : Result<>();
  }

 private:
  Mutex mutex_;
  std::optional<Error> error_ GUARDED_BY(mutex_);
  std::atomic<bool> is_set_ = false;
};

Result<> in_threads(ObjectStore& store, const Effort& effort, unsigned threads,
                    const std::function<Result<>(ReadWindow&, const FirstError&)>& work) {
  FirstError error;
  for_each_in_parallel(threads, threads, [&](std::size_t) {
    ReadWindow window(store, effort.reads_per_thread, effort.on_unreadable);
    error.put(work(window, error));
  });
  return error.result();
}

/// Where parts of the listing continue. A part of which a page is being listed is no other thread's.
class Cursors {
 public:
  explicit Cursors(std::vector<std::string> starts) : line_(starts.begin(), starts.end()) {}

  /// nullopt: all is listed.
  std::optional<std::string> take() {
    Lock lock(mutex_);
    lock.wait(changed_, [this]() REQUIRES(mutex_) { return !line_.empty() || taken_ == 0; });
    if (line_.empty()) return std::nullopt;
    ++taken_;
    auto cursor = std::move(line_.front());
    line_.pop_front();
    return cursor;
  }
  /// Empty: that part is listed. Continues at once otherwise: metadata come first where they are apart, and files are
  /// known before their data.
  void put_back(std::string cursor) {
    const Lock lock(mutex_);
    --taken_;
    if (!cursor.empty()) line_.push_front(std::move(cursor));
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> line_ GUARDED_BY(mutex_);
  unsigned taken_ GUARDED_BY(mutex_) = 0;
};

Result<> list_and_handle(ObjectStore& store, Cursors& cursors, ReadWindow& window, const OnNames& on_names,
                         const FirstError& error) {
  while (!error.is_set()) {
    LCCFS_CHECK(window.finish());
    const auto cursor = cursors.take();
    if (!cursor) return {};
    auto page = store.list(*cursor);
    cursors.put_back(page ? std::move(page->next_cursor) : std::string());
    if (!page) return std::unexpected(std::move(page).error());
    LCCFS_CHECK(on_names(window, page->names));
  }
  return {};
}

}  // namespace

Effort effort_for(unsigned jobs, std::uint64_t objects) {
  const unsigned reads = std::max(jobs, 1U);
  if (objects <= small_volume_objects) return {1, reads};
  const unsigned threads = std::min(reads, std::clamp(std::thread::hardware_concurrency(), 1U, most_threads));
  return {threads, reads / threads};
}

Result<> for_each_name(ObjectStore& store, const Effort& effort, const OnNames& on_names) {
  LCCFS_TRY(auto starts, store.list_starts(effort.threads == 1 ? 1 : effort.threads * parts_per_thread));
  Cursors cursors(std::move(starts));
  return in_threads(store, effort, effort.threads, [&](ReadWindow& window, const FirstError& error) {
    return list_and_handle(store, cursors, window, on_names, error);
  });
}

Result<> for_each_number(ObjectStore& store, const Effort& effort, std::size_t count,
                         const std::function<Result<>(ReadWindow&, std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto threads = static_cast<unsigned>(std::min<std::size_t>(effort.threads, count));
  return in_threads(store, effort, threads, [&](ReadWindow& window, const FirstError& error) -> Result<> {
    for (auto i = next.fetch_add(1); i < count && !error.is_set(); i = next.fetch_add(1)) {
      LCCFS_CHECK(work(window, i));
    }
    return window.finish();
  });
}

}  // namespace lccfs::check
