// SPDX-License-Identifier: LGPL-2.1-or-later
// Two clients on the same names: A has looked them up, or is in the middle of its steps, when B changes them.
#include <fcntl.h>

#include "support/catch.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;
using Kind = format::StateRecord::Kind;

namespace {

struct TwoClients {
  TestVolume volume;
  Mount a = volume.mount();
  Mount b = volume.mount();

  ~TwoClients() { CHECK(problems(volume.cluster()).empty()); }

  Kind state(Ino ino) { return state_of(*inode_object_of(volume.cluster(), ino)); }
  bool decisions_in(Ino ino) { return has_keys(*inode_object_of(volume.cluster(), ino), "x/"); }
  std::size_t inode_objects() {
    std::size_t count = 0;
    volume.cluster().with_objects([&](scripted::Objects& objects) {
      for (const auto& [name, object] : objects.metadata()) count += name.starts_with("Inode.") ? 1 : 0;
    });
    return count;
  }
  std::size_t steps_of_a(const std::string& step) {
    const auto trace = a.client->trace();
    return static_cast<std::size_t>(
        std::ranges::count_if(trace, [&](const std::string& line) { return line.starts_with(step + " "); }));
  }
};

Result<EntryReply> mkdir(Mount& mount, Ino parent, const std::string& name) {
  return mount->make_node({}, parent, name, {FileType::directory, 0755, 0, {}});
}
Result<EntryReply> mknod(Mount& mount, Ino parent, const std::string& name) {
  return mount->make_node({}, parent, name, {FileType::regular, 0644, 0, {}});
}

}  // namespace

// ---- what A remembers is old

TEST_CASE("unlink and rename of a name that another has taken away find nothing") {
  TwoClients two;
  make_file(*two.a.file_system, root_ino, "f");
  need(two.b->unlink(root_ino, "f"));
  SECTION("unlink") { CHECK(error_of(two.a->unlink(root_ino, "f")) == ErrorCode::not_found); }
  SECTION("rename") {
    CHECK(error_of(two.a->rename(root_ino, "f", root_ino, "g", RenameMode::replace)) == ErrorCode::not_found);
  }
  SECTION("exchange") {
    make_file(*two.a.file_system, root_ino, "g");
    CHECK(error_of(two.a->rename(root_ino, "g", root_ino, "f", RenameMode::exchange)) == ErrorCode::not_found);
  }
}

TEST_CASE("unlink takes the file that has the name now") {
  TwoClients two;
  const auto first = make_file(*two.a.file_system, root_ino, "f");
  need(two.b->unlink(root_ino, "f"));
  const auto second = make_file(*two.b.file_system, root_ino, "f");
  need(two.a->unlink(root_ino, "f"));
  CHECK(names_in(*two.b.file_system, root_ino).empty());
  for (const auto ino : {first, second}) {
    CHECK(has_keys(*inode_object_of(two.volume.cluster(), root_ino), "d/" + std::to_string(ino.value) + "/"));
  }
}

TEST_CASE("a name changes its type: unlink and rmdir answer for what is there now") {
  TwoClients two;
  make_file(*two.a.file_system, root_ino, "x");
  make_dir(*two.a.file_system, root_ino, "y");
  need(two.b->unlink(root_ino, "x"));
  need(two.b->rmdir(root_ino, "y"));
  make_dir(*two.b.file_system, root_ino, "x");
  make_file(*two.b.file_system, root_ino, "y");
  CHECK(error_of(two.a->unlink(root_ino, "x")) == ErrorCode::is_directory);
  CHECK(error_of(two.a->rmdir(root_ino, "y")) == ErrorCode::not_directory);
  need(two.a->rmdir(root_ino, "x"));
  need(two.a->unlink(root_ino, "y"));
}

TEST_CASE("create, mkdir and symlink lose to one who came first, and leave no inode behind") {
  TwoClients two;
  const auto race = [&](const std::function<std::optional<ErrorCode>()>& act) {
    CHECK(error_of(two.a->lookup(root_ino, "n")) == ErrorCode::not_found);
    make_file(*two.b.file_system, root_ino, "n");
    const auto before = two.inode_objects();
    CHECK(act() == ErrorCode::exists);
    CHECK(two.inode_objects() == before);
    need(two.b->unlink(root_ino, "n"));
  };
  race([&] { return error_of(two.a->create({}, root_ino, "n", 0644, O_RDWR | O_EXCL)); });
  race([&] { return error_of(mkdir(two.a, root_ino, "n")); });
  race([&] { return error_of(two.a->make_node({}, root_ino, "n", {FileType::symlink, 0, 0, "to"})); });
}

