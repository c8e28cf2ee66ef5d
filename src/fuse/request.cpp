// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/request.h"

#include <cerrno>
#include <string>
#include <utility>

#include "base/log.h"
#include "fuse/convert.h"

namespace lccfs::fuse {
namespace {

// Errors that no caller has caused: the mount's log says what happened, because EIO does not.
bool is_for_the_log(ErrorCode code) {
  return code == ErrorCode::corrupt || code == ErrorCode::io || code == ErrorCode::guard_failed ||
         code == ErrorCode::timed_out;
}

}  // namespace

Request::Request(fuse_req_t request, const char* operation, std::atomic<std::size_t>& in_flight)
    : request_(request), operation_(operation), in_flight_(in_flight) {
  ++in_flight_;
}

Request::Request(Request&& other) noexcept
    : request_(std::exchange(other.request_, nullptr)), operation_(other.operation_), in_flight_(other.in_flight_) {}

Request::~Request() {
  if (request_ != nullptr) fail(EIO);
}

// Counted down only after the answer: at zero the session may end.
bool Request::answer(std::string_view body) {
  const bool taken = fuse_reply_buf(std::exchange(request_, nullptr), body.data(), body.size()) == 0;
  --in_flight_;
  return taken;
}

void Request::fail(int error_number) {
  fuse_reply_err(std::exchange(request_, nullptr), error_number);
  --in_flight_;
}

void Request::fail(const Error& error) {
  if (is_for_the_log(error.code))
    log::error(std::string(operation_) + ": " + describe(error.code) + ": " + error.context);
  fail(errno_of(error.code));
}

void Request::finish(const Result<>& result) { result ? fail(0) : fail(result.error()); }

}  // namespace lccfs::fuse
