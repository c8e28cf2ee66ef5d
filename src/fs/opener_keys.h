// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Writes and removes the keys that say which clients have a file open (docs/DATA.md section 12). No request waits for
// it. The step table is on top of opener_keys.cpp. Any thread; nothing blocks, but `end`.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "base/mutex.h"
#include "base/tasks.h"
#include "base/thread_pool.h"
#include "fs/open_files.h"

namespace lccfs {

class OpenerKeys {
 public:
  /// What the kernel holds of the inode is dropped, unless it is right.
  using Look = std::function<void(const Inode& view)>;
  OpenerKeys(Instance& instance, OpenFiles& files, Look look)
      : instance_(instance), files_(files), look_(std::move(look)), link_(std::make_shared<Link>(*this)) {}
  ~OpenerKeys() { end(); }
  OpenerKeys(const OpenerKeys&) = delete;
  OpenerKeys& operator=(const OpenerKeys&) = delete;

  /// Begins what is due of this file; to be called about once a second.
  void see_to(const OpenFiles::Use& node);
  /// A holder of the lease has told of a change. false: the file is not open here, and a key that stands is removed.
  bool is_open(Ino ino);
  /// What was told in the last while may have been missed: all holders are to be asked again.
  void begin_anew();
  /// Returns when nothing that waits for other clients is under way any more, and waits for no object. A key whose step
  /// the store has not answered is left to the next writer.
  void end() EXCLUDES(link_->mutex);

 private:
  using Todo = OpenerKey::Todo;
  /// What a completion that comes late finds: nothing, once this has ended.
  struct Link {
    explicit Link(OpenerKeys& its_keys) : keys(&its_keys) {}
    Mutex mutex;
    OpenerKeys* keys GUARDED_BY(mutex);
  };

  void add(const OpenFiles::Use& node);
  void remove(const OpenFiles::Use& node);
  void post(Todo what, Ino ino);
  Result<Inode> read(Ino ino);
  void read_again(Ino ino);
  void introduce(Ino ino);
  Result<> introduce_now(FileNode& node);
  Result<> tell(InstanceId holder, Ino ino);

  Instance& instance_;
  OpenFiles& files_;
  const Look look_;
  const std::shared_ptr<Link> link_;
  std::stop_source stop_;  // of reads
  ThreadPool threads_;     // they wait for other clients
  Tasks tasks_{threads_};
};

}  // namespace lccfs
