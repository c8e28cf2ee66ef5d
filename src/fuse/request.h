// SPDX-License-Identifier: LGPL-2.1-or-later
// A request of the kernel that waits for its answer: it gets exactly one, by construction.
#pragma once

#include <cstddef>
#include <string_view>

#include "fuse/fuse_api.h"
#include "fuse/operation_kinds.h"
#include "fuse/serving.h"
#include "fuse/subject.h"
#include "lccfs/file_system.h"

namespace lccfs::fuse {

/// Each answering method uses it up; dropped without an answer it says EIO. Any thread, one at a time.
class Request {
 public:
  /// `serving` counts requests that are not answered; it outlives them. `about`: what is asked about, for the log.
  Request(fuse_req_t request, Kind kind, const Subject& about, Serving& serving);
  Request(Request&& other) noexcept;
  Request& operator=(Request&&) = delete;
  ~Request();

  // -- for the metrics, before the answer
  void belongs_to(metrics::DirectoryTag directory) { directory_ = directory; }
  void moved(std::size_t bytes) { moved_bytes_ = bytes; }

  void fail(int error_number);
  void fail(const Error& error);
  /// Success without a value, or the error.
  void finish(const Result<>& result);
  /// Success, with this body (fuse/answers.h, or plain bytes). False: the kernel has not taken it, because the caller
  /// was let go meanwhile (fuse/killed_callers.h), and holds nothing of what it says.
  bool answer(std::string_view body);

 private:
  void count(metrics::Outcome outcome);
  fuse_req_t about_to_be_answered();
  void reply_error(int error_number);
  Kind kind() const { return static_cast<Kind>(running_.kind); }

  fuse_req_t request_;
  Serving& serving_;
  metrics::Operations::Running running_;
  std::size_t moved_bytes_ = 0;
  metrics::DirectoryTag directory_ = metrics::other_directories;
};

}  // namespace lccfs::fuse
