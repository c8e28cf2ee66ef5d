// SPDX-License-Identifier: LGPL-2.1-or-later
// A copy of a volume in which one case happens, and the clients in it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "crash/call.h"
#include "crash/scenario.h"
#include "scripted/scripted_store.h"
#include "support/client_clock.h"
#include "support/fake_clock.h"
#include "support/paths.h"

namespace lccfs::crash {

/// Whether a write is answered before the store has it; and if so, whether a close is, too.
enum class Writes { are_buffered, outlive_closes, wait };

/// What a client remembers when it begins: nothing; all there is, as hints; or that, and it holds the directories. Of
/// the last kinds are clients that take a directory's lease with their first change of it; the very last answer changes
/// of names before they are stored, and have done each operation when they have stored what they answered.
enum class Memory { cold, warm, leased, behind };
constexpr Memory all_memories[] = {Memory::cold, Memory::warm, Memory::leased, Memory::behind};
constexpr bool holds_directories(Memory memory) { return memory == Memory::leased || memory == Memory::behind; }
/// "" if it is cold.
const char* describe(Memory memory);

/// A mounted client that dies, or unmounts.
class Client {
 public:
  Client(ScriptedCluster& cluster, Clock& clock, Writes writes, Memory memory = Memory::cold);

  ScriptedClient& store() { return *store_; }
  test::Paths& paths() { return paths_; }
  /// It stays at /d, and remembers.
  void prepare(Memory memory);
  /// The same, and opens what the scenario wants open.
  void prepare(const Scenario& scenario, Memory memory);
  /// "ok", or the meaning of the error.
  std::string perform(const Act& act);
  std::string perform(const Call& call);
  /// Everything in flight is done, all handles are closed.
  void unmount();
  /// The same; or it was fenced meanwhile, and goes as it is.
  void leave();
  /// After a crash: the process is gone.
  void bury();
  /// It stores what it keeps, and ends, or dies in that.
  void try_to_unmount();
  /// Once it is gone: bytes that it has written and closed may be lost.
  bool may_have_lost_bytes() const { return !has_left_in_peace_ && writes_ == Writes::outlive_closes; }

 private:
  void hold(const char* directory);
  std::string stored(std::string result);

  Writes writes_;
  Memory memory_;
  bool has_left_in_peace_ = false;
  std::shared_ptr<ScriptedClient> store_;
  std::unique_ptr<test::ClientClock> clock_;
  std::unique_ptr<FileSystem> file_system_;
  test::Paths paths_;
  std::optional<HandleId> open_file_;
};

/// What came of two operations, in whichever order; an operation that did not happen, or whose client is dead, has no
/// result.
struct Outcome {
  std::string operation;
  std::string rival;
  Tree tree;
  bool operator==(const Outcome&) const = default;
};
std::string text_of(const Tree& tree);
std::string text_of(const Outcome& outcome);

/// Small objects: files of several fit a test.
constexpr std::uint32_t object_size_bytes = 64U << 10;

class World {
 public:
  /// A new volume with the scenario's set-up done.
  explicit World(const Scenario& scenario) : World(scenario.setup) {}
  explicit World(const std::vector<Act>& setup);
  /// The same world as it was, for a case of its own.
  explicit World(const World& base);

  Client mount(Writes writes, Memory memory = Memory::cold) { return Client(*cluster_, clock_, writes, memory); }
  /// What the first writes outlives its closes, the second's writes wait for the store, and so on.
  Client mount(Memory memory = Memory::cold) {
    return mount(mounts_++ % 2 == 0 ? Writes::outlive_closes : Writes::wait, memory);
  }
  /// The tree as a new client sees it; the invariants are checked before anybody mends anything.
  Tree tree();
  /// Long enough for whoever is gone to be taken for gone.
  void let_a_minute_pass() { clock_.advance(std::chrono::seconds(61)); }
  ScriptedCluster& cluster() { return *cluster_; }
  Clock& clock() { return clock_; }
  /// With every client gone or ended: what a new client sees, and what is wrong with the volume: invariants, before
  /// anybody mends anything; the tree and the invariants after collectors; objects and keys too many after those.
  struct Examined {
    Tree tree;
    std::string problems;
  };
  Examined examine();
  void expect_nothing_left();
  /// Equal for worlds that only differ in what cannot matter any more, when every client is gone or ended.
  std::string fingerprint() const;

 private:
  std::string broken_invariants();
  Tree look();

  test::FakeClock clock_;
  std::shared_ptr<ScriptedCluster> cluster_;
  unsigned mounts_ = 0;
};

}  // namespace lccfs::crash