TEST_CASE("create without O_EXCL opens what another has just made") {
  TwoClients two;
  CHECK(error_of(two.a->lookup(root_ino, "n")) == ErrorCode::not_found);
  const auto theirs = make_file(*two.b.file_system, root_ino, "n");
  const auto opened = need(two.a->create({}, root_ino, "n", 0644, O_RDWR | O_CREAT));
  CHECK(opened.entry.attributes.ino == theirs);
  need(two.a->flush(opened.open.handle));
  two.a->release(opened.open.handle);
}

TEST_CASE("create without O_EXCL sends others to the kernel's checks, and cuts nothing that is not theirs") {
  TwoClients two;
  const auto theirs = make_file(*two.b.file_system, root_ino, "n");
  const auto secret = open_again(*two.b.file_system, theirs, O_RDWR);
  need(write_at(*two.b.file_system, secret, 0, "secret"));
  need(two.b->fsync(secret, false));
  const Caller root{0, 0, 0}, user{1000, 1000, 0};
  const auto create = [&](const Caller& caller, int flags) {
    const auto opened = two.a->create(caller, root_ino, "n", 0600, flags);
    if (opened) close_file(*two.a.file_system, opened->open.handle);
    return error_of(opened);
  };
  const auto belongs_to_user = [&](std::uint32_t mode) {
    SetAttributes changes;
    changes.uid = 1000;
    changes.mode = mode;
    need(two.b->set_attributes(root, theirs, changes));
  };
  for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_TRUNC}) {
    CHECK(create(user, flags) == ErrorCode::stale);
  }
  CHECK(need(two.a->lookup(root_ino, "n")).attributes.size_bytes == 6);
  CHECK_FALSE(create(root, O_RDWR));
  belongs_to_user(0400);
  CHECK(create(root, O_RDONLY) == ErrorCode::stale);  // it may be a root without capabilities
  CHECK_FALSE(create(user, O_RDONLY));
  for (const int flags : {O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC}) CHECK(create(user, flags) == ErrorCode::stale);
  belongs_to_user(0200);
  CHECK(create(user, O_RDWR) == ErrorCode::stale);
  CHECK_FALSE(create(user, O_WRONLY));
}

TEST_CASE("a name that looks taken from memory, but is free, is not refused") {
  TwoClients two;
  make_file(*two.a.file_system, root_ino, "n");
  need(two.b->unlink(root_ino, "n"));
  CHECK(mknod(two.a, root_ino, "n"));
  make_file(*two.a.file_system, root_ino, "m");
  need(two.b->unlink(root_ino, "n"));
  need(two.a->rename(root_ino, "m", root_ino, "n", RenameMode::no_replace));
}

TEST_CASE("a directory that looked empty is not removed once something is in it") {
  TwoClients two;
  const auto d = make_dir(*two.a.file_system, root_ino, "d");
  const auto f = make_file(*two.b.file_system, d, "f");
  CHECK(error_of(two.a->rmdir(root_ino, "d")) == ErrorCode::not_empty);
  make_dir(*two.a.file_system, root_ino, "e");
  CHECK(error_of(two.a->rename(root_ino, "e", root_ino, "d", RenameMode::replace)) == ErrorCode::not_empty);
  CHECK(ino_of(*two.a.file_system, d, "f") == f);
  CHECK(two.state(d) == Kind::live);
}

TEST_CASE("two clients make subdirectories in turn: the count is right, and both see it") {
  TwoClients two;
  for (int i = 0; i < 5; ++i) {
    make_dir(*two.a.file_system, root_ino, "a" + std::to_string(i));
    make_dir(*two.b.file_system, root_ino, "b" + std::to_string(i));
  }
  need(two.a->rmdir(root_ino, "b0"));
  need(two.b->rmdir(root_ino, "a0"));
  two.volume.clock().advance(std::chrono::seconds(2));
  CHECK(need(two.a->get_attributes(root_ino)).attributes.nlink == 10);
  CHECK(need(two.b->get_attributes(root_ino)).attributes.nlink == 10);
}

