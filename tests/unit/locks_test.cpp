// SPDX-License-Identifier: LGPL-2.1-or-later
// Locks of one file, asked for by several clients of a volume.
#include <atomic>
#include <chrono>
#include <functional>
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

constexpr std::uint64_t me = 1, another = 2;

std::optional<ErrorCode> refusal(const Result<>& done) {
  return done ? std::nullopt : std::optional(done.error().code);
}
SetAttributes with_mode(std::uint32_t mode) {
  SetAttributes changes;
  changes.mode = mode;
  return changes;
}
bool is_answered(const std::future<Result<>>& answer) {
  return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

/// F_GETLK; an error, if there is a lock in the way.
std::future<Result<>> begin_find(FileSystem& fs, const LockRequest& request) {
  auto promise = std::make_shared<std::promise<Result<>>>();
  fs.find_lock(request, [promise](const Result<std::optional<LockHeld>>& held) {
    if (!held) return promise->set_value(std::unexpected(held.error()));
    promise->set_value(*held ? failure(ErrorCode::would_block, "locked") : Result<>());
  });
  return promise->get_future();
}

/// Whether it has read the file once more behind another client's answer.
bool has_asked_and_looked(const ScriptedClient& client) {
  bool has_asked = false;
  for (const auto& step : client.trace()) {
    if (has_asked && step.starts_with("query ")) return true;
    has_asked = has_asked || step.starts_with("notify ");
  }
  return false;
}

/// Whether the file is read as by an open, with its map: before a lock is granted after others.
bool is_look(const StepInfo& info, Ino ino) {
  return info.kind == StepKind::query && info.object == format::inode_object(ino) &&
         std::ranges::any_of(info.read->ranges, [](const auto& range) { return range.prefix == "m/"; });
}

/// How often the kernel is told that a file's pages are old.
struct PageCounter final : KernelCache {
  bool can_keep_names() const override { return false; }
  void expire_name(Ino, const std::string&) override {}
  void forget_names() override {}
  void raise_size(Ino, std::uint64_t, char) override {}
  void invalidate_attributes(Ino) override {}
  void invalidate_pages(Ino) override { ++dropped; }
  void invalidate_page_range(Ino, std::uint64_t, std::uint64_t) override { ++dropped; }
  std::atomic<unsigned> dropped = 0;
};

/// One file, open on two mounts.
struct TwoMounts {
  explicit TwoMounts(const FileSystemOptions& options = {}) : a(volume.mount(options)), b(volume.mount(options)) {
    const auto file = create_file(*a.file_system, "f");
    ino = file.ino;
    on_a = file.handle;
    need(a->fsync(on_a, false));
    on_b = open_again(*b.file_system, ino);
    forget_counts();
  }
  FileSystem& fs_a() { return *a.file_system; }
  FileSystem& fs_b() { return *b.file_system; }
  void forget_counts() {
    a.client->reset_record();
    b.client->reset_record();
  }
  /// Both have had locks: what stands in the store says so.
  void share() {
    need(set_lock(fs_a(), exclusive(on_a, me, 1000, 1000)));
    need(set_lock(fs_b(), exclusive(on_b, me, 2000, 2000)));
    need(unlock(fs_a(), exclusive(on_a, me)));
    need(unlock(fs_b(), exclusive(on_b, me)));
    need(set_lock(fs_a(), exclusive(on_a, me, 1000, 1000)));
    need(unlock(fs_a(), exclusive(on_a, me)));
    forget_counts();
  }

  /// The step of the lock is held by A's store from then on.
  void interrupt_on_a_in_the_store(LockRequest wanted) {
    wanted.ticket = 5;
    a.client->set_hook(always_on("lock", {Fault::Kind::hold}));
    auto interrupted = begin_lock(fs_a(), wanted);
    REQUIRE(a.client->wait_for_held(1));
    fs_a().interrupt_lock(5);
    CHECK(refusal(soon(std::move(interrupted))) == ErrorCode::interrupted);
  }

  /// Seconds pass, as a session counts them, until B is answered.
  Result<> after_a_while(std::future<Result<>> answer) {
    pass_time_until([&answer] { return is_answered(answer); });
    return answer.get();
  }
  void pass_time_until(const std::function<bool()>& is_so) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!is_so()) {
      REQUIRE(std::chrono::steady_clock::now() < give_up);
      volume.clock().advance(std::chrono::seconds(1));
      fs_a().tick();
      fs_b().tick();
      std::this_thread::yield();
    }
  }

  void pass_seconds(unsigned seconds) {
    for (; seconds > 0; --seconds) {
      volume.clock().advance(std::chrono::seconds(1));
      fs_b().tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // for what the tick has begun
    }
  }

  /// As QEMU opens it without a cache.
  HandleId open_disk_on_b() { return open_again(fs_b(), ino, O_RDWR | O_DIRECT); }
  /// B's questions are on their way from then on.
  void hold_questions_of_b() {
    b.client->set_hook([held = std::shared_future<void>(held_.get_future())](const StepInfo& info) {
      if (info.kind == StepKind::notify) held.wait();
      return Fault{};
    });
  }
  void answer_all_but_the_first() { b.client->set_hook(nullptr); }
  void let_go_of_questions() { held_.set_value(); }
  struct HeldRead {
    std::promise<void> reached, may_go;
    std::atomic<unsigned> number = 0;
  };
  /// By B, from now on.
  std::shared_ptr<HeldRead> hold_second_read_of(Ino file) {
    auto read = std::make_shared<HeldRead>();
    b.client->set_hook([read, file](const StepInfo& info) {
      const bool is_it = info.kind == StepKind::query && info.object == format::inode_object(file);
      if (is_it && ++read->number == 2) {
        read->reached.set_value();
        read->may_go.get_future().wait();
      }
      return Fault{};
    });
    return read;
  }

  TestVolume volume;
  Mount a, b;
  Ino ino;
  HandleId on_a, on_b;

 private:
  std::promise<void> held_;
};

}  // namespace

