// SPDX-License-Identifier: LGPL-2.1-or-later
// Names that the kernel keeps, and when it has to forget them (docs/NAMES.md section 4).
#include "fs/kernel_names.h"

#include "format/records.h"
#include "fs/held_directories.h"
#include "support/catch.h"
#include "support/fake_clock.h"
#include "support/file_calls.h"
#include "support/hooks.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"
#include "txn/namespace_txn.h"

using namespace lccfs;
using namespace lccfs::test;
using std::chrono::seconds;

namespace {

constexpr std::chrono::nanoseconds none{0};

struct CountingKernel final : KernelCache {
  void invalidate_attributes(Ino) override {}
  void invalidate_pages(Ino) override {}
  void invalidate_page_range(Ino, std::uint64_t, std::uint64_t) override {}
  bool can_forget_names() const override { return can_forget; }
  void forget_names() override { ++forgotten; }
  bool can_forget = true;
  std::atomic<unsigned> forgotten = 0;
};

FileSystemOptions keeping_names() {
  FileSystemOptions options;
  options.lease_after_changes = 4;
  options.names_behind = true;
  return options;
}

/// A client whose kernel keeps names, with two directories that it holds, and another client.
struct Keeper {
  CountingKernel kernel;
  TestVolume volume;
  Mount visitor = volume.mount();
  Mount holder;
  Ino d, e;

  explicit Keeper(const FileSystemOptions& options = keeping_names()) : holder(volume.mount(options)) {
    fs().set_kernel_cache(&kernel);
    d = make_dir(fs(), root_ino, "d");
    e = make_dir(fs(), root_ino, "e");
    for (const Ino where : {d, e}) need(fs().sync_directory(where));
    need(fs().lookup(root_ino, "d"));  // Super is read anew
  }
  ~Keeper() { fs().set_kernel_cache(nullptr); }
  FileSystem& fs() { return *holder.file_system; }
  FileSystem& other() { return *visitor.file_system; }
  /// For how long the kernel keeps what it is told of the name now.
  std::chrono::nanoseconds kept(Ino parent, const std::string& name) {
    const auto known = fs().known_entry(parent, name);
    return known && *known ? (*known)->entry_ttl : none;
  }
  /// The kernel has a name: whether it forgets that while `work` runs.
  bool forgets(const std::function<void()>& work) {
    REQUIRE(kept(d, "kept") > none);
    const unsigned before = kernel.forgotten;
    work();
    return kernel.forgotten > before;
  }
};

}  // namespace

TEST_CASE("the kernel keeps names of what was made in a held directory, and names that it does not have") {
  Keeper k;
  const auto made = need(k.fs().create({}, k.d, "file", 0644, O_RDWR | O_CREAT)).entry;
  CHECK(made.entry_ttl > none);
  CHECK(need(k.fs().make_node({}, k.d, "sub", {FileType::directory, 0755, 0, ""})).entry_ttl > none);
  CHECK(k.kept(k.d, "file") > none);
  CHECK(k.kept(k.d, "sub") > none);
  const auto missing = k.fs().known_entry(k.d, "missing");
  REQUIRE(missing.has_value());
  CHECK(need(*missing).attributes.ino == Ino{});
  CHECK(need(*missing).entry_ttl > none);
}

TEST_CASE("it keeps them for no longer than Super's word counts") {
  Keeper k;
  make_file(k.fs(), k.d, "file");
  const auto first = k.kept(k.d, "file");
  CHECK(first <= seconds(5));
  k.volume.clock().advance(seconds(1));
  CHECK(k.kept(k.d, "file") <= first - seconds(1));
}

TEST_CASE("it keeps no name where nothing would make it forget, or its time is given, or names are not behind") {
  auto options = keeping_names();
  SECTION("a kernel that cannot forget") {
    Keeper k;
    k.kernel.can_forget = false;
    CHECK(need(k.fs().create({}, k.d, "file", 0644, O_RDWR | O_CREAT)).entry.entry_ttl == none);
    CHECK(k.kept(k.d, "file") == none);
    CHECK(k.fs().known_entry(k.d, "missing")->error().code == ErrorCode::not_found);
    return;
  }
  SECTION("a time-out of none") { options.entry_ttl = none; }
  SECTION("names are stored first") { options.names_behind = false; }
  Keeper k(options);
  make_file(k.fs(), k.d, "file");
  CHECK(need(k.fs().lookup(k.d, "file")).entry_ttl == none);
  CHECK(k.kept(k.d, "file") == none);
}

TEST_CASE("it keeps no name of an inode that others may change") {
  Keeper k;
  make_file(k.other(), root_ino, "theirs");
  for (unsigned i = 0; i < 20; ++i) need(k.fs().lookup(root_ino, "theirs"));
  CHECK(k.kept(root_ino, "theirs") == none);
  const auto file = make_file(k.fs(), k.d, "file");
  need(k.fs().link(file, k.e, "linked"));
  CHECK(k.kept(k.d, "file") == none);
  CHECK(k.kept(k.e, "linked") == none);
}

TEST_CASE("it keeps no name that a move between directories makes, nor one that a listing shows") {
  Keeper k;
  make_file(k.fs(), k.d, "file");
  need(k.fs().rename(k.d, "file", k.e, "moved", RenameMode::replace));
  CHECK(k.kept(k.e, "moved") == none);
  const auto handle = need(k.fs().open_directory(k.d));
  make_file(k.fs(), k.d, "listed");
  const auto listed = need(k.fs().read_directory_plus(handle, 0, [](const DirectoryEntry&) { return true; }));
  for (const auto& one : listed) CHECK((!one.reply || one.reply->entry_ttl == none));
  k.fs().release_directory(handle);
}

