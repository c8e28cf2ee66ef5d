// SPDX-License-Identifier: LGPL-2.1-or-later
// Inodes that are kept until somebody needs them in the store.
#include "instance/unstored_inodes.h"

#include <algorithm>

#include "base/completions.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/instances.h"
#include "txn/attribute_txn.h"
#include "txn/namespace_txn.h"

namespace lccfs {
namespace {

using test::InstanceVolume;
using test::need;
using test::once_on;
using test::shared_bytes;

constexpr Ino ino{70};
const std::string object = format::inode_object(ino);

/// A client, with one inode that is not stored.
struct Kept {
  InstanceVolume volume;
  std::shared_ptr<ScriptedClient> client = volume.cluster->new_client();
  UnstoredInodes inodes{client};

  Kept() {
    txn::NewInode made;
    made.ino = ino;
    made.attr.birth_token = {InstanceId{7}, 1};
    inodes.add(ino, txn::create_inode(made));
  }
  bool is_stored() { return volume.looker->query({.object = object, .xattrs = true}).has_value(); }
  bool set_mode(std::uint32_t mode) {
    return inodes.edit(ino, [mode](MetaTxn& create) {
      auto attr = txn::attr_of(create);
      attr.mode = mode;
      txn::change_new_inode(create, {.attr = attr, .ctime = {}});
      return true;
    });
  }
  std::uint32_t stored_mode() {
    const auto found = need(volume.looker->query({.object = object, .xattrs = true}));
    return need(format::decode<format::AttrRecord>(found.xattrs.at(format::xattr::attr))).mode;
  }
};

}  // namespace

TEST_CASE("an inode is stored as it was changed, when somebody needs it") {
  Kept k;
  CHECK(k.set_mode(0600));
  CHECK_FALSE(k.is_stored());
  need(k.inodes.store(ino));
  CHECK(k.stored_mode() == 0600);
  CHECK_FALSE(k.set_mode(0700));
}

TEST_CASE("an inode that is on its way is not changed any more") {
  Kept k;
  k.client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::hold}; });
  auto [answer, done] = promised<Result<>>();
  k.inodes.when_stored({{ino}}, std::move(done));
  REQUIRE(k.client->wait_for_held(1));
  CHECK_FALSE(k.set_mode(0700));
  k.client->set_hook(nullptr);
  k.client->release_all();
  need(answer.get());
  CHECK(k.stored_mode() != 0700);
}

TEST_CASE("the first bytes of a new file go before its inode, unless that is on its way; all others wait for it") {
  Kept k;
  const auto write = [&k](std::uint64_t index) {
    auto [answer, done] = promised<Result<>>();
    k.inodes.write_data(format::data_object(ino, ObjectIndex{index}), 0, shared_bytes("bytes"), std::move(done));
    need(answer.get());
  };
  CHECK(k.inodes.is_untouched(ino));
  write(0);
  CHECK_FALSE(k.is_stored());
  CHECK(k.inodes.is_unsent(ino));
  CHECK_FALSE(k.inodes.is_untouched(ino));
  CHECK_FALSE(k.inodes.is_unstored(ino));
  if (GENERATE(false, true)) CHECK_FALSE(k.inodes.forget(ino));  // something of it is left
  if (!k.inodes.is_unsent(ino)) return;
  CHECK(k.set_mode(0600));
  write(1);
  CHECK(k.stored_mode() == 0600);
}

TEST_CASE("an inode that somebody needs is not forgotten") {
  Kept k;
  k.inodes.need(ino);
  CHECK_FALSE(k.inodes.is_untouched(ino));
  CHECK_FALSE(k.inodes.is_unstored(ino));
  CHECK_FALSE(k.inodes.forget(ino));
  CHECK(k.is_stored());
}