TEST_CASE("a rename over a name that another has filled replaces what is there now") {
  TwoClients two;
  const auto a = make_file(*two.a.file_system, root_ino, "a");
  CHECK(error_of(two.a->lookup(root_ino, "b")) == ErrorCode::not_found);
  const auto b = make_file(*two.b.file_system, root_ino, "b");
  need(two.a->rename(root_ino, "a", root_ino, "b", RenameMode::replace));
  CHECK(ino_of(*two.b.file_system, root_ino, "b") == a);
  CHECK(has_keys(*inode_object_of(two.volume.cluster(), root_ino), "d/" + std::to_string(b.value) + "/"));
}

TEST_CASE("the same rename by two clients happens once") {
  TwoClients two;
  const auto x = make_file(*two.a.file_system, root_ino, "a");
  need(two.b->lookup(root_ino, "a"));
  need(two.a->rename(root_ino, "a", root_ino, "b", RenameMode::replace));
  CHECK(error_of(two.b->rename(root_ino, "a", root_ino, "b", RenameMode::replace)) == ErrorCode::not_found);
  CHECK(ino_of(*two.b.file_system, root_ino, "b") == x);
}

// ---- in the middle of A's steps

TEST_CASE("a lookup whose inode dies under it reads the name again") {
  TwoClients two;
  const auto d = make_dir(*two.b.file_system, root_ino, "d");
  Ino other;
  two.a.client->set_hook(before("query", [] {}));
  bool first = true;
  two.a.client->set_hook([&](const StepInfo& info) {
    if (info.object == format::inode_object(d) && std::exchange(first, false)) {
      need(two.b->rmdir(root_ino, "d"));
      two.volume.cluster().with_objects([&](scripted::Objects& objects) {
        objects.metadata().at(info.object).xattrs[format::xattr::state] =
            encode(format::StateRecord{Kind::dead, {}, {}, {}});
      });
      other = make_file(*two.b.file_system, root_ino, "d");
    }
    return Fault{};
  });
  CHECK(need(two.a->lookup(root_ino, "d")).attributes.ino == other);
}

TEST_CASE("who creates in a directory that is being removed cancels that, and rmdir finds it not empty") {
  TwoClients two;
  const auto d = make_dir(*two.a.file_system, root_ino, "d");
  Ino made;
  two.a.client->set_hook(before("remove entry", [&] {
    CHECK(two.state(d) == Kind::sealed);
    CHECK(ino_of(*two.b.file_system, root_ino, "d") == d);
    CHECK(names_in(*two.b.file_system, d).empty());
    made = make_file(*two.b.file_system, d, "f");
  }));
  CHECK(error_of(two.a->rmdir(root_ino, "d")) == ErrorCode::not_empty);
  CHECK(ino_of(*two.a.file_system, d, "f") == made);
  CHECK(two.state(d) == Kind::live);
  CHECK_FALSE(two.decisions_in(root_ino));
}

TEST_CASE("who creates and unlinks in a directory that is being removed only delays it") {
  TwoClients two;
  const auto d = make_dir(*two.a.file_system, root_ino, "d");
  two.a.client->set_hook(before("remove entry", [&] {
    make_file(*two.b.file_system, d, "f");
    need(two.b->unlink(d, "f"));
  }));
  need(two.a->rmdir(root_ino, "d"));
  CHECK(two.steps_of_a("seal") == 2);
  CHECK_FALSE(two.decisions_in(root_ino));
  CHECK(names_in(*two.b.file_system, root_ino).empty());
}

TEST_CASE("who creates in a directory between the read and the seal wins") {
  TwoClients two;
  const auto d = make_dir(*two.a.file_system, root_ino, "d");
  two.a.client->set_hook(before("seal", [&] { make_file(*two.b.file_system, d, "f"); }));
  CHECK(error_of(two.a->rmdir(root_ino, "d")) == ErrorCode::not_empty);
  CHECK(two.state(d) == Kind::live);
}

