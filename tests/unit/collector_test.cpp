// SPDX-License-Identifier: LGPL-2.1-or-later
// The collector: what it removes, what it leaves, and what that costs.
#include <algorithm>
#include <future>
#include <limits>
#include <thread>

#include "check/check.h"
#include "reclaim/pace.h"
#include "reclaim/queue_page.h"
#include "support/catch.h"
#include "support/collecting.h"
#include "support/cut_move.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

namespace lccfs::test {
namespace {

using Names = std::set<std::string>;
using std::chrono::minutes;
using std::chrono::seconds;

const Names empty_volume{"Super", "Alloc", "Inode.1"};

/// A volume of small objects on which nothing is wrong, whatever happens.
class CollectedVolume : public TestVolume {
 public:
  explicit CollectedVolume(const ScriptedCluster::Options& options = {}) : TestVolume(small_objects(), options) {}
  ~CollectedVolume() {
    for (const auto& finding : need(check::check_volume(*new_client()))) UNSCOPED_INFO(check::text_of(finding));
    CHECK(need(check::check_volume(*new_client())).empty());
  }
  reclaim::PassReport collect() { return test::collect(cluster(), clock()); }
  Names objects() { return object_names(cluster()); }
};

Ino make_filled(FileSystem& fs, const std::string& name, const std::vector<std::uint64_t>& objects) {
  const auto file = create_file(fs, name);
  for (const auto index : objects) need(write_at(fs, file.handle, index * object_bytes, "some bytes"));
  close_file(fs, file.handle);
  return file.ino;
}

TEST_CASE("what was removed is reclaimed once its client has ended, and nothing is left of either") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto directory = make_dir(*mount.file_system, root_ino, "directory");
  make_file(*mount.file_system, directory, "inner");
  make_filled(*mount.file_system, "file", {0, 1, 7});
  need(mount->unlink(directory, "inner"));
  need(mount->rmdir(root_ino, "directory"));
  need(mount->unlink(root_ino, "file"));
  need(mount->unmount());
  const auto report = volume.collect();
  CHECK(report.inodes_removed == 3);
  CHECK(report.data_objects_removed == 3);
  CHECK(report.items_left == 0);
  CHECK(report.instances_removed == 1);
  CHECK(volume.objects() == empty_volume);
  CHECK(traces_left(volume.cluster()).empty());
  const auto root = *inode_object_of(volume.cluster(), root_ino);
  CHECK_FALSE(has_keys(root, "l/"));
}

TEST_CASE("a client that removed a tree of thousands of directories leaves no step number in those that live on") {
  constexpr int directories = 1500;  // more than an instance remembers to tidy
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto kept = make_dir(*mount.file_system, root_ino, "kept");
  for (int i = 0; i < directories; ++i) {
    const auto name = std::to_string(i);
    const auto directory = make_dir(*mount.file_system, kept, name);
    make_file(*mount.file_system, directory, "inner");
    need(mount->unlink(directory, "inner"));
    need(mount->rmdir(kept, name));
  }
  make_file(*mount.file_system, root_ino, "file");
  need(mount->unlink(root_ino, "file"));
  need(mount->unmount());
  CHECK_FALSE(has_keys(*inode_object_of(volume.cluster(), root_ino), "l/"));
  CHECK_FALSE(has_keys(*inode_object_of(volume.cluster(), kept), "l/"));
}

TEST_CASE("an item is due once it is older than the grace period, or from the future, whatever its clock said") {
  using Seconds = std::numeric_limits<std::int64_t>;
  Member member;
  member.standing = Member::Standing::answered;
  member.lowest_running = 10;
  const auto is_due = [&](std::int64_t logged_seconds, std::int64_t now_seconds) {
    const reclaim::NumberedItem one{5, {format::QueueItem::Kind::inode, Ino{7}, {}, {logged_seconds, 0}}};
    return reclaim::is_due(member, one, {now_seconds, 0}, seconds(60));
  };
  CHECK_FALSE(is_due(1000, 1000));
  CHECK_FALSE(is_due(1000, 1059));
  CHECK(is_due(1000, 1060));
  CHECK(is_due(1000, 999));
  CHECK(is_due(Seconds::min(), 1000));
  CHECK(is_due(Seconds::max(), 1000));
  CHECK(is_due(Seconds::min(), Seconds::max()));
  CHECK(is_due(Seconds::max(), Seconds::min()));
  CHECK_FALSE(is_due(Seconds::min(), Seconds::min()));
}

TEST_CASE("a live client's leftovers are reclaimed once they are older than the grace period") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto file = make_filled(*mount.file_system, "file", {0});
  need(mount->unlink(root_ino, "file"));
  TestCollector collector(volume.cluster(), volume.clock(), minutes(5));
  auto report = collector.pass();
  CHECK(report.inodes_removed == 0);
  CHECK(report.items_left == 1);
  CHECK(inode_object_of(volume.cluster(), file));
  volume.clock().advance(minutes(5));
  report = collector.pass();
  CHECK(report.inodes_removed == 1);
  CHECK_FALSE(inode_object_of(volume.cluster(), file));
  collector.end();
  need(mount->unmount());
  volume.collect();
  CHECK(volume.objects() == empty_volume);
}

TEST_CASE("an unlinked file stays readable and writable while a client has it open, and goes after its close") {
  CollectedVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto ino = make_filled(*mount.file_system, "file", {0});
  const auto handle = need(other->open({}, ino, O_RDWR)).handle;
  need(mount->unlink(root_ino, "file"));
  TestCollector collector(volume.cluster(), volume.clock());
  auto report = collector.pass();
  CHECK(report.inodes_removed == 0);
  CHECK(report.open_elsewhere == 1);
  CHECK(need(read_at(*other.file_system, handle, 0, 4)) == "some");
  need(write_at(*other.file_system, handle, 3 * object_bytes, "more"));
  need(other->fsync(handle, false));
  CHECK(need(other->get_attributes(ino)).attributes.size_bytes == 3 * object_bytes + 4);
  CHECK(collector.pass().inodes_removed == 0);
  CHECK(error_of(mount->open({}, ino, O_RDONLY)) == ErrorCode::stale);
  close_file(*other.file_system, handle);
  CHECK(collector.pass().inodes_removed == 1);
  CHECK(std::ranges::none_of(volume.objects(), [](const auto& name) { return name.starts_with("Data."); }));
  collector.end();
}

TEST_CASE("an open that began before its inode was marked dead keeps it") {
  CollectedVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto ino = make_filled(*mount.file_system, "file", {0});
  need(mount->unlink(root_ino, "file"));
  TestCollector collector(volume.cluster(), volume.clock());
  // The open has read the inode; the collector acts before its answer comes.
  std::optional<reclaim::PassReport> report;
  bool in_open = false;
  other.client->set_hook([&](const StepInfo& info) -> Fault {
    if (in_open && !report && info.kind == StepKind::query && info.object == format::inode_object(ino)) {
      report.emplace();
      *report = collector.pass();
    }
    return {};
  });
  in_open = true;
  const auto opened = other->open({}, ino, O_RDONLY);
  in_open = false;
  REQUIRE(report);
  CHECK(report->inodes_removed == 0);
  // It was marked dead before it was read.
  CHECK(error_of(opened) == ErrorCode::stale);
  CHECK(collector.pass().inodes_removed == 1);
  collector.end();
}

TEST_CASE("a directory that is open stays until it is closed") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto directory = make_dir(*mount.file_system, root_ino, "directory");
  const auto handle = need(mount->open_directory(directory));
  need(mount->rmdir(root_ino, "directory"));
  TestCollector collector(volume.cluster(), volume.clock());
  CHECK(collector.pass().inodes_removed == 0);
  CHECK(inode_object_of(volume.cluster(), directory));
  mount->release_directory(handle);
  CHECK(collector.pass().inodes_removed == 1);
  collector.end();
}

TEST_CASE("a directory out of which a file has moved stays as long as the file may point there") {
  CollectedVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto directory = make_dir(*mount.file_system, root_ino, "directory");
  const auto file = make_file(*mount.file_system, directory, "file");
  // While it is being linked, a collector corrects nothing in the file.
  other.client->set_hook(before("insert entry", [&] {
    need(mount->rename(directory, "file", root_ino, "moved", RenameMode::replace));
    need(mount->rmdir(root_ino, "directory"));
    volume.collect();
  }));
  need(other->link(file, root_ino, "another"));
  need(mount->unlink(root_ino, "moved"));
  need(mount->unlink(root_ino, "another"));
  const auto report = volume.collect();
  CHECK(report.damaged.empty());
  CHECK(report.inodes_removed == 2);
  CHECK(traces_left(volume.cluster()).empty());
}