TEST_CASE("the first lock of a file is one read and one write, all further ones and all unlocks cost nothing") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "db");
  mount.client->reset_record();
  need(set_lock(*mount.file_system, exclusive(file.handle, me, 0, 9)));
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .queries = 1});
  mount.client->reset_record();
  for (int i = 0; i < 100; ++i) {
    need(set_lock(*mount.file_system, shared(file.handle, another, 10, 10)));
    need(unlock(*mount.file_system, exclusive(file.handle, another, 10, 10)));
  }
  need(set_lock(*mount.file_system, whole_file(file.handle, me)));
  CHECK(mount.client->counts() == StepCounts{});
}

TEST_CASE("a lock excludes the other client's, and its unlock lets them in") {
  TwoMounts two;
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me, 9, 9))) == ErrorCode::would_block);
  CHECK(refusal(set_lock(two.fs_b(), shared(two.on_b, me, 0, 0))) == ErrorCode::would_block);
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 10, 19)));
  CHECK(refusal(set_lock(two.fs_a(), exclusive(two.on_a, me, 10, 10))) == ErrorCode::would_block);
  need(unlock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 0, 9)));
  CHECK(refusal(set_lock(two.fs_a(), shared(two.on_a, me, 0, 9))) == ErrorCode::would_block);
}

TEST_CASE("shared locks of both clients stand beside each other, and keep out exclusive ones") {
  TwoMounts two;
  need(set_lock(two.fs_a(), shared(two.on_a, me)));
  need(set_lock(two.fs_b(), shared(two.on_b, me)));
  CHECK(refusal(set_lock(two.fs_a(), exclusive(two.on_a, me))) == ErrorCode::would_block);
  CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me))) == ErrorCode::would_block);
  need(unlock(two.fs_b(), exclusive(two.on_b, me)));
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
}

TEST_CASE("flock and range locks of two clients do not see each other") {
  TwoMounts two;
  need(set_lock(two.fs_a(), whole_file(two.on_a, me)));
  need(set_lock(two.fs_b(), exclusive(two.on_b, me)));
  CHECK(refusal(set_lock(two.fs_b(), whole_file(two.on_b, me))) == ErrorCode::would_block);
}

TEST_CASE("where two clients share a file's locks, a lock is one write and an unlock is one") {
  TwoMounts two;
  two.share();
  // But for a question whether anybody waits, which no request waits for.
  const auto steps = [&two] { return std::pair(two.a.client->counts().applies, two.a.client->counts().queries); };
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  CHECK(steps() == std::pair(1U, 0U));
  need(unlock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  CHECK(steps() == std::pair(2U, 0U));
  CHECK(two.b.client->counts() == StepCounts{});
}

TEST_CASE("a client that makes sixteen locks in a row, and is alone, pays nothing after them") {
  TwoMounts two;
  two.share();
  const auto lock_and_unlock = [&two] {
    need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
    need(unlock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  };
  // Once the other client has said that nobody waits there any more.
  two.pass_time_until([&] {
    for (int i = 0; i < 20; ++i) lock_and_unlock();
    two.forget_counts();
    lock_and_unlock();
    return two.a.client->counts() == StepCounts{};
  });
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 0, 9)));
  CHECK(refusal(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9))) == ErrorCode::would_block);
}

TEST_CASE("a lock that the other client holds is told to who asks, without a process number") {
  TwoMounts two;
  need(set_lock(two.fs_a(), exclusive(two.on_a, 77, 10, 19)));
  const auto there = need(find_lock(two.fs_b(), shared(two.on_b, me, 0, 10)));
  REQUIRE(there);
  CHECK((there->type == LockType::exclusive && there->first == 10 && there->last == 19 && there->pid == 0));
  const auto here = need(find_lock(two.fs_a(), shared(two.on_a, me, 0, 10)));
  REQUIRE(here);
  CHECK(here->pid == 77);
  CHECK_FALSE(need(find_lock(two.fs_b(), exclusive(two.on_b, me, 0, 9))));
  CHECK_FALSE(need(find_lock(two.fs_a(), exclusive(two.on_a, 77, 0, 99))));
}

TEST_CASE("who waits for a lock of this client gets it with the unlock, in the order in which they came") {
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  need(set_lock(fs, exclusive(file.handle, 1)));
  auto second = begin_lock(fs, waiting(exclusive(file.handle, 2), 2));
  CHECK_FALSE(is_answered(second));
  need(unlock(fs, exclusive(file.handle, 1)));
  need(soon(std::move(second)));
  CHECK(refusal(set_lock(fs, exclusive(file.handle, 1))) == ErrorCode::would_block);
}

