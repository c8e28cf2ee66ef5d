// SPDX-License-Identifier: LGPL-2.1-or-later
// A copy of a volume in which one case happens, and the clients in it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "crash/scenario.h"
#include "store/scripted/scripted_store.h"
#include "support/fake_clock.h"
#include "support/paths.h"

namespace lccfs::crash {

/// A mounted client that dies, or unmounts.
class Client {
 public:
  Client(ScriptedCluster& cluster, Clock& clock);

  ScriptedClient& store() { return *store_; }
  test::Paths paths() { return test::Paths(*file_system_); }
  /// Looks at all there is, and opens what the scenario wants open.
  void prepare(const Scenario& scenario, bool warm);
  /// "ok", or the meaning of the error.
  std::string perform(const Act& act);
  /// Everything in flight is done, all handles are closed.
  void unmount();
  /// After a crash: the process is gone.
  void bury();

 private:
  std::shared_ptr<ScriptedClient> store_;
  std::unique_ptr<FileSystem> file_system_;
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

class World {
 public:
  /// A new volume with the scenario's set-up done.
  explicit World(const Scenario& scenario);
  /// The same world as it was, for a case of its own.
  explicit World(const World& base);

  Client mount() { return Client(*cluster_, clock_); }
  /// The tree as a new client sees it; the invariants are checked before anybody mends anything.
  Tree tree();
  /// Long enough for whoever is gone to be taken for gone.
  void let_a_minute_pass() { clock_.advance(std::chrono::seconds(61)); }
  ScriptedCluster& cluster() { return *cluster_; }
  Clock& clock() { return clock_; }
  /// With every client gone or ended, collectors leave the same tree, all invariants, and no object or key too many.
  void expect_nothing_left();

 private:
  void check_invariants();

  test::FakeClock clock_;
  std::shared_ptr<ScriptedCluster> cluster_;
};

}  // namespace lccfs::crash
