// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/receiver.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <future>
#include <latch>
#include <thread>
#include <vector>

#include "base/blocking.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "support/catch.h"
#include "support/fake_clock.h"

namespace lccfs::fuse {
namespace {

using Work = std::move_only_function<void()>;

/// A receiver of these requests, one after the other, which it serves itself.
class Requests {
 public:
  explicit Requests(std::vector<Work> requests) : requests_(std::move(requests)) {}

  void run() {
    receiver.run([this] {
      CHECK_FALSE(std::exchange(is_receiving_, true));
      const bool is_over = next_ == requests_.size();
      Work request = is_over ? Work() : std::move(requests_[next_++]);
      if (!is_over) receivers.push_back(std::this_thread::get_id());
      is_receiving_ = false;
      if (!is_over) receiver.serve(std::move(request));
      return !is_over;
    });
  }

  test::FakeClock clock;
  Receiver receiver{clock};
  std::vector<std::thread::id> receivers;  // of each request

 private:
  std::vector<Work> requests_;
  std::size_t next_ = 0;
  bool is_receiving_ = false;
};

std::vector<Work> works(auto... work) {
  std::vector<Work> all;
  (all.push_back(std::move(work)), ...);
  return all;
}

TEST_CASE("requests that do not block are served by the thread that receives them") {
  std::vector<std::thread::id> served;
  const auto note = [&] { served.push_back(std::this_thread::get_id()); };
  Requests requests(works(note, note, note));
  requests.run();
  CHECK(requests.receivers == std::vector(3, requests.receivers[0]));
  CHECK(requests.receivers == served);
}

TEST_CASE("before a request blocks, another thread receives, and the first one goes when it is done") {
  std::latch second_is_served(1), first_has_ended(1);
  std::thread::id first_ended_on;
  Requests requests(works(
      [&] {
        about_to_block();
        second_is_served.wait();
        about_to_block();  // nothing is left to hand over
        first_ended_on = std::this_thread::get_id();
        first_has_ended.count_down();
      },
      [&] { second_is_served.count_down(); }, [] {}));
  requests.run();
  first_has_ended.wait();
  REQUIRE(requests.receivers.size() == 3);
  CHECK(requests.receivers[1] != requests.receivers[0]);
  CHECK(first_ended_on != requests.receivers[1]);
  CHECK(requests.receivers[2] == requests.receivers[1]);
}

TEST_CASE("the end is seen while a request still blocks") {
  std::latch run_has_returned(1);
  Requests requests(works(
      [&] {
        about_to_block();
        run_has_returned.wait();
      },
      [] {}));
  requests.run();
  run_has_returned.count_down();
}

TEST_CASE("a turn that is taken while its request ends is one thread's all the same") {
  std::vector<Work> brief;
  for (int i = 0; i < 200; ++i) brief.emplace_back([] { std::this_thread::yield(); });
  Requests requests(std::move(brief));
  std::atomic<bool> is_over = false;
  std::thread looker([&] {
    while (!is_over) {
      requests.clock.advance(std::chrono::seconds(1));
      requests.receiver.look();
    }
  });
  requests.run();
  is_over = true;
  looker.join();
  CHECK(requests.receivers.size() == 200);
}

TEST_CASE("a lock that is taken, and a condition that is waited for on the machine's clock, count as blocking") {
  Mutex mutex;
  std::latch is_held(1), is_free(1);
  std::thread holder([&] {
    const Lock lock(mutex);
    is_held.count_down();
    is_free.wait();
  });
  is_held.wait();
  Requests requests(works([&] { const Lock lock(mutex); },
                          [&] {
                            system_clock().sleep_for(std::chrono::nanoseconds(1));
                            is_free.wait();
                          },
                          [&] { is_free.count_down(); }));
  requests.run();
  holder.join();
  CHECK(requests.receivers[1] != requests.receivers[0]);
  CHECK(requests.receivers[2] != requests.receivers[1]);
}

TEST_CASE("what blocks unannounced for a second keeps the requests behind it waiting no longer") {
  std::latch begun(1), second_is_served(1);
  Requests requests(works(
      [&] {
        begun.count_down();
        second_is_served.wait();
      },
      [&] { second_is_served.count_down(); }));
  std::thread ticker([&] {
    begun.wait();
    requests.receiver.look();
    CHECK_FALSE(second_is_served.try_wait());
    requests.clock.advance(std::chrono::seconds(1));
    requests.receiver.look();
    requests.receiver.look();  // once is enough
  });
  requests.run();
  ticker.join();
  CHECK(requests.receivers[1] != requests.receivers[0]);
}

TEST_CASE("a request behind which another one waits, and those beyond 64 that block, are not served by the receiver") {
  const Descriptor waiting(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::latch last(1);
  Requests* all = nullptr;
  std::vector<Work> blocking;
  for (int i = 0; i < 65; ++i) {
    blocking.emplace_back([&] {
      while (!all->receiver.may_serve_here(waiting.get())) std::this_thread::yield();  // until one stands by
      about_to_block();
      last.wait();
    });
  }
  blocking.back() = [&] {
    for (int i = 0; i < 1000; ++i) CHECK_FALSE(all->receiver.may_serve_here(waiting.get()));
    last.count_down();
  };
  Requests requests(std::move(blocking));
  all = &requests;
  requests.run();

  Requests one(works([&] {
    while (!all->receiver.may_serve_here(waiting.get())) std::this_thread::yield();
    eventfd_write(waiting.get(), 1);
    CHECK_FALSE(all->receiver.may_serve_here(waiting.get()));
  }));
  all = &one;
  one.run();
}

}  // namespace
}  // namespace lccfs::fuse