TEST_CASE("who waits for a lock of another client is told of its unlock, and needs no clock") {
  TwoMounts two;
  two.volume.clock().advance(std::chrono::seconds(10));  // no time that is noted is that of the beginning
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  auto waits = begin_lock(two.fs_b(), waiting(exclusive(two.on_b, me)));
  for (int i = 0; i < 2000 && !has_asked_and_looked(*two.b.client); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  need(unlock(two.fs_a(), exclusive(two.on_a, me)));
  need(soon(std::move(waits)));
  CHECK(refusal(set_lock(two.fs_a(), exclusive(two.on_a, me))) == ErrorCode::would_block);
}

TEST_CASE("a wait ends when its caller is interrupted, and leaves no lock") {
  TwoMounts two;
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  auto here = begin_lock(two.fs_a(), waiting(exclusive(two.on_a, another), 5));
  auto there = begin_lock(two.fs_b(), waiting(exclusive(two.on_b, another), 6));
  two.fs_a().interrupt_lock(5);
  two.fs_b().interrupt_lock(6);
  CHECK(refusal(soon(std::move(here))) == ErrorCode::interrupted);
  CHECK(refusal(soon(std::move(there))) == ErrorCode::interrupted);
  need(unlock(two.fs_a(), exclusive(two.on_a, me)));
  need(set_lock(two.fs_a(), exclusive(two.on_a, 3)));
}

TEST_CASE("a lock that was given up while its file is read anew takes none from the owner's next request") {
  TwoMounts two;
  two.share();
  need(set_lock(two.fs_b(), exclusive(two.on_b, me)));
  need(unlock(two.fs_b(), exclusive(two.on_b, me)));
  std::atomic<bool> has_locked = false, looks = false;
  std::promise<void> go;
  two.a.client->set_hook([&, is_gone = go.get_future().share()](const StepInfo& info) {
    if (info.step == "lock") has_locked = true;
    if (has_locked && is_look(info, two.ino) && !looks.exchange(true)) is_gone.wait();
    return Fault{};
  });
  auto given_up = begin_lock(two.fs_a(), waiting(exclusive(two.on_a, me), 5));
  for (unsigned i = 0; i < 20'000 && !looks; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(looks);
  two.fs_a().interrupt_lock(5);
  const auto interrupted = refusal(soon(std::move(given_up)));
  auto again = begin_lock(two.fs_a(), waiting(exclusive(two.on_a, me, 0, 9), 6));
  auto never = begin_lock(two.fs_a(), waiting(exclusive(two.on_a, me, 0, 9), 7));
  two.fs_a().interrupt_lock(7);
  go.set_value();
  CHECK(interrupted == ErrorCode::interrupted);
  need(soon(std::move(again)));
  static_cast<void>(soon(std::move(never)));
  two.a.client->set_hook(nullptr);
  CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me, 0, 9))) == ErrorCode::would_block);
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 10, 19)));  // what was given up is free
}

TEST_CASE("who is interrupted while the store has his step is told at once, and has no lock by it") {
  TwoMounts two;
  two.share();
  auto wanted = exclusive(two.on_a, me);
  wanted.waits = GENERATE(true, false);
  two.interrupt_on_a_in_the_store(wanted);
  auto again = begin_lock(two.fs_a(), waiting(exclusive(two.on_a, me, 0, 9), 6));
  two.a.client->set_hook(nullptr);
  two.a.client->release_all();
  need(soon(std::move(again)));
  CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me, 0, 9))) == ErrorCode::would_block);
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 10, 19)));
}

TEST_CASE("who is interrupted while the store has his step keeps what he had before") {
  TwoMounts two;
  two.share();
  need(set_lock(two.fs_a(), shared(two.on_a, me, 0, 9)));
  two.interrupt_on_a_in_the_store(exclusive(two.on_a, me, 0, 9));
  two.a.client->set_hook(nullptr);
  two.a.client->release_all();
  need(soon(begin_lock(two.fs_a(), waiting(exclusive(two.on_a, me, 9, 9), 6))));  // it comes after that
  CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me, 0, 8))) == ErrorCode::would_block);
}

TEST_CASE("all waits end with the mount, and with an error that programs know") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(set_lock(*mount.file_system, exclusive(file.handle, me)));
  auto waits = begin_lock(*mount.file_system, waiting(exclusive(file.handle, another)));
  mount->interrupt_all_locks();
  CHECK(refusal(soon(std::move(waits))) == ErrorCode::io);
}

TEST_CASE("a request that has to wait once the mount ends is answered as those that waited before") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(set_lock(*mount.file_system, exclusive(file.handle, me)));
  mount->interrupt_all_locks();
  CHECK(refusal(set_lock(*mount.file_system, waiting(exclusive(file.handle, another)))) == ErrorCode::io);
}

TEST_CASE(
    "who is interrupted before the wait has begun does not wait, and an interrupt that comes too late ends no other") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(set_lock(*mount.file_system, exclusive(file.handle, me)));
  mount->interrupt_lock(5);
  CHECK(refusal(set_lock(*mount.file_system, waiting(exclusive(file.handle, another), 5))) == ErrorCode::interrupted);
  mount->interrupt_lock(5);
  auto waits = begin_lock(*mount.file_system, waiting(exclusive(file.handle, another), 6));
  need(unlock(*mount.file_system, exclusive(file.handle, me)));
  need(soon(std::move(waits)));
}

