// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What time does: storage that is away for a while, whole or in part, clients that are cut off, stand still or die,
// clocks that differ; under idle mounts, writers that share a file, and collectors (docs/TESTING.md).
#include <fcntl.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <string>

#include "crash/sampling.h"
#include "crash/timed_world.h"
#include "format/object_names.h"
#include "support/catch.h"
#include "support/paths.h"

namespace lccfs::crash {
namespace {

using std::chrono::milliseconds;
using Party = TimedWorld::Party;

/// Printed at the end, so that a suite that shrinks is seen.
struct CaseCounter {
  unsigned cases = 0, fences = 0;
  std::size_t writes = 0;
  ~CaseCounter() {
    std::printf("time: %u cases, in which %u clients were fenced and %zu writes acknowledged\n", cases, fences, writes);
  }
} counted;

/// When an outage begins: all records are older than a minute.
constexpr seconds start{100};
/// Calls begin for so long after it.
constexpr seconds afterwards{40};

/// A number of eight digits, written again and again at a place of its own in some file.
struct Slot {
  std::string path;
  std::uint64_t offset_bytes;
  std::size_t tried = 0, acknowledged = 0;

  static std::string text(std::size_t number) {
    const auto digits = std::to_string(number);
    return std::string(8 - digits.size(), '0') + digits;
  }
};

/// Eight mounts and two collectors: two mounts write one file in turn, a third keeps one open for writing that a fourth
/// looks at and writes into now and then, a fifth makes and removes files; three are idle.
class Household {
 public:
  Household(std::uint64_t seed, seconds end) : world(seed), end_(end) {
    for (unsigned i = 0; i < 8; ++i) mounts.push_back(&world.mount());
    for (unsigned i = 0; i < 2; ++i) collectors.push_back(&world.collector());
    test::Paths paths(*mounts.front()->mount);
    for (const char* path : {"/shared", "/kept", "/of-idle"}) test::need(paths.make_file(path, 0644));
    for (const unsigned i : {0U, 1U}) write_in_turn(*mounts[i], {"/shared", 8 * i});
    keep_open(*mounts[2], {"/kept", 0});
    write_in_turn(*mounts[3], {"/kept", 8});
    make_and_remove(*mounts[4]);
    for (Party* collector : collectors) collect(*collector);
  }

  /// What was wrong.
  std::string play() {
    world.run_until_done(end_ + seconds(600));
    auto& reader = world.mount();
    world.work(reader, [&] {
      for (const Slot& slot : slots_) check(reader, slot);
    });
    world.run_until_done(world.now() + seconds(200));
    counted.fences += static_cast<unsigned>(world.fenced().size());
    ++counted.cases;
    return world.conclude();
  }

  TimedWorld world;
  std::vector<Party*> mounts, collectors;
  /// Between two passes of a collector; 0: as between the calls of others.
  std::atomic<int> collectors_pause_s = 0;

 private:
  Slot& add(Slot slot) { return slots_.emplace_back(std::move(slot)); }
  milliseconds pause() {
    const std::lock_guard lock(mutex_);
    return milliseconds(2000 + world.random()() % 6000);
  }
  bool is_time() { return world.now() < end_; }

  bool write(Party& party, test::Paths& paths, HandleId handle, Slot& slot) {
    ++slot.tried;
    const auto bytes = Slot::text(slot.tried);
    const bool stored = world.call(party, "write " + slot.path, [&] {
      return paths.write(handle, slot.offset_bytes, bytes);
    }) && world.call(party, "fsync " + slot.path, [&] { return paths.fsync(handle, false); });
    if (!stored) return false;
    slot.acknowledged = slot.tried;
    const std::lock_guard lock(mutex_);
    ++counted.writes;
    return true;
  }
  std::optional<HandleId> open(Party& party, test::Paths& paths, const Slot& slot) {
    return world.call<HandleId>(party, "open " + slot.path, [&] { return paths.open(slot.path, O_RDWR); });
  }

