// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tells other clients that have a file open what changes under our lease (docs/DATA.md section 12): they drop what their
// kernels hold. Nobody waits for it: a client that does not answer keeps waiting what it is told itself, and nothing
// else. Any thread; nothing blocks, but `end`.
#pragma once

#include <chrono>
#include <map>
#include <optional>

#include "base/mutex.h"
#include "base/tasks.h"
#include "base/thread_pool.h"
#include "fs/open_files.h"

namespace lccfs {

class Announcements {
 public:
  Announcements(Instance& instance, OpenFiles& files) : instance_(instance), files_(files) {}
  ~Announcements() { end(); }
  Announcements(const Announcements&) = delete;
  Announcements& operator=(const Announcements&) = delete;

  /// A client has opened the file, and says so: it is told from now on.
  void opened(FileNode& node, InstanceId opener);
  /// Something of the file has changed, and can be read by now: bytes are in the store, or this client answers for them.
  void changed(FileNode& node) {
    if (node.is_told_of) begin(node);
  }
  /// What is to be told is told once more at most; returns when nothing of this is under way.
  void end() EXCLUDES(mutex_);

 private:
  struct ToTell {
    bool is_due = false;
    std::chrono::nanoseconds not_before{0};
  };
  /// One question at a time is with a client.
  struct Client {
    std::map<Ino, ToTell> files;
    bool is_told = false;  // a thread does
    bool is_silent = false;
    std::chrono::nanoseconds not_before{0}, pause{0};  // silent: when it is tried again
  };
  enum class Heard { it_is_open, it_is_not, nothing, nobody };

  void begin(FileNode& node) EXCLUDES(mutex_);
  void tell(InstanceId client) EXCLUDES(mutex_);
  std::optional<Ino> next_for(InstanceId client) EXCLUDES(mutex_);
  Heard tell_now(InstanceId client, Ino ino);
  void heard(InstanceId client, Ino ino, Heard answer, std::uint64_t heard_at) EXCLUDES(mutex_);
  void forget(InstanceId client, Ino ino, std::uint64_t heard_at);
  bool is_expired(InstanceId client);

  Instance& instance_;
  OpenFiles& files_;
  Mutex mutex_;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::map<InstanceId, Client> clients_ GUARDED_BY(mutex_);
  ThreadPool threads_;  // they wait for other clients
  Tasks tasks_{threads_};
};

}  // namespace lccfs
