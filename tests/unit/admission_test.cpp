// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/admission.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "support/catch.h"

namespace lccfs::rados {
namespace {

constexpr std::size_t kib = 1024;

/// Bounds that a test does not name do not bind.
Admission::Limits limits(const std::function<void(Admission::Limits&)>& set) {
  constexpr Admission::Amount none = {.requests = 1'000'000, .bytes = 1'000'000 * kib};
  Admission::Limits limits{none, none, none, none, none, none, {}};
  set(limits);
  return limits;
}

/// Plays librados: notes what is sent, and is told what to answer. "p/a" is object a in place p.
class Bench {
 public:
  explicit Bench(const std::function<void(Admission::Limits&)>& set) : admission_(limits(set)) {}

  void submit(const std::string& object, std::size_t size_bytes = kib) {
    const unsigned number = ++submitted_[object];
    const auto place = std::hash<std::string>{}(object.substr(0, object.find('/')));
    admission_.submit(object, place, size_bytes, [this, object, size_bytes, number] {
      sent.push_back(object);
      REQUIRE(number == ++sent_[object]);  // in the order in which they came
      sizes_[object].push_back(size_bytes);
      in_flight_bytes += size_bytes;
      most_in_flight_bytes = std::max(most_in_flight_bytes, in_flight_bytes);
    });
  }
  void submit_many(const std::string& object, unsigned count, std::size_t size_bytes = kib) {
    for (unsigned i = 0; i < count; ++i) submit(object, size_bytes);
  }
  void answer(const std::string& object) {
    const std::size_t size_bytes = sizes_[object].front();
    sizes_[object].pop_front();
    in_flight_bytes -= size_bytes;
    admission_.answered(object, size_bytes);
  }
  std::size_t in_flight(const std::string& object) { return sizes_[object].size(); }
  bool continues(const std::string& object) {
    submit(object);
    if (in_flight(object) == 0) return false;
    answer(object);
    return true;
  }

  std::vector<std::string> sent;
  std::size_t in_flight_bytes = 0, most_in_flight_bytes = 0;

