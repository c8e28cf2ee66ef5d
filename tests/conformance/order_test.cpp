// SPDX-License-Identifier: LGPL-2.1-or-later
// Many steps in flight: each is answered once, and a client's own order holds.
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "conformance/conformance.h"

namespace lccfs::conformance {
STORE_CASE("Hundreds of steps in flight are each answered once") {
  const auto store = volume.new_client();
  constexpr unsigned objects = 300;
  Answers answers;
  for (unsigned i = 0; i < objects; ++i) {
    const std::string number = std::to_string(i);
    store->apply_async(txn("Inode." + number, {}, {mutation::CreateExclusive{}, mutation::SetKey{"k", number}}),
                       answers.expect_one<Applied>());
    store->write_data("Data." + number + ".0", 0, share(number), answers.expect_one<void>());
  }
  answers.wait();
  CHECK(answers.failed() == 0);
  for (unsigned i = 0; i < objects; ++i)
    store->query_async(MetaRead{"Inode." + std::to_string(i), false, true, {}, {"k"}},
                       answers.expect_one<MetaSnapshot>());
  answers.wait();
  CHECK(answers.failed() == 0);
  CHECK(answers.answered() == 3 * objects);
  for (unsigned i = 0; i < objects; i += 50) {
    CHECK(value_of(read(*store, "Data." + std::to_string(i) + ".0", 0, 10)) == std::to_string(i));
    CHECK(value_of(look(*store, "Inode." + std::to_string(i))).ranges[0].entries[0].second == std::to_string(i));
  }
}

STORE_CASE("Of changes of one object in flight together every one counts, and versions differ") {
  const auto store = volume.new_client();
  create(*store, "Inode.1");
  std::mutex mutex;
  std::set<std::uint64_t> versions;
  Answers answers;
  for (unsigned i = 0; i < 64; ++i) {
    auto answered = answers.expect_one<Applied>();
    store->apply_async(
        txn("Inode.1", {guard::KeyAbsent{std::to_string(i)}}, {mutation::SetKey{std::to_string(i), "v"}}),
        [&, answered](Result<Applied> result) {
          if (result) {
            const std::lock_guard lock(mutex);
            versions.insert(result->version);
          }
          answered(std::move(result));
        });
  }
  answers.wait();
  CHECK(answers.failed() == 0);
  CHECK(versions.size() == 64);
  const MetaSnapshot now = value_of(look(*store, "Inode.1"));
  CHECK(now.ranges[0].entries.size() == 64);
  CHECK(now.version == *versions.rbegin());
}

STORE_CASE("A read after one's own write that is still in flight sees it") {
  const auto store = volume.new_client();
  Answers answers;
  for (unsigned i = 0; i < 50; ++i) {
    const std::string number = std::to_string(1000 + i);
    store->apply_async(txn("Inode.1", {}, {mutation::SetKey{"k", number}}), answers.expect_one<Applied>());
    CHECK(value_of(store->query(MetaRead{"Inode.1", false, false, {}, {"k"}})).keys["k"] == number);
    store->write_data("Data.1.0", 0, share(number), answers.expect_one<void>());
    CHECK(value_of(read(*store, "Data.1.0", 0, 4)) == number);
  }
  answers.wait();
  CHECK(answers.failed() == 0);
}

STORE_CASE("Data steps of one client on one object apply in the order sent") {
  const auto store = volume.new_client();
  Answers answers;
  for (unsigned round = 0; round < 10; ++round) {
    for (unsigned i = 0; i < 20; ++i)
      store->write_data("Data.1.0", i % 3, share(std::to_string(100 + i)), answers.expect_one<void>());
    store->truncate_data("Data.1.0", 2, answers.expect_one<void>());
    store->write_data("Data.1.0", 3, share("end"), answers.expect_one<void>());
    CHECK((value_of(read(*store, "Data.1.0", 0, 100)) == Bytes("11\0end", 6)));
    store->remove_data("Data.1.0", answers.expect_one<void>());
    store->write_data("Data.1.0", 0, share("new"), answers.expect_one<void>());
    CHECK(value_of(read(*store, "Data.1.0", 0, 100)) == "new");
  }
  answers.wait();
  CHECK(answers.failed() == 0);
}

STORE_CASE("Many threads use one client") {
  const auto store = volume.new_client();
  create(*store, "Inode.1");
  std::atomic<unsigned> failures{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 8; ++thread) {
      threads.emplace_back([&, thread] {
        for (unsigned i = 0; i < 20; ++i) {
          const std::string key = std::to_string(thread) + "/" + std::to_string(i);
          if (!store->apply(txn("Inode.1", {}, {mutation::SetKey{key, key}}))) ++failures;
          const auto seen = store->query(MetaRead{"Inode.1", false, false, {}, {key}});
          if (!seen || seen->keys.count(key) == 0) ++failures;
        }
      });
    }
  }
  CHECK(failures == 0);
  CHECK(value_of(look(*store, "Inode.1")).ranges[0].entries.size() == 160);
}

}  // namespace lccfs::conformance
