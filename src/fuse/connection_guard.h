// SPDX-License-Identifier: LGPL-2.1-or-later
// A small process that aborts the kernel's connection of a mount when the process that serves it dies.
//
// The kernel does so by itself once all threads of that process have ended. But SIGKILL does not end a thread that has
// the kernel forget a name and waits there for the directory, and the program that holds the directory may wait for an
// answer of that very process. Without the guard both wait until somebody calls umount -f.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>

#include "base/descriptor.h"

namespace lccfs::fuse {

/// The file of fusectl that aborts the connection of the mount with that device ("0:minor") once "1" is written to it;
/// closed where there is none. It aborts this connection or none, even if another has the number later.
Descriptor open_abort_file(const std::string& device);

/// One thread: the one whose end is the process's death, which is the main one.
class ConnectionGuard {
 public:
  /// While the process has no other threads. Where there is no guard (nullptr), or it cannot abort the connection, a
  /// warning is logged, and the mount is served without it.
  static std::unique_ptr<ConnectionGuard> start();
  /// Ends it; nothing is aborted.
  ~ConnectionGuard();
  ConnectionGuard(const ConnectionGuard&) = delete;
  ConnectionGuard& operator=(const ConnectionGuard&) = delete;

  /// From now on the connection that this file aborts goes with this process.
  void watch(const Descriptor& abort_file);
  /// That mount has ended.
  void dismiss();

 private:
  ConnectionGuard(Descriptor socket, pid_t child) : socket_(std::move(socket)), child_(child) {}
  Descriptor socket_;
  pid_t child_;
};

}  // namespace lccfs::fuse
