// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fs/io_gate.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <random>
#include <string>

#include "support/catch.h"

using namespace lccfs;

namespace {

/// Whoever comes is named by a letter; `in` is who has been let in, in that order.
struct Line {
  IoGate gate;
  std::string in;

  IoGate::Go noted(char name) {
    return [this, name] { in += name; };
  }
  /// A write again without having been alone is a small letter.
  void to_be_alone(char name, ByteRange range) {
    gate.write_becomes_alone(
        range, [this, name](bool is_alone) { in += is_alone ? name : static_cast<char>(std::tolower(name)); });
  }
  void read(char name) { gate.enter_read(noted(name)); }
  void write(char name, ByteRange range) { gate.enter_write(range, noted(name)); }
  void alone(char name) { gate.enter_alone(noted(name)); }
};

}  // namespace

TEST_CASE("writes of ranges apart and reads are in a gate together, overlapping writes one after the other") {
  Line line;
  line.write('a', {0, 10});
  line.write('b', {10, 20});
  line.read('r');
  line.write('c', {5, 15});
  CHECK(line.in == "abr");
  line.gate.leave_write({0, 10});
  CHECK(line.in == "abr");
  line.gate.leave_write({10, 20});
  CHECK(line.in == "abrc");
}

TEST_CASE("reads and writes of other ranges pass a write that waits for one that hangs") {
  Line line;
  line.write('h', {0, 10});
  line.write('w', {0, 10});
  line.read('r');
  line.write('a', {10, 20});
  line.write('b', {20, 30});
  CHECK(line.in == "hrab");
  line.gate.leave_write({0, 10});
  CHECK(line.in == "hrabw");
}

TEST_CASE("a write passes none that it overlaps, running or waiting, however long the chain") {
  Line line;
  line.write('h', {0, 10});
  line.write('a', {5, 15});
  line.write('b', {12, 25});  // overlaps what waits, not what runs
  line.write('c', {20, 30});
  CHECK(line.in == "h");
  line.gate.leave_write({0, 10});
  CHECK(line.in == "ha");
  line.gate.leave_write({5, 15});
  CHECK(line.in == "hab");
  line.gate.leave_write({12, 25});
  CHECK(line.in == "habc");
}

TEST_CASE("writes of one range go in the order in which they came") {
  Line line;
  for (const char name : {'a', 'b', 'c', 'd'}) line.write(name, {0, 1});
  for (int i = 0; i < 3; ++i) line.gate.leave_write({0, 1});
  CHECK(line.in == "abcd");
}

TEST_CASE("a write that overlaps many waits for all of them") {
  Line line;
  line.write('a', {0, 10});
  line.write('b', {10, 20});
  line.write('c', {5, 15});
  line.write('w', {0, 20});
  line.gate.leave_write({10, 20});
  line.gate.leave_write({0, 10});
  CHECK(line.in == "abc");
  line.gate.leave_write({5, 15});
  CHECK(line.in == "abcw");
}

TEST_CASE("nobody passes one who is to be alone, who waits for all before it") {
  Line line;
  line.write('h', {0, 10});
  line.read('r');
  line.write('w', {0, 10});
  line.alone('A');
  line.read('s');
  line.write('x', {50, 60});
  CHECK(line.in == "hr");
  line.gate.leave_read();
  line.gate.leave_write({0, 10});
  CHECK(line.in == "hrw");
  line.gate.leave_write({0, 10});
  CHECK(line.in == "hrwA");
  line.gate.leave_alone();
  CHECK(line.in == "hrwAsx");
}

TEST_CASE("one who is to be alone gets in though reads come all the time") {
  Line line;
  line.read('r');
  line.alone('A');
  for (int i = 0; i < 100; ++i) line.read('s');
  line.gate.leave_read();
  CHECK(line.in == "rA");
}

