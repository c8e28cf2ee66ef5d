// SPDX-License-Identifier: LGPL-2.1-or-later
#include "check/stream.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "base/parallel.h"

namespace lccfs::check {

namespace {

constexpr std::uint64_t small_volume_objects = 2000;
constexpr unsigned most_threads = 8;
constexpr unsigned parts_per_thread = 4;

/// The first error of several threads.
class FirstError {
 public:
  void put(const Result<>& result) {
    if (result) return;
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = result.error();
    is_set_ = true;
  }
  bool is_set() const { return is_set_; }
  Result<> result() {
    const std::lock_guard lock(mutex_);
    return error_ ? Result<>(std::unexpected(*error_)) : Result<>();
  }

 private:
  std::mutex mutex_;
  std::optional<Error> error_;
  std::atomic<bool> is_set_ = false;
};

/// Where parts of the listing go on. A part of which a page is being listed is nobody else's.
class Cursors {
 public:
  explicit Cursors(std::vector<std::string> starts) : line_(starts.begin(), starts.end()) {}

  /// nullopt: all is listed.
  std::optional<std::string> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !line_.empty() || taken_ == 0; });
    if (line_.empty()) return std::nullopt;
    ++taken_;
    auto cursor = std::move(line_.front());
    line_.pop_front();
    return cursor;
  }
  /// Empty: that part is listed. Goes on at once otherwise: metadata come first where they are apart, and files are
  /// known before their data.
  void put_back(std::string cursor) {
    const std::lock_guard lock(mutex_);
    --taken_;
    if (!cursor.empty()) line_.push_front(std::move(cursor));
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> line_;
  unsigned taken_ = 0;
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
  FirstError error;
  for_each_in_parallel(effort.threads, effort.threads, [&](std::size_t) {
    ReadWindow window(store, effort.reads_per_thread);
    error.put(list_and_handle(store, cursors, window, on_names, error));
  });
  return error.result();
}

Result<> for_each_number(ObjectStore& store, const Effort& effort, std::size_t count,
                         const std::function<Result<>(ReadWindow&, std::size_t)>& work) {
  FirstError error;
  std::atomic<std::size_t> next = 0;
  const auto work_along = [&](ReadWindow& window) -> Result<> {
    for (auto i = next.fetch_add(1); i < count && !error.is_set(); i = next.fetch_add(1)) {
      LCCFS_CHECK(work(window, i));
    }
    return window.finish();
  };
  const auto threads = static_cast<unsigned>(std::min<std::size_t>(effort.threads, count));
  for_each_in_parallel(threads, threads, [&](std::size_t) {
    ReadWindow window(store, effort.reads_per_thread);
    error.put(work_along(window));
  });
  return error.result();
}

}  // namespace lccfs::check
