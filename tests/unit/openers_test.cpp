// SPDX-License-Identifier: LGPL-2.1-or-later
// Who has a file open, as its inode object says, and what the writer tells them.
#include <chrono>
#include <functional>
#include <future>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "format/object_names.h"
#include "format/records.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/lock_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

/// What the kernel was told to drop, of whichever file.
class DroppingKernel final : public KernelCache {
 public:
  bool can_keep_names() const override { return false; }
  void expire_name(Ino, const std::string&) override {}
  void raise_size(Ino, std::uint64_t, char) override {}
  void forget_names() override {}
  void invalidate_attributes(Ino) override { ++attributes; }
  void invalidate_pages(Ino) override {
    if (pages++ != 0) return;
    while (holds_first) std::this_thread::yield();
    first_is_done = true;
  }
  void invalidate_page_range(Ino, std::uint64_t, std::uint64_t) override {}
  bool has_dropped_all() const { return attributes != 0 && pages != 0; }
  void forget() { attributes = pages = 0; }
  std::atomic<unsigned> attributes = 0, pages = 0;
  std::atomic<bool> holds_first = false, first_is_done = false;  // as while a page is being read
};

/// One file that A has made, and B may open; seconds pass as a session counts them.
struct TwoMounts {
  explicit TwoMounts(const FileSystemOptions& options = {}, const ScriptedCluster::Options& cluster = {})
      : volume({}, cluster), a(volume.mount(options)), b(volume.mount(options)) {
    a->set_kernel_cache(&kernel_a);
    b->set_kernel_cache(&kernel_b);
    const auto file = create_file(*a.file_system, "f");
    ino = file.ino;
    need(write_at(*a.file_system, file.handle, 0, std::string(8192, 'a')));
    close_file(*a.file_system, file.handle);
    forget();
  }
  ~TwoMounts() {
    a->set_kernel_cache(nullptr);
    b->set_kernel_cache(nullptr);
  }
  TwoMounts(const TwoMounts&) = delete;
  TwoMounts& operator=(const TwoMounts&) = delete;
  FileSystem& fs_a() { return *a.file_system; }
  FileSystem& fs_b() { return *b.file_system; }

  void forget() {
    for (auto* mount : {&a, &b}) mount->client->reset_record();
    kernel_a.forget();
    kernel_b.forget();
  }
  void tick() {
    volume.clock().advance(std::chrono::seconds(1));
    fs_a().tick();
    fs_b().tick();
  }
  void wait_until(const std::function<bool()>& is_so, bool time_passes = true) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!is_so()) {
      REQUIRE(std::chrono::steady_clock::now() < give_up);
      if (time_passes) tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::set<std::string> keys() {
    std::set<std::string> found;
    volume.cluster().with_objects([&](scripted::Objects& objects) {
      for (const auto& [key, value] : objects.metadata().at(format::inode_object(ino)).keys) {
        if (key.starts_with("o/")) found.insert(key);
      }
    });
    return found;
  }
  bool has_taken() {
    bool has = false;
    volume.cluster().with_objects([&](scripted::Objects& objects) {
      has = objects.metadata().at(format::inode_object(ino)).xattrs.contains(format::xattr::taken);
    });
    return has;
  }
  /// B has it open, its key stands, and the holder of the lease knows.
  HandleId open_on_b(int flags = O_RDONLY) {
    const auto handle = open_again(fs_b(), ino, flags);
    wait_until([&] { return has_read_after_its_key() && kernel_b.has_dropped_all(); });
    for (int i = 0; i < 3; ++i) tick();
    forget();
    return handle;
  }
  bool has_read_after_its_key() {
    bool has_added = false;
    for (const auto& step : b.client->trace()) {
      if (has_added && step.starts_with("query ")) return true;
      has_added = has_added || step.starts_with("add opener ");
    }
    return false;
  }
  unsigned questions_of(Mount& mount) {
    unsigned count = 0;
    for (const auto& step : mount.client->trace()) count += step.starts_with("notify ") ? 1 : 0;
    return count;
  }
  void write_on_a(HandleId handle, const std::string& text = "new", int flags = 0) {
    need(write_with(flags, fs_a(), handle, 0, text));
  }
  void b_is_told() {
    wait_until([&] { return kernel_b.has_dropped_all(); }, false);
    kernel_b.forget();
  }

  DroppingKernel kernel_a, kernel_b;
  TestVolume volume;
  Mount a, b;
  Ino ino;
};