TEST_CASE("a directory that was taken back from its remover keeps what is made there, also beside a collector") {
  CollectedVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto directory = make_dir(*mount.file_system, root_ino, "directory");
  mount.client->set_hook(before("remove entry", [&] {
    make_file(*other.file_system, directory, "file");
    CHECK(volume.collect().items_left > 0);  // what leads to the decision stays, as the decision does
  }));
  CHECK(error_of(mount->rmdir(root_ino, "directory")) == ErrorCode::not_empty);
  CHECK(ino_of(*other.file_system, root_ino, "directory") == directory);
  CHECK(names_in(*other.file_system, directory) == std::vector<std::string>{"file"});
}

TEST_CASE("what a client cancels when all is done already leaves nothing that no collector finds") {
  CollectedVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  make_dir(*mount.file_system, root_ino, "directory");
  std::future<Result<>> also_removed;
  mount.client->set_hook(before("remove entry", [&] {
    other.client->set_hook(once_on("cancel seal", {Fault::Kind::hold}));
    also_removed = std::async(std::launch::async, [&] { return other->rmdir(root_ino, "directory"); });
    CHECK(other.client->wait_for_held(1));
  }));
  need(mount->rmdir(root_ino, "directory"));
  CHECK(volume.collect().inodes_removed == 1);
  CHECK(traces_left(volume.cluster()).empty());
  other.client->release();
  CHECK(error_of(also_removed.get()) == ErrorCode::not_found);
  CHECK(traces_left(volume.cluster()).size() == 1);
  volume.collect();
  CHECK(traces_left(volume.cluster()).empty());
}

TEST_CASE("a collector that cancels a move beside another one's pass leaves nothing that no collector finds") {
  CollectedVolume volume;
  const auto cut = cut_move(volume, "move entry in");
  auto mount = volume.mount();
  TestCollector slow(volume.cluster(), volume.clock());
  // While it is being linked, the other one leaves the file alone; and in the directory it finds nothing yet.
  slow.client().set_hook(before("cancel move", [&] {
    mount.client->set_hook(before("insert entry", [&] { volume.collect(); }));
    need(mount->link(cut.f, root_ino, "another"));
  }));
  slow.pass();
  slow.end();
  volume.collect();
  CHECK(traces_left(volume.cluster()).empty());
  CHECK(ino_of(*mount.file_system, root_ino, "f") == cut.f);
}

TEST_CASE("while a client is silent nothing is removed, and what needs no answer of it is done") {
  CollectedVolume volume;
  auto mount = volume.mount();
  auto silent = volume.mount();
  const auto ino = make_filled(*mount.file_system, "file", {0});
  need(mount->unlink(root_ino, "file"));
  silent.client->set_deaf(true);
  TestCollector collector(volume.cluster(), volume.clock());
  auto report = collector.pass();
  CHECK(report.inodes_removed == 0);
  REQUIRE(report.silent.size() == 1);
  CHECK(inode_object_of(volume.cluster(), ino));
  silent.client->set_deaf(false);
  CHECK(collector.pass().inodes_removed == 1);
  collector.end();
}

TEST_CASE("of the items that lead to one place, a collector leaves none that another is about to remove") {
  CollectedVolume volume;
  auto mount = volume.mount();
  auto reader = volume.mount();
  make_filled(*mount.file_system, "first", {});
  const auto second = make_filled(*mount.file_system, "second", {});
  const auto handle = open_again(*reader.file_system, second, O_RDONLY);
  need(mount->unlink(root_ino, "first"));
  TestCollector slow(volume.cluster(), volume.clock());
  slow.client().set_hook(before("drop queue items", [&] {
    need(mount->unlink(root_ino, "second"));
    CHECK(volume.collect().open_elsewhere == 1);
  }));
  slow.pass();
  close_file(*reader.file_system, handle);
  slow.pass();
  slow.end();
  CHECK_FALSE(inode_object_of(volume.cluster(), second));
}

TEST_CASE("a client that was silent once is asked again within the round") {
  CollectedVolume volume;
  auto mount = volume.mount();
  auto silent = volume.mount();
  make_filled(*mount.file_system, "file", {0});
  need(mount->unlink(root_ino, "file"));
  silent.client->set_deaf(true);
  TestCollector collector(volume.cluster(), volume.clock());
  // There for the second call alone: the pass has further rounds, which must not be what removes it.
  unsigned calls = 0;
  collector.client().set_hook([&](const StepInfo& info) {
    if (info.kind == StepKind::notify) silent.client->set_deaf(++calls != 2);
    return Fault{};
  });
  CHECK(collector.pass().inodes_removed == 1);
  CHECK(calls == 3);  // the second removed it: a round of its own would have taken one more
  collector.client().set_hook(nullptr);
  collector.end();
}

TEST_CASE("an inode whose name is in doubt is left to the collector, and its range is not") {
  CollectedVolume volume;
  auto mount = volume.mount();
  bool sent = false;
  mount.client->set_hook([&](const StepInfo& info) {
    sent = sent || info.step == "insert entry";
    const bool fails = sent && info.object == format::inode_object(root_ino);
    return fails ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  CHECK_FALSE(mount->make_node({}, root_ino, "file", {FileType::regular, 0644, 0, {}}));
  mount.client->set_hook(nullptr);
  need(mount->unmount());
  const auto report = volume.collect();
  CHECK(report.items_seen == 1);
  CHECK(report.inodes_removed == 1);
  CHECK(volume.objects() == empty_volume);
}

TEST_CASE("a client that is gone is fenced before anything of its is acted on") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto ino = make_filled(*mount.file_system, "file", {0, 1});
  need(mount->unlink(root_ino, "file"));
  mount.client->crash();
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(test::before("fence", [&] { CHECK(inode_object_of(volume.cluster(), ino)); }));
  const auto report = collector.pass();
  CHECK(report.inodes_removed == 1);
  REQUIRE(report.gone.size() == 1);
  CHECK(report.instances_removed == 1);
  collector.end();
  CHECK(volume.objects() == empty_volume);
}

TEST_CASE("an inode whose client died before it got a name is found by the range intent") {
  CollectedVolume volume;
  auto mount = volume.mount();
  mount.client->set_hook(once_on("insert entry", {Fault::Kind::not_applied_and_crash}));
  CHECK_FALSE(mount->make_node({}, root_ino, "file", {FileType::regular, 0644, 0, {}}));
  CHECK(volume.objects().size() == empty_volume.size() + 2);  // the inode, and the session
  volume.clock().advance(minutes(2));
  CHECK(volume.collect().inodes_removed == 1);
  CHECK(volume.objects() == empty_volume);
}

TEST_CASE("what the client of a seal left is settled once it is expired: back to life, or dead and gone") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto directory = make_dir(*mount.file_system, root_ino, "directory");
  const bool committed = GENERATE(false, true);
  mount.client->set_hook(
      once_on("remove entry", {committed ? Fault::Kind::applied_and_crash : Fault::Kind::not_applied_and_crash}));
  CHECK_FALSE(mount->rmdir(root_ino, "directory"));
  volume.clock().advance(minutes(2));
  volume.collect();
  CHECK(inode_object_of(volume.cluster(), directory).has_value() == !committed);
  if (!committed) CHECK(state_of(*inode_object_of(volume.cluster(), directory)) == format::StateRecord::Kind::live);
  volume.collect();  // what the first settler has logged
  CHECK(traces_left(volume.cluster()).empty());
}

