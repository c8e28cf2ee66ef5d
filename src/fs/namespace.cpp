// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/namespace.h"

#include "fs/namespace_private.h"

namespace lccfs {

Namespace::Namespace(Instance& instance, Files& files, const FileSystemOptions& options)
    : private_(std::make_unique<Private>(instance, files, options)) {}

Namespace::~Namespace() { wait_for_background_steps(); }

void Namespace::wait_for_background_steps() {
  std::unique_lock lock(private_->background_mutex);
  private_->background_done.wait(lock, [this] { return private_->in_background == 0; });
}

void Namespace::forget(Ino ino) { private_->inodes.drop(ino); }

bool certainly_not_applied(const Error& error) {
  switch (error.code) {
    case ErrorCode::stale:
    case ErrorCode::no_space:
    case ErrorCode::quota_exceeded:
      return error.outcome == Outcome::definite;
    default:
      return false;
  }
}

}  // namespace lccfs