FileSystemOptions write_behind() {
  FileSystemOptions options;
  options.dirty_limit_bytes = 1 << 20;
  options.idle_leases = 100;
  return options;
}

SetAttributes size(std::uint64_t size_bytes) {
  SetAttributes changes;
  changes.size_bytes = size_bytes;
  return changes;
}

}  // namespace

TEST_CASE("a file that is open through pages has a key a second later, and none a second after its close") {
  TwoMounts two;
  const auto handle = open_again(two.fs_b(), two.ino, O_RDONLY);
  two.fs_b().tick();
  CHECK(two.b.client->counts().applies == 0);
  two.wait_until([&] { return two.keys().size() == 1; });
  close_file(two.fs_b(), handle);
  CHECK(two.keys().size() == 1);
  two.wait_until([&] { return two.keys().empty(); });
}

TEST_CASE("a file that is closed for less than a second, and opened again, keeps its key and pays nothing") {
  TwoMounts two;
  const auto handle = two.open_on_b();
  close_file(two.fs_b(), handle);
  open_again(two.fs_b(), two.ino, O_RDONLY);
  for (int i = 0; i < 5; ++i) two.tick();
  CHECK(two.b.client->counts().applies == 0);
  CHECK(two.keys().size() == 1);
}

TEST_CASE("short opens, direct descriptors, and the one client that writes pay nothing") {
  TwoMounts two;
  const auto direct = open_again(two.fs_b(), two.ino, O_RDWR | O_DIRECT);
  need(write_with(O_RDWR | O_DIRECT, two.fs_b(), direct, 0, std::string(4096, 'd')));
  CHECK(two.b.client->counts().applies == 1);  // the lease
  two.b.client->reset_record();
  open_again(two.fs_a(), two.ino, O_RDONLY | O_DIRECT);
  for (int i = 0; i < 10; ++i) {
    const auto brief = open_again(two.fs_a(), two.ino, O_RDONLY | O_DIRECT);
    close_file(two.fs_a(), brief);
    two.tick();
  }
  CHECK(two.b.client->counts().applies == 1);  // times, which are stored after a while
  const auto born = create_file(two.fs_a(), "born");
  need(write_at(two.fs_a(), born.handle, 0, "x"));
  need(two.fs_a().fsync(born.handle, false));
  two.forget();
  for (int i = 0; i < 10; ++i) two.tick();
  CHECK(two.a.client->counts() == StepCounts{});
  CHECK(two.keys().empty());
}

TEST_CASE("an image that one client has open directly costs its writes and nothing else") {
  TwoMounts two;
  const auto image = open_again(two.fs_b(), two.ino, O_RDWR | O_DIRECT);
  need(write_with(O_RDWR | O_DIRECT, two.fs_b(), image, 0, std::string(4096, 'd')));
  need(two.fs_b().fsync(image, false));
  two.forget();
  for (int i = 0; i < 20; ++i) need(write_with(O_RDWR | O_DIRECT, two.fs_b(), image, 0, std::string(4096, 'e')));
  CHECK(two.b.client->counts() == StepCounts{.writes = 20});
  CHECK(two.keys().empty());
}

