// SPDX-License-Identifier: LGPL-2.1-or-later
// Directories that are held here: when their leases are taken, what is answered from memory, and when no more.
#include <algorithm>
#include <atomic>
#include <ctime>
#include <future>
#include <thread>

#include "fs/held_directories.h"
#include "support/catch.h"
#include "support/fake_clock.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

FileSystemOptions holding(unsigned after_changes = 4) {
  FileSystemOptions options;
  options.lease_after_changes = after_changes;
  return options;
}

std::optional<Token> lease_of(ScriptedCluster& cluster, Ino directory) {
  const auto object = inode_object_of(cluster, directory);
  const auto lease = object->xattrs.find(format::xattr::lease);
  if (lease == object->xattrs.end()) return std::nullopt;
  return need(format::decode<format::DirectoryLeaseRecord>(lease->second)).token;
}

/// A client that holds directories, and one that never does.
struct Two {
  TestVolume volume;
  Mount visitor = volume.mount();
  Mount holder = volume.mount(holding());

  FileSystem& fs() { return *holder.file_system; }
  FileSystem& other() { return *visitor.file_system; }
  bool is_held(Ino directory) { return lease_of(volume.cluster(), directory).has_value(); }
  /// One of the visitor's, held by the holder.
  Ino held_directory() {
    const auto directory = make_dir(other(), root_ino, "d");
    for (const char* name : {"1", "2", "3", "4"}) make_file(fs(), directory, name);
    REQUIRE(is_held(directory));
    need(fs().lookup(directory, "1"));  // its attributes and names are read under the lease
    holder.client->reset_record();
    return directory;
  }
  ~Two() { CHECK(problems(volume.cluster()).empty()); }
};

constexpr Ino directory{70};
constexpr Token first{InstanceId{7}, 1}, second{InstanceId{7}, 2};

txn::Name name_of(const char* text) { return {format::VolumeUuid{}, directory, text}; }
txn::Entry entry_of(Ino ino) {
  const format::EntryRecord record{ino, FileType::regular, {InstanceId{7}, ino.value}};
  return {encode(record), record};
}
/// What is known of that name: nothing, that it is missing (0), or its inode.
std::optional<Ino> known(HeldDirectories& held, const txn::Name& name) {
  const auto tenure = held.tenure_of(directory);
  const auto found = tenure ? held.find({&name}, *tenure) : std::nullopt;
  if (!found) return std::nullopt;
  return found->front() ? found->front()->record.ino : Ino{};
}
HeldDirectories::Ticket read_begins(HeldDirectories& held) { return held.begin_read(directory).value(); }

}  // namespace

TEST_CASE("of a name what the newest version of its directory shows counts, whatever comes in first") {
  FakeClock clock;
  HeldDirectories held(clock);
  held.born(directory, first, 10);
  const auto name = name_of("a");
  const auto read = read_begins(held);
  held.changed(name, entry_of(Ino{5}), 13);
  held.changed(name, std::nullopt, 12);
  held.keep(read, name.key, std::nullopt, 11);
  CHECK(known(held, name) == Ino{5});
  held.keep(read_begins(held), name.key, std::nullopt, 14);
  CHECK(known(held, name) == Ino{});
}

TEST_CASE("beyond its memory it forgets the names of the directory that was not used for longest, and no others") {
  FakeClock clock;
  HeldDirectories held(
      clock, [](Ino) {}, 800 << 10);
  constexpr Ino other{71};
  const auto name_in = [](Ino in, int number) {
    return txn::Name{format::VolumeUuid{}, in, "name " + std::to_string(number)};
  };
  const auto fill = [&](Ino in, int names) {
    held.was_used(in);
    for (int i = 0; i < names; ++i) {
      const auto name = name_in(in, i);
      held.keep(*held.begin_read(in), name.key, entry_of(Ino{100 + static_cast<std::uint64_t>(i)}), 11);
    }
  };
  const auto known_in = [&](Ino in, Token tenure) {
    int found = 0;
    for (int i = 0; i < 2000; ++i) {
      const auto name = name_in(in, i);
      const auto known = held.find({&name}, tenure);
      found += known && known->front() ? 1 : 0;
    }
    return found;
  };
  REQUIRE((held.begin(directory, first) && held.take_effect(directory, first, 10)));
  REQUIRE((held.begin(other, second) && held.take_effect(other, second, 10)));
  fill(directory, 1000);
  fill(other, 1000);
  CHECK(known_in(other, second) == 1000);
  CHECK(known_in(directory, first) == 1000);  // used last
  fill(other, 2000);
  CHECK(known_in(directory, first) == 0);
  CHECK(known_in(other, second) == 2000);
  held.end_unless_logged(other);
  fill(directory, 2000);
  CHECK(known_in(directory, first) == 2000);
}