TEST_CASE("the decisions of two seals that cannot be read are named, each with the directory in which it stands") {
  CollectedVolume volume;
  Names decisions;
  for (const auto* name : {"one", "two"}) {
    auto mount = volume.mount();
    const auto directory = make_dir(*mount.file_system, root_ino, name);
    mount.client->set_hook(once_on("remove entry", {Fault::Kind::not_applied_and_crash}));
    CHECK_FALSE(mount->rmdir(root_ino, name));
    volume.cluster().with_objects([&](scripted::Objects& objects) {
      const auto& state = objects.metadata().at(format::inode_object(directory)).xattrs.at("state");
      const auto key = format::decision_key(need(format::decode<format::StateRecord>(state)).token);
      objects.metadata().at("Inode.1").keys[key] = "noise";
      decisions.insert(key);
    });
  }
  volume.clock().advance(minutes(2));
  Names named;
  for (const auto& damage : volume.collect().damaged) {
    INFO(damage);
    CHECK(damage.starts_with("Inode.1: x/"));
    named.insert(damage.substr(9, damage.find(": ", 9) - 9));
  }
  CHECK(named == decisions);
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    for (const auto& key : decisions) objects.metadata().at("Inode.1").keys.erase(key);
  });
  for (unsigned pass = 0; pass < 2; ++pass) volume.collect();
}

TEST_CASE("a file with two names is kept, and a wrong link count is corrected") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto ino = make_file(*mount.file_system, root_ino, "file");
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    auto& inode = objects.metadata().at(format::inode_object(ino));
    auto attr = need(format::decode<format::AttrRecord>(inode.xattrs.at("attr")));
    attr.nlink = 2;
    inode.xattrs["attr"] = encode(attr);
    inode.keys[format::back_pointer_key(Ino{77}, {InstanceId{77}, 1})] = format::marker_value;
  });
  TestCollector collector(volume.cluster(), volume.clock());
  need(collector.instance().log_items({{format::QueueItem::Kind::inode, ino, {}, {}}}));
  CHECK(collector.pass().inodes_corrected == 1);
  const auto inode = *inode_object_of(volume.cluster(), ino);
  CHECK(need(format::decode<format::AttrRecord>(inode.xattrs.at("attr"))).nlink == 1);
  CHECK_FALSE(has_keys(inode, "p/"));
  collector.end();
  need(mount->unmount());
}

TEST_CASE("a directory that was deleted with content is emptied level by level") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto top = make_dir(*mount.file_system, root_ino, "top");
  const auto middle = make_dir(*mount.file_system, top, "middle");
  for (int i = 0; i < 3; ++i) {
    make_file(*mount.file_system, middle, "file" + std::to_string(i));
    make_file(*mount.file_system, top, "file" + std::to_string(i));
  }
  need(mount->unmount());
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    auto& root = objects.metadata().at("Inode.1");
    std::erase_if(root.keys,
                  [](const auto& key) { return key.first.starts_with("n/") || key.first.starts_with("i/"); });
    root.xattrs["nsub"] = encode(format::NumberRecord{0});
  });
  TestCollector collector(volume.cluster(), volume.clock());
  need(collector.instance().log_items({{format::QueueItem::Kind::inode, top, {}, {}}}));
  const auto report = collector.pass();
  CHECK(report.inodes_removed == 8);
  CHECK(report.names_removed == 7);
  collector.end();
  CHECK(volume.objects() == empty_volume);
}

TEST_CASE("an object that cannot be read is named and left, with its item; the rest is done") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto damaged = make_file(*mount.file_system, root_ino, "damaged");
  make_file(*mount.file_system, root_ino, "fine");
  const auto object = format::inode_object(damaged);
  Bytes good;
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    good = std::exchange(objects.metadata().at(object).xattrs["state"], "rubbish");
  });
  need(mount->unlink(root_ino, "fine"));
  TestCollector collector(volume.cluster(), volume.clock());
  need(collector.instance().log_items({{format::QueueItem::Kind::inode, damaged, {}, {}}}));
  const auto report = collector.pass();
  REQUIRE(report.damaged.size() == 1);  // once, in however many rounds it was met
  CHECK(report.damaged.front().starts_with(object + ": "));
  CHECK(report.inodes_removed == 1);
  CHECK(report.items_left >= 1);
  volume.cluster().with_objects(
      [&](scripted::Objects& objects) { objects.metadata().at(object).xattrs["state"] = good; });
  CHECK(collector.pass().damaged.empty());
  collector.end();
}

TEST_CASE("other collectors hear of one that removes a large file for as long as that takes") {
  CollectedVolume volume;
  auto mount = volume.mount();
  make_filled(*mount.file_system, "large", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  need(mount->unlink(root_ino, "large"));
  need(mount->unmount());
  TestCollector collector(volume.cluster(), volume.clock());
  TestCollector other(volume.cluster(), volume.clock());
  std::chrono::nanoseconds longest_silence{0};
  collector.client().set_hook([&](const StepInfo& info) {
    if (!info.object.starts_with("Data.")) return Fault{};
    longest_silence =
        std::max(longest_silence, volume.clock().elapsed() - other.instance().last_poll().value_or(seconds(0)));
    volume.clock().advance(seconds(15));
    return Fault{};
  });
  CHECK(collector.pass().data_objects_removed == 10);
  CHECK(longest_silence < seconds(45));
  collector.end();
  other.end();
}

TEST_CASE("a dead inode's stale reverse key does not cost another file its name") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto living = make_file(*mount.file_system, root_ino, "name");
  const auto dead = make_file(*mount.file_system, root_ino, "other");
  need(mount->unlink(root_ino, "other"));
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    objects.metadata().at("Inode.1").keys[format::reverse_key(dead, "name")] = format::marker_value;
    format::StateRecord state;
    state.kind = format::StateRecord::Kind::dead;
    objects.metadata().at(format::inode_object(dead)).xattrs["state"] = encode(state);
  });
  TestCollector collector(volume.cluster(), volume.clock());
  CHECK(collector.pass().inodes_removed == 1);
  auto looker = volume.mount();
  CHECK(ino_of(*looker.file_system, root_ino, "name") == living);
  CHECK_FALSE(has_keys(*inode_object_of(volume.cluster(), root_ino), format::reverse_key(dead, "")));
  collector.end();
}

TEST_CASE("an object that the store cannot read is left, and keeps nothing else waiting") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto damaged = make_file(*mount.file_system, root_ino, "unreadable");
  const auto fine = make_file(*mount.file_system, root_ino, "fine");
  need(mount->unlink(root_ino, "unreadable"));
  need(mount->unlink(root_ino, "fine"));
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(unreadable(format::inode_object(damaged)));
  const auto report = collector.pass();
  CHECK_FALSE(report.damaged.empty());
  CHECK_FALSE(inode_object_of(volume.cluster(), fine));
  CHECK(report.items_left == 1);
  collector.client().set_hook(nullptr);
  CHECK(collector.pass().inodes_removed == 1);
  collector.end();
}

TEST_CASE("a pass that is to stop waits for no object that is read, and its client ends without the answer") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto hangs = make_file(*mount.file_system, root_ino, "hangs");
  need(mount->unlink(root_ino, "hangs"));
  auto collector = std::make_unique<TestCollector>(volume.cluster(), volume.clock());
  const auto store = collector->store();
  store->set_hook([object = format::inode_object(hangs)](const StepInfo& info) {
    return info.kind == StepKind::query && info.object == object ? Fault{Fault::Kind::hold} : Fault{};
  });
  std::stop_source stop;
  auto pass = std::async(std::launch::async, [&] { return collector->try_pass(stop.get_token()); });
  const bool is_held = store->wait_for_held(1);
  stop.request_stop();
  const bool has_stopped = pass.wait_for(seconds(30)) == std::future_status::ready;
  store->set_hook(nullptr);
  if (!has_stopped) store->release_all();
  CHECK(is_held);
  CHECK(has_stopped);
  CHECK(need(pass.get()).inodes_removed == 0);
  collector->end();
  collector.reset();
  store->release_all();
  CHECK(volume.collect().inodes_removed == 1);
}

/// A pass beside the test, on a clock on which whoever waits looks again at once: time passes as the test moves it on.
class PassBeside {
 public:
  PassBeside(CollectedVolume& volume, TestCollector& collector) : volume_(volume) {
    volume_.clock().waits_end_at_once = true;
    pass_ = std::async(std::launch::async, [this, &collector] { return collector.try_pass(stop_.get_token()); });
  }
  ~PassBeside() { volume_.clock().waits_end_at_once = false; }
  void stop() { stop_.request_stop(); }
  bool ends_by_itself() { return pass_.wait_for(seconds(30)) == std::future_status::ready; }
  /// How long that takes, on the clock: more than is needed, as it does not stand still for what is done.
  seconds let_time_pass_until_it_ends() {
    seconds passed{0};
    while (pass_.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
      volume_.clock().advance(seconds(1));
      passed += seconds(1);
      if (passed != most_seconds) continue;
      FAIL_CHECK("the pass does not end");
      stop();
    }
    return passed;
  }
  reclaim::PassReport report() { return need(pass_.get()); }