TEST_CASE("who creates in a directory that has just gone is told so, and leaves nothing") {
  TwoClients two;
  const auto d = make_dir(*two.a.file_system, root_ino, "d");
  two.b.client->set_hook(before("insert entry", [&] { need(two.a->rmdir(root_ino, "d")); }));
  const auto before_it = two.inode_objects();
  CHECK(error_of(mknod(two.b, d, "f")) == ErrorCode::stale);
  CHECK(two.inode_objects() == before_it);
}

TEST_CASE("a directory renamed while it is being removed stays, and rmdir finds no such name") {
  TwoClients two;
  const auto d = make_dir(*two.a.file_system, root_ino, "d");
  two.a.client->set_hook(
      before("remove entry", [&] { need(two.b->rename(root_ino, "d", root_ino, "e", RenameMode::replace)); }));
  CHECK(error_of(two.a->rmdir(root_ino, "d")) == ErrorCode::not_found);
  CHECK(two.state(d) == Kind::live);
  CHECK(ino_of(*two.a.file_system, root_ino, "e") == d);
}

TEST_CASE("a directory renamed away and back while it is being removed is sealed anew") {
  TwoClients two;
  make_dir(*two.a.file_system, root_ino, "d");
  two.a.client->set_hook(before("remove entry", [&] {
    need(two.b->rename(root_ino, "d", root_ino, "e", RenameMode::replace));
    need(two.b->rename(root_ino, "e", root_ino, "d", RenameMode::replace));
  }));
  need(two.a->rmdir(root_ino, "d"));
  CHECK(two.steps_of_a("seal") == 2);
}

TEST_CASE("a sibling made or removed meanwhile costs rmdir no new seal") {
  TwoClients two;
  make_dir(*two.a.file_system, root_ino, "d");
  two.a.client->reset_record();
  two.a.client->set_hook(before("remove entry", [&] { make_dir(*two.b.file_system, root_ino, "sibling"); }));
  need(two.a->rmdir(root_ino, "d"));
  CHECK(two.steps_of_a("seal") == 1);
  CHECK(two.steps_of_a("remove entry") == 2);
  CHECK(two.steps_of_a("log queue items") == 1);
}

TEST_CASE("two clients remove the same directory: one does") {
  TwoClients two;
  const auto d = make_dir(*two.a.file_system, root_ino, "d");
  std::optional<ErrorCode> other = ErrorCode::io;
  two.a.client->set_hook(before("remove entry", [&] { other = error_of(two.b->rmdir(root_ino, "d")); }));
  CHECK(error_of(two.a->rmdir(root_ino, "d")) == ErrorCode::not_found);
  CHECK(other == std::nullopt);
  CHECK(two.state(d) == Kind::sealed);
  CHECK(error_of(mknod(two.a, d, "f")) == ErrorCode::stale);
}

TEST_CASE("ENOTEMPTY is not answered for a directory that the name no longer means") {
  TwoClients two;
  const auto full = make_dir(*two.a.file_system, root_ino, "d");
  make_file(*two.b.file_system, full, "f");
  two.volume.clock().advance(std::chrono::seconds(2));
  need(two.a->lookup(root_ino, "d"));
  bool first = true;
  two.a.client->set_hook([&](const StepInfo& info) {
    if (info.object == format::inode_object(full) && std::exchange(first, false)) {
      need(two.b->rename(root_ino, "d", root_ino, "away", RenameMode::replace));
      make_dir(*two.b.file_system, root_ino, "d");
    }
    return Fault{};
  });
  need(two.a->rmdir(root_ino, "d"));
  CHECK(names_in(*two.b.file_system, root_ino) == std::vector<std::string>{"away"});
}

TEST_CASE("who fills the directory that a rename replaces wins, and it lives") {
  TwoClients two;
  const auto source = make_dir(*two.a.file_system, root_ino, "source");
  const auto target = make_dir(*two.a.file_system, root_ino, "target");
  two.a.client->set_hook(before("rename entries", [&] { make_file(*two.b.file_system, target, "f"); }));
  CHECK(error_of(two.a->rename(root_ino, "source", root_ino, "target", RenameMode::replace)) == ErrorCode::not_empty);
  CHECK(two.state(target) == Kind::live);
  CHECK(ino_of(*two.b.file_system, root_ino, "source") == source);
  CHECK_FALSE(two.decisions_in(root_ino));
}

