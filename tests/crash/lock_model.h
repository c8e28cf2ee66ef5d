// SPDX-License-Identifier: LGPL-2.1-or-later
// The locks of one file that its clients have been granted, byte by byte: what a program may rely on (docs/LOCKS.md).
// Any thread.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lccfs/file_system.h"

namespace lccfs::crash {

class LockModel {
 public:
  /// All locks of the cases are among so many bytes.
  static constexpr std::uint64_t bytes = 10;

  /// From now on the owner may have no more than this where it lies.
  void begins(char client, const LockRequest& request);
  /// The owner was told that it has it. No client that is not expired may have one that is in its way.
  void granted(char client, const LockRequest& request);
  /// The owner keeps what it had, instead.
  void refused(char client, const LockRequest& request);
  /// Its locks are void.
  void expires(char client);
  /// Whether somebody who is not expired has a lock in the way.
  bool is_blocked(char client, const LockRequest& request) const;
  /// What the client has, or may have: one request for each kind and owner.
  std::vector<LockRequest> owners(char client) const;

  void wrong(const std::string& what);
  std::string all_wrong() const;

 private:
  using Owner = std::tuple<char, LockKind, std::uint64_t>;
  using Held = std::array<LockType, bytes>;
  std::string in_the_way(char client, const LockRequest& request) const;

  mutable std::mutex mutex_;
  std::map<Owner, Held> held_, before_;  // before the request that has begun
  std::set<char> expired_;
  std::string wrong_;
};

std::string text_of(char client, const LockRequest& request);

}  // namespace lccfs::crash
