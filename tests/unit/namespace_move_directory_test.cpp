// SPDX-License-Identifier: LGPL-2.1-or-later
// rename of a directory to another directory: the tree stays a tree, counts stay exact, and "..", whoever comes between
// its steps, and whoever finishes what a dead client has begun.
#include <functional>
#include <future>

#include "support/catch.h"
#include "support/collecting.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

/// /a/x and /b, and /a/x/f.
struct TwoParents {
  TestVolume volume;
  Mount mount = volume.mount();
  Mount other = volume.mount();
  FileSystem& fs = *mount.file_system;
  const Ino a = make_dir(fs, root_ino, "a");
  const Ino b = make_dir(fs, root_ino, "b");
  const Ino x = make_dir(fs, a, "x");
  const Ino f = make_file(fs, x, "f");

  Result<> move() { return fs.rename(a, "x", b, "y", RenameMode::replace); }
  unsigned links(Ino directory) { return need(other->get_attributes(directory)).attributes.nlink; }
  Ino parent_by_handle() { return need(other->lookup(x, "..")).attributes.ino; }
  Ino parent_in_listing() {
    for (const auto& entry : listing(*other.file_system, x)) {
      if (entry.name == "..") return entry.ino;
    }
    return {};
  }
  /// Where all see it, with exact counts.
  void check_is_at(bool moved) {
    auto& seen_by = *other.file_system;
    CHECK(ino_of(seen_by, a, "x") == (moved ? std::nullopt : std::optional(x)));
    CHECK(ino_of(seen_by, b, "y") == (moved ? std::optional(x) : std::nullopt));
    CHECK(ino_of(seen_by, x, "f") == f);
    CHECK(links(a) == (moved ? 2 : 3));
    CHECK(links(b) == (moved ? 3 : 2));
    CHECK(parent_by_handle() == (moved ? b : a));
    CHECK(parent_in_listing() == (moved ? b : a));
    CHECK(problems(volume.cluster()).empty());
  }
};

const std::vector<std::string> steps_of_a_directory{"take rename lock", "point to directory", "mark entry",
                                                    "move entry in",    "move entry out",     "release rename lock",
                                                    "remove decision"};

/// From this step on, the directory has moved.
bool has_moved_before(const std::string& step) {
  return step == "move entry out" || step == "release rename lock" || step == "remove decision";
}

/// /a/b and /c/d.
struct TwoTrees {
  TestVolume volume;
  Mount mount = volume.mount();
  Mount other = volume.mount();
  FileSystem& fs = *mount.file_system;
  const Ino a = make_dir(fs, root_ino, "a"), c = make_dir(fs, root_ino, "c");
  const Ino b = make_dir(fs, a, "b"), d = make_dir(fs, c, "d");

  Result<> c_below_b() { return other->rename(root_ino, "c", b, "c", RenameMode::replace); }
  Result<> a_below_d() { return fs.rename(root_ino, "a", d, "a", RenameMode::replace); }
  void check_is_a_tree() {
    std::size_t met = 0;
    const std::function<void(Ino)> walk = [&](Ino directory) {
      REQUIRE(++met < 10);
      for (const auto& name : names_in(*other.file_system, directory))
        walk(*ino_of(*other.file_system, directory, name));
    };
    walk(root_ino);
    CHECK(met == 5);
    CHECK(problems(volume.cluster()).empty());
  }
};

/// A second client moves /c/e to /d and back, each time while the first one stands still with the rename lock.
struct Waiting : TwoParents {
  using seconds = std::chrono::seconds;
  Ino from = make_dir(fs, root_ino, "c"), to = make_dir(fs, root_ino, "d");
  const Ino e = make_dir(fs, from, "e");

  seconds move_e() {
    const auto began = volume.clock().elapsed();
    need(other->rename(from, "e", to, "e", RenameMode::replace));
    std::swap(from, to);
    return std::chrono::floor<seconds>(volume.clock().elapsed() - began);
  }
  /// For how long the second one has waited. The first one begins again after that.
  seconds wait_once() {
    seconds waited{0};
    mount.client->set_hook(before("mark entry", [&] { waited = move_e(); }));
    need(move());
    need(fs.rename(b, "y", a, "x", RenameMode::replace));
    return waited;
  }
};

}  // namespace