 private:
  static constexpr seconds most_seconds{20'000};  // far more than any pass here needs, however busy the machine
  CollectedVolume& volume_;
  std::stop_source stop_;
  std::future<Result<reclaim::PassReport>> pass_;
};

/// Steps of that kind on these objects are held.
ScriptedClient::Hook hangs(StepKind kind, const Names& objects) {
  return [kind, objects](const StepInfo& info) {
    return info.kind == kind && objects.contains(info.object) ? Fault{Fault::Kind::hold} : Fault{};
  };
}

TEST_CASE("a data object that does not answer keeps its file for a later pass, and no other") {
  const unsigned jobs = GENERATE(1, 3);
  const auto objects = GENERATE(std::vector<std::uint64_t>{0}, std::vector<std::uint64_t>{0, 1, 2, 3, 4});
  constexpr unsigned hung = 4;
  CollectedVolume volume;
  auto mount = volume.mount();
  Names first_objects, inodes;
  for (unsigned i = 0; i < hung; ++i) {
    const auto ino = make_filled(*mount.file_system, "hangs" + std::to_string(i), objects);
    first_objects.insert(format::data_object(ino, ObjectIndex{0}));
    inodes.insert(format::inode_object(ino));
  }
  make_filled(*mount.file_system, "fine", {0, 1, 2});  // the last: it is looked at last
  for (unsigned i = 0; i < hung; ++i) need(mount->unlink(root_ino, "hangs" + std::to_string(i)));
  need(mount->unlink(root_ino, "fine"));
  need(mount->unmount());
  TestCollector collector(volume.cluster(), volume.clock(), seconds(0), jobs);
  collector.client().set_hook([&, remove_hangs = hangs(StepKind::remove, first_objects)](const StepInfo& info) {
    const bool forgets = info.step == "forget removed data" && inodes.contains(info.object);
    return forgets ? Fault{Fault::Kind::hold} : remove_hangs(info);  // what was not begun cannot hang
  });
  {
    PassBeside pass(volume, collector);
    pass.let_time_pass_until_it_ends();
    const auto report = pass.report();
    CHECK(report.inodes_removed == 1);
    CHECK(report.items_left > 0);
  }
  const auto sent = collector.client().counts().removes;
  {
    PassBeside next(volume, collector);
    next.let_time_pass_until_it_ends();
    CHECK(next.report().inodes_removed == 0);
  }
  CHECK(collector.client().counts().removes == sent);
  collector.client().set_hook(nullptr);
  collector.client().release_all();
  CHECK(collector.pass().inodes_removed == hung);
  collector.end();
  CHECK(volume.objects() == empty_volume);
}

TEST_CASE("a collector that gets no further leaves the others their turn") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto ino = make_filled(*mount.file_system, "hangs", {0});
  need(mount->unlink(root_ino, "hangs"));
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(hangs(StepKind::remove, {format::data_object(ino, ObjectIndex{0})}));
  {
    PassBeside marks_it_dead(volume, collector);
    CHECK(collector.client().wait_for_held(1));
    marks_it_dead.stop();
    marks_it_dead.report();
  }
  collector.client().release_all();
  {
    PassBeside pass(volume, collector);
    CHECK(collector.client().wait_for_held(1));
    const auto asked = collector.client().counts().notifies;
    CHECK(pass.let_time_pass_until_it_ends() >= seconds(30));
    CHECK(collector.client().counts().notifies == asked);
  }
  collector.client().set_hook(nullptr);
  collector.client().release_all();
  collector.pass();
  collector.end();
  need(mount->unmount());
}

/// The store does not let this client remove these objects.
ScriptedClient::Hook may_not_remove(const Names& objects) {
  return [objects](const StepInfo& info) {
    const bool may_not = info.kind == StepKind::remove && objects.contains(info.object);
    return may_not ? Fault{Fault::Kind::fail, ErrorCode::permission_denied} : Fault{};
  };
}

TEST_CASE("a data object that may not be removed keeps its file, and what leads there, and no other") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto kept = make_filled(*mount.file_system, "kept", {0, 1});
  const auto fine = make_filled(*mount.file_system, "fine", {0});
  REQUIRE(kept < fine);
  need(mount->unlink(root_ino, "kept"));
  need(mount->unlink(root_ino, "fine"));
  need(mount->unmount());
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(may_not_remove({format::data_object(kept, ObjectIndex{0})}));
  const auto report = collector.pass();
  CHECK_FALSE(inode_object_of(volume.cluster(), fine));
  CHECK(inode_object_of(volume.cluster(), kept));
  CHECK(report.inodes_removed == 1);
  CHECK(report.items_left > 0);
  CHECK(report.instances_removed == 0);
  CHECK(report.refused == 1);
  CHECK(report.refusal.find(format::data_object(kept, ObjectIndex{0})) != std::string::npos);
  CHECK(report.damaged.empty());
  CHECK(collector.client().counts().removes == 3);  // each once, however many rounds there were
  collector.client().set_hook(nullptr);
  CHECK(collector.pass().refused == 0);
  collector.end();
  CHECK(volume.objects() == empty_volume);
}

TEST_CASE("what was removed beside an object that may not be is neither removed nor counted again") {
  const unsigned jobs = GENERATE(1U, 16U);
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto kept = make_filled(*mount.file_system, "kept", {0, 1, 2, 1500, 1501, 4000});
  need(mount->unlink(root_ino, "kept"));
  need(mount->unmount());
  TestCollector collector(volume.cluster(), volume.clock(), seconds(0), jobs);
  TestCollector other(volume.cluster(), volume.clock());
  collector.client().set_hook(may_not_remove({format::data_object(kept, ObjectIndex{1500})}));
  std::uint64_t removed = collector.pass().data_objects_removed;
  CHECK(removed == 4);  // of the blocks of the map up to there
  const auto tried = collector.client().counts().removes;
  for (unsigned passes = 0; passes < 2; ++passes) {
    volume.clock().advance(minutes(2));
    const auto next = collector.pass();
    CHECK(next.data_objects_removed == 0);
    CHECK(next.bytes_freed == 0);
    CHECK(next.refused == 1);
  }
  CHECK(collector.client().counts().removes == tried + 2);
  CHECK_FALSE(other.another_is_at_work(seconds(60)));
  collector.client().set_hook(nullptr);
  removed += collector.pass().data_objects_removed;
  CHECK(removed == 6);
  collector.end();
  other.end();
  CHECK(volume.objects() == empty_volume);
}

TEST_CASE("a collector that was fenced while it removes data ends its pass") {
  CollectedVolume volume;
  auto mount = volume.mount();
  make_filled(*mount.file_system, "file", {0});
  need(mount->unlink(root_ino, "file"));
  need(mount->unmount());
  {
    TestCollector collector(volume.cluster(), volume.clock());
    collector.client().set_hook([](const StepInfo& info) {
      return info.kind == StepKind::remove ? Fault{Fault::Kind::fail, ErrorCode::fenced} : Fault{};
    });
    CHECK(error_of(collector.try_pass()) == ErrorCode::fenced);
  }
  volume.collect();
  CHECK(volume.objects() == empty_volume);
}

TEST_CASE("a collector that may do nothing about what waits leaves the others their turn") {
  CollectedVolume volume({.dead_clients_watch = true, .deaths_are_seen = true});
  auto mount = volume.mount();
  const auto ino = make_filled(*mount.file_system, "file", {0});
  need(mount->unlink(root_ino, "file"));
  TestCollector weak(volume.cluster(), volume.clock()), other(volume.cluster(), volume.clock());
  const bool may_not_fence = GENERATE(true, false);
  if (may_not_fence) mount.client->crash();
  weak.client().set_hook([may_not_fence](const StepInfo& info) {
    const bool is_refused = info.kind == (may_not_fence ? StepKind::fence : StepKind::remove);
    return is_refused ? Fault{Fault::Kind::fail, ErrorCode::permission_denied} : Fault{};
  });
  for (unsigned passes = 0; passes < 4; ++passes) {
    CHECK(weak.pass().inodes_removed == 0);
    volume.clock().advance(seconds(30));
  }
  CHECK_FALSE(other.another_is_at_work(seconds(60)));
  other.pass();
  CHECK_FALSE(inode_object_of(volume.cluster(), ino));
  // What it finds from now on it can do: the others hear of it again, from the next pass on.
  weak.client().set_hook(nullptr);
  weak.pass();
  weak.pass();
  CHECK(other.another_is_at_work(seconds(60)));
  weak.end();
  other.end();
}