TEST_CASE("owners that would wait for each other are told so, over several files, and flock is not") {
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto f = create_file(fs, "f"), g = create_file(fs, "g");
  need(set_lock(fs, exclusive(f.handle, 1)));
  need(set_lock(fs, exclusive(g.handle, 2)));
  auto waits = begin_lock(fs, waiting(exclusive(g.handle, 1), 1));
  auto circle = begin_lock(fs, waiting(exclusive(f.handle, 2), 2));
  // Whichever comes second closes the circle.
  for (int i = 0; i < 2000 && !is_answered(waits) && !is_answered(circle); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const bool first_refused = is_answered(waits);
  CHECK(refusal(soon(std::move(first_refused ? waits : circle))) == ErrorCode::deadlock);
  need(unlock(fs, first_refused ? exclusive(f.handle, 1) : exclusive(g.handle, 2)));
  need(soon(std::move(first_refused ? circle : waits)));
}

TEST_CASE("a close drops the range locks of its process, and the last one what was locked through the handle") {
  TwoMounts two;
  two.share();
  const auto second = open_again(two.fs_a(), two.ino);
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 0)));
  need(set_lock(two.fs_a(), exclusive(two.on_a, 50, 1, 1)));
  need(set_lock(two.fs_a(), whole_file(two.on_a, 50)));
  two.fs_a().drop_range_locks(second, me);
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 0, 0)));
  CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me, 1, 1))) == ErrorCode::would_block);
  close_file(two.fs_a(), two.on_a);
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 1, 1)));
  need(set_lock(two.fs_b(), whole_file(two.on_b, me)));
}

TEST_CASE("the lease of a client that has closed the file is given away, and costs the asker a question") {
  TwoMounts two;
  two.volume.clock().patience = 20;
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  close_file(two.fs_a(), two.on_a);
  need(set_lock(two.fs_b(), exclusive(two.on_b, me)));
  CHECK(two.b.client->counts().notifies == 1);
}

TEST_CASE("the locks of a client that was evicted are void, and it gets none any more") {
  TwoMounts two;
  const bool is_shared = GENERATE(false, true);
  if (is_shared) two.share();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  two.a.client->set_deaf(true);
  need(two.after_a_while(begin_lock(two.fs_b(), waiting(exclusive(two.on_b, me)))));
  CHECK(two.b.client->counts().fences == 1);
  auto waits = begin_lock(two.fs_a(), waiting(exclusive(two.on_a, another)));
  CHECK_FALSE(two.a->set_attributes({}, two.ino, with_mode(0600)));  // by which it learns of its fence
  two.fs_a().tick();
  CHECK(refusal(soon(std::move(waits))) == ErrorCode::fenced);
  CHECK(refusal(set_lock(two.fs_a(), exclusive(two.on_a, me, 5, 5))) == ErrorCode::fenced);
  need(unlock(two.fs_a(), exclusive(two.on_a, me)));
}

TEST_CASE("who may not wait is refused while another client says nothing, and fences nobody for it at once") {
  TwoMounts two;
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  two.a.client->set_deaf(true);
  const auto refused = refusal(two.after_a_while(begin_lock(two.fs_b(), exclusive(two.on_b, me))));
  // The clock of this test runs on while the question is asked, so that it may have been asked for long enough.
  CHECK((refused ? refused == ErrorCode::would_block : two.b.client->counts().fences == 1));
}

TEST_CASE("the lock of a guest's disk is granted once the dead client in its way is fenced, at the first try") {
  TwoMounts two;
  const bool is_shared = GENERATE(false, true);
  const bool only_asks = GENERATE(false, true);
  const auto disk = two.open_disk_on_b();
  if (is_shared) two.share();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  two.a.client->crash();
  two.volume.clock().advance(std::chrono::milliseconds(1));  // since B has heard it
  two.hold_questions_of_b();
  auto answer = only_asks ? begin_find(two.fs_b(), exclusive(disk, me)) : begin_lock(two.fs_b(), shared(disk, me));
  two.pass_seconds(20);
  CHECK_FALSE(is_answered(answer));
  two.let_go_of_questions();  // the pursuit's pauses move the clock
  need(soon(std::move(answer)));
  CHECK(two.b.client->counts().fences == 1);
}

TEST_CASE("the lock of a guest's disk outlasts the silence of a client that has no lock") {
  TwoMounts two;
  const auto disk = two.open_disk_on_b();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  need(unlock(two.fs_a(), exclusive(two.on_a, me)));
  two.hold_questions_of_b();
  auto answer = begin_lock(two.fs_b(), shared(disk, me));
  two.pass_seconds(20);
  CHECK_FALSE(is_answered(answer));
  two.let_go_of_questions();
  need(soon(std::move(answer)));
  CHECK(two.b.client->counts().fences == 0);
}

TEST_CASE("what the holder of a disk's locks answers of another file says nothing of these") {
  TwoMounts two;
  const auto disk = two.open_disk_on_b();
  const auto other = create_file(two.fs_a(), "g");
  const auto other_on_b = open_again(two.fs_b(), other.ino);
  for (const auto handle : {two.on_a, other.handle}) {
    need(set_lock(two.fs_a(), exclusive(handle, me)));
    need(unlock(two.fs_a(), exclusive(handle, me)));
  }
  two.hold_questions_of_b();
  auto answer = begin_lock(two.fs_b(), shared(disk, me));
  two.pass_seconds(5);
  two.answer_all_but_the_first();
  need(set_lock(two.fs_b(), exclusive(other_on_b, me)));
  two.pass_seconds(10);
  CHECK_FALSE(is_answered(answer));
  two.let_go_of_questions();
  need(soon(std::move(answer)));
}