TEST_CASE("a directory moves with all that is in it, and back") {
  TwoParents one;
  one.check_is_at(false);
  need(one.move());
  one.check_is_at(true);
  CHECK(need(one.fs.lookup(one.x, "..")).attributes.ino == one.b);
  need(one.fs.rename(one.b, "y", one.a, "x", RenameMode::replace));
  one.check_is_at(false);
  collect(one.volume.cluster(), one.volume.clock());
  one.check_is_at(false);
  CHECK(traces_left(one.volume.cluster()).empty());
}

TEST_CASE(
    "a directory that has moved points back to its new directory by its first back-pointer, once that was recounted") {
  TwoParents one;
  need(one.move());
  collect(one.volume.cluster(), one.volume.clock());
  const auto object = *inode_object_of(one.volume.cluster(), one.x);
  CHECK(need(format::decode<format::BackPointerRecord>(object.xattrs.at(format::xattr::parent))).parent == one.b);
  CHECK_FALSE(has_keys(object, "p/"));
  one.check_is_at(true);
  need(one.fs.rmdir(root_ino, "a"));
  collect(one.volume.cluster(), one.volume.clock());
  CHECK_FALSE(inode_object_of(one.volume.cluster(), one.a));
  CHECK(ino_of(*one.other.file_system, one.b, "y") == one.x);
}

TEST_CASE("whatever step of a directory's move is next, others find it in one place") {
  for (const auto& step : steps_of_a_directory) {
    TwoParents one;
    INFO("before " << step);
    unsigned looks = 0;
    one.mount.client->set_hook(before(step, [&] {
      ++looks;
      const bool moved = has_moved_before(step);
      auto& seen_by = *one.other.file_system;
      CHECK(ino_of(seen_by, one.a, "x").has_value() != moved);
      CHECK(ino_of(seen_by, one.b, "y").has_value() == moved);
      CHECK(names_in(seen_by, one.a).empty() == moved);
      CHECK(names_in(seen_by, one.b).empty() != moved);
      CHECK(one.parent_by_handle() == (moved ? one.b : one.a));
      CHECK(one.parent_in_listing() == (moved ? one.b : one.a));
    }));
    need(one.move());
    CHECK(looks == 1);
    one.check_is_at(true);
  }
}

TEST_CASE("counts of subdirectories are exact whoever finishes a dead client's move of a directory, or undoes it") {
  enum class By { name_taken_again, both_removed, collector };
  for (const auto& step : steps_of_a_directory) {
    for (const auto kind : {Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash}) {
      for (const auto by : {By::name_taken_again, By::both_removed, By::collector}) {
        TwoParents one;
        INFO("at " << step << ", by " << static_cast<int>(by));
        one.mount.client->set_hook(once_on(step, {kind}));
        static_cast<void>(one.move());
        const bool moved =
            has_moved_before(step) || (step == "move entry in" && kind == Fault::Kind::applied_and_crash);
        auto& other = *one.other.file_system;
        if (by == By::name_taken_again) {
          const auto made = other.make_node({}, one.a, "x", {FileType::directory, 0700, 0, {}});
          CHECK(error_of(made) == (moved ? std::nullopt : std::optional(ErrorCode::exists)));
          CHECK(one.links(one.a) == 3);
          CHECK(one.links(one.b) == (moved ? 3 : 2));
          CHECK(problems(one.volume.cluster()).empty());
        } else if (by == By::both_removed) {
          CHECK(error_of(other.rmdir(root_ino, "a")) == (moved ? std::nullopt : std::optional(ErrorCode::not_empty)));
          CHECK(error_of(other.rmdir(root_ino, "b")) == (moved ? std::optional(ErrorCode::not_empty) : std::nullopt));
          CHECK(one.links(root_ino) == 3);
        }
        one.volume.clock().advance(std::chrono::minutes(2));
        collect(one.volume.cluster(), one.volume.clock());
        if (by == By::collector) one.check_is_at(moved);
        CHECK(problems(one.volume.cluster()).empty());
        CHECK(traces_left(one.volume.cluster()).empty());
        CHECK(ino_of(other, one.x, "f") == one.f);
      }
    }
  }
}