TEST_CASE("a collector whose passes fail leaves the others their turn") {
  CollectedVolume volume;
  auto mount = volume.mount();
  make_filled(*mount.file_system, "file", {0});
  need(mount->unlink(root_ino, "file"));
  TestCollector weak(volume.cluster(), volume.clock()), other(volume.cluster(), volume.clock());
  weak.client().set_hook(always_on("remove dead inode", {Fault::Kind::fail, ErrorCode::permission_denied}));
  CHECK_FALSE(weak.try_pass());
  volume.clock().advance(minutes(2));
  CHECK_FALSE(weak.try_pass());
  CHECK_FALSE(other.another_is_at_work(seconds(60)));
  CHECK(other.pass().inodes_removed == 1);
  weak.client().set_hook(nullptr);
  weak.end();
  other.end();
}

TEST_CASE("collectors take turns while a client is silent, about which none of them can do anything") {
  CollectedVolume volume;
  auto silent = volume.mount();
  silent.client->set_deaf(true);
  TestCollector one(volume.cluster(), volume.clock()), other(volume.cluster(), volume.clock());
  for (unsigned passes = 0; passes < 3; ++passes) {
    volume.clock().advance(minutes(2));
    CHECK(one.pass().silent.size() == 1);
    CHECK(other.another_is_at_work(seconds(60)));
  }
  silent.client->set_deaf(false);
  one.end();
  other.end();
}

TEST_CASE("a pass that is to stop waits for no data object, and its client ends without the answer") {
  const unsigned objects = GENERATE(1U, 2U);  // one in flight, and one that waits for its place
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto ino = make_filled(*mount.file_system, "hangs",
                               objects == 1 ? std::vector<std::uint64_t>{0} : std::vector<std::uint64_t>{0, 1});
  need(mount->unlink(root_ino, "hangs"));
  need(mount->unmount());
  auto collector = std::make_unique<TestCollector>(volume.cluster(), volume.clock());
  const auto store = collector->store();
  store->set_hook(hangs(StepKind::remove, {format::data_object(ino, ObjectIndex{0})}));
  {
    PassBeside pass(volume, *collector);
    CHECK(store->wait_for_held(1));
    pass.stop();
    const bool has_ended = pass.ends_by_itself();
    CHECK(has_ended);
    store->set_hook(nullptr);
    if (!has_ended) store->release_all();
    CHECK(pass.report().inodes_removed == 0);
  }
  collector->end();
  collector.reset();
  CHECK(volume.collect().inodes_removed == 1);
  store->release_all();  // its answer finds nobody
  CHECK(volume.objects() == empty_volume);
}

TEST_CASE("a pass waits for a store that is slow as long as it answers") {
  CollectedVolume volume;
  auto mount = volume.mount();
  make_filled(*mount.file_system, "file", {0, 1, 2, 3, 4, 5});
  need(mount->unlink(root_ino, "file"));
  need(mount->unmount());
  TestCollector collector(volume.cluster(), volume.clock(), seconds(0), 2);
  collector.client().set_hook(
      [](const StepInfo& info) { return info.kind == StepKind::remove ? Fault{Fault::Kind::hold} : Fault{}; });
  PassBeside pass(volume, collector);
  for (int removed = 0; removed < 6; ++removed) {
    CHECK(collector.client().wait_for_held(1));
    volume.clock().advance(seconds(20));
    collector.client().release();
  }
  CHECK(pass.ends_by_itself());
  CHECK(pass.report().inodes_removed == 1);
  collector.end();
}

namespace {
/// A client of that volume has written a new file, and died before it stored the inode. Answers the object.
std::string leave_early_bytes(CollectedVolume& volume, const std::string& name = "file") {
  auto mount = volume.mount();
  const auto ino = make_file(*mount.file_system, root_ino, name);
  const auto bytes = format::data_object(Ino{ino.value + 1}, ObjectIndex{0});
  volume.cluster().with_objects([&](scripted::Objects& objects) { objects.write(bytes, 0, "bytes"); });
  mount.client->crash();
  volume.clock().advance(minutes(2));
  return bytes;
}
}  // namespace

TEST_CASE("bytes without an inode that do not answer keep the range that leads to them") {
  CollectedVolume volume;
  const auto bytes = leave_early_bytes(volume);
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(hangs(StepKind::remove, {bytes}));
  {
    PassBeside pass(volume, collector);
    pass.let_time_pass_until_it_ends();
    CHECK(pass.report().instances_removed == 0);
  }
  CHECK(collector.pass().instances_removed == 0);
  collector.client().set_hook(nullptr);
  collector.client().release_all();
  CHECK(collector.pass().instances_removed == 1);
  collector.end();
  CHECK_FALSE(volume.objects().contains(bytes));
}

TEST_CASE("bytes without an inode that the store cannot remove keep the range that leads to them") {
  CollectedVolume volume;
  const auto bytes = leave_early_bytes(volume);
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook([&bytes](const StepInfo& info) {
    const bool fails = info.kind == StepKind::remove && info.object == bytes;
    return fails ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  });
  const auto report = collector.pass();
  CHECK(report.instances_removed == 0);
  CHECK(report.damaged.size() == 1);
  collector.client().set_hook(nullptr);
  CHECK(collector.pass().instances_removed == 1);
  collector.end();
  CHECK_FALSE(volume.objects().contains(bytes));
}

TEST_CASE("bytes without an inode that may not be removed keep the range that leads to them, and no other client's") {
  CollectedVolume volume;
  const auto bytes = leave_early_bytes(volume), others = leave_early_bytes(volume, "other");
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(may_not_remove({bytes}));
  const auto report = collector.pass();
  CHECK(report.instances_removed == 1);
  CHECK(report.refused == 1);
  CHECK_FALSE(volume.objects().contains(others));
  collector.client().set_hook(nullptr);
  CHECK(collector.pass().instances_removed == 1);
  collector.end();
  CHECK_FALSE(volume.objects().contains(bytes));
}

TEST_CASE("an inode that is read and does not answer is left for a later pass, and nothing else is") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto hung = make_filled(*mount.file_system, "hangs", {0});
  const auto object = format::inode_object(hung);
  make_filled(*mount.file_system, "fine", {0});
  need(mount->unlink(root_ino, "hangs"));
  need(mount->unlink(root_ino, "fine"));
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(hangs(StepKind::query, {object}));
  const auto reads = [&] { return std::ranges::count(collector.client().trace(), "query " + object); };
  {
    PassBeside pass(volume, collector);
    pass.let_time_pass_until_it_ends();
    const auto report = pass.report();
    CHECK(report.inodes_removed == 1);
    CHECK(report.damaged.empty());
    CHECK(report.items_left > 0);
  }
  CHECK(reads() == 1);
  CHECK(collector.pass().inodes_removed == 0);
  CHECK(reads() == 1);
  collector.client().set_hook(nullptr);
  collector.client().release_all();
  CHECK(collector.pass().inodes_removed == 1);
  collector.end();
  need(mount->unmount());
}

TEST_CASE("an inode of a client that is gone, and that does not answer, keeps the directory to which it may point") {
  CollectedVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto directory = make_dir(*mount.file_system, root_ino, "directory");
  other.client->set_hook(once_on("insert entry", {Fault::Kind::not_applied_and_crash}));
  const auto made = other->make_node({}, directory, "file", {FileType::regular, 0644, 0, {}});
  CHECK_FALSE(made);
  Names inodes;
  for (const auto& name : volume.objects()) {
    const bool is_new = name.starts_with("Inode.") && name != "Inode.1" && name != format::inode_object(directory);
    if (is_new) inodes.insert(name);
  }
  REQUIRE(inodes.size() == 1);
  need(mount->rmdir(root_ino, "directory"));
  volume.clock().advance(minutes(2));
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(hangs(StepKind::query, inodes));
  {
    PassBeside pass(volume, collector);
    pass.let_time_pass_until_it_ends();
    CHECK(pass.report().inodes_removed == 0);
  }
  CHECK(inode_object_of(volume.cluster(), directory));
  collector.client().set_hook(nullptr);
  collector.client().release_all();
  CHECK(collector.pass().inodes_removed == 2);
  collector.end();
  need(mount->unmount());
}

