// SPDX-License-Identifier: LGPL-2.1-or-later
// rename across directories: what it answers, what others see between its move_steps, and what they settle.
#include <fcntl.h>

#include <future>

#include "support/catch.h"
#include "support/collecting.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

enum class Target { nothing, file, symlink, directory };
constexpr Target targets[] = {Target::nothing, Target::file, Target::symlink, Target::directory};

std::optional<Ino> make_target(FileSystem& fs, Ino parent, const std::string& name, Target thing) {
  if (thing == Target::nothing) return std::nullopt;
  if (thing == Target::file) return make_file(fs, parent, name);
  if (thing == Target::directory) return make_dir(fs, parent, name);
  return need(fs.make_node({}, parent, name, {FileType::symlink, 0, 0, "to"})).attributes.ino;
}

std::optional<ErrorCode> answer_of(Target from, Target to, RenameMode mode) {
  if (from == Target::nothing) return ErrorCode::not_found;
  if (to != Target::nothing && mode == RenameMode::no_replace) return ErrorCode::exists;
  if (from == Target::directory && to != Target::nothing && to != Target::directory) return ErrorCode::not_directory;
  if (from == Target::directory) return std::nullopt;
  return to == Target::directory ? std::optional(ErrorCode::is_directory) : std::nullopt;
}

/// A file f in the root, and an empty directory d.
struct OneMove {
  TestVolume volume;
  Mount mount = volume.mount();
  Mount other = volume.mount();
  FileSystem& fs = *mount.file_system;
  const Ino f = make_file(fs, root_ino, "f");
  const Ino d = make_dir(fs, root_ino, "d");

  Result<> move() { return fs.rename(root_ino, "f", d, "g", RenameMode::replace); }
  bool is_at(FileSystem& seen_by, Ino parent, const std::string& name) {
    const bool found = ino_of(seen_by, parent, name) == f;
    const auto names = names_in(seen_by, parent);
    CHECK(std::ranges::count(names, name) == (found ? 1 : 0));
    return found;
  }
};

const std::vector<std::string> move_steps{"point to directory", "mark entry", "move entry in", "move entry out",
                                          "remove decision"};

}  // namespace

TEST_CASE("a rename across directories does what Linux does for every pair of targets") {
  for (const auto mode : {RenameMode::replace, RenameMode::no_replace}) {
    for (const Target from : targets) {
      for (const Target to : targets) {
        for (const bool looked_up : {true, false}) {
          TestVolume volume;
          auto mount = volume.mount();
          auto& fs = *mount.file_system;
          INFO(static_cast<int>(from) << " to " << static_cast<int>(to));
          const auto d = make_dir(fs, root_ino, "d");
          const auto a = make_target(fs, root_ino, "a", from), b = make_target(fs, d, "b", to);
          if (!looked_up) volume.clock().advance(std::chrono::seconds(2));
          const auto wanted = answer_of(from, to, mode);
          CHECK(error_of(fs.rename(root_ino, "a", d, "b", mode)) == wanted);
          CHECK(ino_of(fs, d, "b") == (wanted ? b : a));
          CHECK(ino_of(fs, root_ino, "a") == (wanted ? a : std::nullopt));
          CHECK(problems(volume.cluster()).empty());
          collect(volume.cluster(), volume.clock());
          CHECK(ino_of(fs, d, "b") == (wanted ? b : a));
          if (!wanted && b) CHECK_FALSE(inode_object_of(volume.cluster(), *b));
        }
      }
    }
  }
}

TEST_CASE("names are not exchanged across directories") {
  OneMove one;
  make_file(one.fs, one.d, "g");
  CHECK(error_of(one.fs.rename(root_ino, "f", one.d, "g", RenameMode::exchange)) == ErrorCode::invalid);
  CHECK(one.is_at(one.fs, root_ino, "f"));
}

TEST_CASE("of two names of one file in two directories none goes, unless the new one must not exist") {
  OneMove one;
  need(one.fs.link(one.f, one.d, "g"));
  CHECK(error_of(one.fs.rename(root_ino, "f", one.d, "g", RenameMode::no_replace)) == ErrorCode::exists);
  need(one.move());
  CHECK(one.is_at(*one.other.file_system, root_ino, "f"));
  CHECK(one.is_at(*one.other.file_system, one.d, "g"));
}

TEST_CASE("whatever step is next, others find the file under one name, by lookup and in listings") {
  for (const auto& step : move_steps) {
    OneMove one;
    INFO("before " << step);
    unsigned looks = 0;
    one.mount.client->set_hook(before(step, [&] {
      auto& seen_by = *one.other.file_system;
      const bool is_old = one.is_at(seen_by, root_ino, "f"), is_new = one.is_at(seen_by, one.d, "g");
      CHECK(is_old != is_new);
      CHECK(is_new == (step == "move entry out" || step == "remove decision"));
      ++looks;
    }));
    need(one.move());
    CHECK(looks == 1);
    CHECK(one.is_at(*one.other.file_system, one.d, "g"));
    CHECK_FALSE(one.is_at(*one.other.file_system, root_ino, "f"));
  }
}