TEST_CASE("who takes the lease tells all that have the file open of each kind of change, and is not kept waiting") {
  TwoMounts two;
  two.open_on_b();
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.forget();
  two.write_on_a(writer);
  two.b_is_told();
  need(write_with(O_DIRECT, two.fs_a(), writer, 4096, "direct"));
  two.b_is_told();
  need(begin_write(two.fs_a(), writer, {.offset_bytes = 0, .bytes = shared_bytes("mapped"), .writes_back_pages = true})
           .get());
  two.b_is_told();
  need(write_with(O_APPEND, two.fs_a(), writer, 0, "appended"));
  two.b_is_told();
  need(two.fs_a().set_attributes({}, two.ino, size(100)));
  two.b_is_told();
  need(two.fs_a().fallocate({}, writer, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 50));
  two.b_is_told();
  SetAttributes changes;
  changes.mtime = TimeSpec{7, 8};
  need(two.fs_a().set_attributes({}, two.ino, changes));
  two.b_is_told();
  changes = {};
  changes.mode = 0600;
  need(two.fs_a().set_attributes({}, two.ino, changes));
  two.b_is_told();
  const auto again = open_again(two.fs_a(), two.ino, O_RDWR | O_TRUNC);
  two.b_is_told();
  CHECK(need(two.fs_b().get_attributes(two.ino)).attributes.size_bytes == 0);
  close_file(two.fs_a(), again);
}

TEST_CASE("a truncate of a file that its client has not open is told, too") {
  TwoMounts two;
  two.open_on_b();
  need(two.fs_a().set_attributes({}, two.ino, size(10)));
  two.b_is_told();
}

TEST_CASE("a client is told of one file once in ten milliseconds") {
  TwoMounts two;
  two.open_on_b();
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.write_on_a(writer);
  two.b_is_told();
  two.a.client->reset_record();
  const auto began = two.volume.clock().elapsed();
  two.wait_until(
      [&] {
        for (int i = 0; i < 100; ++i) two.write_on_a(writer, std::to_string(i));
        return two.questions_of(two.a) >= 3;
      },
      false);
  const auto questions = two.questions_of(two.a);
  CHECK(two.volume.clock().elapsed() - began >= std::chrono::milliseconds(10) * (questions - 1));
}

TEST_CASE("what changes while a question is with an opener is told after it") {
  TwoMounts two;
  two.open_on_b();
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.a.client->set_hook(before("notify", [&] { two.write_on_a(writer); }));
  two.write_on_a(writer);
  two.wait_until([&] { return two.questions_of(two.a) == 2; }, false);
}

TEST_CASE("a holder that is at work learns of an opener, stores what it has buffered, and writes wait for the store") {
  TwoMounts two(write_behind());
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  const auto reader = open_again(two.fs_b(), two.ino, O_RDONLY);
  two.write_on_a(writer, "buffered");
  two.forget();
  two.wait_until([&] { return two.kernel_b.has_dropped_all(); });
  CHECK(two.keys().size() == 1);
  CHECK(need(read_at(two.fs_b(), reader, 0, 8)) == "buffered");
  for (int i = 0; i < 3; ++i) two.tick();
  two.forget();
  two.write_on_a(writer, "at once!");
  CHECK(two.a.client->counts().writes == 1);
  two.b_is_told();
  CHECK(need(read_at(two.fs_b(), reader, 0, 8)) == "at once!");
}

TEST_CASE("a lease that is taken while others have the file open buffers no writes, and a close stores") {
  TwoMounts two(write_behind());
  const auto reader = two.open_on_b();
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.forget();
  two.write_on_a(writer, "at once!");
  CHECK(two.a.client->counts().writes == 1);
  two.b_is_told();
  CHECK(need(read_at(two.fs_b(), reader, 0, 8)) == "at once!");
  close_file(two.fs_a(), writer);
  const auto trace = two.a.client->trace();
  CHECK(std::ranges::any_of(trace, [](const auto& step) { return step.starts_with("release lease"); }));
}

TEST_CASE("each write under a lease that was taken while others have the file open has its own time") {
  TwoMounts two(write_behind());
  two.open_on_b();
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  const auto write_and_sync = [&] {
    two.volume.clock().advance(std::chrono::milliseconds(1));
    two.a.client->reset_record();
    two.write_on_a(writer, "bytes");
    need(two.fs_a().fsync(writer, false));
    return two.a.client->counts();
  };
  write_and_sync();
  CHECK(write_and_sync().applies == 1);
  CHECK(write_and_sync().applies == 1);
}

