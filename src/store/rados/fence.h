// SPDX-License-Identifier: LGPL-2.1-or-later
//
// How a client is barred, and whose address is believed (docs/PROTOCOL.md section 2, "Fence"). Any client that may
// write in the volume writes the addresses in its records. With a key for the volume alone a fence can do nothing with
// them that their writer could not do as well. A program with a wider key bars only clients that it has seen: a watch's
// address comes from the OSD.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <rados/librados.hpp>
#include <set>
#include <string>

#include "base/mutex.h"
#include "lccfs/object_store.h"
#include "lccfs/result.h"
#include "store/rados/connection.h"
#include "store/rados/identity.h"
#include "store/rados/step.h"

namespace lccfs::rados {

/// The addresses from which others were seen to watch. Any thread.
class Witnesses {
 public:
  void note(const std::list<obj_watch_t>& watchers);
  /// Whether each of its addresses was seen, under its id.
  bool have_seen(const Identity& client) const;

 private:
  /// Those with the lowest ids, the oldest, are forgotten first.
  static constexpr std::size_t most_clients = 16'384;
  mutable Mutex mutex_;
  std::map<std::uint64_t, std::set<std::string>> seen_ GUARDED_BY(mutex_);  // without the protocol
};

class Fences {
 public:
  Fences(Connection& connection, RequestsInFlight& in_flight) : connection_(connection), in_flight_(in_flight) {}

  /// The error says in one line what our key lacks. Changes nothing.
  Result<> check_permitted();
  /// Sends a read of the watchers, if it may matter; its answer is noted.
  void look_at_watchers(const std::string& object);
  /// As ObjectStore has it. All watchers are noted.
  Result<Presence> presence(const std::string& object, const Bytes& identity);

  /// Blocklists the client's addresses, and returns when this client knows the map that says so. `permission_denied`,
  /// with the command for somebody who may: our key may not, or it is mightier than the volume needs, and this client
  /// has not been seen (unless it is barred already).
  Result<> fence(const Bytes& identity);
  /// Waits for the latest map.
  Result<> sync();

 private:
  using Watchers = std::list<obj_watch_t>;
  using LookDone = std::move_only_function<void(int status, const Watchers&)>;
  class LookStep;

  void look(const std::string& object, LookDone done);
  bool key_reaches_further();
  bool is_barred(const Identity& client);

  Connection& connection_;
  RequestsInFlight& in_flight_;
  Witnesses witnesses_;
  enum class Reach { not_known, volume, further };
  std::atomic<Reach> reach_{Reach::not_known};
};

}  // namespace lccfs::rados
