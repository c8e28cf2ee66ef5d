// SPDX-License-Identifier: LGPL-2.1-or-later
// Names of directories that the kernel keeps, and when it has to ask for them again (docs/NAMES.md section 4).
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <utility>

#include "fs/held_directories.h"
#include "support/catch.h"
#include "support/fake_clock.h"
#include "support/file_calls.h"
#include "support/hooks.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"
#include "survey/inode_facts.h"
#include "txn/namespace_txn.h"

using namespace lccfs;
using namespace lccfs::test;
using std::chrono::seconds;

namespace {

using Names = std::vector<std::string>;

/// What it was told.
class ToldKernel final : public KernelCache {
 public:
  void invalidate_attributes(Ino ino) override {
    const Lock lock(mutex_);
    ++dropped_[ino];
  }
  void invalidate_pages(Ino) override {}
  void raise_size(Ino, std::uint64_t, char) override {}
  void invalidate_page_range(Ino, std::uint64_t, std::uint64_t) override {}
  bool can_keep_names() const override { return can_keep; }
  void expire_name(Ino, const std::string& name) override {
    if (const auto before = std::exchange(before_expiry, nullptr)) before();
    Lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_locked_; });
    expired_.push_back(name);
  }
  void forget_names() override { ++forgotten; }

  Names expired() {
    const Lock lock(mutex_);
    return expired_;
  }
  unsigned dropped(Ino ino) {
    const Lock lock(mutex_);
    return dropped_[ino];
  }
  /// A program has the directory locked.
  void set_locked(bool locked) {
    const Lock lock(mutex_);
    is_locked_ = locked;
    changed_.notify_all();
  }

  bool can_keep = true;
  std::atomic<unsigned> forgotten = 0;
  std::function<void()> before_expiry;  // of the first one

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  Names expired_;
  std::map<Ino, unsigned> dropped_;
  bool is_locked_ = false;
};

FileSystemOptions keeping_names() {
  FileSystemOptions options;
  options.lease_after_changes = 4;
  options.names_behind = true;
  return options;
}

/// A client whose kernel keeps names, with two directories that it holds, and another client.
struct Keeper {
  ToldKernel kernel;
  TestVolume volume;
  Mount visitor = volume.mount();
  Mount holder;
  Ino d, e, sub;

  explicit Keeper(const FileSystemOptions& options = keeping_names()) : holder(volume.mount(options)) {
    fs().set_kernel_cache(&kernel);
    d = make_dir(fs(), root_ino, "d");
    e = make_dir(fs(), root_ino, "e");
    for (const Ino where : {d, e}) need(fs().sync_directory(where));
    need(fs().lookup(root_ino, "d"));  // Super is read anew
    sub = make_dir(fs(), d, "sub");
  }
  ~Keeper() { fs().set_kernel_cache(nullptr); }
  FileSystem& fs() { return *holder.file_system; }
  FileSystem& other() { return *visitor.file_system; }
  bool keeps_sub() { return fs().begin_to_keep(d, "sub", sub, false); }
};

/// It holds two more, one in the other, that it only reads.
struct ReadingKeeper : Keeper {
  Ino read = make_dir(other(), root_ino, "read"), below = make_dir(other(), read, "below");

  ReadingKeeper() {
    for (int i = 0; i < 17; ++i) {
      need(fs().lookup(read, "below"));
      CHECK(error_of(fs().lookup(below, "none")) == ErrorCode::not_found);
    }
  }
};

std::chrono::nanoseconds trust_in(FileSystem& fs, Ino ino) { return need(fs.get_attributes(ino)).attributes_ttl; }

}  // namespace

TEST_CASE("the kernel keeps names of directories in a held one, if it did not know them before") {
  Keeper k;
  CHECK_FALSE(k.fs().begin_to_keep(k.d, "sub", k.sub, true));
  CHECK(k.keeps_sub());
  CHECK_FALSE(k.fs().begin_to_keep(k.d, "missing", k.sub, false));
  CHECK_FALSE(k.fs().begin_to_keep(k.d, "sub", k.e, false));
  CHECK_FALSE(k.fs().begin_to_keep(k.d, ".", k.d, false));
  CHECK_FALSE(k.fs().begin_to_keep(k.sub, "..", k.d, false));
}