TEST_CASE("a rename that loses its source gives the directory back that it was to replace") {
  TwoClients two;
  make_dir(*two.a.file_system, root_ino, "source");
  const auto target = make_dir(*two.a.file_system, root_ino, "target");
  two.a.client->set_hook(before("rename entries", [&] { need(two.b->rmdir(root_ino, "source")); }));
  CHECK(error_of(two.a->rename(root_ino, "source", root_ino, "target", RenameMode::replace)) == ErrorCode::not_found);
  CHECK(two.state(target) == Kind::live);
}

TEST_CASE("a cancelled seal that loses its race with the commit changes nothing") {
  TwoClients two;
  const auto d = make_dir(*two.a.file_system, root_ino, "d");
  bool removed = false;
  two.a.client->set_hook(before("remove entry", [&] {
    // B settles what A has sealed, but A's commit comes first.
    two.b.client->set_hook(before("cancel seal", [&] {
      two.a.client->set_hook({});
      removed = true;
    }));
  }));
  need(two.a->rmdir(root_ino, "d"));
  CHECK(error_of(mknod(two.b, d, "f")) == ErrorCode::stale);
  CHECK_FALSE(removed);
}

// ---- after a crash of A

namespace {

/// A stops for good at a step of its rmdir of "d" in the root.
struct Crashed : TwoClients {
  explicit Crashed(const std::string& step, Fault::Kind kind) {
    d = make_dir(*a.file_system, root_ino, "d");
    a.client->set_hook(once_on(step, {kind, ErrorCode::io}));
    CHECK_FALSE(a->rmdir(root_ino, "d"));
  }
  Ino d;
};

}  // namespace

TEST_CASE("a directory whose remover crashed before the commit exists, is empty, and can be used or removed") {
  Crashed two("remove entry", Fault::Kind::not_applied_and_crash);
  CHECK(two.state(two.d) == Kind::sealed);
  CHECK(ino_of(*two.b.file_system, root_ino, "d") == two.d);
  CHECK(names_in(*two.b.file_system, two.d).empty());
  SECTION("create in it") {
    make_file(*two.b.file_system, two.d, "f");
    CHECK(names_in(*two.b.file_system, two.d).size() == 1);
  }
  SECTION("mkdir in it") { make_dir(*two.b.file_system, two.d, "sub"); }
  SECTION("rmdir") {
    need(two.b->rmdir(root_ino, "d"));
    CHECK(names_in(*two.b.file_system, root_ino).empty());
    return;
  }
  SECTION("replace it") {
    const auto other = make_dir(*two.b.file_system, root_ino, "other");
    need(two.b->rename(root_ino, "other", root_ino, "d", RenameMode::replace));
    CHECK(ino_of(*two.b.file_system, root_ino, "d") == other);
    return;
  }
  SECTION("rename it, then create in it") {
    need(two.b->rename(root_ino, "d", root_ino, "e", RenameMode::replace));
    make_file(*two.b.file_system, two.d, "f");
  }
  CHECK(two.state(two.d) == Kind::live);
  CHECK(two.decisions_in(root_ino));  // the tombstone stays: the crashed commit may still arrive
}

TEST_CASE("the commit of a crashed rmdir that arrives after another has settled its seal changes nothing") {
  Crashed two("remove entry", Fault::Kind::crash_and_land_later);
  make_file(*two.b.file_system, two.d, "f");
  CHECK(two.a.client->land_late_steps() <= 1);
  CHECK(ino_of(*two.b.file_system, root_ino, "d") == two.d);
  CHECK(two.state(two.d) == Kind::live);
}

TEST_CASE("a directory whose remover crashed after the commit is gone, also for who still holds it") {
  Crashed two("remove entry", Fault::Kind::applied_and_crash);
  CHECK(names_in(*two.b.file_system, root_ino).empty());
  CHECK(error_of(mknod(two.b, two.d, "f")) == ErrorCode::stale);
}