TEST_CASE("no directory moves into itself, or below itself") {
  TwoParents one;
  const auto deep = make_dir(one.fs, make_dir(one.fs, one.x, "in"), "deep");
  for (const Ino into : {one.x, deep}) {
    CHECK(error_of(one.fs.rename(one.a, "x", into, "y", RenameMode::replace)) == ErrorCode::invalid);
    CHECK(error_of(one.other->rename(one.a, "x", into, "y", RenameMode::replace)) == ErrorCode::invalid);
  }
  one.check_is_at(false);
  need(one.fs.rename(one.x, "in", one.b, "in", RenameMode::replace));
  need(one.fs.rename(one.a, "x", deep, "y", RenameMode::replace));
  CHECK(ino_of(*one.other.file_system, deep, "y") == one.x);
  CHECK(problems(one.volume.cluster()).empty());
}

TEST_CASE("of two directories that two clients move into each other, one moves") {
  for (const auto& step : steps_of_a_directory) {
    INFO("before " << step);
    TwoTrees two;
    std::optional<Result<>> rival;
    two.mount.client->set_hook(before(step, [&] { rival = two.c_below_b(); }));
    const auto moved = two.a_below_d();
    REQUIRE(rival.has_value());
    CHECK(moved.has_value() != rival->has_value());
    CHECK(error_of(moved ? *rival : moved) == ErrorCode::invalid);
    CHECK(moved.has_value() == has_moved_before(step));
    two.check_is_a_tree();
    collect(two.volume.cluster(), two.volume.clock());
    two.check_is_a_tree();
    CHECK(traces_left(two.volume.cluster()).empty());
  }
}

TEST_CASE("a dead client's move of a directory holds up the next one for some seconds, and makes no loop") {
  for (const auto& step : steps_of_a_directory) {
    for (const auto kind : {Fault::Kind::not_applied_and_crash, Fault::Kind::crash_and_land_later}) {
      INFO("at " << step);
      TwoTrees two;
      two.mount.client->set_hook(once_on(step, {kind}));
      static_cast<void>(two.a_below_d());
      const auto began = two.volume.clock().elapsed();
      const auto second = two.c_below_b();
      CHECK(two.volume.clock().elapsed() - began < std::chrono::seconds(15));
      CHECK(error_of(second) == (has_moved_before(step) ? std::optional(ErrorCode::invalid) : std::nullopt));
      two.mount.client->land_late_steps();
      two.check_is_a_tree();
      two.volume.clock().advance(std::chrono::minutes(2));
      collect(two.volume.cluster(), two.volume.clock());
      two.check_is_a_tree();
      CHECK(traces_left(two.volume.cluster()).empty());
    }
  }
}

TEST_CASE("a client that takes the rename lock from one that lives waits longer the next time, and not for ever") {
  using std::chrono::seconds;
  Waiting one;
  for (const int longest : {10, 20, 40, 80, 160, 320, 640, 640}) {
    const auto waited = one.wait_once();
    INFO(longest << ": " << waited.count());
    CHECK((waited >= seconds(longest) && waited < seconds(longest + 3)));
  }
  one.volume.clock().advance(std::chrono::hours(1));
  CHECK(one.wait_once() < seconds(13));
  one.check_is_at(false);
  CHECK(problems(one.volume.cluster()).empty());
}

