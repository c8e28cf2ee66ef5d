// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store/rados/admission.h"

#include <atomic>
#include <deque>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "support/catch.h"

namespace lccfs::rados {
namespace {

constexpr std::size_t kib = 1024;

/// Plays librados: notes what is sent, and is told what to answer.
class Bench {
 public:
  explicit Bench(Admission::Limits limits) : admission_(limits) {}

  void submit(const std::string& object, std::size_t size_bytes = kib) {
    const unsigned number = ++submitted_[object];
    admission_.submit(object, size_bytes, [this, object, size_bytes, number] {
      sent.push_back(object);
      REQUIRE(number == ++sent_[object]);  // in the order in which they came
      sizes_[object].push_back(size_bytes);
    });
  }
  void submit_many(const std::string& object, unsigned count) {
    for (unsigned i = 0; i < count; ++i) submit(object);
  }
  void answer(const std::string& object) {
    const std::size_t size_bytes = sizes_[object].front();
    sizes_[object].pop_front();
    admission_.answered(object, size_bytes);
  }
  std::size_t in_flight(const std::string& object) { return sizes_[object].size(); }

  std::vector<std::string> sent;

 private:
  Admission admission_;
  std::map<std::string, unsigned> submitted_, sent_;
  std::map<std::string, std::deque<std::size_t>> sizes_;
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("below the limits every request is sent at once") {
  Bench bench({.requests = 3, .bytes = 100 * kib});
  bench.submit_many("a", 3);
  CHECK(bench.sent == Names{"a", "a", "a"});
  bench.submit("a");
  CHECK(bench.in_flight("a") == 3);
  bench.answer("a");
  CHECK(bench.sent.size() == 4);
}

TEST_CASE("bytes count as requests do, and the last one may go over") {
  Bench bench({.requests = 100, .bytes = 10 * kib});
  bench.submit("a", 9 * kib);
  bench.submit("a", 9 * kib);
  bench.submit("a", kib);
  CHECK(bench.in_flight("a") == 2);
  bench.answer("a");
  CHECK(bench.in_flight("a") == 2);
}

TEST_CASE("while thousands hang on one object others get on, one request at a time each") {
  Bench bench({.requests = 16, .bytes = 1000 * kib});
  bench.submit_many("hung", 5000);
  CHECK(bench.in_flight("hung") == 16);
  for (unsigned round = 0; round < 100; ++round) {
    for (const char* object : {"a", "b"}) {
      bench.submit_many(object, 2);
      CHECK(bench.in_flight(object) == 1);
      bench.answer(object);
      CHECK(bench.in_flight(object) == 1);
      bench.answer(object);
      CHECK(bench.in_flight(object) == 0);
    }
  }
  CHECK(bench.in_flight("hung") == 16);
}

TEST_CASE("with each answer the lines are served in turn") {
  Bench bench({.requests = 4, .bytes = 1000 * kib});
  bench.submit_many("first", 4);
  bench.submit_many("a", 3);  // one of each is sent: it had none in flight
  bench.submit_many("b", 3);
  bench.submit("c");
  bench.submit("c");
  bench.sent.clear();
  for (unsigned i = 0; i < 4; ++i) bench.answer("first");
  CHECK(bench.sent == Names{"a"});
  bench.answer("a");
  bench.answer("b");
  bench.answer("c");
  CHECK(bench.sent == Names{"a", "b", "c", "a"});
}

TEST_CASE("a request that comes while others of its object wait does not overtake them") {
  Bench bench({.requests = 1, .bytes = 1000 * kib});
  bench.submit("a");
  bench.submit("b");
  bench.submit("b");
  bench.answer("a");
  bench.submit("b");  // Bench asserts the order
  bench.answer("b");
  bench.answer("b");
  bench.answer("b");
  CHECK(bench.sent == Names{"a", "b", "b", "b"});
}

TEST_CASE("an answer that comes while its request is being sent brings on the next") {
  Admission admission({.requests = 1, .bytes = kib});
  unsigned sent = 0;
  const auto send = [&] {
    ++sent;
    admission.answered("a", kib);
  };
  for (unsigned i = 0; i < 3; ++i) admission.submit("a", kib, send);
  CHECK(sent == 3);
}

TEST_CASE("many threads: each object's requests are sent once, in order") {
  constexpr unsigned objects = 8, each = 5000;
  Admission admission({.requests = 4, .bytes = 100 * kib});
  std::atomic<bool> in_order{true};
  std::array<std::atomic<unsigned>, objects> sent{};
  std::mutex mutex;
  std::deque<unsigned> unanswered;
  std::atomic<unsigned> answered{0};
  std::vector<std::jthread> threads;
  for (unsigned object = 0; object < objects; ++object) {
    threads.emplace_back([&, object] {
      for (unsigned number = 0; number < each; ++number) {
        admission.submit(std::to_string(object), kib, [&, object, number] {
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