  void write_in_turn(Party& party, Slot its_slot) {
    auto& slot = add(std::move(its_slot));
    world.work(party, [this, &party, &slot] {
      test::Paths paths(*party.mount);
      while (is_time()) {
        const auto handle = open(party, paths, slot);
        if (!handle || !write(party, paths, *handle, slot)) return;
        paths.close(*handle);
        party.clock.sleep_for(pause());
      }
    });
  }
  void keep_open(Party& party, Slot its_slot) {
    auto& slot = add(std::move(its_slot));
    world.work(party, [this, &party, &slot] {
      test::Paths paths(*party.mount);
      const auto handle = open(party, paths, slot);
      while (handle && is_time() && write(party, paths, *handle, slot)) party.clock.sleep_for(pause());
      if (handle) paths.close(*handle);
    });
  }
  void make_and_remove(Party& party) {
    world.work(party, [this, &party] {
      test::Paths paths(*party.mount);
      for (unsigned i = 0; is_time(); ++i) {
        const auto path = "/passing" + std::to_string(i);
        if (!world.call(party, "create", [&] { return paths.make_file(path, 0644); })) return;
        if (!world.call(party, "unlink", [&] { return paths.unlink(path); })) return;
        party.clock.sleep_for(pause());
      }
    });
  }
  void collect(Party& party) {
    world.work(party, [this, &party] {
      while (is_time()) {
        if (!world.pass(party)) return;
        const int seconds_apart = collectors_pause_s;
        party.clock.sleep_for(seconds_apart == 0 ? pause() : seconds(seconds_apart));
      }
    });
  }

  void check(Party& reader, const Slot& slot) {
    test::Paths paths(*reader.mount);
    const auto handle =
        world.call<HandleId>(reader, "open " + slot.path, [&] { return paths.open(slot.path, O_RDONLY); });
    if (!handle) return;
    const auto bytes =
        world.call<std::string>(reader, "read " + slot.path, [&] { return paths.read(*handle, slot.offset_bytes, 8); });
    paths.close(*handle);
    if (!bytes) return;
    for (auto number = slot.acknowledged; number <= slot.tried; ++number) {
      if (*bytes == Slot::text(number) || (number == 0 && *bytes <= Slot::text(0))) return;
    }
    world.wrong(slot.path + " at " + std::to_string(slot.offset_bytes) + " holds " + *bytes + ", not " +
                std::to_string(slot.acknowledged) + " to " + std::to_string(slot.tried));
  }