TEST_CASE(
    "a read is no answer if a name that was not stored when it began was stored since, and is not known any more") {
  FakeClock clock;
  HeldDirectories held(
      clock, [](Ino) {}, 100 << 10);
  constexpr Ino other{71};
  const auto name = name_of("a");
  held.born(directory, first, 10);
  held.may_write_behind(directory, first);
  const auto before = held.begin_read_names(directory).value();
  const HeldDirectories::Known none;
  const std::vector<HeldDirectories::Change> made{{name, none, entry_of(Ino{5})}};
  REQUIRE(held.change({directory, first, made}, [] { return 1; }));
  const auto read = held.begin_read_names(directory).value();  // shows no name, at version 10
  SECTION("its room was needed") {
    held.stored(directory, first, {{name.key}}, 1, 11);
    REQUIRE(held.changed_since(10, read, name.key));
    CHECK(held.still_knows(read));
    REQUIRE((held.begin(other, second) && held.take_effect(other, second, 10)));
    for (int i = 0; i < 1000; ++i) {
      const txn::Name others{format::VolumeUuid{}, other, "name " + std::to_string(i)};
      held.keep(*held.begin_read(other), others.key, entry_of(Ino{6}), 11);
    }
  }
  SECTION("the answer was lost") { held.stored(directory, first, {{name.key}}, 1, 0); }
  REQUIRE_FALSE(held.changed_since(10, read, name.key));
  CHECK_FALSE(held.still_knows(read));
  CHECK(held.still_knows(before));  // the name is newer than that read
  CHECK(held.still_knows(held.begin_read_names(directory).value()));
}