/// An operation that draws a number, and does not end before this does.
class HangingOperation {
 public:
  explicit HangingOperation(const Mount& mount)
      : client_(*mount.client), made_(std::async(std::launch::async, [fs = mount.file_system.get(), this] {
          client_.set_hook(once_on("create inode", {Fault::Kind::hold}));
          return fs->make_node({}, root_ino, "hanging", {});
        })) {
    CHECK(client_.wait_for_held(1));
  }
  ~HangingOperation() {
    client_.release_all();
    need(made_.get());
  }

 private:
  ScriptedClient& client_;
  std::future<Result<EntryReply>> made_;
};

TEST_CASE("a directory stays for what a client that is gone had linked there, as long as that waits for another") {
  CollectedVolume volume;
  auto maker = volume.mount();
  auto linker = volume.mount();
  auto remover = volume.mount();
  const auto q = make_dir(*remover.file_system, root_ino, "q"), p = make_dir(*remover.file_system, root_ino, "p");
  TestCollector collector(volume.cluster(), volume.clock());
  {
    const HangingOperation older(maker);
    const auto x = make_file(*maker.file_system, q, "x");
    linker.client->set_hook(once_on("insert entry", {Fault::Kind::not_applied_and_crash}));
    CHECK_FALSE(linker->link(x, p, "y"));
    REQUIRE(linker.client->crashed());
    need(remover->unlink(q, "x"));
    need(remover->rmdir(root_ino, "p"));
    volume.clock().advance(minutes(2));
    CHECK(collector.pass().gone.size() == 1);
    CHECK(inode_object_of(volume.cluster(), x));
    CHECK(inode_object_of(volume.cluster(), p));
  }
  const auto report = collector.pass();
  CHECK(report.damaged.empty());
  CHECK(report.inodes_removed == 2);
  collector.end();
  need(maker->unmount());
  need(remover->unmount());
}

TEST_CASE("a queue that does not answer keeps no other client's from being handled") {
  CollectedVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  make_file(*mount.file_system, root_ino, "one");
  make_file(*other.file_system, root_ino, "other");
  need(mount->unlink(root_ino, "one"));
  need(other->unlink(root_ino, "other"));
  TestCollector collector(volume.cluster(), volume.clock());
  std::string session;
  collector.client().set_hook([&](const StepInfo& info) {
    const bool is_queue = info.kind == StepKind::query && info.object.starts_with("Session.");
    if (is_queue && session.empty()) session = info.object;  // the first
    return is_queue && info.object == session ? Fault{Fault::Kind::hold} : Fault{};
  });
  {
    PassBeside pass(volume, collector);
    pass.let_time_pass_until_it_ends();
    CHECK(pass.report().inodes_removed == 2);  // each directory item leads to all keys
  }
  collector.client().set_hook(nullptr);
  collector.client().release_all();
  CHECK(collector.pass().items_left == 0);
  collector.end();
  need(mount->unmount());
  need(other->unmount());
}

TEST_CASE("a directory whose keys could not be removed keeps its item") {
  CollectedVolume volume;
  auto mount = volume.mount();
  make_file(*mount.file_system, root_ino, "file");
  need(mount->unlink(root_ino, "file"));
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(once_on("remove traces", {Fault::Kind::fail, ErrorCode::io}));
  CHECK_FALSE(collector.pass().damaged.empty());
  collector.pass();
  CHECK(traces_left(volume.cluster()).empty());
  collector.end();
  need(mount->unmount());
}

TEST_CASE("a session object that cannot be read keeps no other client's from going") {
  CollectedVolume volume;
  TestCollector one(volume.cluster(), volume.clock()), other(volume.cluster(), volume.clock());
  const auto session = format::session_object(one.instance().id());
  one.client().crash();
  other.client().crash();
  volume.clock().advance(minutes(2));
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(unreadable(session));
  CHECK(collector.pass().instances_removed == 1);
  CHECK(volume.objects().contains(session));
  CHECK_FALSE(volume.objects().contains(format::session_object(other.instance().id())));
  collector.client().set_hook(nullptr);
  CHECK(collector.pass().instances_removed == 1);
  collector.end();
}

TEST_CASE("what cannot be read of a client that is gone keeps directories, out of which it may have made something") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto removed = make_dir(*mount.file_system, root_ino, "removed");
  TestCollector gone(volume.cluster(), volume.clock());
  const auto session = format::session_object(gone.instance().id());
  need(mount->rmdir(root_ino, "removed"));
  need(mount->unmount());
  gone.client().crash();
  volume.clock().advance(minutes(2));
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(unreadable(session));
  CHECK(collector.pass().inodes_removed == 0);
  CHECK(inode_object_of(volume.cluster(), removed));
  collector.client().set_hook(nullptr);
  CHECK(collector.pass().inodes_removed == 1);
  collector.end();
}

TEST_CASE("an inode of a client that is gone, and that cannot be read, keeps the directory to which it may point") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto removed = make_dir(*mount.file_system, root_ino, "removed");
  auto gone = volume.mount();
  const auto before = volume.objects();
  gone.client->set_hook(once_on("insert entry", {Fault::Kind::not_applied_and_crash, ErrorCode::io}));
  CHECK_FALSE(gone->make_node({}, removed, "never named", {FileType::regular, 0600, 0, {}}).has_value());
  gone.file_system.reset();
  std::string made;
  for (const auto& name : volume.objects()) made = before.contains(name) ? made : name;
  REQUIRE(made.starts_with("Inode."));
  volume.clock().advance(minutes(2));
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(unreadable(made));
  collector.pass();
  need(mount->rmdir(root_ino, "removed"));
  need(mount->unmount());
  for (unsigned pass = 0; pass < 2; ++pass) CHECK_FALSE(collector.pass().damaged.empty());
  CHECK(inode_object_of(volume.cluster(), removed));
  collector.client().set_hook(nullptr);
  const auto report = collector.pass();
  CHECK(report.damaged.empty());
  CHECK(report.inodes_removed == 2);
  collector.end();
}

TEST_CASE("a dry run and the backlog name a session or a directory that cannot be read, and count the rest") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto directory = make_dir(*mount.file_system, root_ino, "d");
  make_file(*mount.file_system, directory, "in it");
  make_file(*mount.file_system, root_ino, "file");
  need(mount->unlink(directory, "in it"));
  need(mount->unlink(root_ino, "file"));
  need(mount->unmount());
  TestCollector other(volume.cluster(), volume.clock());
  const bool is_session = GENERATE(false, true);
  const auto object = is_session ? format::session_object(other.instance().id()) : format::inode_object(directory);
  const auto looker = volume.new_client();
  looker->set_hook(unreadable(object));
  const auto report = need(reclaim::dry_run(*looker, volume.clock(), {.jobs = 1, .grace = seconds(0)}));
  CHECK_FALSE(report.damaged.empty());
  CHECK(report.inodes_removed >= 1);
  CHECK(need(reclaim::measure_backlog(*looker)).inodes >= 1);
  other.end();
  volume.collect();
}

TEST_CASE("more step numbers of live clients in a directory than a page holds keep its item no longer than is needed") {
  ScriptedCluster::Options short_pages;
  short_pages.page_limit = 4;
  CollectedVolume volume(short_pages);
  std::vector<Mount> mounts(10);
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    mounts[i] = volume.mount();
    make_file(*mounts[i].file_system, root_ino, "file" + std::to_string(i));
  }
  need(mounts.front()->unlink(root_ino, "file3"));
  TestCollector collector(volume.cluster(), volume.clock());
  const auto report = collector.pass();
  CHECK(report.inodes_removed == 1);
  CHECK(report.items_left == 0);
  collector.end();
}

TEST_CASE("a collector whose own watch was lost continues, and does not take itself for gone") {
  CollectedVolume volume;
  auto mount = volume.mount();
  make_file(*mount.file_system, root_ino, "file");
  need(mount->unlink(root_ino, "file"));
  TestCollector collector(volume.cluster(), volume.clock());
  volume.clock().advance(minutes(2));
  collector.client().set_deaf(true);
  CHECK(collector.pass().inodes_removed == 1);
  CHECK_FALSE(collector.instance().fenced());
  collector.end();
}