TEST_CASE("a name with a mark is taken as long as it is not decided, and free once the file has moved") {
  for (const auto& step : move_steps) {
    OneMove one;
    INFO("before " << step);
    const bool moved = step == "move entry out" || step == "remove decision";
    one.mount.client->set_hook(before(step, [&] {
      const auto made = one.other->make_node({}, root_ino, "f", {FileType::regular, 0600, 0, {}});
      CHECK(error_of(made) == (moved ? std::nullopt : std::optional(ErrorCode::exists)));
    }));
    need(one.move());  // cancelled once at most: it begins again
    CHECK(one.is_at(one.fs, one.d, "g"));
    CHECK(ino_of(one.fs, root_ino, "f").has_value() == moved);
    CHECK(problems(one.volume.cluster()).empty());
  }
}

TEST_CASE("a directory that the last file is leaving can be removed once the file has moved") {
  for (const auto& step : move_steps) {
    OneMove one;
    need(one.move());
    INFO("before " << step);
    const bool moved = step == "move entry out" || step == "remove decision";
    one.mount.client->set_hook(before(step, [&] {
      const auto removed = one.other->rmdir(root_ino, "d");
      CHECK(error_of(removed) == (moved ? std::nullopt : std::optional(ErrorCode::not_empty)));
    }));
    need(one.fs.rename(one.d, "g", root_ino, "f", RenameMode::replace));
    CHECK(one.is_at(one.fs, root_ino, "f"));
    collect(one.volume.cluster(), one.volume.clock());
    CHECK(inode_object_of(one.volume.cluster(), one.d).has_value() != moved);
  }
}

TEST_CASE("a dead client's move is finished by a collector, also while another uses the file") {
  OneMove one;
  one.mount.client->set_hook(once_on("move entry out", {Fault::Kind::not_applied_and_crash}));
  need(one.move());  // it has moved
  CHECK(one.mount.client->crashed());
  one.volume.clock().advance(std::chrono::minutes(2));
  one.other.client->set_hook(before("insert entry", [&] { collect(one.volume.cluster(), one.volume.clock()); }));
  need(one.other->link(one.f, root_ino, "another"));
  CHECK(one.is_at(*one.other.file_system, one.d, "g"));
  CHECK_FALSE(one.is_at(*one.other.file_system, root_ino, "f"));
}

TEST_CASE("whoever settles the mark of one try takes nothing from the next") {
  OneMove one;
  std::future<Result<EntryReply>> made;
  const auto settle = before("move entry in", [&] {
    one.other.client->set_hook(once_on("clear mark", {Fault::Kind::hold}));
    made = std::async(std::launch::async, [&] {
      return one.other->make_node({}, root_ino, "f", {FileType::regular, 0600, 0, {}});
    });
    CHECK(one.other.client->wait_for_held(1));
  });
  const auto let_go = before("move entry out", [&] {
    one.other.client->release();
    CHECK(made.get().has_value());  // the file has moved: the name is free
  });
  one.mount.client->set_hook([&](const StepInfo& info) {
    settle(info);
    return let_go(info);
  });
  need(one.move());
  CHECK(one.is_at(one.fs, one.d, "g"));
  CHECK(ino_of(one.fs, root_ino, "f") != one.f);
}

TEST_CASE("a moved file points back to its new directory only, once a collector has seen it") {
  OneMove one;
  need(one.move());
  collect(one.volume.cluster(), one.volume.clock());
  const auto object = *inode_object_of(one.volume.cluster(), one.f);
  CHECK_FALSE(object.xattrs.contains(format::xattr::parent));
  std::vector<Ino> parents;
  for (const auto& [key, value] : object.keys) {
    if (const auto pointer = format::parse_back_pointer_key(key)) parents.push_back(pointer->parent);
  }
  CHECK(parents == std::vector{one.d});
}

TEST_CASE("a move that fails leaves no back-pointer to the new directory") {
  OneMove one;
  make_file(one.fs, one.d, "g");
  one.mount.client->set_hook(before("point to directory", [&] { need(one.other->unlink(root_ino, "f")); }));
  CHECK(error_of(one.move()) == ErrorCode::not_found);
  const auto object = inode_object_of(one.volume.cluster(), one.f);
  CHECK((!object || !has_keys(*object, "p/")));
}

TEST_CASE("a move that finds both names on one file by now leaves no back-pointer in the file it was to move") {
  OneMove one;
  need(one.fs.link(one.f, root_ino, "kept"));
  const Ino second = make_file(one.fs, root_ino, "second");
  one.mount.client->set_hook(before("mark entry", [&] {
    need(one.other->rename(root_ino, "second", root_ino, "f", RenameMode::replace));
    need(one.other->link(second, one.d, "g"));
  }));
  need(one.move());
  CHECK(ino_of(one.fs, root_ino, "f") == second);
  const auto object = *inode_object_of(one.volume.cluster(), one.f);
  for (const auto& [key, value] : object.keys) {
    const auto pointer = format::parse_back_pointer_key(key);
    CHECK_FALSE((pointer && pointer->parent == one.d));
  }
}