 private:
  Admission admission_;
  std::map<std::string, unsigned> submitted_, sent_;
  std::map<std::string, std::deque<std::size_t>> sizes_;
};

using Names = std::vector<std::string>;

/// As many bounds of each kind as a real one has, in small figures.
void small(Admission::Limits& limits) {
  limits.common.requests = 32;
  limits.place.requests = 16;
  limits.object.requests = 8;
  limits.share.requests = 4;
  limits.part.requests = 2;
  limits.ceiling.requests = 72;
  limits.reserve.requests = 8;
}

/// Requests for objects of that place, one each: as many are sent as ever will be.
void hang_many(Bench& bench, const std::string& place) {
  for (int i = 0; i < 1000; ++i) bench.submit(place + "/" + std::to_string(i));
}

}  // namespace

TEST_CASE("below the limits every request is sent at once") {
  Bench bench([](auto& at_most) { at_most.common.requests = 3, at_most.share.requests = 0; });
  bench.submit_many("p/a", 3);
  CHECK(bench.sent == Names{"p/a", "p/a", "p/a"});
  bench.submit("p/a");
  CHECK(bench.in_flight("p/a") == 3);
  bench.answer("p/a");
  CHECK(bench.sent.size() == 4);
}

TEST_CASE("bytes count as requests do, and the last one may go over") {
  Bench bench([](auto& at_most) { at_most.common.bytes = 10 * kib, at_most.share.bytes = 0; });
  bench.submit("p/a", 9 * kib);
  bench.submit("p/a", 9 * kib);
  bench.submit("p/a", kib);
  CHECK(bench.in_flight("p/a") == 2);
  bench.answer("p/a");
  CHECK(bench.in_flight("p/a") == 3 - 1);
}

TEST_CASE("one object has no more in flight than its bound, and keeps no other waiting") {
  Bench bench([](auto& at_most) { at_most.object.requests = 8; });
  bench.submit_many("p/hung", 5000);
  CHECK(bench.in_flight("p/hung") == 8);
  bench.submit_many("p/a", 8);
  CHECK(bench.in_flight("p/a") == 8);
  bench.answer("p/hung");
  CHECK(bench.in_flight("p/hung") == 8);
}

TEST_CASE("one place has no more in flight than its bound, and leaves the common room to others") {
  Bench bench(small);
  hang_many(bench, "dead");
  CHECK(bench.sent.size() == 16);
  for (const char* object : {"p/a", "q/a"}) {
    bench.submit_many(object, 8);
    CHECK(bench.in_flight(object) == 8);
  }
}

TEST_CASE(
    "while the common room is full of what hangs, every place that answers continues, several requests at a time") {
  Bench bench(small);
  for (const char* place : {"dead1", "dead2", "dead3", "dead4"}) hang_many(bench, place);
  CHECK(bench.sent.size() == 16 + 16 + 4 + 4);  // two have what the common room gives to a place, two their shares
  for (unsigned round = 0; round < 100; ++round) {
    for (const char* place : {"p", "q"}) {
      const auto first = place + std::string("/a"), second = place + std::string("/b");
      bench.submit_many(first, 6);
      CHECK(bench.in_flight(first) == 2);  // its part
      bench.submit_many(second, 2);
      CHECK(bench.in_flight(second) == 2);
      for (unsigned i = 0; i < 6; ++i) bench.answer(first);
      for (unsigned i = 0; i < 2; ++i) bench.answer(second);
    }
  }
}

TEST_CASE("an object that hangs alone has a part of its place's share, and others of its place continue") {
  Bench bench(small);
  for (const char* place : {"dead1", "dead2"}) hang_many(bench, place);
  bench.submit_many("p/hung", 100);
  CHECK(bench.in_flight("p/hung") == 2);
  for (unsigned round = 0; round < 100; ++round) CHECK(bench.continues("p/a"));
}

TEST_CASE("however much hangs, no more is in flight than the ceiling, and all of it is sent once it is answered") {
  Bench bench([](auto& at_most) {
    at_most.common.bytes = 100 * kib;
    at_most.share.bytes = 4 * kib;
    at_most.ceiling.bytes = 500 * kib;
    at_most.reserve.bytes = 50 * kib;
  });
  for (int i = 0; i < 4096; ++i) bench.submit(std::to_string(i) + "/a", kib + static_cast<std::size_t>(i % 7));
  constexpr std::size_t last = 7 * kib;                  // which may go over
  CHECK(bench.most_in_flight_bytes < 450 * kib + last);  // nobody has answered yet
  CHECK(bench.most_in_flight_bytes >= 450 * kib);
  for (std::size_t next = 0; next < bench.sent.size(); ++next) bench.answer(std::string(bench.sent[next]));
  CHECK(bench.sent.size() == 4096);
  CHECK(bench.most_in_flight_bytes < 500 * kib + last);
}

TEST_CASE("the last below the ceiling is for places that answer") {
  Bench bench(small);
  CHECK(bench.continues("p/a"));
  for (int i = 0; i < 100; ++i) hang_many(bench, "dead" + std::to_string(i));
  CHECK(bench.sent.size() == 1 + 64);
  for (int i = 0; i < 100; ++i) CHECK(bench.continues("p/" + std::to_string(i)));
  bench.sent.clear();
  bench.submit("new/a");
  CHECK(bench.sent.empty());
  bench.answer("dead5/0");  // now it answers: its four leave the doubtful room to four others, and it continues itself
  CHECK(bench.sent.size() == 5);
}

TEST_CASE("4,096 writes of 1 MiB that hang are no more than the ceiling, and 190 dead places no reason to wait") {
  const auto real = [](auto& at_most) { at_most = most_in_flight; };
  Bench bench(real), other(real);
  for (int i = 0; i < 4096; ++i) bench.submit(std::to_string(i) + "/a", mib);
  CHECK(bench.in_flight_bytes == (1024 - 128) * mib);
  for (int i = 0; i < 190 * 20; ++i) other.submit("dead" + std::to_string(i % 190) + "/" + std::to_string(i), mib);
  CHECK(other.in_flight_bytes < (1024 - 128) * mib);
  for (int i = 0; i < 64; ++i) {  // as many at a time as a guest sends
    const auto object = "p" + std::to_string(i % 8) + "/" + std::to_string(i % 16);
    other.submit(object, 4 * kib);
    CHECK(other.in_flight(object) == static_cast<std::size_t>(i / 16) + 1);
  }
}

TEST_CASE("a place that answered once and is dead takes no more of the reserve than a share") {
  Bench bench(small);
  CHECK(bench.continues("p/a"));
  CHECK(bench.continues("q/a"));
  for (int i = 0; i < 100; ++i) hang_many(bench, "dead" + std::to_string(i));
  hang_many(bench, "q");
  CHECK(bench.sent.size() == 2 + 64 + 4);
  CHECK(bench.continues("p/a"));
}

TEST_CASE("those whom the ceiling kept waiting are served in turn, not behind whoever answers") {
  Bench bench(small);
  CHECK(bench.continues("p/a"));
  for (int i = 0; i < 100; ++i) hang_many(bench, "dead" + std::to_string(i));
  bench.submit_many("p/a", 8);
  bench.submit_many("p/b", 8);
  CHECK(bench.in_flight("p/a") + bench.in_flight("p/b") == 4);
  bench.submit("new/a");
  // Whoever answers has more waiting, all the time.
  std::size_t answers = 0;
  while (bench.in_flight("new/a") == 0 && answers < 1000) bench.answer(std::string(bench.sent[1 + answers++]));
  CHECK(answers < 2 * 102);  // of 102 places
}

TEST_CASE("with each answer the places are served in turn, and in each its objects") {
  Bench bench([](auto& at_most) { at_most.common.requests = 4, at_most.share.requests = 0; });
  bench.submit_many("p/first", 4);
  bench.submit_many("p/a", 2);
  bench.submit_many("p/b", 2);
  bench.submit_many("q/c", 2);
  bench.submit("r/d");
  bench.sent.clear();
  for (unsigned i = 0; i < 4; ++i) bench.answer("p/first");
  CHECK(bench.sent == Names{"p/a", "q/c", "r/d", "p/b"});
  for (const char* object : {"p/a", "q/c", "r/d", "p/b"}) bench.answer(object);
  CHECK(bench.sent == Names{"p/a", "q/c", "r/d", "p/b", "q/c", "p/a", "p/b"});
}

TEST_CASE("a request that comes while others of its object wait does not overtake them") {
  Bench bench([](auto& at_most) { at_most.common.requests = 1, at_most.share.requests = 0; });
  bench.submit("p/a");
  bench.submit("p/b");
  bench.submit("p/b");
  bench.answer("p/a");
  bench.submit("p/b");  // Bench asserts the order
  bench.answer("p/b");
  bench.answer("p/b");
  bench.answer("p/b");
  CHECK(bench.sent == Names{"p/a", "p/b", "p/b", "p/b"});
}

TEST_CASE("an answer that comes while its request is being sent brings on the next") {
  Admission admission(limits([](auto& at_most) { at_most.common.requests = 1, at_most.share.requests = 0; }));
  unsigned sent = 0;
  const auto send = [&] {
    ++sent;
    admission.answered("a", kib);
  };
  for (unsigned i = 0; i < 3; ++i) admission.submit("a", 0, kib, send);
  CHECK(sent == 3);
}

TEST_CASE("answers to all of an object's requests that come while one of them is being sent bring on the next") {
  Admission admission(limits([](auto& at_most) {
    at_most.common.requests = 4;
    at_most.share.requests = at_most.part.requests = 1;
  }));
  enum Place : Admission::PlaceId { p, q, r, s };
  const auto nothing = [] {};
  admission.submit("p", p, kib, nothing);
  admission.submit("q", q, kib, nothing);
  admission.submit("r", r, kib, nothing);
  admission.submit("s", s, kib, nothing);
  bool is_last_sent = false;
  admission.submit("q", q, kib, [&] {
    for (unsigned i = 0; i < 2; ++i) admission.answered("q", kib);  // their room goes to r and s
  });
  admission.submit("q", q, kib, [&] { is_last_sent = true; });
  admission.submit("r", r, kib, nothing);
  admission.submit("s", s, kib, nothing);
  admission.answered("p", kib);
  CHECK(is_last_sent);
}

TEST_CASE("many threads: each object's requests are sent once, in order") {
  constexpr unsigned objects = 8, each = 5000;
  // Few places, and every bound binds.
  Admission admission(limits([](auto& at_most) {
    at_most.common.requests = 4;
    at_most.place.requests = at_most.object.requests = 3;
    at_most.share.requests = 2;
    at_most.part.requests = 1;
    at_most.ceiling.requests = 6;
    at_most.reserve.requests = 1;
  }));
  std::atomic<bool> in_order{true};
  std::array<std::atomic<unsigned>, objects> sent{};
  std::mutex mutex;
  std::deque<unsigned> unanswered;
  std::atomic<unsigned> answered{0};
  std::vector<std::jthread> threads;
  for (unsigned object = 0; object < objects; ++object) {
    threads.emplace_back([&, object] {
      for (unsigned number = 0; number < each; ++number) {
        admission.submit(std::to_string(object), object / 3, kib, [&, object, number] {
          if (sent[object].exchange(number + 1) != number) in_order = false;
          const std::lock_guard lock(mutex);
          unanswered.push_back(object);
        });
      }
    });
  }
  for (unsigned i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (answered < objects * each) {
        unsigned object = objects;
        {
          const std::lock_guard lock(mutex);
          if (!unanswered.empty()) {
            object = unanswered.front();
            unanswered.pop_front();
          }
        }
        if (object == objects) {
          std::this_thread::yield();
          continue;
        }
        admission.answered(std::to_string(object), kib);
        ++answered;
      }
    });
  }
  threads.clear();
  CHECK(in_order);
  for (const auto& count : sent) CHECK(count == each);
}

}  // namespace lccfs::rados