TEST_CASE("a client that has patience with those that live has none with one that is dead or stands still") {
  const bool is_dead = GENERATE(true, false);
  using std::chrono::seconds;
  Waiting one;
  REQUIRE(one.wait_once() >= seconds(10));  // 20 the next time
  if (is_dead) {
    one.mount.client->set_hook(once_on("mark entry", {Fault::Kind::not_applied_and_crash}));
    static_cast<void>(one.move());
    CHECK(one.move_e() < seconds(13));
    return;
  }
  std::optional<seconds> waited;
  const auto began = one.volume.clock().elapsed();
  one.other.client->set_hook([&](const StepInfo&) {
    if (one.volume.clock().elapsed() - began > seconds(15)) one.mount.client->set_cut_off(false);
    return Fault{};
  });
  one.mount.client->set_hook(before("mark entry", [&] {
    one.mount.client->set_cut_off(true);
    waited = one.move_e();
    one.mount.client->set_cut_off(false);
  }));
  need(one.move());
  REQUIRE(waited);
  CHECK(*waited < seconds(13));
  one.check_is_at(true);
}

TEST_CASE("a directory whose move is finished while another client walks past its mark is not taken for where it was") {
  TwoTrees two;
  std::promise<void> stands_still, may_finish;
  two.mount.client->set_hook(before("move entry out", [&] {
    stands_still.set_value();
    may_finish.get_future().wait();
  }));
  auto first = std::async(std::launch::async, [&] { return two.a_below_d(); });
  stands_still.get_future().wait();
  unsigned looks = 0;
  two.other.client->set_hook([&](const StepInfo& step) {
    const bool asks = step.object == format::inode_object(two.d) && step.read != nullptr &&
                      std::ranges::any_of(step.read->keys, [](const auto& key) { return key.starts_with("x/"); });
    if (asks && ++looks == 2) {  // the first one decided the move: it has committed
      may_finish.set_value();
      need(first.get());
      need(two.fs.unmount());
    }
    return Fault{};
  });
  CHECK(error_of(two.c_below_b()) == ErrorCode::invalid);
  CHECK(looks >= 2);
  two.other.client->set_hook(nullptr);
  two.check_is_a_tree();
}

TEST_CASE("a rename lock that was taken or released twice, or without an answer, is taken once and free in the end") {
  for (const std::string step : {"take rename lock", "release rename lock"}) {
    for (const auto kind :
         {Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied, Fault::Kind::applied_twice}) {
      TwoParents one;
      one.mount.client->set_hook(once_on(step, {kind}));
      need(one.move());
      one.check_is_at(true);
      const auto began = one.volume.clock().elapsed();
      need(one.other->rename(one.b, "y", one.a, "x", RenameMode::replace));
      CHECK(one.volume.clock().elapsed() == began);
      one.check_is_at(false);
    }
  }
}

TEST_CASE("a directory moves over an empty one, which is gone then") {
  TwoParents one;
  const auto y = make_dir(one.fs, one.b, "y");
  CHECK(error_of(one.fs.rename(one.a, "x", one.b, "y", RenameMode::no_replace)) == ErrorCode::exists);
  need(one.move());
  one.check_is_at(true);
  CHECK(error_of(one.other->make_node({}, y, "g", {FileType::regular, 0600, 0, {}})) == ErrorCode::stale);
  collect(one.volume.cluster(), one.volume.clock());
  CHECK_FALSE(inode_object_of(one.volume.cluster(), y));
  one.check_is_at(true);
  CHECK(traces_left(one.volume.cluster()).empty());
}

TEST_CASE("a directory that another client has renamed is not there, whatever stands under the new name") {
  TwoParents one;
  const auto y = make_dir(one.fs, one.b, "y");
  need(one.fs.lookup(one.a, "x"));
  need(one.other->rename(one.a, "x", one.a, "z", RenameMode::replace));
  make_file(*one.other.file_system, y, "g");
  CHECK(error_of(one.move()) == ErrorCode::not_found);
}

TEST_CASE("a directory that fills up is not replaced by one that moves") {
  for (const std::string step : {"seal", "point to directory", "mark entry", "move entry in"}) {
    TwoParents one;
    INFO("before " << step);
    const auto y = make_dir(one.fs, one.b, "y");
    one.mount.client->set_hook(before(step, [&] { make_file(*one.other.file_system, y, "g"); }));
    CHECK(error_of(one.move()) == ErrorCode::not_empty);
    CHECK(ino_of(*one.other.file_system, one.a, "x") == one.x);
    CHECK(ino_of(*one.other.file_system, y, "g").has_value());
    CHECK(problems(one.volume.cluster()).empty());
    CHECK(state_of(*inode_object_of(one.volume.cluster(), y)) == format::StateRecord::Kind::live);
    collect(one.volume.cluster(), one.volume.clock());
    CHECK(traces_left(one.volume.cluster()).empty());
  }
}