TEST_CASE("those who are to be alone go one after the other, in the order in which they came") {
  Line line;
  line.alone('A');
  line.alone('B');
  line.write('w', {0, 1});
  line.alone('C');
  CHECK(line.in == "A");
  line.gate.leave_alone();
  CHECK(line.in == "AB");
  line.gate.leave_alone();
  CHECK(line.in == "ABw");
  line.gate.leave_write({0, 1});
  CHECK(line.in == "ABwC");
}

TEST_CASE("a write that becomes alone for a while keeps its place") {
  Line line;
  const ByteRange range{0, 10};
  line.read('r');
  line.write('w', range);
  line.write('o', {10, 20});
  line.write('x', {5, 15});
  line.alone('T');
  line.to_be_alone('W', range);
  line.write('y', range);
  line.read('s');
  line.gate.leave_read();
  CHECK(line.in == "rwo");
  line.gate.leave_write({10, 20});
  CHECK(line.in == "rwoW");
  line.write('z', range);
  line.gate.alone_becomes_write(range);
  CHECK(line.in == "rwoW");
  line.gate.leave_write(range);
  CHECK(line.in == "rwoWx");
  line.gate.leave_write({5, 15});
  CHECK(line.in == "rwoWxT");
  line.gate.leave_alone();
  CHECK(line.in == "rwoWxTys");
  line.gate.leave_write(range);
  CHECK(line.in == "rwoWxTysz");
}

TEST_CASE("what needs not wait for a write gets in as soon as that is no longer alone") {
  Line line;
  line.write('w', {0, 10});
  line.to_be_alone('W', {0, 10});
  line.write('x', {0, 10});
  line.write('y', {10, 20});
  line.read('r');
  CHECK(line.in == "wW");
  line.gate.alone_becomes_write({0, 10});
  CHECK(line.in == "wWyr");
  line.gate.leave_write({0, 10});
  CHECK(line.in == "wWyrx");
}

TEST_CASE("of writes that are to be alone at once one is, and none waits until that has left") {
  Line line;
  line.write('a', {0, 10});
  line.write('b', {10, 20});
  line.write('c', {20, 30});
  line.write('x', {0, 20});
  line.alone('T');
  line.to_be_alone('A', {0, 10});
  line.to_be_alone('B', {10, 20});
  CHECK(line.in == "abc");
  line.to_be_alone('C', {20, 30});
  CHECK(line.in == "abcC");
  line.gate.alone_becomes_write({20, 30});
  CHECK(line.in == "abcCba");
  line.gate.leave_write({0, 10});
  CHECK(line.in == "abcCba");
  line.gate.leave_write({10, 20});
  CHECK(line.in == "abcCbax");
  line.gate.leave_write({0, 20});
  CHECK(line.in == "abcCbax");
  line.gate.leave_write({20, 30});
  CHECK(line.in == "abcCbaxT");
}

/// Drawn lines: who may be in at the same time, and that nobody waits without cause.
TEST_CASE("whatever comes and leaves, overlapping writes and those alone keep to themselves, and all get in at last") {
  struct Visit {
    char kind = 'r';
    ByteRange range;
    bool in = false;
  };
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    IoGate gate;
    std::deque<Visit> visits;  // those that have not left, as they came
    const auto leave = [&](std::size_t i) {
      const Visit gone = visits[i];
      visits[i].kind = '-';
      if (gone.kind == 'r') gate.leave_read();
      if (gone.kind == 'w') gate.leave_write(gone.range);
      if (gone.kind == 'A') gate.leave_alone();
    };
    const auto blocks = [](const Visit& before, const Visit& behind) {
      if (before.kind == '-') return false;
      if (before.kind == 'A' || behind.kind == 'A') return true;
      return before.kind == 'w' && behind.kind == 'w' && before.range.overlaps(behind.range);
    };
    const auto check = [&] {
      for (std::size_t i = 0; i < visits.size(); ++i) {
        bool blocked = false;
        for (std::size_t j = 0; j < i; ++j) blocked = blocked || blocks(visits[j], visits[i]);
        if (visits[i].kind != '-') REQUIRE(visits[i].in == !blocked);
      }
    };
    for (int step = 0; step < 40; ++step) {
      const auto begin = random() % 8;
      visits.push_back({"rrwwwwA" [random() % 7], { begin, begin + 1 + random() % 4 }});
      const auto go = [&visit = visits.back()] { visit.in = true; };
      if (visits.back().kind == 'r') gate.enter_read(go);
      if (visits.back().kind == 'w') gate.enter_write(visits.back().range, go);
      if (visits.back().kind == 'A') gate.enter_alone(go);
      check();
      const auto i = random() % visits.size();
      if (visits[i].in && visits[i].kind != '-') leave(i);
      check();
    }
    for (std::size_t i = 0; i < visits.size(); ++i) {
      if (visits[i].kind == '-') continue;
      REQUIRE(visits[i].in);
      leave(i);
    }
  }
}

