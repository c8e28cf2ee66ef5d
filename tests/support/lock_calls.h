// SPDX-License-Identifier: LGPL-2.1-or-later
// Locks of a file system's files, awaited.
#pragma once

#include <fcntl.h>

#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <utility>

#include "lccfs/file_system.h"

namespace lccfs::test {

inline LockRequest exclusive(HandleId handle, std::uint64_t owner, std::uint64_t first = 0,
                             std::uint64_t last = last_byte) {
  LockRequest request;
  request.handle = handle;
  request.owner = owner;
  request.first = first;
  request.last = last;
  request.pid = static_cast<std::uint32_t>(owner);
  return request;
}
inline LockRequest with(LockRequest request, LockType type) {
  request.type = type;
  return request;
}
inline LockRequest shared(HandleId handle, std::uint64_t owner, std::uint64_t first = 0,
                          std::uint64_t last = last_byte) {
  return with(exclusive(handle, owner, first, last), LockType::shared);
}
inline LockRequest whole_file(HandleId handle, std::uint64_t owner) {
  auto request = exclusive(handle, owner);
  request.kind = LockKind::flock;
  return request;
}
inline LockRequest waiting(LockRequest request, std::uint64_t ticket = 0) {
  request.waits = true;
  request.ticket = ticket;
  return request;
}

inline std::future<Result<>> begin_lock(FileSystem& fs, const LockRequest& request) {
  std::promise<Result<>> promise;
  auto answer = promise.get_future();
  fs.set_lock(request, [promise = std::move(promise)](Result<> done) mutable { promise.set_value(std::move(done)); });
  return answer;
}
/// One that never comes fails the test.
inline Result<> soon(std::future<Result<>> answer) {
  const bool is_there = answer.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  return is_there ? answer.get() : throw std::runtime_error("a request for a lock is not answered");
}
inline Result<> set_lock(FileSystem& fs, const LockRequest& request) { return soon(begin_lock(fs, request)); }
inline Result<> unlock(FileSystem& fs, const LockRequest& request) {
  return set_lock(fs, with(request, LockType::none));
}
inline Result<std::optional<LockHeld>> find_lock(FileSystem& fs, const LockRequest& request) {
  std::promise<Result<std::optional<LockHeld>>> promise;
  auto answer = promise.get_future();
  fs.find_lock(request, [promise = std::move(promise)](Result<std::optional<LockHeld>> held) mutable {
    promise.set_value(std::move(held));
  });
  return answer.get();
}

}  // namespace lccfs::test