TEST_CASE("a listing gives it names of directories that it knew before, until another client comes") {
  Keeper k;
  CHECK_FALSE(k.fs().begin_to_keep_listed(k.d, "missing", k.sub));
  CHECK_FALSE(k.fs().begin_to_keep_listed(k.d, "sub", k.e));
  CHECK_FALSE(k.fs().begin_to_keep_listed(k.d, ".", k.d));
  const auto attributes = k.fs().begin_to_keep_listed(k.d, "sub", k.sub);
  REQUIRE(attributes);
  CHECK(attributes->ino == k.sub);
  need(k.other().lookup(k.d, "sub"));
  CHECK(k.kernel.expired() == Names{"sub"});
  CHECK_FALSE(k.fs().begin_to_keep_listed(k.d, "sub", k.sub));
}

TEST_CASE("where other clients see a change before its answer, a name that the kernel keeps is asked for first") {
  ReadingKeeper k;
  const Ino read = k.read, below = k.below;
  REQUIRE(k.fs().begin_to_keep_listed(read, "below", below));
  const bool is_rmdir = GENERATE(true, false);
  const auto change = [&]() -> Result<> {
    if (is_rmdir) return k.fs().rmdir(read, "below");
    return k.fs().rename(read, "below", read, "renamed", RenameMode::replace);
  };
  CHECK(error_of(change()) == ErrorCode::stale);
  CHECK_FALSE(k.fs().begin_to_keep_listed(read, "below", below));
  CHECK_FALSE(k.fs().begin_to_keep(read, "below", below, true));  // it asks
  need(change());
  CHECK(error_of(k.other().lookup(read, "below")) == ErrorCode::not_found);
  CHECK(k.kernel.forgotten == 0);
}

TEST_CASE("a directory that replaces another one elsewhere is moved once the kernel has asked for both names") {
  ReadingKeeper k;
  const Ino read = k.read, below = k.below;
  REQUIRE(k.keeps_sub());
  REQUIRE(k.fs().begin_to_keep_listed(read, "below", below));
  const auto move = [&] { return k.fs().rename(k.d, "sub", read, "below", RenameMode::replace); };
  CHECK(error_of(move()) == ErrorCode::stale);
  CHECK_FALSE(k.fs().begin_to_keep(k.d, "sub", k.sub, true));
  CHECK_FALSE(k.fs().begin_to_keep(read, "below", below, false));  // the kernel has forgotten it meanwhile
  need(move());
  CHECK(need(k.other().lookup(read, "below")).attributes.ino == k.sub);
}

TEST_CASE("it keeps no name where nothing would make it ask again, or nothing would bring it back here") {
  auto options = keeping_names();
  SECTION("a time-out of none") { options.entry_ttl = std::chrono::nanoseconds(0); }
  SECTION("names are stored first") { options.names_behind = false; }
  SECTION("attributes hold for long") { options.attributes_ttl = std::chrono::hours(1); }
  SECTION("a kernel that cannot be told") {
    Keeper k;
    k.kernel.can_keep = false;
    CHECK_FALSE(k.keeps_sub());
    return;
  }
  Keeper k(options);
  CHECK_FALSE(k.keeps_sub());
}

TEST_CASE("it keeps no name in a directory that others may change, nor of one that they may") {
  Keeper k;
  const Ino theirs = make_dir(k.other(), k.e, "theirs");
  CHECK_FALSE(k.fs().begin_to_keep(k.e, "theirs", theirs, false));
  need(k.other().lookup(k.d, "sub"));
  CHECK_FALSE(k.keeps_sub());
}

TEST_CASE("before another client sees the directory, the kernel is to ask for each name that it keeps there") {
  Keeper k;
  REQUIRE(k.keeps_sub());
  need(k.fs().rename(k.d, "sub", k.d, "renamed", RenameMode::replace));
  const Ino second = make_dir(k.fs(), k.d, "second");
  REQUIRE(k.fs().begin_to_keep(k.d, "second", second, false));
  const Ino removed = make_dir(k.fs(), k.d, "removed");
  REQUIRE(k.fs().begin_to_keep(k.d, "removed", removed, false));
  need(k.fs().rmdir(k.d, "removed"));
  Names at_release;
  k.holder.client->set_hook([&](const StepInfo& step) {
    if (step.step == "release directory lease" && step.object == format::inode_object(k.d)) {
      at_release = k.kernel.expired();
    }
    return Fault{};
  });
  need(k.other().lookup(k.d, "second"));
  std::ranges::sort(at_release);
  CHECK(at_release == Names{"renamed", "second"});
  CHECK(k.kernel.dropped(k.d) > 0);
  CHECK(k.kernel.forgotten == 0);
  k.holder.client->set_hook(nullptr);
}

