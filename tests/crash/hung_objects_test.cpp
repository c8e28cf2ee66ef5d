// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Some object does not answer, and much waits for it: everything that does not need it continues at once. On one mount
// and between two, and for a collector (docs/TESTING.md).
#include <fcntl.h>

#include <atomic>
#include <cstdio>
#include <set>

#include "crash/sampling.h"
#include "crash/timed_world.h"
#include "format/object_names.h"
#include "support/catch.h"
#include "support/paths.h"

namespace lccfs::crash {
namespace {

using Party = TimedWorld::Party;
using test::need;
using test::Paths;

constexpr std::uint64_t object_bytes = 64U << 10;
/// More than any pool has threads.
constexpr unsigned many = 1200;
/// No call that continues waits for anything but a pause of its own.
constexpr seconds at_once{10};
constexpr seconds hangs_until{600};

/// Printed at the end, so that a suite that shrinks is seen.
struct CaseCounter {
  unsigned cases = 0, calls = 0;
  ~CaseCounter() { std::printf("hung objects: %u cases, %u calls that did not need them\n", cases, calls); }
} counted;

/// Mounts a and b and a collector. /x and /y are being written by a, /d and /e are directories; what hangs does so for
/// ten minutes.
class Scene {
 public:
  Scene() {
    Paths paths(*a.mount);
    for (const char* path : {"/d", "/e"}) need(paths.make_node(path, {FileType::directory, 0755, 0, ""}));
    for (const char* path : {"/x", "/y", "/z", "/d/old", "/e/old"}) need(paths.make_file(path, 0644));
    x = need(paths.find("/x"));
    d = need(paths.find("/d"));
    x_handle = need(paths.open("/x", O_RDWR));
    y_handle = need(paths.open("/y", O_RDWR));
    handles = {x_handle, y_handle};
    for (const auto handle : handles) need(paths.write(handle, 0, "bytes"));
  }

  /// Files that a writes.
  std::vector<Ino> files_written(unsigned count) {
    Paths paths(*a.mount);
    std::vector<Ino> files;
    for (unsigned i = 0; i < count; ++i) {
      const auto path = "/e/file" + std::to_string(i);
      need(paths.make_file(path, 0644));
      handles.push_back(need(paths.open(path, O_RDWR)));
      need(paths.write(handles.back(), 0, "bytes"));
      files.push_back(need(paths.find(path)));
    }
    return files;
  }

  void hang(const TimedWorld::What& what) {
    world.outage(seconds(0), hangs_until, what);
    world.run_until(seconds(0));
  }

  /// Waits for what hangs, or not.
  void load(Party& party, std::function<void(Paths&)> act) {
    world.work(party, [&party, act = std::move(act)] {
      Paths paths(*party.mount);
      act(paths);
    });
  }
  /// A write of a, sent and not waited for.
  void send_write(HandleId handle, std::uint64_t offset_bytes) {
    static const auto bytes = std::make_shared<const std::string>(4096, 'x');
    const SharedBytes shared{std::shared_ptr<const char>(bytes, bytes->data()), bytes->data(), bytes->size()};
    a->write(handle, {.offset_bytes = offset_bytes, .bytes = shared, .flags = O_RDWR},
             [](const Result<std::size_t>&) {});
  }
  /// Writes of a to /x.
  void write_much(std::uint64_t stride_bytes) {
    for (std::uint64_t i = 0; i < many; ++i) send_write(x_handle, i * stride_bytes);
  }
  /// Asks a for a file, as b would: the answer may be "busy", but is there within a second.
  void ask_for(Ino file) {
    world.work(b, [this, file] {
      const auto asked_at = world.now();
      const format::Question question{format::Question::Kind::release_lease, file};
      const auto reply = b.client->notify(TimedWorld::session_object(a), encode(question), answer_timeout);
      if (!reply || reply->answers.empty()) world.wrong("a question was not answered");
      if (world.now() - asked_at > seconds(1)) world.wrong("a question was answered late");
    });
  }