TEST_CASE("a directory that was to be replaced lives or goes with the dead client's move") {
  for (const std::string step : {"seal", "point to directory", "mark entry", "move entry in", "move entry out"}) {
    for (const auto kind : {Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash}) {
      for (const bool used_before : {true, false}) {
        TwoParents one;
        INFO("at " << step);
        const auto y = make_dir(one.fs, one.b, "y");
        one.mount.client->set_hook(once_on(step, {kind}));
        static_cast<void>(one.move());
        const bool moved =
            step == "move entry out" || (step == "move entry in" && kind == Fault::Kind::applied_and_crash);
        if (used_before) {
          const auto made = one.other->make_node({}, y, "g", {FileType::regular, 0600, 0, {}});
          CHECK(error_of(made) == (moved ? std::optional(ErrorCode::stale) : std::nullopt));
        }
        one.volume.clock().advance(std::chrono::minutes(2));
        collect(one.volume.cluster(), one.volume.clock());
        CHECK(inode_object_of(one.volume.cluster(), y).has_value() != moved);
        CHECK(ino_of(*one.other.file_system, one.b, "y") == (moved ? one.x : y));
        CHECK(problems(one.volume.cluster()).empty());
        CHECK(traces_left(one.volume.cluster()).empty());
      }
    }
  }
}

TEST_CASE("subdirectories made and removed beside a directory's move cost it one more step, and are counted") {
  for (const std::string step : {"move entry in", "move entry out"}) {
    TwoParents one;
    INFO("before " << step);
    const Ino counted = step == "move entry in" ? one.b : one.a;
    one.mount.client->set_hook(before(step, [&] { make_dir(*one.other.file_system, counted, "beside"); }));
    need(one.move());
    CHECK(one.links(one.a) == (counted == one.a ? 3 : 2));
    CHECK(one.links(one.b) == (counted == one.b ? 4 : 3));
    CHECK(problems(one.volume.cluster()).empty());
    CHECK(std::ranges::count(one.mount.client->trace(), "mark entry " + format::inode_object(one.a)) == 1);
  }
}

TEST_CASE("a directory is removed or renamed beside its move") {
  for (const auto& step : steps_of_a_directory) {
    TwoParents one;
    INFO("before " << step);
    need(one.fs.unlink(one.x, "f"));
    std::optional<Result<>> removed;
    one.mount.client->set_hook(before(step, [&] { removed = one.other->rmdir(one.a, "x"); }));
    const auto moved = one.move();
    REQUIRE(removed.has_value());
    CHECK(moved.has_value() != removed->has_value());
    CHECK(error_of(moved ? *removed : moved) == ErrorCode::not_found);
    CHECK(problems(one.volume.cluster()).empty());
    collect(one.volume.cluster(), one.volume.clock());
    CHECK(inode_object_of(one.volume.cluster(), one.x).has_value() == moved.has_value());
    CHECK(traces_left(one.volume.cluster()).empty());
  }
}

TEST_CASE("the new directory is removed, or moves itself, while a directory is to move into it") {
  for (const auto& step : steps_of_a_directory) {
    for (const bool moves : {false, true}) {
      TwoParents one;
      INFO("before " << step << (moves ? ", moves" : ", removed"));
      const Ino elsewhere = make_dir(one.fs, root_ino, "elsewhere");
      std::optional<Result<>> rival;
      one.mount.client->set_hook(before(step, [&] {
        rival = moves ? one.other->rename(root_ino, "b", elsewhere, "b", RenameMode::replace)
                      : one.other->rmdir(root_ino, "b");
      }));
      const auto moved = one.move();
      REQUIRE(rival.has_value());
      if (moves) {
        need(*rival);
        need(moved);
        CHECK(ino_of(*one.other.file_system, elsewhere, "b") == one.b);
      } else {
        CHECK(moved.has_value() != rival->has_value());
        CHECK(error_of(moved ? *rival : moved) == (moved ? ErrorCode::not_empty : ErrorCode::stale));
      }
      CHECK(problems(one.volume.cluster()).empty());
      collect(one.volume.cluster(), one.volume.clock());
      CHECK(inode_object_of(one.volume.cluster(), one.x));
      CHECK(traces_left(one.volume.cluster()).empty());
    }
  }
}