TEST_CASE("it is to ask before a lease is released for want of use, too") {
  Keeper k;
  REQUIRE(k.keeps_sub());
  k.volume.clock().advance(seconds(11));
  k.fs().tick();
  need(k.other().lookup(k.d, "sub"));  // comes after the release
  CHECK(k.kernel.expired() == Names{"sub"});
  CHECK(k.kernel.forgotten == 0);
}

TEST_CASE("a release that cannot wait for the kernel makes it forget all names, and goes on") {
  Keeper k;
  REQUIRE(k.keeps_sub());
  k.kernel.set_locked(true);
  k.volume.clock().waits_end_at_once = true;
  need(k.other().lookup(k.d, "sub"));
  CHECK(k.kernel.forgotten > 0);
  k.kernel.set_locked(false);
}

TEST_CASE("what lccfs stat shows of a directory takes nothing from its holder, nor names from the kernel") {
  Keeper k;
  REQUIRE(k.keeps_sub());
  need(k.fs().sync_directory(k.d));
  need(survey::read_inode_facts(*k.volume.new_client(), k.d));
  CHECK(k.kernel.forgotten == 0);
  k.holder.client->reset_record();
  make_dir(k.fs(), k.d, "second");
  CHECK(k.holder.client->trace().empty());
}

TEST_CASE("attributes of a directory that others may change are trusted for no time, and dropped before they may") {
  Keeper k;
  REQUIRE(k.keeps_sub());
  CHECK(trust_in(k.fs(), k.sub) > seconds(0));
  need(k.other().lookup(k.d, "sub"));
  static_cast<void>(k.other().lookup(k.sub, "x"));
  CHECK(k.kernel.dropped(k.sub) > 0);
  CHECK(trust_in(k.fs(), k.sub) == seconds(0));
  CHECK(trust_in(k.fs(), k.d) > seconds(0));  // its name was never kept
  k.fs().forget(k.sub);
  CHECK(trust_in(k.fs(), k.sub) > seconds(0));
}

TEST_CASE("a directory whose name the kernel keeps is moved elsewhere once the kernel has asked for that name") {
  Keeper k;
  REQUIRE(k.keeps_sub());
  const auto move = [&k] { return k.fs().rename(k.d, "sub", k.e, "moved", RenameMode::replace); };
  CHECK(move().error().code == ErrorCode::stale);
  CHECK(move().error().code == ErrorCode::stale);
  CHECK_FALSE(k.fs().begin_to_keep(k.d, "sub", k.sub, true));  // it asks
  need(move());
  CHECK(need(k.other().lookup(k.e, "moved")).attributes.ino == k.sub);
  CHECK(k.kernel.forgotten == 0);
}

TEST_CASE("a file, and a directory whose name it does not keep, are moved at once") {
  Keeper k;
  make_file(k.fs(), k.d, "file");
  need(k.fs().rename(k.d, "file", k.e, "file", RenameMode::replace));
  need(k.fs().rename(k.d, "sub", k.e, "sub", RenameMode::replace));
}

TEST_CASE("a client that was fenced makes the kernel forget its names, once") {
  Keeper k;
  REQUIRE(k.keeps_sub());
  need(k.fs().sync_directory(k.d));
  k.holder.client->set_deaf(true);
  k.holder.client->lose_watches();
  k.volume.clock().advance(seconds(61));
  make_file(k.other(), k.d, "new");
  k.holder.client->set_deaf(false);
  CHECK(error_of(k.fs().lookup(k.d, "new")) == ErrorCode::fenced);
  k.fs().tick();
  k.fs().tick();
  CHECK(k.kernel.forgotten == 1);
}

TEST_CASE("a lease that the store has lost shows when attributes are asked for, and the kernel forgets its names") {
  Keeper k;
  REQUIRE(k.keeps_sub());
  need(k.fs().sync_directory(k.d));
  auto without = MetaTxn{format::inode_object(k.d), "lose", {}, {mutation::RemoveXattr{format::xattr::lease}}};
  need(k.visitor.client->apply(std::move(without)));
  k.volume.clock().advance(seconds(6));  // nor does Super's word count
  k.holder.client->set_hook(
      [](const StepInfo& step) { return step.object == format::super_object ? Fault{Fault::Kind::fail} : Fault{}; });
  static_cast<void>(need(k.fs().get_attributes(k.d)));
  CHECK(k.kernel.forgotten > 0);
  k.holder.client->set_hook(nullptr);
}