TEST_CASE("an inode that could not be stored stays as it was sent, and is sent again by the next who needs it") {
  Kept k;
  k.client->set_hook(once_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK(k.inodes.store(ino).error().code == ErrorCode::no_space);
  CHECK(k.inodes.is_failing());
  CHECK_FALSE(k.set_mode(0700));
  need(k.inodes.query({.object = object}));
  CHECK_FALSE(k.inodes.is_failing());
}

TEST_CASE("the directory of a new inode is stored before it, unless its name is lost") {
  constexpr Ino directory{60};
  Kept k;
  txn::NewInode made;
  made.ino = directory;
  made.attr.birth_token = {InstanceId{7}, 2};
  k.inodes.add(directory, txn::create_inode(made));
  made.ino = Ino{80};
  made.attr.birth_token = {InstanceId{7}, 3};
  made.parent.parent = directory;
  k.inodes.add(made.ino, txn::create_inode(made));
  const auto creations = [&k] {
    std::vector<std::string> lines;
    for (const auto& line : k.client->trace()) {
      if (line.starts_with("create inode")) lines.push_back(line);
    }
    return lines;
  };
  const std::string of_directory = "create inode " + format::inode_object(directory);
  const std::string of_file = "create inode " + format::inode_object(made.ino);
  k.client->reset_record();
  SECTION("both") {
    need(k.inodes.store(made.ino));
    CHECK(creations() == std::vector{of_directory, of_file});
  }
  SECTION("once the store takes the directory") {
    k.client->set_hook(once_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
    CHECK(k.inodes.store(made.ino).error().code == ErrorCode::no_space);
    CHECK(k.inodes.is_unsent(made.ino));
    need(k.inodes.query({.object = format::inode_object(made.ino)}));
    CHECK(creations() == std::vector{of_directory, of_directory, of_file});
  }
  SECTION("without one that was removed") {
    CHECK(k.inodes.forget(directory));
    need(k.inodes.store(made.ino));
    CHECK(creations() == std::vector{of_file});
  }
  SECTION("not at all if the file is lost meanwhile") {
    k.client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::hold}; });
    auto [answer, done] = promised<Result<>>();
    k.inodes.when_stored({{made.ino}}, std::move(done));
    REQUIRE(k.client->wait_for_held(1));
    CHECK(k.inodes.lose(made.ino));
    k.client->set_hook(nullptr);
    k.client->release_all();
    CHECK_FALSE(answer.get());
    CHECK(creations() == std::vector{of_directory});
  }
  SECTION("not at all if the file is lost as its directory is stored") {
    auto [answer, done] = promised<Result<>>();
    k.inodes.when_stored({{directory}}, [&](const Result<>&) { CHECK(k.inodes.lose(made.ino)); });
    k.inodes.when_stored({{made.ino}}, std::move(done));
    CHECK_FALSE(answer.get());
    CHECK(creations() == std::vector{of_directory});
  }
}

TEST_CASE("directories that were made below each other may be many: no stack is needed for each") {
  Kept k;
  constexpr std::uint64_t depth = 50'000;
  for (std::uint64_t i = 1; i <= depth; ++i) {
    txn::NewInode made;
    made.ino = {ino.value + i};
    made.attr.birth_token = {InstanceId{7}, 1 + i};
    made.parent.parent = {ino.value + i - 1};
    k.inodes.add(made.ino, txn::create_inode(made));
  }
  constexpr Ino last{ino.value + depth};
  k.client->set_hook(once_on("create inode", {Fault::Kind::fail, ErrorCode::io}));
  CHECK(k.inodes.store(last).error().outcome == Outcome::definite);
  k.client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::hold}; });
  auto [answer, done] = promised<Result<>>();
  k.inodes.when_stored({{last}}, std::move(done));
  std::uint64_t stored = 0;
  for (; !k.client->held().empty(); ++stored) k.client->release();
  need(answer.get());
  CHECK(stored == depth + 1);
}

TEST_CASE("an inode that is forgotten is never stored, and other objects do not wait for it") {
  Kept k;
  need(k.inodes.query({.object = format::super_object}));
  CHECK_FALSE(k.is_stored());
  k.inodes.forget(ino);
  CHECK(k.inodes.query({.object = object}).error().code == ErrorCode::not_found);
}