/// The same with writes that become alone for a while. Each visit looks, as it gets in, at those that came before it.
TEST_CASE("whatever becomes alone for a while, nobody passes one that it has to wait for, and all get in at last") {
  enum class Is { waiting, in, to_be_alone, alone, gone };
  struct Visit {
    char kind = 'r';
    ByteRange range;
    Is is = Is::waiting;
  };
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    IoGate gate;
    std::deque<Visit> visits;  // as they came
    const auto passes = [](const Visit& before, const Visit& behind) {
      if (before.is == Is::gone) return false;
      if (before.kind == 'A' || behind.kind == 'A') return true;
      return before.kind == 'w' && behind.kind == 'w' && before.range.overlaps(behind.range);
    };
    const auto is_inside = [](const Visit& visit) { return visit.is == Is::in || visit.is == Is::alone; };
    const auto gets_in = [&](std::size_t i) {
      for (std::size_t j = 0; j < i; ++j) REQUIRE_FALSE(passes(visits[j], visits[i]));
      for (const Visit& other : visits) REQUIRE((other.is != Is::alone && other.is != Is::to_be_alone));
      visits[i].is = Is::in;
    };
    const auto becomes = [&](std::size_t i, bool is_alone) {
      for (const Visit& other : visits) REQUIRE_FALSE((is_alone ? is_inside(other) : other.is == Is::alone));
      visits[i].is = is_alone ? Is::alone : Is::in;
    };
    const auto goes_on = [&](std::size_t i, bool leaves) {
      Visit& visit = visits[i];
      if (visit.is == Is::alone) {
        visit.is = Is::in;
        return gate.alone_becomes_write(visit.range);
      }
      if (visit.kind == 'w' && !leaves) {
        visit.is = Is::to_be_alone;
        return gate.write_becomes_alone(visit.range, [&becomes, i](bool is_alone) { becomes(i, is_alone); });
      }
      visit.is = Is::gone;
      if (visit.kind == 'r') gate.leave_read();
      if (visit.kind == 'w') gate.leave_write(visit.range);
      if (visit.kind == 'A') gate.leave_alone();
    };
    for (int step = 0; step < 40; ++step) {
      const auto begin = random() % 8;
      const auto i = visits.size();
      visits.push_back({"rrwwwwA" [random() % 7], { begin, begin + 1 + random() % 4 }});
      const auto go = [&gets_in, i] { gets_in(i); };
      if (visits.back().kind == 'r') gate.enter_read(go);
      if (visits.back().kind == 'w') gate.enter_write(visits.back().range, go);
      if (visits.back().kind == 'A') gate.enter_alone(go);
      const auto j = random() % visits.size();
      if (is_inside(visits[j])) goes_on(j, random() % 2 == 0);
    }
    for (std::size_t left = visits.size(); left > 0;) {
      const auto next = std::ranges::find_if(visits, is_inside);
      REQUIRE(next != visits.end());
      goes_on(static_cast<std::size_t>(next - visits.begin()), true);
      left = static_cast<std::size_t>(std::ranges::count_if(visits, [](const Visit& v) { return v.is != Is::gone; }));
    }
  }
}
