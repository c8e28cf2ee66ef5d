// SPDX-License-Identifier: LGPL-2.1-or-later
// Doubts that a d/ key would explain, a bounded number at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "check/namespace_check.h"

namespace lccfs::check {

/// What is wrong with an inode unless a d/ key leads to it, in a directory that the queue names. Holds little, and not
/// for long: whenever there are `room` of them, those keys are read, and what no key explains is reported. Any thread.
class UnlessDetached {
 public:
  /// 2 MiB.
  static constexpr std::size_t usual_room = 65536;
  explicit UnlessDetached(const NamespaceCheck& check, std::size_t room = usual_room) : check_(check), room_(room) {}

  /// One without any name, as far as entries go.
  Result<> add_orphan(Ino ino, std::uint32_t nlink, bool sealed) {
    return add({.ino = ino, .kind = Finding::Kind::orphan, .nlink = nlink}, sealed);
  }
  /// An inode with that many names, which are none or not its nlink. Does nothing where the queue leads to it by itself.
  Result<> add_links(Ino ino, const InodeSummary& inode, std::uint64_t names);
  /// Sealed, or the topmost of a lost tree.
  Result<> add_seal(Ino ino) { return add({.ino = ino, .kind = Finding::Kind::lost_trace}, true); }
  Result<> add_unreachable(Ino ino, bool sealed) {
    return add({.ino = ino, .kind = Finding::Kind::unreachable}, sealed);
  }
  /// What is left.
  Result<> finish();
  std::size_t held() const;

 private:
  struct Doubt {
    Ino ino;
    Finding::Kind kind;
    std::uint32_t nlink = 0;
    std::uint64_t names = 0;
    auto operator<=>(const Doubt&) const = default;
  };
  Result<> add(const Doubt& doubt, bool sealed);
  Result<> settle();
  static Finding finding_of(const Doubt& doubt);

  const NamespaceCheck check_;
  const std::size_t room_;
  mutable std::mutex mutex_;  // guards the doubts; held while they are settled, so that there are no more of them
  std::vector<Doubt> doubts_;
};

}  // namespace lccfs::check