TEST_CASE("a seal that a dead client has left on a directory does not keep it from moving") {
  TwoParents one;
  need(one.fs.unlink(one.x, "f"));
  one.other.client->set_hook(once_on("remove entry", {Fault::Kind::not_applied_and_crash}));
  CHECK_FALSE(one.other->rmdir(one.a, "x"));
  need(one.move());
  CHECK(ino_of(one.fs, one.b, "y") == one.x);
  make_file(one.fs, one.x, "g");
  one.volume.clock().advance(std::chrono::minutes(2));
  collect(one.volume.cluster(), one.volume.clock());
  CHECK(names_in(one.fs, one.x) == std::vector<std::string>{"g"});
  CHECK(problems(one.volume.cluster()).empty());
}

TEST_CASE("a damaged rename lock is an error that names it, and no move") {
  TwoParents one;
  need(one.move());
  one.volume.cluster().with_objects([](scripted::Objects& objects) {
    objects.metadata().at(format::super_object).keys.at(format::rename_lock_key) = "nonsense";
  });
  const auto again = one.fs.rename(one.b, "y", one.a, "x", RenameMode::replace);
  CHECK(error_of(again) == ErrorCode::corrupt);
  CHECK(again.error().context.starts_with("Super: rename"));
  one.check_is_at(true);
}

TEST_CASE("a rename lock that names what is no directory is taken over like any other") {
  for (const bool is_a_file : {true, false}) {
    TwoParents one;
    const format::RenameLockRecord held{format::RenameLockRecord::Kind::held, Token{InstanceId{77}, 5},
                                        is_a_file ? one.f : Ino{123456}};
    one.volume.cluster().with_objects([&](scripted::Objects& objects) {
      objects.metadata().at(format::super_object).keys[format::rename_lock_key] = encode(held);
    });
    need(one.move());
    one.check_is_at(true);
    one.volume.clock().advance(std::chrono::minutes(2));
    collect(one.volume.cluster(), one.volume.clock());
    CHECK(traces_left(one.volume.cluster()).empty());
  }
}

TEST_CASE("a client that is fenced while it waits for the rename lock waits no longer") {
  TwoTrees two;
  two.other.client->set_hook(once_on("move entry in", {Fault::Kind::not_applied_and_crash}));
  static_cast<void>(two.c_below_b());
  const auto rescue = two.volume.new_client();
  unsigned looks = 0;
  two.mount.client->set_hook([&](const StepInfo& info) {
    if (info.kind == StepKind::query && info.object == format::super_object && ++looks == 5) {
      need(rescue->fence(two.mount.client->identity()));
      static_cast<void>(rescue->query({.object = format::super_object}));
    }
    return Fault{};
  });
  const auto began = two.volume.clock().elapsed();
  CHECK(error_of(two.a_below_d()) == ErrorCode::fenced);
  CHECK(two.volume.clock().elapsed() - began < std::chrono::seconds(5));
}

TEST_CASE("a damaged tree that leads back to itself is an error that names a directory, and no move") {
  TwoTrees two;
  two.volume.cluster().with_objects([&](scripted::Objects& objects) {
    objects.metadata().at(format::inode_object(two.a)).xattrs.at(format::xattr::parent) =
        encode(format::BackPointerRecord{two.b, Token{InstanceId{77}, 5}});
  });
  const auto moved = two.fs.rename(root_ino, "c", two.b, "c", RenameMode::replace);
  CHECK(error_of(moved) == ErrorCode::corrupt);
  CHECK(moved.error().context == format::inode_object(two.b) + ": its path leads back to itself");
  CHECK(ino_of(two.fs, root_ino, "c") == two.c);
}
