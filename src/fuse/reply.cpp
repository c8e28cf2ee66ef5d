// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/reply.h"

#include <cerrno>
#include <string>
#include <utility>

#include "base/log.h"
#include "fuse/convert.h"
#include "fuse/open_reply.h"

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

Caller Request::caller() const {
  const fuse_ctx* context = fuse_req_ctx(request_);
  return {.uid = context->uid, .gid = context->gid};
}

namespace {

// Counted down only behind the answer: at zero the session may end.
class Answered {
 public:
  explicit Answered(std::atomic<std::size_t>& in_flight) : in_flight_(in_flight) {}
  ~Answered() { --in_flight_; }
  Answered(const Answered&) = delete;
  Answered& operator=(const Answered&) = delete;

 private:
  std::atomic<std::size_t>& in_flight_;
};

}  // namespace

fuse_req_t Request::take() { return std::exchange(request_, nullptr); }

void Request::fail(int error_number) {
  const Answered answered(in_flight_);
  fuse_reply_err(take(), error_number);
}

void Request::fail(const Error& error) {
  if (is_for_the_log(error.code))
    log::error(std::string(operation_) + ": " + describe(error.code) + ": " + error.context);
  fail(errno_of(error.code));
}

void Request::finish(const Result<>& result) { result ? fail(0) : fail(result.error()); }

void Request::attributes(const AttributesReply& reply) {
  const Answered answered(in_flight_);
  const struct stat values = to_stat(reply.attributes);
  fuse_reply_attr(take(), &values, to_seconds(reply.attributes_ttl));
}

bool Request::entry(const EntryReply& reply) {
  const Answered answered(in_flight_);
  const fuse_entry_param entry = to_entry(reply);
  return fuse_reply_entry(take(), &entry) == 0;
}

bool Request::open(const OpenReply& reply, int flags) {
  const Answered answered(in_flight_);
  const std::string answer = open_answer(reply, flags);
  return fuse_reply_buf(take(), answer.data(), answer.size()) == 0;
}

bool Request::create(const CreateReply& reply, int flags) {
  const Answered answered(in_flight_);
  const std::string answer = create_answer(reply, flags);
  return fuse_reply_buf(take(), answer.data(), answer.size()) == 0;
}

bool Request::open_directory(HandleId handle) {
  const Answered answered(in_flight_);
  fuse_file_info info = {};
  info.fh = handle.value;
  return fuse_reply_open(take(), &info) == 0;
}

void Request::bytes(std::string_view bytes) {
  const Answered answered(in_flight_);
  fuse_reply_buf(take(), bytes.data(), bytes.size());
}

void Request::written(std::size_t size_bytes) {
  const Answered answered(in_flight_);
  fuse_reply_write(take(), size_bytes);
}

void Request::link_target(const std::string& target) {
  const Answered answered(in_flight_);
  fuse_reply_readlink(take(), target.c_str());
}

void Request::xattr_size(std::size_t size_bytes) {
  const Answered answered(in_flight_);
  fuse_reply_xattr(take(), size_bytes);
}

void Request::usage(const VolumeUsage& usage) {
  const Answered answered(in_flight_);
  const struct statvfs values = to_statvfs(usage);
  fuse_reply_statfs(take(), &values);
}

}  // namespace lccfs::fuse
