// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the clients of one process share on one directory: LMDB allows each process one environment on it. Opened by
// the first of them, closed after the last. Any thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "store/local/client.h"
#include "store/local/committer.h"
#include "store/local/data_queue.h"
#include "store/local/directory.h"
#include "store/local/environment.h"

namespace lccfs::local {

class Volume {
 public:
  static Result<std::shared_ptr<Volume>> open(const std::string& path, bool create);
  Volume(const Volume&) = delete;
  Volume& operator=(const Volume&) = delete;

  /// No client writes while it is open, and it is not written to.
  bool read_only() const { return directory_.read_only; }

  /// A new client, known to all processes; clears away what dead ones have left. Of a read-only volume: known to
  /// nobody.
  Result<std::shared_ptr<Client>> enter();
  void leave(const Client& client);
  /// Bars that client, wherever it is, and returns when nothing of it is in flight (docs: include/lccfs).
  Result<> fence(const ClientIdentity& identity);

  const Directory& directory() const { return directory_; }
  Environment& environment() { return *environment_; }
  Committer& committer() { return committer_; }
  DataQueue& data() { return data_; }

 private:
  Volume(Directory directory, Descriptor onlooker, std::unique_ptr<Environment> environment);
  Result<> clear_away(WriteTransaction& transaction, const std::string& ended_client);
  Result<> clear_away(const std::string& ended_client);
  std::shared_ptr<Client> sibling(const std::string& id);

  const Directory directory_;
  const Descriptor onlooker_;  // of a read-only one
  const std::unique_ptr<Environment> environment_;
  Committer committer_;
  DataQueue data_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Client>> clients_ GUARDED_BY(mutex_);  // of this process, by id
};

}  // namespace lccfs::local