TEST_CASE("who loses the lease to another client, and has the file open, has its key from that step on") {
  TwoMounts two;
  const auto on_a = open_again(two.fs_a(), two.ino, O_RDWR), on_b = open_again(two.fs_b(), two.ino, O_RDWR);
  two.write_on_a(on_a, "mine");
  CHECK(two.keys().empty());
  two.forget();
  need(write_at(two.fs_b(), on_b, 0, "ours"));
  CHECK(two.keys().size() == 1);
  two.wait_until([&] { return two.kernel_a.has_dropped_all(); }, false);
  CHECK(need(read_at(two.fs_a(), on_a, 0, 4)) == "ours");
}

TEST_CASE("a client that has closed the file is not told again") {
  TwoMounts two;
  const auto reader = two.open_on_b();
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  std::atomic<unsigned> questions = 0;
  two.a.client->set_hook([&](const StepInfo& info) {
    if (info.step != "notify") return Fault{};
    if (questions == 0) close_file(two.fs_b(), reader);  // before B is asked
    two.write_on_a(writer);
    ++questions;
    return Fault{};
  });
  two.write_on_a(writer);
  two.wait_until([&] { return questions >= 2; }, false);  // of what was written before the first was answered
  need(two.a->unmount());                                 // it tells first what is still to be told
  CHECK(questions == 2);
  two.a.client->set_hook(nullptr);
}

TEST_CASE("a client that has closed the file, and opens it again, is told again") {
  TwoMounts two;
  close_file(two.fs_b(), two.open_on_b());
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.write_on_a(writer);
  SECTION("once its key is gone") {
    two.wait_until([&] { return two.questions_of(two.a) != 0 && two.keys().empty(); });
    two.open_on_b();
  }
  SECTION("before that") {
    unsigned looks = 0;  // it drops, and then answers: it has by then, as a rule; else it answers that it is open
    two.wait_until([&] { return two.kernel_b.attributes != 0 && ++looks > 50; }, false);
    open_again(two.fs_b(), two.ino, O_RDONLY);
    two.forget();
    looks = 0;
    two.wait_until([&] { return two.questions_of(two.b) != 0 || ++looks > 50; });
    for (int i = 0; i < 3; ++i) two.tick();
    two.forget();
  }
  two.wait_until([&] {
    two.write_on_a(writer);
    return two.questions_of(two.a) != 0;
  });
  two.b_is_told();
}

TEST_CASE("a client that is stopped delays no writer, and drops what it holds once it continues") {
  TwoMounts two;
  two.open_on_b();
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.forget();
  two.b.client->set_deaf(true);
  two.write_on_a(writer);
  close_file(two.fs_a(), writer);
  two.wait_until([&] { return two.questions_of(two.a) > 1; }, false);  // so the first had no answer
  CHECK_FALSE(two.kernel_b.has_dropped_all());
  two.b.client->set_deaf(false);
  two.wait_until([&] { return two.kernel_b.has_dropped_all(); });
}

TEST_CASE("a client that has died delays no writer, and the writer removes its key and tells it no more") {
  TwoMounts two({}, {.deaths_are_seen = true});
  two.open_on_b();
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.b.client->crash();
  two.write_on_a(writer);
  two.wait_until([&] { return two.keys().empty(); }, false);
  two.a.client->reset_record();
  for (int i = 0; i < 20; ++i) two.write_on_a(writer);
  need(two.a->unmount());  // it tells first what is still to be told
  CHECK(two.questions_of(two.a) == 0);
}

TEST_CASE("where a writer dies before it has told of its change, the client that takes over from it does") {
  TwoMounts two({}, {.deaths_are_seen = true});
  const auto reader = two.open_on_b();
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.write_on_a(writer, "old");
  two.b_is_told();
  two.volume.clock().advance(std::chrono::seconds(1));
  two.a.client->set_hook(always_on("notify", {Fault::Kind::not_applied_and_crash, ErrorCode::io}));
  two.write_on_a(writer);
  two.wait_until([&] { return two.a.client->crashed(); }, false);
  CHECK_FALSE(two.kernel_b.has_dropped_all());
  auto third = two.volume.mount();
  open_again(*third.file_system, two.ino, O_RDONLY);
  two.b_is_told();
  CHECK(need(read_at(two.fs_b(), reader, 0, 3)) == "new");
}