TEST_CASE("it forgets them before another client sees the directory") {
  Keeper k;
  make_file(k.fs(), k.d, "kept");
  CHECK(k.forgets([&] { need(k.other().lookup(k.d, "kept")); }));
  CHECK(k.kept(k.d, "kept") == none);
  CHECK(k.kept(k.d, "missing") == none);
}

TEST_CASE("it forgets them before the lease is released for want of use") {
  Keeper k;
  make_file(k.fs(), k.d, "kept");
  CHECK(k.forgets([&] {
    k.volume.clock().advance(seconds(11));
    k.fs().tick();
    need(k.other().lookup(root_ino, "d"));  // comes after the release
  }));
}

TEST_CASE("it forgets a file's names before the file has another one, or moves") {
  Keeper k;
  const auto file = make_file(k.fs(), k.d, "kept");
  // A lookup while the link runs could give it anew: so also after the first step.
  unsigned forgotten_at_commit = 0;
  const unsigned before = k.kernel.forgotten;
  k.holder.client->set_hook([&](const StepInfo& step) {
    if (step.step == "insert entry" || step.step == "move entry in") forgotten_at_commit = k.kernel.forgotten - before;
    return Fault{};
  });
  SECTION("link") {
    CHECK(k.forgets([&] { need(k.fs().link(file, k.e, "linked")); }));
    CHECK(forgotten_at_commit > 0);
  }
  SECTION("move") {
    CHECK(k.forgets([&] { need(k.fs().rename(k.d, "kept", k.e, "moved", RenameMode::replace)); }));
  }
  k.holder.client->set_hook(nullptr);
}

TEST_CASE("it forgets nothing while one client alone makes, renames and removes") {
  Keeper k;
  make_file(k.fs(), k.d, "kept");
  CHECK_FALSE(k.forgets([&] {
    make_file(k.fs(), k.d, "a");
    need(k.fs().rename(k.d, "a", k.d, "b", RenameMode::replace));
    need(k.fs().unlink(k.d, "b"));
    make_dir(k.fs(), k.d, "sub");
    need(k.fs().rmdir(k.d, "sub"));
    need(k.fs().sync_directory(k.d));
  }));
}

TEST_CASE("it forgets them when a batch is lost") {
  Keeper k;
  make_file(k.fs(), k.d, "kept");
  k.holder.client->set_hook(
      [](const StepInfo& step) { return step.step == "store names" ? Fault{Fault::Kind::fail} : Fault{}; });
  CHECK(k.forgets([&] {
    for (unsigned i = 0; i < 12; ++i) static_cast<void>(k.fs().sync_directory(k.d));
  }));
  CHECK(k.kept(k.d, "kept") == none);
  k.holder.client->set_hook(nullptr);
}

// ---- what makes a name doubtful, and by whom it is asked about

TEST_CASE("a name in doubt, a directory that is left, lost or taken anew: the kernel is told, once the mutex is free") {
  FakeClock clock;
  unsigned told = 0;
  HeldDirectories* at = nullptr;
  HeldDirectories held(clock, [&] {
    ++told;
    CHECK_FALSE(at->is_held(Ino{1}, Token{}));  // takes the mutex
  });
  at = &held;
  const Ino p{5};
  const Token tenure{InstanceId{7}, 1}, later{InstanceId{7}, 2};
  const txn::Name name(format::VolumeUuid{}, p, "a");
  REQUIRE(held.begin(p, tenure));
  REQUIRE(held.take_effect(p, tenure, 10));
  CHECK(told == 0);
  held.doubt(name);
  CHECK(told == 1);
  held.changed(name, std::nullopt, 0);
  CHECK(told == 2);
  const std::array<const txn::Name*, 1> names{&name};
  held.hide(names);
  CHECK(told == 3);
  held.show(names);
  held.may_write_behind(p, tenure);
  held.hide(names);  // others ask first
  CHECK(told == 3);
  held.show(names);
  SECTION("left") { CHECK(held.leave(p) == tenure); }
  SECTION("ended") { held.end(p, tenure); }
  SECTION("found to be gone") { CHECK(held.end(p)); }
  SECTION("lost") { held.lost(p, tenure); }
  SECTION("born anew") { held.born(p, later, 11); }
  CHECK(told == 4);
}

TEST_CASE("the kernel is told once of whatever it was given before") {
  CountingKernel kernel;
  KernelView view;
  FakeClock clock;
  KernelNames names(view, clock);
  CHECK_FALSE(names.begin_to_give());
  view.set(&kernel);
  names.forget();
  CHECK(kernel.forgotten == 0);
  CHECK(names.begin_to_give());
  CHECK(names.begin_to_give());
  names.forget();
  names.forget();
  CHECK(kernel.forgotten == 1);
  CHECK(names.begin_to_give());
  kernel.can_forget = false;  // but it had some
  names.forget();
  CHECK(kernel.forgotten == 2);
  view.set(nullptr);
}

TEST_CASE("where to forget would unmount something, nothing is forgotten that has long ended") {
  CountingKernel kernel;
  KernelView view;
  view.set(&kernel);
  FakeClock clock;
  KernelNames names(view, clock);
  CHECK(names.begin_to_give());
  kernel.can_forget = false;
  clock.advance(seconds(16));
  names.forget();
  CHECK(kernel.forgotten == 0);
  kernel.can_forget = true;
  CHECK(names.begin_to_give());
  clock.advance(seconds(16));  // as far as this clock knows
  names.forget();
  CHECK(kernel.forgotten == 1);
  view.set(nullptr);
}
