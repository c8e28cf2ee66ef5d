// SPDX-License-Identifier: LGPL-2.1-or-later
// What the operations of one session share: its user data.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "base/thread_pool.h"
#include "fuse/fuse_api.h"
#include "fuse/kernel_channel.h"
#include "fuse/killed_callers.h"
#include "fuse/lookup_counts.h"
#include "fuse/mount_metrics.h"
#include "fuse/receiver.h"
#include "fuse/request_buffers.h"
#include "fuse/top_directories.h"
#include "lccfs/file_system.h"

namespace lccfs::fuse {

struct Serving {
  Serving(FileSystem& volume, Clock& time, std::shared_ptr<MountMetrics> instruments)
      : fs(volume), clock(time), metrics(std::move(instruments)) {}

  FileSystem& fs;
  Clock& clock;
  std::shared_ptr<MountMetrics> metrics;
  TopDirectories top_directories{metrics->directories};
  LookupCounts lookups;
  std::atomic<std::size_t> in_flight{0};
  Handshake handshake;
  RequestBuffers requests;
  KilledCallers killed_callers;
  Ino root = root_ino;        // what the kernel's FUSE_ROOT_ID stands for; set before anything is served
  int session_fd = -1;        // as root
  std::uint64_t tickets = 0;  // of locks that wait; the receiving thread's
  std::atomic<std::uint64_t> nobodies{0};
  ThreadPool pool;           // its threads, and the receiver's, end before what they use
  Receiver receiver{clock};  // last

  Ino ino_of(fuse_ino_t number) const { return number == FUSE_ROOT_ID ? root : Ino{number}; }
  /// A number that is no lock owner's: the kernel's are spread over all of them.
  std::uint64_t next_nobody() { return ~nobodies++; }
  void forget(Ino ino, std::uint64_t count) {
    lookups.drop(ino, count, [this, ino] {
      top_directories.forgotten(ino);
      fs.forget(ino);
    });
  }
  /// Below which directory on top of the mount the inode is, as far as the kernel was told.
  metrics::DirectoryTag directory_of(Ino ino) const {
    return ino == root ? metrics::top_itself : lookups.directory_of(ino);
  }
  /// The kernel is about to be told of it, by that name. Answers below which directory on top it is.
  metrics::DirectoryTag tell(Ino parent, std::string_view name, const EntryReply& entry) {
    const Ino ino = entry.attributes.ino;
    const bool by_number = name == "." || name == "..";
    const auto directory = by_number ? directory_of(ino)
                           : parent == root && entry.attributes.type == FileType::directory
                               ? top_directories.seen(ino, name)
                               : directory_of(parent);
    lookups.add(ino, directory);
    return directory;
  }
};

}  // namespace lccfs::fuse
