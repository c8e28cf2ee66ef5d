// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/request.h"

#include <cerrno>
#include <string>
#include <utility>

#include "base/log.h"
#include "fuse/convert.h"

namespace lccfs::fuse {
namespace {

metrics::Directories::Work work_of(Kind kind) {
  using enum metrics::Directories::Work;
  return kind == Kind::read ? read : kind == Kind::write ? write : other;
}

}  // namespace

Request::Request(fuse_req_t request, Kind kind, const Subject& about, Serving& serving)
    : request_(request),
      serving_(serving),
      running_(serving.metrics->operations.begin(static_cast<std::size_t>(kind), about.text())) {
  ++serving_.in_flight;
}

Request::Request(Request&& other) noexcept
    : request_(std::exchange(other.request_, nullptr)),
      serving_(other.serving_),
      running_(other.running_),
      moved_bytes_(other.moved_bytes_),
      directory_(other.directory_) {}

Request::~Request() {
  if (request_ == nullptr) return;
  count(metrics::Outcome::failed);
  reply_error(EIO);
}

/// Before the answer: a program that has it, and looks at the metrics then, finds it there.
void Request::count(metrics::Outcome outcome) {
  const std::size_t bytes = outcome == metrics::Outcome::done ? moved_bytes_ : 0;
  const auto took = serving_.metrics->operations.end(running_, outcome, bytes);
  serving_.metrics->directories.count(directory_, work_of(kind()), took, bytes);
}

fuse_req_t Request::about_to_be_answered() {
  serving_.killed_callers.answered(request_);
  return std::exchange(request_, nullptr);
}

// Counted down only after the answer: at zero the session may end.
bool Request::answer(std::string_view body) {
  count(metrics::Outcome::done);
  const bool taken = fuse_reply_buf(about_to_be_answered(), body.data(), body.size()) == 0;
  --serving_.in_flight;
  return taken;
}

void Request::reply_error(int error_number) {
  fuse_reply_err(about_to_be_answered(), error_number);
  --serving_.in_flight;
}

void Request::fail(int error_number) {
  count(metrics::Outcome::refused);
  reply_error(error_number);
}

void Request::fail(const Error& error) {
  const bool for_the_log = is_for_the_log(error.code);
  if (for_the_log) log::error(std::string(name_of(kind())) + ": " + describe(error.code) + ": " + error.context);
  count(for_the_log || error.code == ErrorCode::fenced ? metrics::Outcome::failed : metrics::Outcome::refused);
  reply_error(errno_of(error.code));
}

void Request::finish(const Result<>& result) {
  if (!result) return fail(result.error());
  count(metrics::Outcome::done);
  reply_error(0);
}

}  // namespace lccfs::fuse