TEST_CASE("a move that was cancelled too late is no name: the entry is read again") {
  OneMove one;
  one.mount.client->set_hook(once_on("move entry out", {Fault::Kind::not_applied_and_crash}));
  need(one.move());
  bool finished = false;
  // Its owner finishes, and a settler that stood still cancels what has committed long since.
  const auto finish_and_cancel = [&](scripted::Objects& objects) {
    auto& keys = objects.metadata().at(format::inode_object(root_ino)).keys;
    std::erase_if(keys, [](const auto& key) {
      const auto entry = format::parse_entry_key(key.first);
      const auto reverse = format::parse_reverse_key(key.first);
      return (entry && entry->name == "f") || (reverse && reverse->name == "f");
    });
    for (auto& [key, value] : objects.metadata().at(format::inode_object(one.d)).keys) {
      if (format::parse_decision_key(key)) value = encode(format::DecisionRecord{});
    }
  };
  one.other.client->set_hook([&](const StepInfo& info) {
    if (info.kind == StepKind::query && info.object == format::inode_object(one.d) && !std::exchange(finished, true)) {
      one.volume.cluster().with_objects(finish_and_cancel);
    }
    return Fault{};
  });
  CHECK(error_of(one.other->lookup(root_ino, "f")) == ErrorCode::not_found);
  CHECK(finished);
}

TEST_CASE("a damaged decision hides one name, not its directory") {
  OneMove one;
  make_file(one.fs, root_ino, "beside");
  one.mount.client->set_hook(once_on("move entry out", {Fault::Kind::not_applied_and_crash}));
  need(one.move());
  one.volume.cluster().with_objects([&](scripted::Objects& objects) {
    for (auto& [key, value] : objects.metadata().at(format::inode_object(one.d)).keys) {
      if (format::parse_decision_key(key)) value = "nonsense";
    }
  });
  CHECK(names_in(*one.other.file_system, root_ino) == std::vector<std::string>{"beside", "d"});
  CHECK(error_of(one.other->lookup(root_ino, "f")) == ErrorCode::corrupt);
}

TEST_CASE("a move that meets a full pool fails, and loses nothing though its mark cannot be cleared") {
  OneMove one;
  const Ino replaced = make_file(one.fs, one.d, "g");
  bool full = true;
  const auto when_full = [&full](const StepInfo& info) {
    const bool fails = full && (info.step == "move entry in" || info.step == "clear mark");
    return fails ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  };
  one.mount.client->set_hook(when_full);
  one.other.client->set_hook(when_full);
  CHECK(error_of(one.move()) == ErrorCode::no_space);
  for (auto* seen_by : {&one.fs, one.other.file_system.get()}) {
    CHECK(one.is_at(*seen_by, root_ino, "f"));
    CHECK(ino_of(*seen_by, one.d, "g") == replaced);
  }
  CHECK(error_of(one.move()) == ErrorCode::no_space);
  CHECK(error_of(one.other->unlink(root_ino, "f")) == ErrorCode::no_space);
  CHECK(one.is_at(*one.other.file_system, root_ino, "f"));
  CHECK(problems(one.volume.cluster()).empty());
  full = false;
  need(one.move());
  CHECK(one.is_at(*one.other.file_system, one.d, "g"));
  CHECK_FALSE(one.is_at(*one.other.file_system, root_ino, "f"));
  collect(one.volume.cluster(), one.volume.clock());
  CHECK(problems(one.volume.cluster()).empty());
  CHECK(one.is_at(one.fs, one.d, "g"));
}

TEST_CASE("a file is written through while it moves, and keeps its bytes") {
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto d = make_dir(fs, root_ino, "d");
  const auto file = create_file(fs, "f");
  need(write_at(fs, file.handle, 0, "before"));
  mount.client->set_hook(before("move entry in", [&] { need(write_at(fs, file.handle, 6, ", after")); }));
  need(fs.rename(root_ino, "f", d, "g", RenameMode::replace));
  CHECK(need(read_at(fs, open_again(fs, *ino_of(fs, d, "g")), 0, 100)) == "before, after");
}

TEST_CASE("a volume without the feature has no renames across directories") {
  OneMove one;
  one.volume.cluster().with_objects([](scripted::Objects& objects) {
    auto& raw = objects.metadata().at(format::super_object).xattrs.at(format::xattr::super);
    auto super = need(format::decode<format::SuperRecord>(raw));
    super.incompat &= ~format::feature::moves;
    raw = encode(super);
  });
  auto mount = one.volume.mount();
  CHECK(error_of(mount->rename(root_ino, "f", one.d, "g", RenameMode::replace)) == ErrorCode::cross_device);
  CHECK(mount.client->counts().applies == 0);
}