// ---- the table

namespace {

const Ino p{5}, x{6};
const Token tenure{InstanceId{7}, 1}, later{InstanceId{7}, 2};
const txn::Name name_a(format::VolumeUuid{}, p, "a"), name_b(format::VolumeUuid{}, p, "b");

txn::Entry entry_of_directory() {
  const format::EntryRecord record{x, FileType::directory, tenure};
  return {encode(record), record};
}

struct Table {
  FakeClock clock;
  unsigned told = 0;
  HeldDirectories held{clock, [this](Ino) {
                         ++told;
                         static_cast<void>(held.is_held(p, tenure));  // takes the mutex
                       }};
  Table() {
    REQUIRE(held.begin(p, tenure));
    REQUIRE(held.take_effect(p, tenure, 10));
    held.changed(name_a, entry_of_directory(), 11);
    held.may_write_behind(p, tenure);
    REQUIRE(held.give(name_a, x, tenure));
  }
  /// What is to be expired after that one.
  Names expired_from(const HeldDirectories::KeptName& one) {
    Names names;
    held.expired(p, one);
    for (auto kept = held.kept_by_kernel(p); kept; kept = held.kept_by_kernel(p)) {
      names.push_back(kept->name);
      held.expired(p, *kept);
    }
    std::ranges::sort(names);
    return names;
  }
};

}  // namespace

TEST_CASE("where a kept name comes to be in doubt, or its tenure ends before it was taken back, the kernel is told") {
  Table t;
  SECTION("in doubt") { t.held.doubt(name_a); }
  SECTION("changed, nobody knows how") { t.held.changed(name_a, std::nullopt, 0); }
  SECTION("ended") { t.held.end(p, tenure); }
  SECTION("found to be gone") { CHECK(t.held.end_unless_logged(p)); }
  SECTION("lost") { t.held.lost(p, tenure); }
  SECTION("born anew") { t.held.born(p, later, 11); }
  CHECK(t.told == 1);
}

TEST_CASE("of other names, and once all were taken back, it is not") {
  Table t;
  t.held.doubt(name_b);
  CHECK(t.held.leave(p) == tenure);
  CHECK_FALSE(t.held.give(name_a, x, tenure));
  const auto kept = t.held.kept_by_kernel(p);
  REQUIRE(kept);
  CHECK(kept->name == "a");
  t.held.expired(p, *kept);
  CHECK_FALSE(t.held.kept_by_kernel(p));
  t.held.end(p, tenure);
  CHECK(t.told == 0);
}

TEST_CASE("a kept name that is renamed while it is being expired is expired by its new name, and back again") {
  Table t;
  CHECK(t.held.leave(p) == tenure);
  const auto first = t.held.kept_by_kernel(p);
  REQUIRE(first);
  const std::uint64_t version = GENERATE(12U, 0U);  // 0: a step that was done, nobody knows when
  t.held.changed(name_a, std::nullopt, version);
  t.held.changed(name_b, entry_of_directory(), version);
  CHECK_FALSE(t.held.may_leave(name_b));
  SECTION("to a new one") { CHECK(t.expired_from(*first) == Names{"b"}); }
  SECTION("and back") {
    t.held.changed(name_a, entry_of_directory(), 13);
    CHECK(t.expired_from(*first) == Names{"a", "b"});
  }
  CHECK(t.told == 0);
}

TEST_CASE("a name that is renamed while the kernel is being told is told by its new name, before the lease goes") {
  Keeper k;
  REQUIRE(k.keeps_sub());
  k.kernel.before_expiry = [&k] { need(k.fs().rename(k.d, "sub", k.d, "renamed", RenameMode::replace)); };
  need(k.other().lookup(k.d, "renamed"));
  CHECK(k.kernel.expired() == Names{"sub", "renamed"});
}

TEST_CASE("a directory through which the kernel walks by names that it keeps is not released for want of use") {
  Keeper k;
  REQUIRE(k.keeps_sub());
  for (unsigned i = 0; i < 12; ++i) {
    k.volume.clock().advance(seconds(1));
    need(k.fs().lookup(k.d, "sub"));  // Super is read
    CHECK(k.fs().known_attributes(k.sub).has_value());
    k.fs().tick();
  }
  CHECK(k.keeps_sub());
  need(k.fs().unmount());  // waits for releases, and begins none
  CHECK(k.kernel.dropped(k.sub) == 0);
}