TEST_CASE("that a dead client is in nobody's way any more, since another one has fenced it, is no answer of its") {
  TwoMounts two;
  auto c = two.volume.mount();
  const auto disk = two.open_disk_on_b();
  const auto base = create_file(two.fs_a(), "base");
  const auto base_on_b = open_again(two.fs_b(), base.ino, O_RDONLY | O_DIRECT);
  const auto base_on_c = open_again(*c.file_system, base.ino, O_RDONLY);
  for (const auto handle : {two.on_a, base.handle}) need(set_lock(two.fs_a(), exclusive(handle, me)));
  two.a.client->crash();
  two.hold_questions_of_b();
  auto answer = begin_lock(two.fs_b(), shared(disk, me));
  two.pass_seconds(5);
  two.answer_all_but_the_first();
  const auto reads = two.hold_second_read_of(base.ino);
  auto of_base = begin_lock(two.fs_b(), shared(base_on_b, me));
  reads->reached.get_future().wait();
  need(set_lock(*c.file_system, waiting(exclusive(base_on_c, me))));
  reads->may_go.set_value();
  two.pass_seconds(10);
  CHECK_FALSE(is_answered(answer));
  two.let_go_of_questions();
  need(soon(std::move(answer)));
}

TEST_CASE("the lock of a guest's disk is refused as soon as the client that has one is heard") {
  TwoMounts two;
  const auto disk = two.open_disk_on_b();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  CHECK(refusal(set_lock(two.fs_b(), shared(disk, me))) == ErrorCode::would_block);
  CHECK(refusal(set_lock(two.fs_b(), shared(disk, me))) == ErrorCode::would_block);
  two.volume.clock().advance(std::chrono::milliseconds(1));
  two.hold_questions_of_b();
  auto answer = begin_lock(two.fs_b(), shared(disk, me));
  two.pass_seconds(20);
  CHECK_FALSE(is_answered(answer));
  two.let_go_of_questions();
  CHECK(refusal(soon(std::move(answer))) == ErrorCode::would_block);
  CHECK(two.b.client->counts().fences == 0);
}

TEST_CASE("the lock of a guest's disk waits three minutes for a silent client, and no longer") {
  TwoMounts two;
  const auto disk = two.open_disk_on_b();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  two.hold_questions_of_b();
  auto answer = begin_lock(two.fs_b(), shared(disk, me));
  two.pass_seconds(170);
  CHECK_FALSE(is_answered(answer));
  CHECK(refusal(two.after_a_while(std::move(answer))) == ErrorCode::would_block);
  two.let_go_of_questions();
}

TEST_CASE("a lock file that is polled is refused while a silent client has it") {
  TwoMounts two;
  const auto lock_file = open_again(two.fs_b(), two.ino, GENERATE(O_RDWR, O_WRONLY | O_APPEND));
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  two.hold_questions_of_b();
  auto answer = begin_lock(two.fs_b(), exclusive(lock_file, me));
  for (unsigned seconds = 0; seconds < 100 && !is_answered(answer); ++seconds) {
    two.pass_seconds(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(is_answered(answer));
  CHECK(refusal(two.after_a_while(std::move(answer))) == ErrorCode::would_block);
  two.let_go_of_questions();
}

TEST_CASE("who asks for a lock of a guest's disk that a silent client has can be interrupted") {
  TwoMounts two;
  const auto disk = two.open_disk_on_b();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  two.hold_questions_of_b();
  auto asked = exclusive(disk, me);
  asked.ticket = 7;
  auto answer = begin_find(two.fs_b(), asked);
  two.pass_seconds(5);
  CHECK_FALSE(is_answered(answer));
  two.fs_b().interrupt_lock(7);
  CHECK(refusal(soon(std::move(answer))) == ErrorCode::interrupted);
  two.let_go_of_questions();
}

TEST_CASE("a step of a lock that the store runs twice, or does not answer, is one step") {
  TwoMounts two;
  const bool is_shared = GENERATE(false, true);
  const auto kind =
      GENERATE(Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  if (is_shared) two.share();
  for (const char* step : {"lease locks", "share locks", "lock", "unlock"}) {
    two.a.client->set_hook(once_on(step, Fault{kind}));
    need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
    CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me, 5, 5))) == ErrorCode::would_block);
    need(unlock(two.fs_a(), exclusive(two.on_a, me)));
    need(set_lock(two.fs_b(), exclusive(two.on_b, me, 5, 5)));
    CHECK(refusal(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9))) == ErrorCode::would_block);
    need(unlock(two.fs_b(), exclusive(two.on_b, me)));
  }
}