TEST_CASE("a seal whose parent is gone: a directory with a name lives on, one without is dead") {
  TwoClients two;
  const auto named = make_dir(*two.a.file_system, root_ino, "named");
  const auto nameless = make_dir(*two.a.file_system, root_ino, "nameless");
  need(two.a->rmdir(root_ino, "nameless"));
  const auto sealed = encode(format::StateRecord{Kind::sealed, Token{InstanceId{99}, 1}, Ino{999'999}, "name"});
  two.volume.cluster().with_objects([&](scripted::Objects& objects) {
    for (const auto ino : {named, nameless}) {
      objects.metadata().at(format::inode_object(ino)).xattrs[format::xattr::state] = sealed;
    }
  });
  make_file(*two.b.file_system, named, "f");
  CHECK(error_of(mknod(two.b, nameless, "f")) == ErrorCode::stale);
  CHECK(two.state(named) == Kind::live);
  CHECK(two.state(nameless) == Kind::dead);
}

// ---- steps that run twice, lose their answers, or fail

namespace {

/// A volume with names for every operation, and the operation.
struct Operation {
  std::string what;
  std::function<Result<>(Mount&)> act;
};

Result<> without_value(const Result<EntryReply>& reply) {
  return reply ? Result<>{} : Result<>(std::unexpected(reply.error()));
}

std::vector<Operation> operations() {
  const auto rename = [](const std::string& from, const std::string& to, RenameMode mode) {
    return [=](Mount& mount) { return mount->rename(root_ino, from, root_ino, to, mode); };
  };
  return {
      {"create",
       [](Mount& mount) -> Result<> {
         LCCFS_TRY(const auto made, mount->create({}, root_ino, "new", 0644, O_RDWR | O_EXCL));
         mount->release(made.open.handle);
         return {};
       }},
      {"mkdir", [](Mount& mount) { return without_value(mkdir(mount, root_ino, "new")); }},
      {"unlink", [](Mount& mount) { return mount->unlink(root_ino, "f"); }},
      {"rmdir", [](Mount& mount) { return mount->rmdir(root_ino, "d"); }},
      {"rename", rename("f", "new", RenameMode::no_replace)},
      {"rename over a file", rename("f", "g", RenameMode::replace)},
      {"rename over a directory", rename("d", "e", RenameMode::replace)},
      {"exchange", rename("f", "d", RenameMode::exchange)},
  };
}

struct OneClient {
  TestVolume volume;
  Mount mount;
  OneClient() : mount(volume.mount()) {
    for (const std::string name : {"f", "g"}) make_file(*mount.file_system, root_ino, name);
    for (const std::string name : {"d", "e"}) make_dir(*mount.file_system, root_ino, name);
    mount.client->reset_record();
  }
};

}  // namespace

TEST_CASE("every operation succeeds though any one of its steps runs twice or loses its answer") {
  for (const auto& operation : operations()) {
    for (const auto kind :
         {Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied}) {
      for (unsigned n = 0;; ++n) {
        OneClient one;
        const NthMutation fault(n, {kind, ErrorCode::io});
        one.mount.client->set_hook(fault);
        INFO(operation.what << ", step " << n << ": " << describe(kind));
        const auto done = operation.act(one.mount);
        REQUIRE(done.has_value());
        REQUIRE(problems(one.volume.cluster()).empty());
        if (!fault.reached()) break;
      }
    }
  }
}

TEST_CASE("an operation that meets a full store has not happened, and nothing is left sealed or unnamed") {
  for (const auto& operation : operations()) {
    const auto names_before = names_in(*OneClient().mount.file_system, root_ino);
    for (unsigned n = 0;; ++n) {
      OneClient one;
      std::size_t objects_before = 0, objects_after = 0;
      one.volume.cluster().with_objects([&](scripted::Objects& all) { objects_before = all.metadata().size(); });
      const NthMutation fault(n, {Fault::Kind::fail, ErrorCode::no_space});
      one.mount.client->set_hook(fault);
      INFO(operation.what << ", step " << n);
      const auto done = operation.act(one.mount);
      one.mount.client->set_hook({});
      REQUIRE(problems(one.volume.cluster()).empty());
      if (done) break;  // what fails after the commit is nobody's business
      REQUIRE(done.error().code == ErrorCode::no_space);
      CHECK(names_in(*one.mount.file_system, root_ino) == names_before);
      one.volume.cluster().with_objects([&](scripted::Objects& all) { objects_after = all.metadata().size(); });
      CHECK(objects_after == objects_before);
    }
  }
}
