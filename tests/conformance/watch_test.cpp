// SPDX-License-Identifier: LGPL-2.1-or-later
// Watch, notify, answers, and who watches.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "conformance/conformance.h"

namespace lccfs::conformance {
namespace {

using namespace std::chrono_literals;

constexpr const char* object = "Session.1";

/// Remembers what came; answers at once with `answer`, or keeps the question if there is none.
class Listener : public WatchHandler {
 public:
  explicit Listener(const std::optional<Bytes>& answer)
      : answer_(answer) {}  // moved, GCC 12 takes it for uninitialized

  void on_notify(Bytes payload, std::move_only_function<void(Bytes)> answer) override {
    {
      const std::lock_guard lock(mutex_);
      heard_.push_back(std::move(payload));
      if (!answer_) questions_.push_back(std::move(answer));
      changed_.notify_all();
    }
    if (answer_) answer(*answer_);  // after its record: the asker may look at once
  }
  void on_lost(Error) override {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    changed_.notify_all();
  }

  std::vector<Bytes> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  std::move_only_function<void(Bytes)> wait_for_question() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !questions_.empty(); });
    auto question = std::move(questions_.front());
    questions_.erase(questions_.begin());
    return question;
  }
  void wait_until_lost() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lost_; });
  }

 private:
  const std::optional<Bytes> answer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Bytes> heard_;
  std::vector<std::move_only_function<void(Bytes)>> questions_;
  bool lost_ = false;
};

std::vector<Bytes> sorted(std::vector<Bytes> answers) {
  std::sort(answers.begin(), answers.end());
  return answers;
}

}  // namespace

STORE_CASE("A notify reaches every watcher, and brings their answers back") {
  const auto one = volume.new_client(), two = volume.new_client(), asker = volume.new_client();
  create(*one, object);
  const Bytes binary("\0\xff", 2);
  const auto hears_one = std::make_shared<Listener>("one"), hears_two = std::make_shared<Listener>(binary);
  const auto watch_one = value_of(one->watch(object, hears_one)), watch_two = value_of(two->watch(object, hears_two));
  const NotifyReply reply = value_of(asker->notify(object, binary, 30s));
  CHECK(reply.silent == 0);
  CHECK(sorted(reply.answers) == sorted({"one", binary}));
  CHECK(hears_one->heard() == std::vector<Bytes>{binary});
  CHECK(hears_two->heard() == std::vector<Bytes>{binary});
}

STORE_CASE("A client hears its own notify, and each watch hears only of its object") {
  const auto store = volume.new_client();
  create(*store, object);
  create(*store, "Super");
  const auto hears = std::make_shared<Listener>("session"), hears_super = std::make_shared<Listener>("super");
  const auto watch = value_of(store->watch(object, hears)), watch_super = value_of(store->watch("Super", hears_super));
  CHECK(value_of(store->notify("Super", "question", 30s)).answers == std::vector<Bytes>{"super"});
  CHECK(hears->heard().empty());
  CHECK(value_of(store->notify(object, "question", 30s)).answers == std::vector<Bytes>{"session"});
  CHECK(hears_super->heard().size() == 1);
}

STORE_CASE("An answer may come later, from another thread") {
  const auto store = volume.new_client(), asker = volume.new_client();
  create(*store, object);
  const auto hears = std::make_shared<Listener>(std::nullopt);
  const auto watch = value_of(store->watch(object, hears));
  std::jthread answers_later([&] { hears->wait_for_question()("later"); });
  const NotifyReply reply = value_of(asker->notify(object, "question", 60s));
  CHECK(reply.answers == std::vector<Bytes>{"later"});
  CHECK(reply.silent == 0);
}

STORE_CASE("Several notifies are under way at once") {
  const auto store = volume.new_client(), asker = volume.new_client();
  create(*store, object);
  const auto hears = std::make_shared<Listener>(std::nullopt);
  const auto watch = value_of(store->watch(object, hears));
  std::vector<std::string> answers(4);
  {
    std::vector<std::jthread> askers;
    for (std::string& answer : answers) {
      askers.emplace_back([&] {
        const auto reply = asker->notify(object, "question", 60s);
        if (reply && reply->answers.size() == 1) answer = reply->answers[0];
      });
    }
    std::vector<std::move_only_function<void(Bytes)>> questions;
    while (questions.size() < answers.size()) questions.push_back(hears->wait_for_question());
    for (std::size_t i = 0; i < questions.size(); ++i) questions[i](std::to_string(i));
  }
  std::sort(answers.begin(), answers.end());
  CHECK(answers == std::vector<std::string>{"0", "1", "2", "3"});
}