TEST_CASE("a direct descriptor has a key while it is mapped, also where it found its pages there") {
  TwoMounts two;
  const auto one = open_again(two.fs_b(), two.ino, O_RDWR | O_DIRECT);
  const auto other = open_again(two.fs_b(), two.ino, O_RDWR | O_DIRECT);
  two.fs_b().is_mapped(one);
  two.wait_until([&] { return two.has_read_after_its_key() && two.kernel_b.has_dropped_all(); });
  for (int i = 0; i < 3; ++i) two.tick();
  two.forget();
  close_file(two.fs_b(), one);
  two.wait_until([&] { return two.kernel_b.pages != 0; }, false);  // so the other one reads them, and is counted
  two.fs_b().is_mapped(other);
  for (int i = 0; i < 5; ++i) two.tick();
  CHECK(two.keys().size() == 1);
  two.forget();
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.write_on_a(writer);
  two.b_is_told();
}

TEST_CASE("a client that was unmounted leaves a key that no client heeds, and the next writer removes it") {
  TwoMounts two;
  two.open_on_b();
  two.b->set_kernel_cache(nullptr);
  need(two.b->unmount());
  CHECK(two.keys().size() == 1);
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.write_on_a(writer);
  two.wait_until([&] { return two.keys().empty(); }, false);
}

TEST_CASE("an unmount does not wait for a key that is being removed from an object that does not answer") {
  TwoMounts two;
  const auto handle = two.open_on_b();
  two.b.client->set_hook([](const StepInfo& info) {
    return info.step == "remove opener" ? Fault{Fault::Kind::hold, ErrorCode::io} : Fault{};
  });
  close_file(two.fs_b(), handle);
  two.wait_until([&] { return !two.b.client->held().empty(); });
  two.b->set_kernel_cache(nullptr);
  need(two.b->unmount());
  two.b.file_system.reset();
  CHECK(two.keys().size() == 1);
  two.b.client->release_all();
  CHECK(two.keys().empty());
  two.b = two.volume.mount();
}

TEST_CASE("a key that cannot be added is tried again, less and less often, and the file is used meanwhile") {
  TwoMounts two;
  std::atomic<unsigned> tries = 0;
  std::atomic<bool> fails = true;
  two.b.client->set_hook([&](const StepInfo& info) {
    if (info.step != "add opener" || !fails) return Fault{};
    ++tries;
    return Fault{Fault::Kind::fail, ErrorCode::no_space};
  });
  const auto reader = open_again(two.fs_b(), two.ino, O_RDONLY);
  two.wait_until([&] { return tries != 0; });
  for (int i = 0; i < 60; ++i) two.tick();
  CHECK(tries <= 12);
  CHECK(tries >= 4);
  CHECK(need(read_at(two.fs_b(), reader, 0, 1)) == "a");
  fails = false;
  two.wait_until([&] { return !two.keys().empty(); });
  two.b.client->set_hook(nullptr);
}

TEST_CASE("a holder that does not answer an opener is asked again, and is not fenced for it") {
  TwoMounts two;
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  open_again(two.fs_b(), two.ino, O_RDONLY);
  two.write_on_a(writer);
  two.a.client->set_deaf(true);
  two.wait_until([&] { return !two.keys().empty(); });
  for (int i = 0; i < 200; ++i) two.tick();
  CHECK(two.keys().size() == 1);
  two.a.client->set_deaf(false);
  two.forget();
  two.wait_until([&] {
    two.write_on_a(writer);
    return two.kernel_b.has_dropped_all();
  });
}

TEST_CASE("while somebody has a lock the kernel is told of no change, and once nobody has of what has changed") {
  TwoMounts two;
  const auto lock = whole_file(two.open_on_b(O_RDWR), 1);
  need(set_lock(two.fs_b(), lock));
  const auto on_a = open_again(two.fs_a(), two.ino, O_WRONLY);
  two.forget();
  two.write_on_a(on_a);
  two.wait_until([&] { return two.questions_of(two.a) != 0; }, false);
  for (int i = 0; i < 3; ++i) two.tick();
  CHECK((two.kernel_b.attributes == 0 && two.kernel_b.pages == 0));
  need(unlock(two.fs_b(), lock));
  two.wait_until([&] { return two.kernel_b.has_dropped_all(); });
}

