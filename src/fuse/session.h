// SPDX-License-Identifier: LGPL-2.1-or-later
//
// One FUSE mount: from mount(2) to its clean end. One thread at a time takes the kernel's requests in (more are slower); it
// or a pool serves metadata operations (receiver.h), reads and writes are answered from the store's completions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "fuse/connection_guard.h"
#include "fuse/kernel_notifier.h"
#include "fuse/serving.h"
#include "lccfs/file_system.h"

namespace lccfs::fuse {

struct SessionOptions {
  std::string mountpoint;  ///< absolute
  std::string source;      ///< what df and /proc/mounts show
  bool read_only = false, no_suid = false, no_dev = false, no_exec = false;
  bool allow_other = true;
  std::string subdirectory = "/";                        ///< of the volume: what is mounted
  bool end_when_fenced = false;                          ///< ends as end() does, once the client was fenced
  std::function<void()> about_to_end_as_fenced = [] {};  ///< is called before that, once; must not block
  std::uint64_t readahead_bytes = 4U << 20;     ///< as many objects as it takes are read at once: one, by default
  std::chrono::milliseconds drain_limit{5000};  ///< how long end() lets those who keep using the mount do so
  std::shared_ptr<MountMetrics> metrics;        ///< nullptr: nobody looks at them
  std::shared_ptr<ConnectionGuard> guard;       ///< watches from mount to end; nullptr: none
};

class Session {
 public:
  using AboutToMount = std::function<Result<>()>;
  /// Mounts. `fs` and `clock` outlive the session. `about_to_mount` is called before anything is mounted, when the store
  /// is asked for nothing more; where it fails, nothing is.
  static Result<std::unique_ptr<Session>> mount(FileSystem& fs, Clock& clock, const SessionOptions& options,
                                                const AboutToMount& about_to_mount = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Serves the kernel until the mount has ended; nothing is in flight then, and nothing is mounted. `ready` is called
  /// once: from then on the mount answers. It is not called if end() was called early enough: that is no error.
  Result<> serve(const std::function<void()>& ready);

  /// "major:minor", as MountEntry has it; empty: not known.
  const std::string& device() const { return device_; }

  /// Unmounts, from any thread but the serving one; more than once is once. First mapped pages are written back, for up
  /// to a minute; then users of a busy mount lose it within the drain limit.
  void end();

 private:
  Session(FileSystem& fs, Clock& clock, const SessionOptions& options);
  Result<> start(const AboutToMount& about_to_mount);
  Result<> hold_subdirectory();
  Result<> serve_all(const std::function<void()>& ready);
  Result<> receive_until_the_end();
  Result<bool> negotiate();
  Result<bool> serve_one();
  bool wait_for_requests();
  void begin_to_end();
  bool past_drain_limit() const;
  bool is_mounted() const;
  void unmount_by_force();
  void close();

  const SessionOptions options_;
  Serving serving_;
  fuse_session* session_ = nullptr;
  std::optional<KernelNotifier> notifier_;
  std::optional<HandleId> subdirectory_;  // open: a collector leaves it, if it is removed elsewhere
  std::once_flag ends_;
  Descriptor abort_file_;
  std::string device_;                // as MountEntry has it, and its number: they tell our mount from another
  std::uint64_t device_number_ = 0;   // at the same place
  std::atomic<bool> is_gone_{false};  // nothing is unmounted any more
  const int wake_fd_;                 // an eventfd: the serving thread is to look at ending_
  std::chrono::nanoseconds drain_deadline_{0};  // set before ending_
  std::atomic<bool> end_wanted_{false};         // end() was called
  std::atomic<bool> ending_{false};             // and has done its part
  bool closed_ = false;
};

}  // namespace lccfs::fuse
