// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/log.h"

#include <fcntl.h>
#include <paths.h>
#include <spdlog/sinks/base_sink-inl.h>  // the library has it for std::mutex alone
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/text.h"

namespace lccfs::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

/// spdlog's own thread pool cannot tell when its lines are written, and its end waits for ever.
class QueuedSink final : public spdlog::sinks::sink {
 public:
  explicit QueuedSink(std::shared_ptr<spdlog::sinks::sink> target) : target_(std::move(target)) {}

  void log(const spdlog::details::log_msg& line) override {
    const Lock lock(mutex_);
    if (lines_.size() < (line.level < spdlog::level::warn ? most_chatter : most_lines)) {
      lines_.emplace_back(line);
    } else {
      ++dropped_;
    }
    changed_.notify_all();
  }
  void flush() override {}
  void set_pattern(const std::string& pattern) override { target_->set_pattern(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    target_->set_formatter(std::move(formatter));
  }

  void wait_until_written(std::chrono::seconds limit) {
    Lock lock(mutex_);
    const auto is_written = [this]() REQUIRES(mutex_) { return lines_.empty() && !after_lines_ && !is_writing_; };
    changed_.wait_for(lock, limit, is_written);
  }
  /// By the thread that writes, after the lines that there are.
  void do_after_lines(std::function<void()> work) {
    const Lock lock(mutex_);
    after_lines_ = std::move(work);
    changed_.notify_all();
  }
  void end() {
    const Lock lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  /// Writes what there is, until the end.
  void run() {
    while (const auto batch = next()) {
      for (const auto& line : batch->lines) write(line);
      if (batch->after_lines) batch->after_lines();
    }
  }

 private:
  /// The rest is for warnings and errors.
  static constexpr std::size_t most_lines = 4096, most_chatter = 3584;

  struct Batch {
    std::deque<spdlog::details::log_msg_buffer> lines;
    std::function<void()> after_lines;
  };

  /// A line that cannot be written is lost: there is nobody to tell.
  void write(const spdlog::details::log_msg& line) noexcept try {
    target_->log(line);
    target_->flush();
  } catch (const std::exception&) {
  }

  /// nullopt: the end.
  std::optional<Batch> next() {
    Lock lock(mutex_);
    is_writing_ = false;
    changed_.notify_all();
    lock.wait(changed_, [this]() REQUIRES(mutex_) { return !lines_.empty() || after_lines_ || is_ending_; });
    if (const auto dropped = std::exchange(dropped_, 0); dropped != 0) {
      const auto text = std::to_string(dropped) + " lines were not written: they came faster than the log takes them";
      lines_.emplace_back(spdlog::details::log_msg("lccfs", spdlog::level::warn, text));
    }
    if (lines_.empty() && !after_lines_) return std::nullopt;
    is_writing_ = true;
    return Batch{std::exchange(lines_, {}), std::exchange(after_lines_, nullptr)};
  }

  const std::shared_ptr<spdlog::sinks::sink> target_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<spdlog::details::log_msg_buffer> lines_ GUARDED_BY(mutex_);
  std::function<void()> after_lines_ GUARDED_BY(mutex_);
  std::size_t dropped_ GUARDED_BY(mutex_) = 0;
  bool is_writing_ GUARDED_BY(mutex_) = false, is_ending_ GUARDED_BY(mutex_) = false;
};

Mutex queue_mutex;
std::shared_ptr<QueuedSink> queue GUARDED_BY(queue_mutex);  // null: who has a line writes it

std::shared_ptr<QueuedSink> queue_now() {
  const Lock lock(queue_mutex);
  return queue;
}

void use_queue(std::shared_ptr<QueuedSink> next) {
  const Lock lock(queue_mutex);
  if (queue) queue->end();
  queue = std::move(next);
}

void use(std::shared_ptr<spdlog::logger> logger) {
  use_queue(nullptr);
  logger->set_level(spdlog::default_logger_raw()->level());
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

/// Negative: errno tells why.
int open_file(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
}

constexpr std::chrono::seconds flush_limit{5};

std::atomic<int> raw_descriptor{-1};  // of the file, or of a socket to syslog

int connect_to_syslog() {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const sockaddr_un address{AF_UNIX, _PATH_LOG};
  if (socket < 0 || ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  ::close(socket);
  return -1;
}

/// spdlog's own makes folders and follows links.
class FileSink final : public spdlog::sinks::base_sink<Mutex> {
 public:
  FileSink(std::string path, int file) : path_(std::move(path)), file_(file) {}
  ~FileSink() override {
    int mine = file_;
    raw_descriptor.compare_exchange_strong(mine, -1);
    ::close(file_);
  }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  const std::string& path() const { return path_; }
  void continue_in(int file) {
    raw_descriptor = file;
    const Lock lock(mutex_);
    ::close(std::exchange(file_, file));
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    // A line that the disk has no room for is lost: there is nobody to tell.
    if (::write(file_, line.data(), line.size()) < 0) return;
  }
  void flush_() override {}

 private:
  const std::string path_;
  int file_;
};

Mutex file_mutex;
std::shared_ptr<FileSink> file_sink GUARDED_BY(file_mutex);  // null: lines go elsewhere

void set_file_sink(std::shared_ptr<FileSink> sink) {
  const Lock lock(file_mutex);
  file_sink = std::move(sink);
}

void reopen_file() {
  const Lock lock(file_mutex);
  if (!file_sink) return;
  const int file = open_file(file_sink->path());
  if (file < 0) return warning("cannot reopen the log " + file_sink->path() + ": " + std::strerror(errno));
  file_sink->continue_in(file);
  info("log reopened");
}

// Standard error until somebody says otherwise: spdlog itself would begin with standard output.
[[maybe_unused]] const bool begun = [] {
  use(std::make_shared<spdlog::logger>("lccfs", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
  return true;
}();

}  // namespace

std::string to_file(const std::string& path) {
  const int file = open_file(path);
  if (file < 0 && errno == ELOOP) return "it is a symbolic link: give the file that it leads to";
  if (file < 0) return std::strerror(errno);
  auto sink = std::make_shared<FileSink>(path, file);
  use(std::make_shared<spdlog::logger>("lccfs", sink));
  set_file_sink(std::move(sink));
  raw_descriptor = file;
  return "";
}

void reopen() {
  const auto queued = queue_now();
  return queued ? queued->do_after_lines(reopen_file) : reopen_file();
}

void to_syslog(const std::string& ident) {
  set_file_sink(nullptr);
  raw_descriptor = connect_to_syslog();
  use(std::make_shared<spdlog::logger>(
      "lccfs", std::make_shared<spdlog::sinks::syslog_sink_mt>(ident, LOG_PID, LOG_DAEMON, false)));
}

void write_behind() {
  auto queued = std::make_shared<QueuedSink>(spdlog::default_logger()->sinks().front());
  use(std::make_shared<spdlog::logger>("lccfs", queued));
  sigset_t all, before;  // signals are for threads that await them
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([queued] { queued->run(); }).detach();  // it may wait for ever
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  use_queue(std::move(queued));
}

void flush() {
  if (const auto queued = queue_now()) queued->wait_until_written(flush_limit);
}

void set_level(Level level) { spdlog::set_level(to_spdlog(level)); }

void write(Level level, std::string_view line) {
  if (spdlog::should_log(to_spdlog(level))) spdlog::log(to_spdlog(level), "{}", printable(line));
}

void failed(Level level, const std::string& what, const Error& why) {
  if (why.code != ErrorCode::fenced) write(level, what + ": " + why.context);
}

void write_in_a_handler(std::string_view line) noexcept {
  const int descriptor = raw_descriptor;
  if (descriptor < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, line.data(), line.size());
}

}  // namespace lccfs::log