  void continues(Party& party, const std::string& what, std::function<Result<>(Paths&)> act) {
    ++counted.calls;
    ++left_;
    world.work(party, [this, &party, what, act = std::move(act)] {
      Paths paths(*party.mount);
      world.call(party, what, [&] { return act(paths); });
      --left_;
    });
  }
  void names_continue(Party& party, const std::string& directory) {
    continues(party, "names in " + directory, [directory, mine = directory + "/" + party.name](Paths& at) -> Result<> {
      LCCFS_CHECK(at.make_file(mine, 0644));
      LCCFS_CHECK(at.chmod(mine, 0600));
      LCCFS_CHECK(at.rename(mine, mine + "-new"));
      return at.find(mine + "-new") ? Result<>{} : failure(ErrorCode::not_found, mine);
    });
  }
  void removal_continues(Party& party, const std::string& path) {
    continues(party, "unlink " + path, [path](Paths& at) { return at.unlink(path); });
  }
  void data_continues() {
    continues(a, "write and fsync of /y", [this](Paths& at) -> Result<> {
      LCCFS_CHECK(at.write(y_handle, 3, "more"));
      LCCFS_CHECK(at.write(y_handle, 5 * object_bytes, "far"));  // a step of the inode's, too
      LCCFS_CHECK(at.fsync(y_handle, false));
      LCCFS_CHECK(at.read(y_handle, 0, 7));
      return {};
    });
    continues(a, "open, write and close of /z", [](Paths& at) { return at.write("/z", object_bytes, "new"); });
    continues(b, "writes of another mount", [](Paths& at) {
      const auto made = at.make_file("/of-b", 0644);
      return made ? at.write("/of-b", 0, "new") : made;
    });
  }
  /// b asks a for /y.
  void questions_continue() {
    continues(b, "stat and read of /y, which a writes", [](Paths& at) -> Result<> {
      LCCFS_TRY(const HandleId handle, at.open("/y", O_RDONLY));
      LCCFS_CHECK(at.read(handle, 0, 5));
      at.close(handle);
      return {};
    });
  }
  /// Attributes of /y, which a writes, do not need a's answer.
  void stat_continues() {
    continues(b, "stat of /y, which a writes", [this](Paths& at) -> Result<> {
      LCCFS_TRY(const Ino y, at.find("/y"));
      LCCFS_CHECK(b->get_attributes(y));
      return {};
    });
  }
  /// b takes /y from a.
  void leases_continue() {
    continues(b, "write of /y, which a writes", [](Paths& at) { return at.write("/y", 0, "b"); });
  }
  void collector_continues() {
    ++counted.calls;
    ++left_;
    world.work(collector, [this] {
      world.pass(collector);
      --left_;
    });
  }

  /// What continues has done so; then the object is back, and all ends well.
  void conclude(const std::string& name) {
    ++counted.cases;
    world.run_until(world.now() + at_once);
    if (left_ != 0) world.wrong(std::to_string(left_) + " calls wait that do not need what hangs:" + world.waiting());
    world.run_until(hangs_until + seconds(1));
    world.run_until_done(seconds(1200));
    world.work(a, [this] {
      Paths paths(*a.mount);
      for (const auto handle : handles) paths.close(handle);
    });
    world.run_until_done(world.now() + at_once);
    const auto wrong = world.conclude();
    if (!wrong.empty()) FAIL_CHECK(name << "\n" << wrong);
  }

  TimedWorld world{1};
  Party& a = world.mount();
  Party& b = world.mount();
  Party& collector = world.collector();
  Ino x, d;
  HandleId x_handle, y_handle;
  std::vector<HandleId> handles;  // all that a has open

