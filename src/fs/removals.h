// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Files that this client unlinked, and that nobody else can come to (docs/NAMES.md section 5): it removes them itself,
// behind the answer and the batch, as a collector would, but for the poll: nobody else has them open. Any thread;
// nothing blocks but what says so.
//
//  # | object     | step                                                           | stop here leaves
//  0 | Inode.P    | the batch with the removal of the name (name_log.cpp)          | X without a name: a collector removes it,
//    |            |                                                                | from d/X/t
//  1 | Inode.X    | read: no lease, no opener, and no name was added               | the same
//  2 | Inode.X    | [mark unnamed dead] guard version                              | the same; a dead X
//    |            | is anything of the file here by then? It is left to a collector |
//  3 | Data.X.*   | removed where "may exist" is set; the end leaves it there      | the same, fewer objects
//  4 | Inode.X    | [remove dead inode] guard version                              | a key that finds nothing to do
//  5 | Inode.P    | [remove traces] d/X/t of many                                  | done
//
// A collector may do the same at the same time. What cannot be done is left to one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/completions.h"
#include "base/mutex.h"
#include "fs/inodes.h"
#include "instance/instance.h"

namespace lccfs {

class Removals {
 public:
  /// An inode whose only name is gone from the store.
  struct Unlinked {
    Ino directory;
    Ino ino;
    Token token;  ///< of its d/ key
    unsigned tries = 0;
  };
  /// Whether there is anything of the file here: a handle, a lease, bytes, or a call that works on it.
  using IsInUse = std::function<bool(Ino)>;

  Removals(Instance& instance, IsInUse is_in_use);
  ~Removals() { in_flight_.wait(); }
  Removals(const Removals&) = delete;
  Removals& operator=(const Removals&) = delete;

  /// To be removed from some tick on.
  void add(const Unlinked& unlinked) EXCLUDES(mutex_);
  /// Another client asks for the directory: what has not begun there is left to a collector.
  void leave(Ino directory) EXCLUDES(mutex_);
  /// The same of all, and of what comes later; waits for steps on metadata, and for no read nor data object: those may not
  /// answer.
  void end() EXCLUDES(mutex_);
  /// To be called each second: so many more may begin.
  void tick() EXCLUDES(mutex_);

 private:
  struct Removal;
  class DataPhases;
  using Shared = std::shared_ptr<Removal>;

  Shared next() REQUIRES(mutex_);
  void begin_some() EXCLUDES(mutex_);
  void begin(const Shared& removal);
  void try_later(const Shared& removal) EXCLUDES(mutex_);
  void mark_dead(const Shared& removal, const Inode& inode);
  void remove_data(const Shared& removal);
  void remove_objects(const Shared& removal);
  void remove_inode(const Shared& removal);
  void end(const Shared& removal, bool is_removed) EXCLUDES(mutex_);
  void remove_keys(Ino directory, const std::vector<std::string>& keys);

  Instance& instance_;
  const IsInUse is_in_use_;
  std::stop_source stop_;
  const std::shared_ptr<DataPhases> removing_data_;
  Mutex mutex_;
  std::map<Ino, std::deque<Unlinked>> waiting_ GUARDED_BY(mutex_);  // by directory
  std::size_t how_many_wait_ GUARDED_BY(mutex_) = 0;
  std::vector<Unlinked> later_ GUARDED_BY(mutex_);                   // from the next tick on
  std::map<Ino, std::vector<std::string>> keys_ GUARDED_BY(mutex_);  // of what is removed; by directory
  unsigned may_begin_ GUARDED_BY(mutex_) = 0, running_ GUARDED_BY(mutex_) = 0;
  bool is_beginning_ GUARDED_BY(mutex_) = false, is_ended_ GUARDED_BY(mutex_) = false;
  InFlight in_flight_;
};

}  // namespace lccfs
