// SPDX-License-Identifier: LGPL-2.1-or-later
// Answers to the kernel: each request is answered exactly once, by construction.
#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>

#include "fuse/fuse_api.h"
#include "lccfs/file_system.h"

namespace lccfs::fuse {

/// What the kernel is told; the only place where an errno is made of an error.
int errno_of(ErrorCode code);

/// A request that waits for its answer. Each answering method uses it up; dropped without an answer it says EIO.
/// Any thread, one at a time.
class Request {
 public:
  /// `in_flight` counts requests that are not answered; it outlives them. `operation`: for the log; a literal.
  Request(fuse_req_t request, const char* operation, std::atomic<std::size_t>& in_flight);
  Request(Request&& other) noexcept;
  Request& operator=(Request&&) = delete;
  ~Request();

  Caller caller() const;

  void fail(int error_number);
  void fail(const Error& error);
  /// Success without a value, or the error.
  void finish(const Result<>& result);

  // Those that say so answer whether the kernel has taken it: it has not when the caller was interrupted meanwhile, and
  // then holds nothing of what it was told.
  bool entry(const EntryReply& reply);
  bool open(const OpenReply& reply, int flags);
  bool create(const CreateReply& reply, int flags);
  bool open_directory(HandleId handle);
  void attributes(const AttributesReply& reply);
  void bytes(std::string_view bytes);
  void written(std::size_t size_bytes);
  void link_target(const std::string& target);
  void xattr_size(std::size_t size_bytes);
  void usage(const VolumeUsage& usage);

 private:
  fuse_req_t take();

  fuse_req_t request_;
  const char* operation_;
  std::atomic<std::size_t>& in_flight_;
};

}  // namespace lccfs::fuse