TEST_CASE("nothing is written for an inode that was refused and then forgotten, until nobody is left who would") {
  Kept k;
  k.client->set_hook(once_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  CHECK_FALSE(k.inodes.store(ino));
  CHECK_FALSE(k.inodes.forget(ino));
  CHECK_FALSE(k.inodes.is_failing());
  const auto write = [&k] {
    auto [answer, done] = promised<Result<>>();
    k.inodes.write_data(format::data_object(ino, ObjectIndex{1}), 0, shared_bytes("bytes"), std::move(done));
    return answer.get();
  };
  const auto apply = [&k] { return k.inodes.apply(txn::set_ctime(ino, TimeSpec{5, 0})).error().code; };
  k.inodes.end_unused([](Ino used) { return used == ino; });
  k.client->reset_record();
  CHECK(write().error().code == ErrorCode::io);
  CHECK(apply() == ErrorCode::not_found);
  CHECK(k.client->trace().empty());
  k.inodes.end_unused([](Ino) { return false; });
  CHECK(apply() == ErrorCode::not_found);
  CHECK(k.client->trace().size() == 1);
}

TEST_CASE("an inode that the store refuses is read as it would be there, and one that may be there is not") {
  Kept k;
  k.inodes.edit(ino, [](MetaTxn& create) {
    for (const char* key : {"m/1", "m/2", "m/3", "n/1"}) create.mutations.emplace_back(mutation::SetKey{key, "value"});
    create.mutations.emplace_back(mutation::SetXattr{format::xattr::lease, "lease"});
    create.mutations.emplace_back(mutation::RemoveXattr{format::xattr::lease});
    return true;
  });
  const MetaRead read{.object = object,
                      .xattrs = true,
                      .ranges = {{"m/", "", 2}, {"m/", "m/1", 2}, {"o/", "", 2}},
                      .keys = {"n/1", "n/2"}};
  k.client->set_hook(once_on("create inode", {Fault::Kind::fail, ErrorCode::no_space}));
  const auto refused = need(k.inodes.query(read));
  CHECK(refused.version == 0);
  CHECK_FALSE(k.is_stored());
  const auto stored = need(k.inodes.query(read));
  CHECK(stored.version != 0);
  CHECK(refused.xattrs == stored.xattrs);
  CHECK(refused.keys == stored.keys);
  REQUIRE(refused.ranges.size() == stored.ranges.size());
  for (std::size_t i = 0; i < stored.ranges.size(); ++i) {
    CHECK(refused.ranges[i].entries == stored.ranges[i].entries);
    CHECK(refused.ranges[i].more == stored.ranges[i].more);
  }
}

TEST_CASE("an inode of which it is not known whether the store has it is not read from memory") {
  Kept k;
  k.client->set_hook([](const StepInfo& info) {
    const bool fails = info.step == "create inode" || info.kind == StepKind::query;
    return fails ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  CHECK(k.inodes.query({.object = object, .xattrs = true}).error().code == ErrorCode::io);
}

TEST_CASE("another inode under its number is told from it") {
  Kept k;
  txn::NewInode other;
  other.ino = ino;
  other.attr.birth_token = {InstanceId{8}, 1};
  need(k.volume.looker->apply(txn::create_inode(other)));
  CHECK(k.inodes.store(ino).error().code == ErrorCode::corrupt);
}

TEST_CASE("an inode whose step was run twice, or lost its answer, is stored") {
  Kept k;
  const auto kind =
      GENERATE(Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  k.client->set_hook(once_on("create inode", {kind}));
  need(k.inodes.store(ino));
  CHECK(k.is_stored());
}

TEST_CASE("a ctime that is kept is stored before the inode is read or changed") {
  Kept k;
  need(k.inodes.store(ino));
  REQUIRE(k.inodes.add_ctime(ino, Ino{1}, TimeSpec{5, 0}));
  k.client->reset_record();
  const auto stored_ctime = [&] {
    const auto found = need(k.inodes.query({.object = object, .xattrs = true}));
    return need(format::decode<format::TimeRecord>(found.xattrs.at(format::xattr::ctime))).time;
  };
  need(k.inodes.query({.object = format::super_object}));
  CHECK(std::ranges::count(k.client->trace(), "set ctime " + object) == 0);
  CHECK(stored_ctime() == TimeSpec{5, 0});
  REQUIRE(k.inodes.add_ctime(ino, Ino{1}, TimeSpec{6, 0}));
  need(k.inodes.apply(txn::set_ctime(ino, TimeSpec{7, 0})));
  CHECK(stored_ctime() == TimeSpec{7, 0});
}

TEST_CASE("a ctime that cannot be stored keeps nothing waiting, and is lost") {
  Kept k;
  need(k.inodes.store(ino));
  REQUIRE(k.inodes.add_ctime(ino, Ino{1}, TimeSpec{5, 0}));
  k.client->set_hook(once_on("set ctime", {Fault::Kind::fail, ErrorCode::io}));
  need(k.inodes.query({.object = object}));
  CHECK_FALSE(k.inodes.is_failing());
  k.client->reset_record();
  CHECK(k.inodes.ctimes_of(std::nullopt).empty());
}

TEST_CASE("a ctime whose step is on its way, or of an inode that is not stored, is not kept") {
  Kept k;
  CHECK_FALSE(k.inodes.add_ctime(ino, Ino{1}, TimeSpec{5, 0}));
  need(k.inodes.store(ino));
  REQUIRE(k.inodes.add_ctime(ino, Ino{1}, TimeSpec{5, 0}));
  k.client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::hold}; });
  auto [answer, done] = promised<Result<MetaSnapshot>>();
  k.inodes.query_async({.object = object}, std::move(done));
  REQUIRE(k.client->wait_for_held(1));
  CHECK_FALSE(k.inodes.add_ctime(ino, Ino{1}, TimeSpec{6, 0}));
  CHECK(k.inodes.ctimes_of(Ino{1}) == std::vector{ino});
  CHECK(k.inodes.ctimes_of(Ino{2}).empty());
  k.client->set_hook(nullptr);
  k.client->release_all();
  need(answer.get());
}

TEST_CASE("a ctime is due after some looks, however often the inode is moved meanwhile") {
  Kept k;
  need(k.inodes.store(ino));
  for (unsigned look = 0; look < 5; ++look) {
    REQUIRE(k.inodes.add_ctime(ino, Ino{2}, TimeSpec{5 + look, 0}));
    CHECK(k.inodes.old_ctimes().empty());
  }
  CHECK(k.inodes.old_ctimes() == std::vector{ino});
  CHECK(k.inodes.ctimes_of(Ino{1}).empty());
  CHECK(k.inodes.ctimes_of(Ino{2}) == std::vector{ino});
}

}  // namespace lccfs
