// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A store client of this process: its file in clients/, locked for as long as it lives (the kernel unlocks it when the
// process dies, however), and its steps in flight. Any thread.
//
// A client without that file is fenced: others take it for dead. Each of its transactions looks, within LMDB's lock; so
// who has found no file, and had the lock since, sees no further change of it. The first one bars the client.
#pragma once

#include <condition_variable>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "lccfs/result.h"
#include "store/local/descriptor.h"
#include "store/local/process_identity.h"
#include "store/local/watches.h"

namespace lccfs::local {

class Client;
struct EndStep {
  std::shared_ptr<Client> client;
  void operator()(Client* of_step) const;
};
/// A client's step in flight.
using Step = std::unique_ptr<Client, EndStep>;

class Client : public std::enable_shared_from_this<Client> {
 public:
  /// Makes and locks the file, within a write transaction: between the two it looks dead (living_clients).
  /// `clients`: the directory; open for longer than the client.
  static Result<std::shared_ptr<Client>> enter(int clients);
  /// One that may not write: it has no file, and no other knows of it.
  static Result<std::shared_ptr<Client>> look_on(int clients);
  ~Client();  ///< removes the file
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const ClientIdentity& identity() const { return identity_; }
  Watches& watches() { return watches_; }
  bool has_its_file() const;

  /// Empty: fenced. To be held until it has been answered.
  Step begin_step();
  /// From now on no step begins, and the watches are lost.
  void bar();
  /// Returns when no step is in flight.
  void wait_for_steps();

 private:
  friend EndStep;
  Client(int clients, ClientIdentity identity) : clients_(clients), identity_(std::move(identity)) {}

  const int clients_;
  const ClientIdentity identity_;
  Descriptor lock_;
  Watches watches_;
  Mutex mutex_;
  std::condition_variable all_ended_;
  bool barred_ GUARDED_BY(mutex_) = false;
  std::size_t steps_ GUARDED_BY(mutex_) = 0;
};

std::unexpected<Error> fenced_failure();

// ---- the clients of any process, by their files

/// Whether a process holds the lock of that client.
Result<bool> is_alive(int clients, const std::string& id);
/// Kills the client's process and returns when its lock is free. Not for clients of this process. permission_denied:
/// the process that it names does not hold that lock, as far as can be seen from here.
Result<> kill_client(int clients, const ClientIdentity& identity);
/// Ids of those that live.
Result<std::set<std::string>> living_clients(int clients);
/// Removes what the others have left in the directory. Within the write transaction in which one saw who lives.
Result<> remove_dead_files(int clients, const std::set<std::string>& living);

}  // namespace lccfs::local