TEST_CASE("old pages that taking the lease finds under a lock go once nobody has the lock") {
  TwoMounts two;
  const auto on_a = open_again(two.fs_a(), two.ino, O_RDWR), on_b = open_again(two.fs_b(), two.ino, O_RDWR);
  two.write_on_a(on_a);  // before the key stands
  const auto lock = whole_file(on_b, 1);
  need(set_lock(two.fs_b(), lock));
  two.forget();
  need(write_with(0, two.fs_b(), on_b, 4096, "mine"));
  for (int i = 0; i < 3; ++i) two.tick();
  CHECK((two.kernel_b.attributes == 0 && two.kernel_b.pages == 0));
  need(unlock(two.fs_b(), lock));
  two.wait_until([&] { return two.kernel_b.has_dropped_all(); });
}

TEST_CASE("a lock waits for pages that a client drops because it has just learnt who holds the file") {
  TwoMounts two;
  const auto on_a = open_again(two.fs_a(), two.ino, O_RDWR);
  const auto lock = whole_file(open_again(two.fs_b(), two.ino, O_RDWR | O_DIRECT), 1);
  need(set_lock(two.fs_b(), lock));
  need(unlock(two.fs_b(), lock));
  need(set_lock(two.fs_a(), whole_file(on_a, 1)));  // so the next one of B sees what A has written under it
  need(unlock(two.fs_a(), whole_file(on_a, 1)));
  open_again(two.fs_b(), two.ino, O_RDONLY);
  two.forget();
  two.write_on_a(on_a);  // before the key stands
  two.kernel_b.holds_first = true;
  two.wait_until([&] { return two.kernel_b.pages != 0; });
  unsigned looks = 0;
  std::atomic<bool> is_locked = false, was_done = false;
  std::thread locker([&] {
    const auto locked = set_lock(two.fs_b(), lock);
    was_done = locked && two.kernel_b.first_is_done;
    is_locked = true;
  });
  two.wait_until([&] { return is_locked || ++looks > 50; }, false);
  two.kernel_b.holds_first = false;
  locker.join();
  CHECK(was_done);
}

TEST_CASE("a client that has lost its watch drops what its kernel holds of files that are open") {
  TwoMounts two;
  two.open_on_b();
  two.b.client->lose_watches();
  two.wait_until([&] { return two.kernel_b.has_dropped_all(); });
}