TEST_CASE("a step of a lock that the store runs again much later changes nothing") {
  TwoMounts two;
  const std::string step = GENERATE("lease locks", "lock", "unlock");
  if (step != "lease locks") two.share();
  two.a.client->set_hook(once_on(step, Fault{Fault::Kind::run_again_later}));
  auto locked = begin_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9));
  auto unlocked = begin_lock(two.fs_a(), exclusive(two.on_a, another, 100, 100));
  REQUIRE(two.a.client->wait_for_held(step == "unlock" ? 0 : 1));
  if (step != "unlock") two.a.client->release();
  need(locked.get());
  need(unlocked.get());
  auto gone = begin_lock(two.fs_a(), with(exclusive(two.on_a, me), LockType::none));
  if (step == "unlock") {
    REQUIRE(two.a.client->wait_for_held(1));
    two.a.client->release();
  }
  need(gone.get());
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 0, 9)));
  CHECK(refusal(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9))) == ErrorCode::would_block);
  CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me, 100, 100))) == ErrorCode::would_block);
}

TEST_CASE("bytes written under a lock are read under the other client's next lock") {
  FileSystemOptions options;
  options.dirty_limit_bytes = 1 << 20;
  options.idle_leases = 16;
  TwoMounts two(options);
  for (int i = 0; i < 3; ++i) {
    const std::string from_a = "a" + std::to_string(i), from_b = "b" + std::to_string(i);
    need(set_lock(two.fs_a(), waiting(exclusive(two.on_a, me))));
    need(write_at(two.fs_a(), two.on_a, 0, from_a));
    need(unlock(two.fs_a(), exclusive(two.on_a, me)));
    need(set_lock(two.fs_b(), waiting(exclusive(two.on_b, me))));
    CHECK(need(read_at(two.fs_b(), two.on_b, 0, 10)) == from_a);
    need(write_at(two.fs_b(), two.on_b, 0, from_b));
    need(unlock(two.fs_b(), exclusive(two.on_b, me)));
    need(set_lock(two.fs_a(), waiting(exclusive(two.on_a, me))));
    CHECK(need(read_at(two.fs_a(), two.on_a, 0, 10)) == from_b);
    need(unlock(two.fs_a(), exclusive(two.on_a, me)));
  }
}

TEST_CASE("an unmount does not wait for a writer that cannot store what a lock that was given up would have seen") {
  TwoMounts two;
  two.share();
  need(set_lock(two.fs_b(), exclusive(two.on_b, me)));
  need(write_at(two.fs_b(), two.on_b, 0, "its size is not stored"));
  need(unlock(two.fs_b(), exclusive(two.on_b, me)));
  two.b.client->set_hook(always_on("store size, times, map", {Fault::Kind::hold}));
  auto given_up = begin_lock(two.fs_a(), waiting(exclusive(two.on_a, me), 5));
  REQUIRE(two.b.client->wait_for_held(1));  // A has asked for it
  two.fs_a().interrupt_lock(5);
  CHECK(refusal(soon(std::move(given_up))) == ErrorCode::interrupted);
  auto unmounted = std::async(std::launch::async, [&] { return two.fs_a().unmount(); });
  CHECK(unmounted.wait_for(std::chrono::seconds(10)) == std::future_status::ready);
  two.b.client->set_hook(nullptr);
  two.b.client->release_all();
  need(unmounted.get());
}

TEST_CASE("pages that the kernel keeps are dropped before a lock that others have had meanwhile is granted") {
  TwoMounts two;
  const bool is_shared = GENERATE(false, true);
  if (is_shared) two.share();
  need(write_at(two.fs_a(), two.on_a, 0, "old"));
  need(two.a->fsync(two.on_a, false));
  need(set_lock(two.fs_b(), exclusive(two.on_b, me)));
  CHECK(need(read_at(two.fs_b(), two.on_b, 0, 10)) == "old");
  need(unlock(two.fs_b(), exclusive(two.on_b, me)));
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
  need(write_at(two.fs_a(), two.on_a, 0, "new"));
  need(unlock(two.fs_a(), exclusive(two.on_a, me)));
  PageCounter kernel;
  two.fs_b().set_kernel_cache(&kernel);
  need(set_lock(two.fs_b(), exclusive(two.on_b, me)));
  CHECK(kernel.dropped > 0);
  two.fs_b().set_kernel_cache(nullptr);
}

TEST_CASE("a lock over bytes of a client that was found dead at another file is granted after a look at this one") {
  TwoMounts two;
  const auto g = create_file(two.fs_a(), "g");
  need(two.a->fsync(g.handle, false));
  need(set_lock(two.fs_b(), exclusive(open_again(two.fs_b(), g.ino), me)));
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 20, 29)));
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  two.b.client->set_deaf(true);
  need(two.after_a_while(begin_lock(two.fs_a(), waiting(exclusive(g.handle, me)))));
  CHECK(two.a.client->counts().fences == 1);
  std::atomic<unsigned> looks = 0;
  two.a.client->set_hook([&](const StepInfo& info) {
    if (is_look(info, two.ino)) ++looks;
    return Fault{};
  });
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 20, 29)));
  CHECK(looks == 1);
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 40, 49)));  // what the dead have done is known
  CHECK(looks == 1);
  two.a.client->set_hook(nullptr);
}