STORE_CASE("A watcher that keeps silent is counted, and does not hide the others' answers") {
  const auto one = volume.new_client(), two = volume.new_client(), asker = volume.new_client();
  create(*one, object);
  const auto silent = std::make_shared<Listener>(std::nullopt), answering = std::make_shared<Listener>("here");
  const auto watch_one = value_of(one->watch(object, silent)), watch_two = value_of(two->watch(object, answering));
  const NotifyReply reply = value_of(asker->notify(object, "question", 5s));
  CHECK(reply.answers == std::vector<Bytes>{"here"});
  CHECK(reply.silent == 1);
  silent->wait_for_question()("too late");
  CHECK(value_of(asker->presence(object, one->identity())) == Presence::watching);
}

STORE_CASE("A notify that nobody watches returns with nothing") {
  const auto store = volume.new_client();
  create(*store, object);
  const NotifyReply reply = value_of(store->notify(object, "question", 60s));
  CHECK(reply.answers.empty());
  CHECK(reply.silent == 0);
}

STORE_CASE("A missing object cannot be watched, and nobody watches it") {
  const auto store = volume.new_client();
  CHECK(outcome(store->watch(object, std::make_shared<Listener>("here"))) == outcome(ErrorCode::not_found));
  CHECK(value_of(store->presence(object, store->identity())) == Presence::absent);
}

STORE_CASE("A watch that was ended hears nothing, and is not waited for") {
  const auto store = volume.new_client(), asker = volume.new_client();
  create(*store, object);
  const auto hears = std::make_shared<Listener>(std::nullopt);
  { const auto watch = value_of(store->watch(object, hears)); }
  const NotifyReply reply = value_of(asker->notify(object, "question", 60s));
  CHECK(reply.silent == 0);
  CHECK(hears->heard().empty());
  const auto hears_again = std::make_shared<Listener>("again");
  const auto watch = value_of(store->watch(object, hears_again));
  CHECK(value_of(asker->notify(object, "question", 60s)).answers == std::vector<Bytes>{"again"});
}

STORE_CASE("An answer after the end of its watch is dropped") {
  const auto store = volume.new_client(), asker = volume.new_client();
  create(*store, object);
  const auto hears = std::make_shared<Listener>(std::nullopt);
  auto watch = value_of(store->watch(object, hears));
  std::jthread asks([&] { (void)asker->notify(object, "question", 1s); });
  auto question = hears->wait_for_question();
  watch.reset();
  question("too late");
}

STORE_CASE("Who watches is told apart by identity") {
  const auto one = volume.new_client(), two = volume.new_client();
  create(*one, object);
  create(*one, "Super");
  CHECK(one->identity() != two->identity());
  CHECK_FALSE(one->identity().empty());
  CHECK(value_of(two->presence(object, one->identity())) == Presence::absent);
  {
    const auto watch = value_of(one->watch(object, std::make_shared<Listener>("here")));
    CHECK(value_of(one->presence(object, one->identity())) == Presence::watching);
    CHECK(value_of(two->presence(object, one->identity())) == Presence::watching);
    CHECK(value_of(two->presence(object, two->identity())) == Presence::absent);
    CHECK(value_of(two->presence("Super", one->identity())) == Presence::absent);
  }
  CHECK(value_of(two->presence(object, one->identity())) == Presence::absent);
}

STORE_CASE("A client that ended cleanly watches nothing") {
  auto one = volume.new_client();
  const auto two = volume.new_client();
  create(*one, object);
  const Bytes identity = one->identity();
  auto watch = value_of(one->watch(object, std::make_shared<Listener>("here")));
  watch.reset();
  one.reset();
  CHECK(value_of(two->presence(object, identity)) != Presence::watching);
}

STORE_CASE("A watch does not change the object's version") {
  const auto store = volume.new_client();
  create(*store, object);
  const guard::VersionIs same{value_of(look(*store, object)).version};
  const auto watch = value_of(store->watch(object, std::make_shared<Listener>("here")));
  CHECK(outcome(store->apply(txn(object, {same}, {mutation::SetKey{"k", "v"}}))) == "success");
  CHECK(value_of(store->notify(object, "question", 60s)).answers == std::vector<Bytes>{"here"});
}

STORE_CASE("A fenced client is told that its watch is lost") {
  if (!volume.fences_single_clients()) return;
  const auto victim = volume.new_client(), fencer = volume.new_client();
  create(*victim, object);
  const auto hears = std::make_shared<Listener>("here");
  const auto watch = value_of(victim->watch(object, hears));
  succeeds(fencer->fence(victim->identity()));
  CHECK(value_of(fencer->presence(object, victim->identity())) != Presence::watching);
  hears->wait_until_lost();
  const NotifyReply reply = value_of(fencer->notify(object, "question", 60s));
  CHECK(reply.answers.empty());
  CHECK(hears->heard().empty());
  CHECK(outcome(victim->watch(object, hears)) == outcome(ErrorCode::fenced));
}

}  // namespace lccfs::conformance
