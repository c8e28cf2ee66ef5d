// SPDX-License-Identifier: LGPL-2.1-or-later
// Plays calls of several clients in a copy of a world, in a given order of their steps, and judges what comes of it.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "crash/call.h"
#include "crash/history.h"
#include "crash/interleaver.h"
#include "crash/world.h"

namespace lccfs::crash {

/// A world before anything happens, and the model of it.
struct Start {
  explicit Start(const std::vector<Call>& setup);
  /// Of an inode that is lost: its entry stays, and means nothing.
  void lose_inode(const std::string& path);
  World world;
  ModelTree model;
  bool is_damaged = false;  ///< invariants are not expected to hold
};

struct Play {
  std::vector<std::vector<Call>> calls;  ///< of each client, one after the other
  Memory memory = Memory::cold;          ///< of the clients; only one of them can hold the directories
  unsigned holder = 0;                   ///< which one that is
  bool with_collector = false;           ///< one more client, whose lane is the last
};
std::string text_of(const Play& play);

class Stage {
 public:
  explicit Stage(const Start& start) : start_(start) {}

  /// What is wrong; empty: nothing. A client that is to die later than anybody looks lands its last step in the end.
  std::string play(const Play& play, Interleaver& interleaver, const Interleaver::Choose& choose);
  /// The same of a world in which that has happened, and in which every client is gone or ended.
  std::string judge(World& world, const std::vector<Performed>& history);

 private:
  const Start& start_;
  std::unordered_set<std::size_t> found_good_;  // outcomes that need not be looked at again
};

}  // namespace lccfs::crash