// A minute of the processor, where each of them is looked at for each name.
TEST_CASE("directories whose names were forgotten cost nothing when others are") {
  FakeClock clock;
  HeldDirectories held(
      clock, [](Ino) {}, 100 << 10);
  const auto keep = [&held](Ino in, int number) {
    const txn::Name name{format::VolumeUuid{}, in, "name " + std::to_string(number)};
    held.keep(*held.begin_read(in), name.key, entry_of(Ino{5}), 11);
    const auto known = held.find({&name}, first);
    return known && known->front();
  };
  const auto begun = std::clock();
  constexpr std::uint64_t directories = 50'000;
  for (std::uint64_t i = 0; i < directories; ++i) {
    REQUIRE((held.begin(Ino{100 + i}, first) && held.take_effect(Ino{100 + i}, first, 10)));
    REQUIRE(keep(Ino{100 + i}, 0));
  }
  int kept = 0;
  for (int i = 0; i < 100'000; ++i) kept += keep(Ino{100}, i) ? 1 : 0;
  CHECK(kept > 99'000);
  CHECK(keep(Ino{101}, 0));
  CHECK((std::clock() - begun) / CLOCKS_PER_SEC < 10);
}

TEST_CASE("a step that came before the lease was taken tells nothing under it") {
  FakeClock clock;
  HeldDirectories held(clock);
  REQUIRE(held.begin(directory, first));
  REQUIRE(held.take_effect(directory, first, 10));
  held.changed(name_of("a"), entry_of(Ino{5}), 9);
  CHECK_FALSE(known(held, name_of("a")));
}

TEST_CASE("what was read in another tenure, or while the lease was taken, is not kept") {
  FakeClock clock;
  HeldDirectories held(clock);
  held.born(directory, first, 10);
  const auto earlier = read_begins(held);
  held.end_unless_logged(directory);
  REQUIRE(held.begin(directory, second));
  CHECK_FALSE(held.begin_read(directory));
  REQUIRE(held.take_effect(directory, second, 20));
  held.keep(earlier, name_of("a").key, entry_of(Ino{5}), 21);
  held.keep(earlier, {.after = "", .last = "", .version = 21, .entries = {}});
  CHECK_FALSE(known(held, name_of("a")));
}

TEST_CASE("a name in doubt is known again by a read that was sent after the doubt, and not by an entry with a mark") {
  FakeClock clock;
  HeldDirectories held(clock);
  held.born(directory, first, 10);
  const auto name = name_of("a");
  const auto before = read_begins(held);
  held.doubt(name);
  const auto after = read_begins(held);
  held.keep(before, name.key, entry_of(Ino{5}), 11);
  CHECK_FALSE(known(held, name));
  held.keep(after, name.key, txn::marked(entry_of(Ino{5}), {second, Ino{71}}), 12);
  CHECK_FALSE(known(held, name));
  held.keep(read_begins(held), name.key, entry_of(Ino{5}), 12);
  CHECK(known(held, name) == Ino{5});
}

TEST_CASE("between the names of a listing from its beginning none is missing, and after them all may be there") {
  FakeClock clock;
  HeldDirectories held(clock);
  REQUIRE(held.begin(directory, first));
  REQUIRE(held.take_effect(directory, first, 10));
  std::vector<txn::Name> names{name_of("a"), name_of("b"), name_of("c"), name_of("d")};
  std::ranges::sort(names, {}, &txn::Name::key);
  const auto read = read_begins(held);
  held.keep(read, {.after = names[2].key, .last = "", .version = 10, .entries = {}});  // not from the beginning
  CHECK_FALSE(known(held, names[0]));
  held.keep(read, {.after = "", .last = names[2].key, .version = 10, .entries = {{names[1].key, entry_of(Ino{5})}}});
  CHECK(known(held, names[0]) == Ino{});
  CHECK(known(held, names[1]) == Ino{5});
  CHECK_FALSE(known(held, names[3]));
  held.keep(read, {.after = names[2].key, .last = "", .version = 10, .entries = {}});
  CHECK(known(held, names[3]) == Ino{});
}

TEST_CASE("a name that a newer listing does not show is missing, unless it is newer or in doubt since") {
  FakeClock clock;
  HeldDirectories held(clock);
  held.born(directory, first, 10);
  const auto older = name_of("older"), newer = name_of("newer"), doubted = name_of("doubted");
  held.changed(older, entry_of(Ino{5}), 11);
  const auto read = read_begins(held);
  held.changed(newer, entry_of(Ino{6}), 13);
  held.changed(doubted, entry_of(Ino{7}), 0);
  held.keep(read, {.after = "", .last = "", .version = 12, .entries = {}});
  CHECK(known(held, older) == Ino{});
  CHECK(known(held, newer) == Ino{6});
  CHECK_FALSE(known(held, doubted));
  held.keep(read_begins(held), {.after = "", .last = "", .version = 14, .entries = {}});
  CHECK(known(held, doubted) == Ino{});
}

TEST_CASE("a directory that is given up while its lease is taken is not held when that is done") {
  FakeClock clock;
  HeldDirectories held(clock);
  REQUIRE(held.begin(directory, first));
  CHECK(held.knows_of(directory, first));
  CHECK_FALSE(held.leave(directory));
  CHECK_FALSE(held.take_effect(directory, first, 10));
  CHECK_FALSE(held.tenure_of(directory));
}

TEST_CASE("a directory that is about to be given up is held to the end, and known no more") {
  FakeClock clock;
  HeldDirectories held(clock);
  held.born(directory, first, 10);
  CHECK(held.leave(directory) == first);
  CHECK_FALSE(known(held, name_of("a")));
  CHECK(held.tenure_of(directory) == first);
  CHECK_FALSE(held.begin(directory, second));
  held.end(directory, first);
  CHECK_FALSE(held.tenure_of(directory));
}

TEST_CASE("the fourth change of a directory within ten seconds takes its lease, with one write") {
  Two t;
  const auto d = make_dir(t.other(), root_ino, "d");
  for (const char* name : {"1", "2", "3"}) make_file(t.fs(), d, name);
  CHECK_FALSE(t.is_held(d));
  t.holder.client->reset_record();
  make_file(t.fs(), d, "4");
  CHECK(t.holder.client->trace().back() == "take directory lease " + format::inode_object(d));
  CHECK(t.holder.client->counts().applies == 3);
  CHECK(t.is_held(d));
}

TEST_CASE("changes over a longer time do not take a lease") {
  Two t;
  const auto d = make_dir(t.other(), root_ino, "d");
  for (const char* name : {"1", "2", "3", "4", "5", "6"}) {
    make_file(t.fs(), d, name);
    t.volume.clock().advance(seconds(4));
  }
  CHECK_FALSE(t.is_held(d));
}

TEST_CASE("the sixteenth lookup in a directory takes its lease") {
  Two t;
  const auto d = make_dir(t.other(), root_ino, "d");
  make_file(t.other(), d, "f");
  for (int i = 0; i < 15; ++i) need(t.fs().lookup(d, "f"));
  CHECK_FALSE(t.is_held(d));
  need(t.fs().lookup(d, "f"));
  CHECK(t.is_held(d));
}

TEST_CASE("a directory is born with its maker's lease, and known to be empty") {
  Two t;
  const auto d = make_dir(t.fs(), root_ino, "d");
  CHECK(t.is_held(d));
  t.holder.client->reset_record();
  CHECK(error_of(t.fs().lookup(d, "none")) == ErrorCode::not_found);
  need(t.fs().get_attributes(d));
  CHECK(t.holder.client->counts() == StepCounts{});
  make_file(t.fs(), d, "f");
  CHECK(t.holder.client->counts() == StepCounts{.applies = 2});
}

TEST_CASE(
    "a client that takes no leases makes directories without, and so does one that only reads, or an old volume") {
  Two t;
  CHECK_FALSE(t.is_held(make_dir(t.other(), root_ino, "d")));
  auto options = holding(1);
  options.read_only = true;
  auto reader = t.volume.mount(options);
  make_file(t.other(), root_ino, "f");
  for (int i = 0; i < 100; ++i) need(reader->lookup(root_ino, "f"));
  CHECK_FALSE(t.is_held(root_ino));
}

TEST_CASE("in a directory that is held lookups of missing names and of held directories read nothing, of a file 1") {
  Two t;
  const auto d = t.held_directory();
  const auto sub = make_dir(t.fs(), d, "sub");
  CHECK(names_in(t.fs(), d).size() == 5);
  t.holder.client->reset_record();
  CHECK(error_of(t.fs().lookup(d, "none")) == ErrorCode::not_found);
  CHECK(ino_of(t.fs(), d, "sub") == sub);
  CHECK(t.holder.client->counts() == StepCounts{});
  need(t.fs().lookup(d, "1"));
  CHECK(t.holder.client->counts() == StepCounts{.queries = 1});
}

TEST_CASE("the first name that is read in a directory that is held brings the others along") {
  Two t;
  const auto d = make_dir(t.other(), root_ino, "d");
  for (const char* name : {"1", "2", "3"}) make_file(t.other(), d, name);
  for (int i = 0; i < 16; ++i) need(t.fs().lookup(d, "1"));
  REQUIRE(t.is_held(d));
  t.holder.client->reset_record();
  CHECK(error_of(t.fs().lookup(d, "none")) == ErrorCode::not_found);
  CHECK(t.holder.client->counts() == StepCounts{.queries = 1});
  CHECK(error_of(t.fs().lookup(d, "none, too")) == ErrorCode::not_found);
  CHECK(t.holder.client->counts() == StepCounts{.queries = 1});
  need(t.fs().lookup(d, "3"));  // its inode
  CHECK(t.holder.client->counts() == StepCounts{.queries = 2});
  make_file(t.other(), d, "none");  // the holder gives way
  need(t.fs().lookup(d, "none"));
}

TEST_CASE("of a file in a directory that is held, one read is answered by its completion, if that is enough") {
  Two t;
  const auto d = make_dir(t.other(), root_ino, "d");
  const auto file = make_file(t.other(), d, "1");
  for (int i = 0; i < 17; ++i) need(t.fs().lookup(d, "1"));
  REQUIRE(t.is_held(d));
  t.holder.client->reset_record();
  CHECK(need(known_entry(t.fs(), d, "1").value()).attributes.ino == file);
  CHECK(t.holder.client->counts() == StepCounts{.queries = 1});
  SetAttributes change;
  change.mode = 0600;
  need(t.other().set_attributes({}, file, change));
  CHECK_FALSE(known_entry(t.fs(), d, "1").has_value());
  CHECK(need(t.fs().lookup(d, "1")).attributes.mode == 0600);
  CHECK(need(known_entry(t.fs(), d, "1").value()).attributes.mode == 0600);
  t.holder.client->set_hook([](const StepInfo&) { return Fault{Fault::Kind::fail, ErrorCode::io}; });
  CHECK_FALSE(known_entry(t.fs(), d, "1").has_value());
}

TEST_CASE("what a holder has changed, it knows: also long after") {
  Two t;
  const auto d = t.held_directory();
  make_file(t.fs(), d, "a");
  need(t.fs().rename(d, "a", d, "b", RenameMode::replace));
  need(t.fs().unlink(d, "2"));
  t.volume.clock().advance(std::chrono::minutes(10));
  need(t.fs().get_attributes(root_ino));  // it hears from the store
  need(t.fs().lookup(d, "1"));
  t.holder.client->reset_record();
  CHECK(error_of(t.fs().lookup(d, "a")) == ErrorCode::not_found);
  CHECK(error_of(t.fs().lookup(d, "2")) == ErrorCode::not_found);
  CHECK(t.holder.client->counts() == StepCounts{});
  CHECK(ino_of(t.fs(), d, "b"));
  CHECK(t.holder.client->counts() == StepCounts{.queries = 1});
}

TEST_CASE("a change in a directory that is held needs no read, and guards the tenure") {
  Two t;
  const auto d = t.held_directory();
  CHECK(names_in(t.fs(), d).size() == 4);
  t.volume.clock().advance(milliseconds(1500));
  t.holder.client->reset_record();
  make_dir(t.fs(), d, "sub");
  need(t.fs().unlink(d, "1"));
  CHECK(t.holder.client->counts().queries == 1);  // of the inode that loses its name
}

TEST_CASE("what another client changes in a directory that is held makes the holder release it, and is seen there") {
  Two t;
  const auto d = t.held_directory();
  need(t.fs().lookup(d, "2"));
  SECTION("a new name") {
    make_file(t.other(), d, "new");
    CHECK(ino_of(t.fs(), d, "new"));
  }
  SECTION("a removal") {
    need(t.other().unlink(d, "2"));
    CHECK_FALSE(ino_of(t.fs(), d, "2"));
  }
  SECTION("a rename") {
    need(t.other().rename(d, "2", d, "5", RenameMode::replace));
    CHECK_FALSE(ino_of(t.fs(), d, "2"));
    CHECK(ino_of(t.fs(), d, "5"));
  }
  SECTION("attributes") {
    SetAttributes closed;
    closed.mode = 0700;
    need(t.other().set_attributes({}, d, closed));
    CHECK(need(t.fs().get_attributes(d)).attributes.mode == 0700);
  }
  CHECK_FALSE(t.is_held(d));
  CHECK(t.visitor.client->counts().fences == 0);
}

TEST_CASE("who only looks finds what the holder has answered, and leaves it the lease") {
  Two t;
  const auto d = t.held_directory();
  make_file(t.fs(), d, "new");
  need(t.fs().unlink(d, "2"));
  t.visitor.client->reset_record();
  CHECK(ino_of(t.other(), d, "new"));
  CHECK_FALSE(ino_of(t.other(), d, "2"));
  CHECK(names_in(t.other(), d).size() == 4);
  CHECK(t.visitor.client->counts().notifies == 0);
  CHECK(t.is_held(d));
}

TEST_CASE("a name that a step is changing is read: others may have seen the change before its answer is here") {
  Two t;
  const auto d = t.held_directory();
  CHECK(names_in(t.fs(), d).size() == 4);
  std::optional<Ino> seen_elsewhere, seen_here, old_here;
  bool is_applied = false;
  t.holder.client->set_hook([&](const StepInfo& info) {
    if (info.step == "rename entries" && !is_applied) {
      is_applied = true;
      return Fault{Fault::Kind::lost_answer_applied};
    }
    if (is_applied && !seen_elsewhere) {
      seen_elsewhere = ino_of(t.other(), d, "new");
      seen_here = ino_of(t.fs(), d, "new");
      old_here = ino_of(t.fs(), d, "1");
    }
    return Fault{};
  });
  need(t.fs().rename(d, "1", d, "new", RenameMode::replace));
  REQUIRE(seen_elsewhere);
  CHECK(seen_here == seen_elsewhere);
  CHECK_FALSE(old_here);
}

TEST_CASE("a new name is found by who has seen that the old one is gone, before the move is answered") {
  Two t;
  const auto d = t.held_directory();
  const auto e = make_dir(t.fs(), root_ino, "e");
  CHECK_FALSE(ino_of(t.fs(), e, "new"));
  bool is_applied = false, has_looked = false;
  t.holder.client->set_hook([&](const StepInfo& info) {
    if (info.step == "move entry in" && !is_applied) {
      is_applied = true;
      return Fault{Fault::Kind::lost_answer_applied};
    }
    if (is_applied && !has_looked) {
      has_looked = true;
      CHECK_FALSE(ino_of(t.fs(), d, "1"));
      CHECK(ino_of(t.fs(), e, "new"));
    }
    return Fault{};
  });
  need(t.fs().rename(d, "1", e, "new", RenameMode::replace));
  REQUIRE(has_looked);
}

TEST_CASE("a directory that another client has asked for is left alone for a second, and longer each time") {
  Two t;
  const auto d = t.held_directory();
  char letter = 'v';
  const auto change_often = [&] {
    for (const char* name : {"a", "b", "c", "d", "e"}) make_file(t.fs(), d, name);
    for (const char* name : {"a", "b", "c", "d", "e"}) need(t.fs().unlink(d, name));
  };
  make_file(t.other(), d, std::string(1, letter++));
  change_often();
  CHECK_FALSE(t.is_held(d));
  t.volume.clock().advance(milliseconds(1100));
  change_often();
  CHECK(t.is_held(d));
  make_file(t.other(), d, std::string(1, letter++));
  t.volume.clock().advance(milliseconds(1100));
  change_often();
  CHECK_FALSE(t.is_held(d));
  t.volume.clock().advance(milliseconds(1100));
  change_often();
  CHECK(t.is_held(d));
}

TEST_CASE("what another client changes before a lease is taken, and once it is, is seen") {
  Two t;
  const auto d = make_dir(t.other(), root_ino, "d");
  for (const char* name : {"1", "2", "3"}) make_file(t.fs(), d, name);
  t.holder.client->set_hook(before("take directory lease", [&] { make_file(t.other(), d, "between"); }));
  make_file(t.fs(), d, "4");
  CHECK(ino_of(t.fs(), d, "between"));
  make_file(t.other(), d, "later");
  CHECK(ino_of(t.fs(), d, "later"));
}

TEST_CASE("a lease that is taken while a question looks into the store is released with what memory knows") {
  Two t;
  const auto holder = lease_of(t.volume.cluster(), t.held_directory()).value().instance;
  const auto e = make_dir(t.other(), root_ino, "e");
  for (const char* name : {"1", "2", "3"}) make_file(t.fs(), e, name);
  std::atomic<bool> looks = false;
  std::promise<void> go;
  t.holder.client->set_hook([&, is_taken = go.get_future().share()](const StepInfo& info) {
    if (info.kind == StepKind::query && info.object == format::inode_object(e) && !looks.exchange(true))
      is_taken.wait();
    return Fault{};
  });
  t.volume.clock().waits_end_at_once = true;
  const format::Question question{format::Question::Kind::release_directory, e};
  const auto heard = need(t.visitor.client->notify(format::session_object(holder), encode(question), seconds(30)));
  REQUIRE(heard.answers.size() == 1);
  CHECK(need(format::decode<format::Answer>(heard.answers.front())).kind == format::Answer::Kind::busy);
  for (unsigned i = 0; i < 20'000 && !looks; ++i) std::this_thread::sleep_for(milliseconds(1));
  REQUIRE(looks);
  t.volume.clock().advance(milliseconds(1100));
  make_file(t.fs(), e, "4");
  REQUIRE(t.is_held(e));
  CHECK_FALSE(ino_of(t.fs(), e, "theirs"));  // memory knows it to be missing
  go.set_value();
  for (unsigned i = 0; i < 20'000 && t.is_held(e); ++i) std::this_thread::sleep_for(milliseconds(1));
  CHECK_FALSE(t.is_held(e));
  make_file(t.other(), e, "theirs");
  CHECK(ino_of(t.fs(), e, "theirs"));
}

TEST_CASE("a step under a lease that was released meanwhile is refused, and done anew") {
  Two t;
  const auto d = t.held_directory();
  need(t.fs().lookup(d, "2"));
  t.holder.client->set_hook(
      before("remove entry", [&] { need(t.other().rename(d, "2", d, "3", RenameMode::replace)); }));
  CHECK(error_of(t.fs().unlink(d, "2")) == ErrorCode::not_found);
}

TEST_CASE("a lost answer leaves the name in doubt: it is read again") {
  Two t;
  const auto d = t.held_directory();
  need(t.fs().lookup(d, "2"));
  t.holder.client->set_hook(once_on("remove entry", {Fault::Kind::lost_answer_applied}));
  need(t.fs().unlink(d, "2"));
  need(t.fs().get_attributes(d));  // read anew
  t.holder.client->reset_record();
  CHECK(error_of(t.fs().lookup(d, "2")) == ErrorCode::not_found);
  CHECK(t.holder.client->counts() == StepCounts{.queries = 1});
}

TEST_CASE("a step under a tenure that is over does nothing: another client may hold the directory by then") {
  Two t;
  const auto d = t.held_directory();
  auto next = t.volume.mount(holding(1));
  t.holder.client->set_hook(before("insert entry", [&] {
    make_file(*next.file_system, d, "first");  // takes the lease
    CHECK(names_in(*next.file_system, d).size() == 5);
  }));
  const auto made = make_file(t.fs(), d, "late");
  CHECK(ino_of(*next.file_system, d, "late") == made);
}

TEST_CASE("a holder that stood still, and was fenced, answers nothing from memory, whatever else it reads first") {
  Two t;
  const auto d = t.held_directory();
  const auto elsewhere = make_file(t.other(), root_ino, "elsewhere");
  CHECK(names_in(t.fs(), d).size() == 4);
  t.holder.client->set_deaf(true);
  t.holder.client->lose_watches();
  t.volume.clock().advance(seconds(61));
  make_file(t.other(), d, "new");
  CHECK(t.visitor.client->counts().fences == 1);
  t.holder.client->set_deaf(false);
  static_cast<void>(t.fs().get_attributes(elsewhere));  // of an object that nobody has touched since the fence
  CHECK(error_of(t.fs().lookup(d, "new")) == ErrorCode::fenced);
}

TEST_CASE("a holder asks Super every few seconds whether it is fenced, and the directory where Super does not answer") {
  Two t;
  const auto d = t.held_directory();
  CHECK(names_in(t.fs(), d).size() == 4);
  t.volume.clock().advance(seconds(3));
  t.holder.client->reset_record();
  CHECK(error_of(t.fs().lookup(d, "none")) == ErrorCode::not_found);
  CHECK(t.holder.client->counts() == StepCounts{.queries = 1});
  t.volume.clock().advance(seconds(6));
  t.holder.client->set_hook(
      [](const StepInfo& info) { return info.object == "Super" ? Fault{Fault::Kind::hold} : Fault{}; });
  t.holder.client->reset_record();
  CHECK(error_of(t.fs().lookup(d, "none")) == ErrorCode::not_found);
  CHECK(t.holder.client->counts() == StepCounts{.queries = 2});
  t.holder.client->set_hook({});
  t.holder.client->release_all();
}

TEST_CASE("a name that is looked up while it is about to be moved away is not known afterwards") {
  Two t;
  const auto d = t.held_directory();
  const auto e = make_dir(t.other(), root_ino, "e");
  t.holder.client->set_hook(before("mark entry", [&] { CHECK(ino_of(t.fs(), d, "1")); }));
  need(t.fs().rename(d, "1", e, "moved", RenameMode::replace));
  CHECK_FALSE(ino_of(t.fs(), d, "1"));
}

TEST_CASE("a lease whose answer was lost is not held, and stands in no way") {
  Two t;
  const auto d = make_dir(t.other(), root_ino, "d");
  const auto kind = GENERATE(Fault::Kind::lost_answer_applied, Fault::Kind::applied_twice);
  t.holder.client->set_hook(once_on("take directory lease", {kind}));
  for (const char* name : {"1", "2", "3", "4"}) make_file(t.fs(), d, name);
  for (const char* name : {"1", "2", "3", "4"}) need(t.fs().unlink(d, name));
  need(t.fs().rmdir(root_ino, "d"));
}

TEST_CASE("a directory that is not used for ten seconds is released") {
  Two t;
  const auto d = t.held_directory();
  const auto is_held_after_nine_seconds = [&] {
    t.volume.clock().advance(seconds(9));
    t.fs().tick();
    for (unsigned looks = 0; looks < 20 && t.is_held(d); ++looks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a release is another thread's work
    }
    return t.is_held(d);
  };
  CHECK(is_held_after_nine_seconds());
  need(t.fs().lookup(d, "1"));
  CHECK(is_held_after_nine_seconds());
  need(t.fs().get_attributes(d));  // all that the kernel asks for on its way through names that it keeps
  CHECK(is_held_after_nine_seconds());
  t.volume.clock().advance(seconds(2));
  t.fs().tick();
  need(t.fs().unmount());
  CHECK_FALSE(t.is_held(d));
}

TEST_CASE(
    "a directory that was made here is released after a minute without use; if it was removed, after ten seconds") {
  FakeClock clock;
  HeldDirectories held(clock);
  const HeldDirectories::Unused time{.taken = seconds(10), .made_here = seconds(60)};
  held.born(directory, first, 10);
  clock.advance(seconds(50));
  constexpr Ino taken{71}, removed{72};
  CHECK(held.begin(taken, second));
  CHECK(held.take_effect(taken, second, 11));
  held.born(removed, second, 12);
  held.name_lost(removed, root_ino);
  clock.advance(seconds(9));
  CHECK(held.unused_for(time, 8, 8).empty());
  clock.advance(seconds(1));
  CHECK(held.unused_for(time, 8, 8) == std::vector{directory, taken, removed});
  CHECK(held.unused_for(time, 1, 0) == std::vector{directory});
  CHECK(held.unused_for(time, 0, 1) == std::vector{removed});
  CHECK(held.unused_for({.taken = seconds(10), .made_here = seconds(61)}, 8, 8) == std::vector{taken, removed});
}

TEST_CASE("the leases of a client that has ended cost who changes the directories a question once, and a step each") {
  Two t;
  std::vector<Ino> made;
  for (const char* name : {"a", "b", "c"}) made.push_back(make_dir(t.fs(), root_ino, name));
  need(t.fs().unmount());
  t.holder.file_system.reset();
  t.visitor.client->reset_record();
  for (const Ino directory : made) make_file(t.other(), directory, "f");
  CHECK(t.visitor.client->counts().notifies <= 1);
  CHECK(t.visitor.client->counts().applies == 9);
}

TEST_CASE("a move from a directory that is held is seen by all at once, also by its own lookups") {
  Two t;
  const auto d = t.held_directory();
  const auto e = make_dir(t.other(), root_ino, "e");
  CHECK(names_in(t.fs(), d).size() == 4);
  std::optional<Ino> new_there, old_here;
  t.holder.client->set_hook(before("move entry out", [&] {
    new_there = ino_of(t.other(), e, "moved");
    old_here = ino_of(t.fs(), d, "1");
  }));
  need(t.fs().rename(d, "1", e, "moved", RenameMode::replace));
  CHECK(new_there);
  CHECK_FALSE(old_here);
  CHECK_FALSE(ino_of(t.fs(), d, "1"));
  CHECK(ino_of(t.fs(), e, "moved") == new_there);
}

TEST_CASE("a directory that is held is removed by its holder, and by another client") {
  Two t;
  const auto d = make_dir(t.fs(), root_ino, "d");
  make_file(t.fs(), d, "f");
  const bool by_holder = GENERATE(true, false);
  auto& fs = by_holder ? t.fs() : t.other();
  CHECK(error_of(fs.rmdir(root_ino, "d")) == ErrorCode::not_empty);
  need(t.fs().unlink(d, "f"));
  need(fs.rmdir(root_ino, "d"));
  CHECK(error_of(t.fs().make_node({}, d, "late", {FileType::regular, 0644, 0, {}})) == ErrorCode::stale);
  CHECK_FALSE(ino_of(t.fs(), root_ino, "d"));
}

TEST_CASE("attributes of a directory that is held are those of its last change, and no older than the time-out") {
  Two t;
  const auto d = t.held_directory();
  make_dir(t.fs(), d, "sub");
  t.holder.client->reset_record();
  auto reply = need(t.fs().get_attributes(d));
  CHECK(reply.attributes.nlink == 3);
  SetAttributes closed;
  closed.mode = 0700;
  need(t.fs().set_attributes({}, d, closed));
  CHECK(need(t.fs().get_attributes(d)).attributes.mode == 0700);
  t.volume.clock().advance(milliseconds(1500));
  t.holder.client->reset_record();
  reply = need(t.fs().get_attributes(d));
  CHECK(reply.attributes_ttl == seconds(1));
  CHECK(t.holder.client->counts() == StepCounts{.queries = 1});
}

TEST_CASE("leases stay in the store at an unmount, and are void then") {
  Two t;
  const auto d = t.held_directory();
  need(t.fs().unmount());
  t.holder.file_system.reset();
  CHECK(t.is_held(d));
  make_file(t.other(), d, "new");
  CHECK_FALSE(t.is_held(d));
  CHECK(t.visitor.client->counts().fences == 0);
}

TEST_CASE("a read that was sent before a step was answered does not end the doubt that the step met") {
  FakeClock clock;
  HeldDirectories held(clock);
  const Ino p{70};
  const Token tenure{InstanceId{7}, 1};
  const txn::Name name(format::VolumeUuid{}, p, "a");
  const format::EntryRecord record{Ino{5}, FileType::regular, {InstanceId{7}, 5}};
  held.born(p, tenure, 10);
  held.doubt(name);
  const auto ticket = held.begin_read(p).value();  // shows no name, at version 11
  held.changed(name, txn::Entry{encode(record), record}, 12);
  held.keep(ticket, name.key, std::nullopt, 11);
  CHECK_FALSE(held.find({&name}, tenure));
}