  const seconds end_;
  std::mutex mutex_;  // guards the world's random numbers, and the counter
  std::list<Slot> slots_;
};

/// Lengths from 0 to 200 s, drawn one from each 40 s; those of the first round are the same in every run.
constexpr int longest = 200, step = 40;

/// Each case by its name, a number of seconds and a seed: "everything; 45 s; seed 7".
void for_each_length(const std::string& what, const std::function<void(Household&, seconds)>& arrange) {
  static std::size_t number = 0;
  const auto replay = line_to_replay();
  Rounds rounds;
  while (const auto round = rounds.next()) {
    for (int part = 0; part <= longest; part += step) {
      const std::uint64_t seed = *round * 1000 + static_cast<unsigned>(part);
      std::string drawn_from = what + std::to_string(seed);
      std::seed_seq parts(drawn_from.begin(), drawn_from.end());
      const auto length = part == 0 ? 0 : part - static_cast<int>(std::mt19937_64(parts)() % step);
      const auto line = what + "; " + std::to_string(length) + " s; seed " + std::to_string(seed);
      if (replay ? *replay != line : (!is_drawn(number++) || !is_wanted(line))) continue;
      Household household(seed, start + seconds(length) + afterwards);
      arrange(household, seconds(length));
      const auto wrong = household.play();
      if (!wrong.empty()) FAIL_CHECK("LCCFS_REPLAY='" << line << "'\n" << wrong);
    }
  }
}

TEST_CASE("an outage of all storage, however long, fences nobody") {
  for_each_length("everything", [](Household& household, seconds length) {
    household.world.outage(start, length, TimedWorld::everything);
  });
}

TEST_CASE("an outage of all objects, however long, fences nobody") {
  for_each_length("all objects", [](Household& household, seconds length) {
    household.world.outage(start, length, TimedWorld::all_objects);
  });
}

TEST_CASE("outages one after the other fence nobody") {
  for_each_length("flapping", [](Household& household, seconds length) {
    const auto span = std::max<std::chrono::nanoseconds>(length / 4, milliseconds(1));
    for (unsigned i = 0; i < 3; ++i) {
      household.world.outage(start + i * (span + milliseconds(1500)), span, TimedWorld::everything);
    }
  });
}

TEST_CASE("an outage of one object of the volume's own fences nobody") {
  for_each_length("Super", [](Household& household, seconds length) {
    household.world.outage(start, length, TimedWorld::only(format::super_object));
  });
  for_each_length("a session", [](Household& household, seconds length) {
    household.world.outage(start, length, TimedWorld::session_of(*household.mounts[2]));
  });
  for_each_length("monitors", [](Household& household, seconds length) {
    household.world.outage(start, length, TimedWorld::only(ScriptedCluster::monitors));
  });
}

TEST_CASE("a client that is cut off is not fenced within a minute, and holds nobody up for more than two") {
  for (const unsigned whom : {0U, 2U, 6U}) {
    for_each_length("cut off mount " + std::to_string(whom), [whom](Household& household, seconds length) {
      household.world.cut_off(*household.mounts[whom], start, length);
    });
  }
}

TEST_CASE("a client that stands still is not fenced within a minute, and holds nobody up for more than two") {
  for (const unsigned whom : {0U, 2U}) {
    for_each_length("stopped mount " + std::to_string(whom), [whom](Household& household, seconds length) {
      household.world.stop(*household.mounts[whom], start, length);
    });
  }
  for_each_length("stopped collector", [](Household& household, seconds length) {
    household.world.stop(*household.collectors[0], start, length);
  });
}

TEST_CASE("a client that dies, in an outage or not, holds nobody up for more than two minutes") {
  for_each_length("dead mount", [](Household& household, seconds length) {
    household.world.kill(*household.mounts[2], start + seconds(5));
    household.world.outage(start, length, TimedWorld::everything);
  });
  for_each_length("dead mount long before", [](Household& household, seconds length) {
    household.world.kill(*household.mounts[0], start);
    household.world.outage(start + seconds(20), length / 4, TimedWorld::all_objects);
  });
  for_each_length("idle mount dead", [](Household& household, seconds length) {
    auto& world = household.world;
    auto& idle = *household.mounts[6];
    const auto death = start - std::min(length, seconds(90));
    world.kill(idle, death);
    world.time().at(death + seconds(130), [&] {
      if (!world.fenced().contains(idle.name))
        world.wrong("two minutes after its death nobody has fenced " + idle.name);
    });
  });
}

/// Each pass looks for so long that it finds out by itself: none of its looks is near enough to one of the pass before.
TEST_CASE("collectors that come once in a minute or two fence who has died, too") {
  for_each_length("seldom collectors, idle mount dead", [](Household& household, seconds length) {
    auto& world = household.world;
    auto& idle = *household.mounts[6];
    const int apart = 40 + static_cast<int>(length.count()) / 4;
    household.collectors_pause_s = apart;
    const auto longest_wait = seconds(apart + 130);
    world.kill(idle, start - seconds(50));
    world.time().at(start - seconds(50) + longest_wait, [&world, &idle, longest_wait] {
      if (world.fenced().contains(idle.name)) return;
      world.wrong("nobody has fenced " + idle.name + " " + std::to_string(longest_wait.count()) + " s after its death");
    });
  });
}

/// What a holder does not answer in time, and what it does not answer after the asker's own pause, is no minute of
/// silence: the asker stands still between two of its questions, whenever those are. Meanwhile the holder is there,
/// releases what was asked for, and takes it again.
TEST_CASE("an asker that stood still between two questions does not take the holder for silent all the while") {
  if (line_to_replay()) return;
  for (int begins_behind = 0; begins_behind < 15; ++begins_behind) {
    TimedWorld world(1);
    auto& holder = world.mount();
    auto& asker = world.mount();
    test::Paths of_holder(*holder.mount), of_asker(*asker.mount);
    test::need(of_holder.make_file("/held", 0644));
    const auto handle = test::need(of_holder.open("/held", O_RDWR));
    test::need(of_holder.write(handle, 0, "bytes"));
    const Nanoseconds pause_begins = start + seconds(10) + milliseconds(500 + 1000 * begins_behind);
    constexpr seconds pause{70};
    world.stop(holder, start, seconds(29));  // too short for its watches to lapse
    world.stop(asker, pause_begins, pause);
    world.stop(holder, pause_begins + pause - seconds(5), seconds(29));
    world.run_until(start);
    world.work(holder, [&] {
      holder.clock.sleep_for(seconds(45));
      world.call(holder, "write", [&] { return of_holder.write(handle, 0, "again"); });
    });
    world.work(asker, [&] {
      world.call(asker, "write of what another holds", [&] { return of_asker.write("/held", 0, "mine"); });
    });
    world.run_until_done(start + seconds(600));
    world.work(holder, [&] { of_holder.close(handle); });
    world.run_until_done(world.now() + seconds(60));
    ++counted.cases;
    counted.fences += static_cast<unsigned>(world.fenced().size());
    const auto wrong = world.conclude();
    if (!wrong.empty())
      FAIL_CHECK("the asker's pause begins " << begins_behind + 10 << " s after the holder's\n" << wrong);
  }
}

TEST_CASE("who stood still itself does not take the others' silence for death") {
  for (const int pause : {15, 50}) {
    for_each_length("asker away " + std::to_string(pause), [pause](Household& household, seconds length) {
      household.world.stop(*household.mounts[2], start, seconds(pause));
      household.world.stop(*household.mounts[3], start + seconds(12), length);
    });
  }
  // Silent before the asker's pause and again after it, and there in between.
  for_each_length("asker away, holder away twice", [](Household& household, seconds length) {
    const auto again = start + seconds(20) + length;
    household.world.stop(*household.mounts[2], start, seconds(30));
    household.world.stop(*household.mounts[3], start + seconds(20), length);
    household.world.stop(*household.mounts[2], std::max(again - seconds(5), start + seconds(40)), seconds(25));
  });
  // The same of collectors, which look for watches: gone before the pause, and again after it.
  for_each_length("collectors away, idle mount away twice", [](Household& household, seconds length) {
    const auto again = start + seconds(42) + length;
    household.world.cut_off(*household.mounts[6], start, seconds(45));
    for (Party* collector : household.collectors) household.world.stop(*collector, start + seconds(42), length);
    household.world.cut_off(*household.mounts[6], std::max(again - seconds(32), start + seconds(50)), seconds(45));
  });
}

/// Every read and every step of that client takes so long.
void slow_down(TimedWorld& world, Party& party, milliseconds each) {
  party.client->set_hook([&world, &party, each](const StepInfo& info) {
    if (info.kind == StepKind::fence) world.wrong(party.name + " fences somebody");
    party.clock.sleep_for(each);
    return Fault{};
  });
}

/// A path of so many directories.
std::string make_deep(test::Paths& paths, unsigned depth) {
  std::string path;
  for (unsigned i = 0; i < depth; ++i) {
    path += "/d";
    test::need(paths.make_node(path, {FileType::directory, 0755, 0, ""}));
  }
  return path;
}

/// The walk up alone takes longer than a mover waits before it takes over the rename lock: without more patience each
/// time, the movers take it from each other until they give up.
TEST_CASE("directories that move into a deep one on a slow store all arrive, however many clients move") {
  if (line_to_replay()) return;
  for (const unsigned movers : {2U, 4U, 8U}) {
    TimedWorld world(1);
    std::vector<Party*> mounts;
    for (unsigned i = 0; i < movers; ++i) mounts.push_back(&world.mount());
    test::Paths paths(*mounts.front()->mount);
    const auto deep = make_deep(paths, 60);
    for (const auto* party : mounts) {
      test::need(paths.make_node("/" + party->name, {FileType::directory, 0755, 0, ""}));
    }
    for (auto* party : mounts) {
      slow_down(world, *party, milliseconds(500));
      world.work(*party, [party, &world, &deep] {
        const auto moved = test::Paths(*party->mount).rename("/" + party->name, deep + "/" + party->name);
        if (!moved) world.wrong(party->name + " does not move: " + moved.error().context);
      });
    }
    world.run_until_done(world.now() + seconds(3600));
    for (auto* party : mounts) {
      party->client->set_hook(nullptr);
      CHECK(paths.find(deep + "/" + party->name));
      CHECK_FALSE(paths.find("/" + party->name));
    }
    ++counted.cases;
    CHECK(world.conclude().empty());
  }
}

}  // namespace
}  // namespace lccfs::crash
