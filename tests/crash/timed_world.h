// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A volume, mounts and collectors of it, and one simulated time, in which the store, its objects, its monitors and the
// clients are away for a while (docs/TESTING.md). Watches go as the store's do: a client that does not reach an object
// that is there for 30 s has lost its watch on it; they keep while an object is away, but an outage of more than 30 s
// of all objects ends with all watches lapsed, which each client notices within the next ten seconds.
//
// Who does what by itself: threads that work for a party (`work`). All else by the test's thread, which runs the time.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lccfs/file_system.h"
#include "lccfs/volume.h"
#include "scripted/scripted_store.h"
#include "support/collecting.h"
#include "support/simulated_time.h"

namespace lccfs::crash {

using Nanoseconds = std::chrono::nanoseconds;
using std::chrono::seconds;

class TimedWorld {
 public:
  /// A mount or a collector.
  struct Party {
    Party(std::string its_name, test::SimulatedTime& time, const test::SimulatedClock::Options& clock_options)
        : name(std::move(its_name)), clock(time, clock_options) {}
    FileSystem* operator->() const { return mount.get(); }

    const std::string name;
    test::SimulatedClock clock;
    std::shared_ptr<ScriptedClient> client;
    std::unique_ptr<FileSystem> mount;
    std::unique_ptr<test::TestCollector> collector;

   private:
    friend class TimedWorld;
    struct Span {
      Nanoseconds begin, end;
    };
    ScriptedClient& store() { return collector ? collector->client() : *client; }
    std::string session;       // its object
    std::vector<Span> absent;  // cut off, stopped or dead
    unsigned absences = 0;     // that last now
    bool dead = false;
    std::map<std::string, Nanoseconds> unheard;  // of each watched object: for how long, while it was there
  };

  explicit TimedWorld(std::uint64_t seed);
  ~TimedWorld();

  Party& mount();
  Party& collector();
  ScriptedCluster& cluster() { return *cluster_; }
  test::SimulatedTime& time() { return time_; }
  std::mt19937_64& random() { return random_; }
  Nanoseconds now() const { return time_.now(); }
  static const std::string& session_object(const Party& party) { return party.session; }

  // -- what happens when
  using What = std::function<bool(const std::string& object)>;
  static bool everything(const std::string&) { return true; }
  static bool all_objects(const std::string& object) { return object != ScriptedCluster::monitors; }
  static What only(const std::string& object);
  static What session_of(const Party& party) { return only(session_object(party)); }
  void outage(Nanoseconds from, Nanoseconds length, const What& what);
  void cut_off(Party& party, Nanoseconds from, Nanoseconds length);
  void stop(Party& party, Nanoseconds from, Nanoseconds length);
  void kill(Party& party, Nanoseconds at);

  // -- what parties do
  /// By a thread of its own.
  void work(Party& party, std::function<void()> act);
  /// One call of a party's, which waits for nobody who is dead or silent longer than two minutes in which the store
  /// answered. Errors are wrong, unless the party was fenced, or is dead.
  template <class T>
  std::optional<T> call(Party& party, const std::string& what, const std::function<Result<T>()>& act);
  /// A collector's. It polls several times, and may wait each time for who has died meanwhile.
  std::optional<reclaim::PassReport> pass(Party& party);
  bool call(Party& party, const std::string& what, const std::function<Result<>()>& act);
  void wrong(const std::string& what);

  /// Lets time pass until all work is done, and tells what still waits if it is not done by then.
  void run_until_done(Nanoseconds limit);
  void run_until(Nanoseconds end) { time_.run_until(end); }
  /// Unmounts all that live; the volume is whole. What was wrong, in all.
  std::string conclude();
  std::set<std::string> fenced() const;
  /// The calls that have begun and not ended, by name.
  std::string waiting() const;

 private:
  struct Outage {
    Party::Span span;
    What what;
  };
  struct Pending {
    Party& party;
    const std::string what;
    const Nanoseconds begin;
    const Nanoseconds limit;
  };
  static constexpr seconds longest_wait{120}, longest_pass{200};
  Party& add(const std::string& kind);
  void get_ready(Party& party);
  void account();
  void show_what_is_away();
  void begin_absence(Party& party);
  void end_absence(Party& party);
  void declare_dead(Party& party);
  Fault judge_fence(Party& fencer, const StepInfo& info);
  Nanoseconds observable(const Party& fencer, const Party& victim, const Party::Span& span) const;
  void judge_wait(const Pending& call);
  std::list<Pending>::iterator begin_call(Party& party, const std::string& what, Nanoseconds limit = longest_wait);
  void end_call(std::list<Pending>::iterator call, const Error* error);
  static bool hits(const Outage& outage, const Party& party);

  test::SimulatedTime time_;
  test::SimulatedClock clock_{time_, {}};
  std::mt19937_64 random_;
  std::shared_ptr<ScriptedCluster> cluster_;
  std::list<Party> parties_;
  std::vector<Outage> outages_;  // all that were, and are
  Nanoseconds accounted_{0};

  mutable std::mutex mutex_;  // guards all below, and what parties were absent
  std::string wrong_;
  std::set<std::string> fenced_;
  std::list<Pending> calls_;
  unsigned working_ = 0;
  std::vector<std::thread> threads_;
};

template <class T>
std::optional<T> TimedWorld::call(Party& party, const std::string& what, const std::function<Result<T>()>& act) {
  const auto pending = begin_call(party, what);
  auto result = act();
  end_call(pending, result ? nullptr : &result.error());
  return result ? std::optional<T>(std::move(*result)) : std::nullopt;
}

}  // namespace lccfs::crash