TEST_CASE("a file costs as many removes as it has mapped objects, and no probing") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const auto ino = make_filled(*mount.file_system, "file", {0, 5, 2000, 2001, 9000});
  need(mount->unlink(root_ino, "file"));
  TestCollector collector(volume.cluster(), volume.clock());
  CHECK(collector.pass().data_objects_removed == 5);
  const auto counts = collector.client().counts();
  CHECK(counts.removes == 5);
  CHECK(counts.reads == 0);
  std::vector<std::string> on_inode;
  for (const auto& step : collector.client().trace()) {
    if (step.ends_with(" " + format::inode_object(ino))) on_inode.push_back(step.substr(0, step.find(" Inode")));
  }
  CHECK(on_inode == std::vector<std::string>{"query", "mark unnamed dead", "query", "forget removed data",
                                             "forget removed data", "remove dead inode"});
  collector.end();
  need(mount->unmount());
}

/// Of one block of the map each.
const std::vector<std::uint64_t> objects_of_three_blocks{0, 1024, 3000};

Ino leave_large_file(CollectedVolume& volume) {
  auto mount = volume.mount();
  const auto ino = make_filled(*mount.file_system, "large", objects_of_three_blocks);
  need(mount->unlink(root_ino, "large"));
  need(mount->unmount());
  return ino;
}

void expect_sound(CollectedVolume& volume) { CHECK(need(check::check_volume(*volume.new_client())).empty()); }

TEST_CASE("what a pass has removed of a large file stays removed: the next one continues there") {
  CollectedVolume volume;
  const auto ino = leave_large_file(volume);
  const auto object = [ino](std::size_t i) {
    return format::data_object(ino, ObjectIndex{objects_of_three_blocks[i]});
  };
  TestCollector collector(volume.cluster(), volume.clock());
  collector.client().set_hook(hangs(StepKind::remove, {object(1)}));
  {
    PassBeside pass(volume, collector);
    CHECK(collector.client().wait_for_held(1));
    pass.stop();
    pass.report();
  }
  expect_sound(volume);
  const auto left = *inode_object_of(volume.cluster(), ino);
  CHECK_FALSE(left.keys.contains(format::map_key(0)));
  CHECK(left.keys.contains(format::map_key(1)));
  CHECK(left.keys.contains(format::map_key(2)));
  TestCollector next(volume.cluster(), volume.clock());
  CHECK(next.pass().data_objects_removed == 2);
  CHECK_FALSE(volume.objects().contains(object(1)));
  collector.client().set_hook(nullptr);
  collector.client().release_all();
  collector.end();
  next.end();
  CHECK(volume.objects() == empty_volume);
}

TEST_CASE("the removal of a large file may be cut, or run again, at any step") {
  const auto kind =
      GENERATE(Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash, Fault::Kind::crash_and_land_later,
               Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  bool is_reached = true;
  for (unsigned n = 0; is_reached; ++n) {
    INFO(describe(kind) << ", change " << n);
    CollectedVolume volume({.deaths_are_seen = true});
    leave_large_file(volume);
    TestCollector collector(volume.cluster(), volume.clock());
    const NthMutation change(n, {kind});
    collector.client().set_hook(change);
    static_cast<void>(collector.try_pass());
    collector.client().set_hook(nullptr);
    is_reached = change.reached();
    expect_sound(volume);
    TestCollector next(volume.cluster(), volume.clock());
    next.pass();
    if (collector.client().crashed()) {
      collector.client().land_late_steps();
    } else {
      collector.pass();
      collector.end();
    }
    next.pass();
    next.end();
    volume.collect();
    CHECK(volume.objects() == empty_volume);
  }
}

TEST_CASE("two collectors at one large file do no harm, whichever step of one the other comes before") {
  // The other removes all, or is stopped in the midst of it.
  const bool is_stopped = GENERATE(false, true);
  bool has_acted = true;
  for (unsigned n = 0; has_acted; ++n) {
    INFO("before step " << n);
    CollectedVolume volume;
    leave_large_file(volume);
    TestCollector collector(volume.cluster(), volume.clock());
    TestCollector other(volume.cluster(), volume.clock());
    has_acted = false;
    std::stop_source stop;
    if (is_stopped) other.client().set_hook(before("forget removed data", [&] { stop.request_stop(); }));
    unsigned seen = 0;
    collector.client().set_hook([&](const StepInfo&) {
      if (seen++ == n) {
        has_acted = true;
        static_cast<void>(need(other.try_pass(stop.get_token())));
        expect_sound(volume);
      }
      return Fault{};
    });
    collector.pass();
    collector.client().set_hook(nullptr);
    other.client().set_hook(nullptr);
    collector.pass();
    collector.end();
    other.end();
    CHECK(volume.objects() == empty_volume);
  }
}

TEST_CASE(
    "many unlinked files of one directory cost three reads and two writes each, one key batch and few questions") {
  CollectedVolume volume;
  auto mount = volume.mount();
  constexpr unsigned files = 200;
  for (unsigned i = 0; i < files; ++i) make_file(*mount.file_system, root_ino, "file" + std::to_string(i));
  for (unsigned i = 0; i < files; ++i) need(mount->unlink(root_ino, "file" + std::to_string(i)));
  TestCollector collector(volume.cluster(), volume.clock());
  CHECK(collector.pass().inodes_removed == files);
  const auto counts = collector.client().counts();
  CHECK(counts.queries <= 4 * files + 30);
  CHECK(counts.applies <= 2 * files + 5);
  CHECK(counts.notifies <= 4);
  collector.end();
  need(mount->unmount());
}

TEST_CASE("two collectors at once, on several threads, lose nothing and leave nothing") {
  CollectedVolume volume;
  auto mount = volume.mount();
  constexpr unsigned files = 300;
  for (unsigned i = 0; i < files; ++i) {
    make_file(*mount.file_system, root_ino, "kept" + std::to_string(i));
    make_filled(*mount.file_system, "removed" + std::to_string(i), {i % 5});
  }
  for (unsigned i = 0; i < files; ++i) need(mount->unlink(root_ino, "removed" + std::to_string(i)));
  need(mount->unmount());
  TestCollector first(volume.cluster(), volume.clock(), seconds(0), 4);
  TestCollector second(volume.cluster(), volume.clock(), seconds(0), 4);
  {
    const std::jthread one([&] { first.pass(); });
    const std::jthread other([&] { second.pass(); });
  }
  first.pass();
  first.end();
  second.end();
  volume.collect();
  CHECK(volume.objects().size() == empty_volume.size() + files);
  CHECK(traces_left(volume.cluster()).empty());
}

TEST_CASE("a dry run says what a pass would do, and changes nothing") {
  const bool proven_dead = GENERATE(false, true);
  CollectedVolume volume({.deaths_are_seen = proven_dead});
  auto mount = volume.mount();
  auto dead = volume.mount();
  make_filled(*mount.file_system, "file", {0, 1});
  const auto open = make_filled(*mount.file_system, "open", {0});
  const auto handle = need(mount->open({}, open, O_RDONLY)).handle;
  need(mount->unlink(root_ino, "file"));
  need(mount->unlink(root_ino, "open"));
  dead.client->crash();
  auto looker = volume.new_client();
  const auto report = need(reclaim::dry_run(*looker, volume.clock(), {.jobs = 1, .grace = seconds(0)}));
  CHECK(report.inodes_removed == 1);
  CHECK(report.data_objects_removed == 2);
  CHECK(report.bytes_freed == object_bytes / 64 + 10);
  CHECK(report.open_elsewhere == 1);
  CHECK(report.gone.size() == (proven_dead ? 1 : 0));
  CHECK(report.not_seen.size() == (proven_dead ? 0 : 1));
  const auto counts = looker->counts();
  CHECK(counts.applies + counts.writes + counts.removes + counts.truncates + counts.fences == 0);
  mount->release(handle);
  need(mount->unmount());
}

TEST_CASE("a dry run counts the file of a move that was cut, as the pass does that settles it") {
  const std::string step = GENERATE("move entry in", "move entry out");
  INFO("before " << step);
  CollectedVolume volume;
  cut_move(volume, step);
  const auto said = need(reclaim::dry_run(*volume.new_client(), volume.clock(), {.jobs = 1, .grace = seconds(0)}));
  const auto done = volume.collect();
  CHECK(done.inodes_corrected == 1);
  CHECK(said.inodes_corrected == done.inodes_corrected);
  CHECK(said.inodes_removed == done.inodes_removed);
  CHECK(said.damaged.empty());
}

TEST_CASE("a dry run finds a moved file by its decision alone") {
  CollectedVolume volume;
  cut_move(volume, "move entry out");
  volume.cluster().with_objects([](scripted::Objects& objects) {
    for (auto& [name, object] : objects.metadata()) {
      if (!name.starts_with("Session.")) continue;
      std::erase_if(object.keys, [](const auto& key_and_value) {
        const auto item = format::decode<format::QueueItem>(key_and_value.second);
        return item && item->kind != format::QueueItem::Kind::directory;
      });
    }
  });
  const auto said = need(reclaim::dry_run(*volume.new_client(), volume.clock(), {.jobs = 1, .grace = seconds(0)}));
  CHECK(said.inodes_corrected == 1);
  volume.collect();
}

TEST_CASE("a mark whose entry is damaged is named and left, and the pass continues with the rest") {
  const std::string step = GENERATE("move entry in", "move entry out");
  const bool is_noise = GENERATE(true, false);
  INFO("before " << step << (is_noise ? ", noise" : ", without a mark"));
  CollectedVolume volume;
  const auto [f, d] = cut_move(volume, step);
  Bytes sound;
  const auto set_entry = [&](const auto& change) {
    volume.cluster().with_objects([&](scripted::Objects& objects) {
      for (auto& [key, value] : objects.metadata().at("Inode.1").keys) {
        const auto entry = format::parse_entry_key(key);
        if (entry && entry->name == "f") change(value);
      }
    });
  };
  set_entry([&](Bytes& value) {
    sound = value;
    auto plain = need(format::decode<format::EntryRecord>(value));
    plain.mark.reset();
    value = is_noise ? Bytes("noise") : encode(plain);
  });
  auto mount = volume.mount();
  make_file(*mount.file_system, d, "beside");
  need(mount->unlink(d, "beside"));
  need(mount->unmount());
  const auto said = need(reclaim::dry_run(*volume.new_client(), volume.clock(), {.jobs = 1, .grace = seconds(0)}));
  CHECK_FALSE(said.damaged.empty());
  TestCollector collector(volume.cluster(), volume.clock());
  unsigned tries = 0;
  collector.client().set_hook([&tries](const StepInfo& info) {
    if (info.step == "clear mark" || info.step == "cancel move") ++tries;
    return Fault{};
  });
  const auto report = collector.pass();
  collector.end();
  CHECK_FALSE(report.damaged.empty());
  CHECK(report.inodes_removed == 1);
  CHECK(report.items_left > 0);
  CHECK(tries == 0);
  set_entry([&](Bytes& value) { value = sound; });
  CHECK(volume.collect().damaged.empty());
}

TEST_CASE("a range of more numbers than any client takes is named as damage, by a dry run too") {
  CollectedVolume volume;
  TestCollector collector(volume.cluster(), volume.clock());
  need(collector.instance().log_items({{format::QueueItem::Kind::range, Ino{5}, Ino{std::uint64_t{1} << 60}, {}}}));
  collector.client().crash();
  volume.clock().advance(minutes(2));
  const auto report = need(reclaim::dry_run(*volume.new_client(), volume.clock(), {.jobs = 1, .grace = seconds(0)}));
  REQUIRE(report.damaged.size() == 1);
  CHECK(report.damaged.front().ends_with("no client takes so many numbers"));
  CHECK_FALSE(volume.collect().damaged.empty());
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    objects.metadata().at(format::session_object(collector.instance().id())).keys.clear();
  });
}