TEST_CASE("a read-only mount keeps locks for itself, and stores none") {
  TwoMounts two;
  FileSystemOptions read_only;
  read_only.read_only = true;
  auto reader = two.volume.mount(read_only);
  const auto handle = open_again(*reader.file_system, two.ino, O_RDONLY);
  reader.client->reset_record();
  need(set_lock(*reader.file_system, shared(handle, me)));
  CHECK(refusal(set_lock(*reader.file_system, exclusive(handle, another))) == ErrorCode::would_block);
  CHECK(reader.client->counts() == StepCounts{});
  need(set_lock(two.fs_a(), exclusive(two.on_a, me)));
}

TEST_CASE("what stands for locks and is none is named, and gets nobody a lock") {
  TwoMounts two;
  const bool is_key = GENERATE(false, true);
  two.volume.cluster().with_objects([&](scripted::Objects& objects) {
    auto& inode = objects.metadata().at(format::inode_object(two.ino));
    is_key ? inode.keys["k/5"] = "junk" : inode.xattrs["locks"] = "junk";
  });
  const auto done = set_lock(two.fs_b(), exclusive(two.on_b, me));
  REQUIRE(refusal(done) == ErrorCode::corrupt);
  CHECK(done.error().context.find(format::inode_object(two.ino)) != std::string::npos);
}

TEST_CASE("a file that is gone has no locks, and a handle that is none answers so") {
  TwoMounts two;
  two.volume.cluster().with_objects(
      [&](scripted::Objects& objects) { objects.metadata().erase(format::inode_object(two.ino)); });
  CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me))) == ErrorCode::stale);
  CHECK(refusal(set_lock(two.fs_b(), exclusive(HandleId{999}, me))) == ErrorCode::bad_handle);
}

TEST_CASE("one client has at most 4096 locks in a file") {
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  for (std::uint64_t byte = 0; byte < format::LocksRecord::most; ++byte) {
    need(set_lock(fs, exclusive(file.handle, me, 2 * byte, 2 * byte)));
  }
  CHECK(refusal(set_lock(fs, exclusive(file.handle, me, 1'000'000, 1'000'000))) == ErrorCode::no_locks);
  auto other = volume.mount();
  const auto handle = open_again(*other.file_system, file.ino);
  CHECK(refusal(set_lock(*other.file_system, exclusive(handle, me, 8190, 8190))) == ErrorCode::would_block);
  need(set_lock(*other.file_system, exclusive(handle, me, 1, 1)));
}

TEST_CASE("a step that was applied, and whose next run found no space, leaves no wrong memory") {
  TwoMounts two;
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  two.a.client->set_hook([runs = std::make_shared<std::atomic<int>>(0)](const StepInfo& info) {
    if (info.step != "share locks") return Fault{};
    return (*runs)++ == 0 ? Fault{Fault::Kind::lost_answer_applied} : Fault{Fault::Kind::fail, ErrorCode::no_space};
  });
  need(two.after_a_while(begin_lock(two.fs_b(), waiting(exclusive(two.on_b, me, 50, 59)))));
  CHECK(refusal(set_lock(two.fs_a(), exclusive(two.on_a, another, 50, 59))) == ErrorCode::would_block);
}

namespace {
/// The second read of that inode fails: the first is for its locks.
ScriptedClient::Hook fails_second_read(Ino ino) {
  return [object = format::inode_object(ino), reads = std::make_shared<std::atomic<int>>(0)](const StepInfo& info) {
    if (info.kind != StepKind::query || info.object != object) return Fault{};
    return (*reads)++ == 1 ? Fault{Fault::Kind::fail, ErrorCode::io} : Fault{};
  };
}
}  // namespace

TEST_CASE("where the file could not be read anew, no lock is granted, and the next one reads it") {
  TwoMounts two;
  two.share();
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 0, 9)));
  need(unlock(two.fs_b(), exclusive(two.on_b, me, 0, 9)));
  two.a.client->set_hook(fails_second_read(two.ino));
  CHECK_FALSE(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  two.forget_counts();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  CHECK(two.a.client->counts().queries > 0);
}

TEST_CASE("an owner whose lock could not be made exclusive keeps what it had") {
  TwoMounts two;
  two.share();
  need(set_lock(two.fs_a(), shared(two.on_a, me, 0, 9)));
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 20, 29)));
  two.a.client->set_hook(fails_second_read(two.ino));
  CHECK_FALSE(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me, 0, 9))) == ErrorCode::would_block);
}

TEST_CASE("a lock that becomes a weaker one is an unlock: one write, and others may come beside it") {
  TwoMounts two;
  two.share();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  two.forget_counts();
  need(set_lock(two.fs_a(), shared(two.on_a, me, 0, 9)));
  CHECK(two.a.client->counts().applies == 1);
  need(set_lock(two.fs_b(), shared(two.on_b, me, 0, 9)));
}

TEST_CASE("a lock that becomes a weaker one waits for nobody, whatever others have done meanwhile") {
  TwoMounts t;
  t.share();
  need(set_lock(t.fs_a(), exclusive(t.on_a, me, 0, 99)));
  need(set_lock(t.fs_b(), exclusive(t.on_b, another, 2000, 2000)));
  need(write_at(t.fs_b(), t.on_b, 2000, "x"));
  CHECK(need(find_lock(t.fs_a(), exclusive(t.on_a, another, 2000, 2000))));  // A knows of it then
  t.b.client->set_deaf(true);
  t.forget_counts();
  need(set_lock(t.fs_a(), shared(t.on_a, me, 10, 89)));
  CHECK_FALSE(has_asked_and_looked(*t.a.client));
}