 private:
  std::atomic<unsigned> left_ = 0;
};

TimedWorld::What data_of(Ino ino) {
  const auto first = format::data_object(ino, ObjectIndex{0});
  return [prefix = first.substr(0, first.rfind('.') + 1)](const std::string& object) {
    return object.starts_with(prefix);
  };
}

TEST_CASE("a file whose data hangs holds up nothing but what needs its data") {
  Scene scene;
  for (std::uint64_t i = 0; i < many; i += 16) {
    need(Paths(*scene.a.mount).write(scene.x_handle, i * 4096, "bytes"));
  }
  scene.hang(data_of(scene.x));
  scene.write_much(4096);
  for (int i = 0; i < 20; ++i) {
    scene.load(scene.a, [&](Paths& at) { static_cast<void>(at.read(scene.x_handle, 0, 100)); });
    scene.load(scene.b, [&](Paths& at) { static_cast<void>(at.write("/x", 0, "mine")); });
  }
  scene.world.run_until(seconds(30));
  for (Party* party : {&scene.a, &scene.b}) scene.names_continue(*party, "/d");
  scene.removal_continues(scene.a, "/e/old");
  scene.continues(scene.a, "chmod of /x", [](Paths& at) { return at.chmod("/x", 0600); });
  scene.data_continues();
  scene.questions_continue();
  scene.leases_continue();
  scene.collector_continues();
  scene.conclude("data of a file");
}

TEST_CASE("a truncate that waits for an object's removal holds up no stat elsewhere") {
  Scene scene;
  need(Paths(*scene.a.mount).write(scene.y_handle, object_bytes, "bytes"));
  const Ino y = need(Paths(*scene.a.mount).find("/y"));
  scene.hang(data_of(y));
  scene.load(scene.a, [](Paths& at) { static_cast<void>(at.truncate("/y", 0)); });
  scene.world.run_until(seconds(30));
  scene.stat_continues();
  scene.conclude("removal of an object");
}

TEST_CASE("an object that hangs, and writes that wait for it, hold up no other object of their file") {
  Scene scene;
  Paths paths(*scene.a.mount);
  for (std::uint64_t i = 1; i < 8; ++i) need(paths.write(scene.x_handle, i * object_bytes, "bytes"));
  need(paths.fsync(scene.x_handle, false));
  scene.hang(TimedWorld::only(format::data_object(scene.x, ObjectIndex{0})));
  scene.write_much(0);  // each overlaps all others
  for (std::uint64_t i = 0; i < 20; ++i) {
    scene.load(scene.a, [&](Paths& at) { static_cast<void>(at.read(scene.x_handle, 0, 100)); });
    scene.send_write(scene.x_handle, object_bytes - 100 - i);  // over the border
  }
  scene.world.run_until(seconds(30));
  scene.continues(scene.a, "reads and writes of other objects of /x", [&](Paths& at) -> Result<> {
    for (std::uint64_t i = 2; i < 8; ++i) {
      LCCFS_CHECK(at.write(scene.x_handle, i * object_bytes, "more"));
      LCCFS_TRY(const auto read, at.read(scene.x_handle, i * object_bytes, 4));
      if (read != "more") return failure(ErrorCode::io, "read " + read);
    }
    LCCFS_CHECK(at.write(scene.x_handle, 20 * object_bytes, "far"));
    return at.fsync(scene.x_handle, false);
  });
  scene.continues(scene.b, "read of other objects of /x", [](Paths& at) -> Result<> {
    LCCFS_TRY(const HandleId handle, at.open("/x", O_RDONLY));
    LCCFS_CHECK(at.read(handle, 3 * object_bytes, 4));
    at.close(handle);
    return {};
  });
  scene.data_continues();
  scene.questions_continue();
  scene.leases_continue();
  scene.conclude("an object of a file");
}

/// Of each, one question waits for its lease.
TEST_CASE("many files that hang hold up no question, and no lease of others") {
  constexpr unsigned hung = 600;  // more than there are threads for questions, let alone for those that wait
  const bool inodes = GENERATE(false, true);
  Scene scene;
  const auto files = scene.files_written(hung);
  std::set<std::string> objects;
  for (const Ino file : files) {
    objects.insert(inodes ? format::inode_object(file) : format::data_object(file, ObjectIndex{0}));
  }
  scene.hang([objects](const std::string& object) { return objects.contains(object); });
  for (const auto handle : scene.handles) scene.send_write(handle, 0);
  scene.world.run_until(seconds(30));
  for (const Ino file : files) scene.ask_for(file);
  scene.world.run_until(seconds(40));
  scene.data_continues();
  scene.questions_continue();
  scene.leases_continue();
  scene.conclude(inodes ? "inodes of many files" : "data of many files");
}

TEST_CASE("a file whose inode hangs holds up nothing but what needs that inode") {
  Scene scene;
  scene.hang(TimedWorld::only(format::inode_object(scene.x)));
  scene.write_much(object_bytes);
  for (int i = 0; i < 20; ++i) {
    scene.load(scene.a, [&](Paths& at) { static_cast<void>(at.chmod("/x", 0600)); });
    scene.load(scene.b, [&](Paths& at) { static_cast<void>(at.write("/x", 0, "mine")); });
  }
  scene.world.run_until(seconds(30));
  for (Party* party : {&scene.a, &scene.b}) scene.names_continue(*party, "/d");
  scene.removal_continues(scene.a, "/e/old");
  scene.data_continues();
  scene.questions_continue();
  scene.leases_continue();
  scene.collector_continues();
  scene.conclude("inode of a file");
}

TEST_CASE("a directory that hangs holds up nothing but what is in it") {
  Scene scene;
  scene.hang(TimedWorld::only(format::inode_object(scene.d)));
  for (int i = 0; i < 20; ++i) {
    for (Party* party : {&scene.a, &scene.b}) {
      scene.load(*party, [&party = *party, i](Paths& at) {
        static_cast<void>(at.make_file("/d/" + party.name + std::to_string(i), 0644));
      });
    }
  }
  scene.world.run_until(seconds(30));
  for (Party* party : {&scene.a, &scene.b}) scene.names_continue(*party, "/e");
  scene.removal_continues(scene.a, "/e/old");
  scene.data_continues();
  scene.questions_continue();
  scene.leases_continue();
  scene.collector_continues();
  scene.conclude("a directory");
}

TEST_CASE(
    "a mount whose session object hangs continues with all that logs nothing, and others with all but asking it") {
  Scene scene;
  scene.hang(TimedWorld::session_of(scene.a));
  scene.load(scene.a, [](Paths& at) { static_cast<void>(at.unlink("/d/old")); });
  scene.load(scene.b, [](Paths& at) { static_cast<void>(at.write("/x", 0, "mine")); });
  scene.world.run_until(seconds(30));
  for (Party* party : {&scene.a, &scene.b}) scene.names_continue(*party, "/d");
  scene.removal_continues(scene.b, "/e/old");
  scene.data_continues();
  for (int i = 0; i < 3; ++i) scene.stat_continues();
  scene.conclude("a session object");
}

TEST_CASE(
    "the volume's own objects and monitors that hang hold up nothing but starts, new numbers, liveness polls and "
    "fences") {
  const std::string object =
      GENERATE(as<std::string>{}, format::super_object, format::alloc_object, ScriptedCluster::monitors);
  Scene scene;
  scene.hang(TimedWorld::only(object));
  if (object == format::super_object) scene.load(scene.b, [&](Paths&) { static_cast<void>(scene.b->usage()); });
  for (Party* party : {&scene.a, &scene.b}) scene.names_continue(*party, "/d");
  scene.removal_continues(scene.a, "/e/old");
  scene.data_continues();
  scene.questions_continue();
  scene.leases_continue();
  if (object == format::alloc_object) scene.collector_continues();
  scene.conclude(object);
}

/// Two inodes have nothing in common but by chance: so many pairs of them that no chance of one in some thousand hides.
TEST_CASE("inodes that hang hold up no other inode") {
  constexpr int hung = 16, others = 800;
  Scene scene;
  Paths paths(*scene.a.mount);
  std::vector<Ino> directories, files;
  std::set<std::string> objects;
  const auto make = [&](const std::string& path, FileType type) {
    need(paths.make_node(path, {type, 0755, 0, ""}));
    return need(paths.find(path));
  };
  for (int i = 0; i < others; ++i) files.push_back(make("/e/file" + std::to_string(i), FileType::regular));
  for (int i = 0; i < hung; ++i) directories.push_back(make("/d/" + std::to_string(i), FileType::directory));
  for (const Ino directory : directories) {
    static_cast<void>(scene.a->lookup(directory, "new"));  // what is remembered is not read before the step
    objects.insert(format::inode_object(directory));
  }
  scene.hang([objects](const std::string& object) { return objects.contains(object); });
  for (const Ino directory : directories) {
    scene.load(scene.a, [&, directory](Paths&) {
      static_cast<void>(scene.a->make_node({}, directory, "new", {FileType::regular, 0644, 0, ""}));
    });
  }
  scene.world.run_until(seconds(30));
  scene.continues(scene.a, "chmod of others", [&](Paths&) -> Result<> {
    SetAttributes changes;
    changes.mode = 0600;
    for (const Ino file : files) LCCFS_CHECK(scene.a->set_attributes({}, file, changes));
    return {};
  });
  scene.conclude("inodes");
}

}  // namespace
}  // namespace lccfs::crash