TEST_CASE("the backlog counts items, unnamed inodes and the bytes that wait") {
  CollectedVolume volume;
  auto mount = volume.mount();
  CHECK(need(reclaim::measure_backlog(*volume.new_client())).items == 0);
  make_filled(*mount.file_system, "file", {0, 1});
  const auto logged = volume.clock().wall_time();
  need(mount->unlink(root_ino, "file"));
  volume.clock().advance(minutes(1));
  const auto backlog = need(reclaim::measure_backlog(*volume.new_client()));
  CHECK(backlog.items == 1);
  CHECK(backlog.oldest == logged);
  CHECK(backlog.inodes == 1);
  CHECK(backlog.bytes_waiting == object_bytes / 64 + 10);
  need(mount->unmount());
}

TEST_CASE("the backlog counts a removed directory, to which an item of its own leads before its lost name does") {
  CollectedVolume volume;
  auto mount = volume.mount();
  make_dir(*mount.file_system, root_ino, "directory");
  need(mount->rmdir(root_ino, "directory"));
  CHECK(need(reclaim::measure_backlog(*volume.new_client())).inodes == 1);
  need(mount->unmount());
}

TEST_CASE("the backlog counts no inode that lost a name and has another, by a link or elsewhere") {
  CollectedVolume volume;
  auto mount = volume.mount();
  const Ino directory = make_dir(*mount.file_system, root_ino, "directory");
  make_filled(*mount.file_system, "moved", {0, 1});
  const Ino linked = make_filled(*mount.file_system, "linked", {0, 1});
  need(mount->link(linked, directory, "second"));
  need(mount->unlink(root_ino, "linked"));
  need(mount->rename(root_ino, "moved", directory, "moved", RenameMode::replace));
  const auto backlog = need(reclaim::measure_backlog(*volume.new_client()));
  CHECK(backlog.items > 0);
  CHECK(backlog.inodes == 0);
  CHECK(backlog.bytes_waiting == 0);
  need(mount->unmount());
}

TEST_CASE("a backlog is looked at within a bound") {
  CollectedVolume volume;
  auto mount = volume.mount();
  for (const char* name : {"a", "b", "c", "d"}) {
    make_filled(*mount.file_system, name, {0});
    need(mount->unlink(root_ino, name));
  }
  const auto all = need(reclaim::measure_backlog(*volume.new_client()));
  CHECK((all.inodes == 4 && !all.is_more));
  const auto some = need(reclaim::measure_backlog(*volume.new_client(), 2));
  CHECK((some.inodes == 2 && some.is_more && some.items == all.items));
  need(mount->unmount());
}

TEST_CASE("a collector keeps to its rate") {
  CollectedVolume volume;
  auto mount = volume.mount();
  make_filled(*mount.file_system, "file", {0, 1, 2, 3, 4, 5, 6, 7});
  need(mount->unlink(root_ino, "file"));
  auto client = volume.new_client();
  auto instance = need(Instance::start(client, volume.clock(), {}));
  reclaim::Collector collector(*instance, {.jobs = 1, .operations_per_second = 2, .grace = seconds(0)});
  // Eight data objects, the mark, the inode, the d/ key and the item: the first begins at once.
  CHECK(need(collector.pass()).took >= std::chrono::milliseconds(5500));
  need(instance->end());
  need(mount->unmount());
}

TEST_CASE("turns are an interval apart, and a stop waits for none") {
  FakeClock clock;
  std::stop_source stop;
  reclaim::Pace pace(clock, 1, 1, stop.get_token());
  for (int i = 0; i < 5; ++i) pace.wait_for_turn();
  CHECK(clock.elapsed() == seconds(4));
  stop.request_stop();
  for (int i = 0; i < 5; ++i) pace.wait_for_turn();
  CHECK(clock.elapsed() == seconds(4));
}

TEST_CASE("a place among the steps in flight is waited for until it is free, or that is in vain, or a stop comes") {
  FakeClock clock;
  clock.waits_end_at_once = true;
  std::stop_source stop;
  reclaim::Pace pace(clock, 1, 0, stop.get_token());
  const auto never = [] { return false; };
  CHECK(pace.enter(never));
  int looks = 0;
  CHECK_FALSE(pace.enter([&] { return ++looks == 3; }));
  CHECK(pace.enter([&] { return pace.leave(), false; }));
  CHECK_FALSE(pace.enter([&] { return stop.request_stop(), false; }));
  pace.leave();
  CHECK_FALSE(pace.enter(never));
}

}  // namespace
}  // namespace lccfs::test