TEST_CASE("two that have a shared flock and want it exclusive do not wait for each other") {
  TwoMounts two;
  const auto want_shared = [](const LockRequest& request) { return with(request, LockType::shared); };
  need(set_lock(two.fs_a(), want_shared(whole_file(two.on_a, me))));
  need(set_lock(two.fs_b(), want_shared(whole_file(two.on_b, me))));
  auto on_a = begin_lock(two.fs_a(), waiting(whole_file(two.on_a, me)));
  auto on_b = begin_lock(two.fs_b(), waiting(whole_file(two.on_b, me)));
  two.pass_time_until([&] { return is_answered(on_a) || is_answered(on_b); });
  const bool a_was_first = is_answered(on_a);
  need(a_was_first ? unlock(two.fs_a(), whole_file(two.on_a, me)) : unlock(two.fs_b(), whole_file(two.on_b, me)));
  two.pass_time_until([&] { return is_answered(on_a) && is_answered(on_b); });
  need(on_a.get());
  need(on_b.get());
}

TEST_CASE("to ask for one's own locks drops none of them") {
  TwoMounts two;
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  const auto own = need(find_lock(two.fs_a(), with(exclusive(two.on_a, me), LockType::none)));
  REQUIRE(own);
  CHECK(own->last == 9);
  CHECK_FALSE(need(find_lock(two.fs_a(), with(exclusive(two.on_a, another), LockType::none))));
  CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me, 0, 9))) == ErrorCode::would_block);
}

TEST_CASE("an unlock that would leave more pieces than can be kept is refused, and drops nothing") {
  TwoMounts two;
  for (std::uint64_t lock = 0; lock < format::LocksRecord::most; ++lock) {
    need(set_lock(two.fs_a(), exclusive(two.on_a, me, 10 * lock, 10 * lock + 2)));
  }
  CHECK(refusal(unlock(two.fs_a(), exclusive(two.on_a, me, 1, 1))) == ErrorCode::no_locks);
  CHECK(refusal(set_lock(two.fs_b(), exclusive(two.on_b, me, 1, 1))) == ErrorCode::would_block);
  need(unlock(two.fs_a(), exclusive(two.on_a, me, 0, 2)));
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 1, 1)));
}

TEST_CASE("a lock becomes a weaker one on a store that takes no more locks") {
  TwoMounts two;
  two.share();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  two.a.client->set_hook([](const StepInfo& info) {
    return info.step == "lock" ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  need(set_lock(two.fs_a(), shared(two.on_a, me, 0, 9)));
  CHECK(refusal(set_lock(two.fs_a(), shared(two.on_a, me, 10, 19))) == ErrorCode::no_locks);
  need(set_lock(two.fs_b(), shared(two.on_b, me, 0, 9)));
}

TEST_CASE("a request for a weaker and wider lock that is refused leaves the lock as it was") {
  TwoMounts two;
  two.share();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 10, 19)));
  CHECK(refusal(set_lock(two.fs_a(), shared(two.on_a, me, 0, 19))) == ErrorCode::would_block);
  CHECK(refusal(set_lock(two.fs_b(), shared(two.on_b, me, 0, 9))) == ErrorCode::would_block);
  CHECK(refusal(set_lock(two.fs_a(), shared(two.on_a, another, 0, 9))) == ErrorCode::would_block);
}

TEST_CASE("a request for a weaker and wider lock is refused whatever becomes of its steps") {
  const auto kind =
      GENERATE(Fault::Kind::applied_twice, Fault::Kind::lost_answer_applied, Fault::Kind::lost_answer_not_applied);
  const auto* const step = GENERATE("unlock", "lock");
  TwoMounts two;
  two.share();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  need(set_lock(two.fs_b(), exclusive(two.on_b, me, 10, 19)));
  two.a.client->set_hook(once_on(step, Fault{kind}));
  CHECK(refusal(set_lock(two.fs_a(), shared(two.on_a, me, 0, 19))) == ErrorCode::would_block);
  need(unlock(two.fs_b(), exclusive(two.on_b, me)));
  need(set_lock(two.fs_a(), shared(two.on_a, me, 0, 19)));
  need(set_lock(two.fs_b(), shared(two.on_b, me, 0, 19)));
}

TEST_CASE("what a closed open file had locked does not stay with the next one that has its owner's number") {
  TwoMounts two;
  const auto next = open_again(two.fs_a(), two.ino);
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  need(set_lock(two.fs_a(), exclusive(next, me, 10, 19)));
  two.fs_a().release(two.on_a);
  need(set_lock(two.fs_a(), exclusive(next, another, 0, 9)));
  CHECK(refusal(set_lock(two.fs_a(), exclusive(next, another, 10, 19))) == ErrorCode::would_block);
  close_file(two.fs_a(), next);
  two.on_a = open_again(two.fs_a(), two.ino);
}

TEST_CASE("an unlock that the store could not do is done when another client asks") {
  TwoMounts two;
  two.share();
  need(set_lock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  two.a.client->set_hook(once_on("unlock", Fault{Fault::Kind::fail, ErrorCode::no_space}));
  need(unlock(two.fs_a(), exclusive(two.on_a, me, 0, 9)));
  need(two.after_a_while(begin_lock(two.fs_b(), waiting(exclusive(two.on_b, me, 0, 9)))));
}
