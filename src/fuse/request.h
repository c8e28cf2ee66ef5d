// SPDX-License-Identifier: LGPL-2.1-or-later
// A request of the kernel that waits for its answer: it gets exactly one, by construction.
#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>

#include "fuse/fuse_api.h"
#include "lccfs/file_system.h"

namespace lccfs::fuse {

/// Each answering method uses it up; dropped without an answer it says EIO. Any thread, one at a time.
class Request {
 public:
  /// `in_flight` counts requests that are not answered; it outlives them. `operation`: for the log; a literal.
  Request(fuse_req_t request, const char* operation, std::atomic<std::size_t>& in_flight);
  Request(Request&& other) noexcept;
  Request& operator=(Request&&) = delete;
  ~Request();

  void fail(int error_number);
  void fail(const Error& error);
  /// Success without a value, or the error.
  void finish(const Result<>& result);
  /// Success, with this body (fuse/answers.h, or plain bytes). False: the kernel has not taken it, because the caller
  /// was interrupted meanwhile, and holds nothing of what it says.
  bool answer(std::string_view body);

 private:
  fuse_req_t request_;
  const char* operation_;
  std::atomic<std::size_t>& in_flight_;
};

}  // namespace lccfs::fuse