TEST_CASE("an unmount does not wait for an inode that is read because a watch was lost") {
  TwoMounts two;
  const auto handle = two.open_on_b();
  two.b.client->set_hook([object = format::inode_object(two.ino)](const StepInfo& info) {
    const bool is_read = info.kind == StepKind::query && info.object == object;
    return is_read ? Fault{Fault::Kind::hold} : Fault{};
  });
  two.b.client->lose_watches();
  two.wait_until([&] { return !two.b.client->held().empty(); });
  close_file(two.fs_b(), handle);
  auto unmounted = std::async(std::launch::async, [&] { return two.fs_b().unmount(); });
  CHECK(unmounted.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  two.b.client->set_hook(nullptr);
  two.b.client->release_all();
  need(unmounted.get());
}

TEST_CASE("a key that stands though the file is not open goes when its client is told of a change") {
  TwoMounts two;
  two.tick();
  const auto handle = two.open_on_b();
  const auto key = *two.keys().begin();
  close_file(two.fs_b(), handle);
  two.wait_until([&] { return two.keys().empty(); });
  two.volume.cluster().with_objects([&](scripted::Objects& objects) {
    objects.metadata().at(format::inode_object(two.ino)).keys[key] = Bytes(format::marker_value);
  });
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.write_on_a(writer);
  two.wait_until([&] { return two.keys().empty(); });
}

TEST_CASE("keys that come and go, and changes of mode, make no pages old; a lease that was taken elsewhere does") {
  TwoMounts two;
  const auto keeps_pages = [&] {
    const auto opened = need(two.fs_a().open({}, two.ino, O_RDONLY));
    close_file(two.fs_a(), opened.handle);
    return opened.keep_pages;
  };
  const auto handle = two.open_on_b(O_RDWR);
  keeps_pages();
  CHECK(keeps_pages());
  close_file(two.fs_b(), handle);
  two.wait_until([&] { return two.keys().empty(); });
  CHECK(keeps_pages());
  SetAttributes mode;
  mode.mode = 0600;
  need(two.fs_b().set_attributes({}, two.ino, mode));
  CHECK(keeps_pages());
  const auto writer = open_again(two.fs_b(), two.ino, O_RDWR);
  need(write_at(two.fs_b(), writer, 0, "new"));
  close_file(two.fs_b(), writer);
  CHECK_FALSE(keeps_pages());
  CHECK(keeps_pages());
}

TEST_CASE("a volume without the feature, and a read-only mount, have no keys") {
  TwoMounts two;
  FileSystemOptions read_only;
  read_only.read_only = true;
  auto reader = two.volume.mount(read_only);
  open_again(*reader.file_system, two.ino, O_RDONLY);
  for (int i = 0; i < 5; ++i) {
    two.tick();
    reader->tick();
  }
  CHECK(two.keys().empty());
  two.volume.cluster().with_objects([](scripted::Objects& objects) {
    auto& super = objects.metadata().at(format::super_object).xattrs[format::xattr::super];
    auto record = need(format::decode<format::SuperRecord>(super));
    record.incompat &= ~format::feature::openers;
    super = encode(record);
  });
  auto old_one = two.volume.mount(), old_other = two.volume.mount();
  const auto file = create_file(*old_one.file_system, "old");
  need(write_at(*old_one.file_system, file.handle, 0, "text"));
  two.ino = file.ino;
  open_again(*old_other.file_system, file.ino, O_RDWR);
  for (int i = 0; i < 5; ++i) {
    two.tick();
    old_other->tick();
  }
  const auto other = open_again(*old_other.file_system, file.ino, O_RDWR);
  need(write_at(*old_other.file_system, other, 0, "test"));
  CHECK(two.keys().empty());
  CHECK_FALSE(two.has_taken());
}

TEST_CASE("a mount from before the upgrade changes what later mounts know bytes by") {
  TwoMounts two;
  two.volume.cluster().with_objects([](scripted::Objects& objects) {
    auto& super = objects.metadata().at(format::super_object).xattrs[format::xattr::super];
    auto record = need(format::decode<format::SuperRecord>(super));
    record.incompat &= ~format::feature::openers;
    super = encode(record);
  });
  auto before = two.volume.mount();
  two.open_on_b();  // the key comes with a `taken`
  CHECK(two.has_taken());
  const auto taken = [&] {
    Bytes value;
    two.volume.cluster().with_objects([&](scripted::Objects& objects) {
      value = objects.metadata().at(format::inode_object(two.ino)).xattrs.at(format::xattr::taken);
    });
    return value;
  };
  const auto was = taken();
  const auto writer = open_again(*before.file_system, two.ino, O_RDWR);
  need(write_at(*before.file_system, writer, 0, "new"));
  CHECK(taken() != was);
}

TEST_CASE("a late run of the step that adds a key brings no old stamp back") {
  TwoMounts two;
  auto third = two.volume.mount();
  DroppingKernel kernel;
  third->set_kernel_cache(&kernel);
  const auto keeps_pages = [&] {
    const auto opened = need(third->open({}, two.ino, O_RDONLY));
    close_file(*third.file_system, opened.handle);
    return opened.keep_pages;
  };
  two.b.client->set_hook(once_on("add opener", {Fault::Kind::run_again_later, ErrorCode::io}));
  open_again(two.fs_b(), two.ino, O_RDONLY);
  two.wait_until([&] { return two.has_taken(); });
  keeps_pages();
  CHECK(keeps_pages());
  const auto writer = open_again(two.fs_a(), two.ino, O_RDWR);
  two.write_on_a(writer);
  close_file(two.fs_a(), writer);
  two.b.client->release_all();
  CHECK_FALSE(keeps_pages());
  third->set_kernel_cache(nullptr);
}
