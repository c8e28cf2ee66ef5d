// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The keys that say who has a file open, with each step that writes or removes one cut, lost, repeated and late
// (docs/DATA.md section 12): the volume is valid, whoever lives is told of the next change, and nothing of the dead stays.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "check/check.h"
#include "format/object_names.h"
#include "format/records.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/test_volume.h"

namespace lccfs::crash {
namespace {

using test::need;

class Dropped final : public KernelCache {
 public:
  bool can_keep_names() const override { return false; }
  void expire_name(Ino, const std::string&) override {}
  void forget_names() override {}
  void raise_size(Ino, std::uint64_t, char) override {}
  void invalidate_attributes(Ino) override { ++attributes; }
  void invalidate_pages(Ino) override { ++pages; }
  void invalidate_page_range(Ino, std::uint64_t, std::uint64_t) override {}
  std::atomic<unsigned> attributes = 0, pages = 0;
};

/// A makes the file; B opens it, writes it in turn with A, closes it and opens it again.
class OpenerPlay {
 public:
  OpenerPlay() : volume_({}, {.deaths_are_seen = true}), a_(volume_.mount()), b_(volume_.mount()) {
    b_->set_kernel_cache(&kernel_);
    const auto file = test::create_file(*a_.file_system, "f");
    ino_ = file.ino;
    on_a_ = file.handle;
  }
  ~OpenerPlay() {
    b_->set_kernel_cache(nullptr);
    b_.client->set_hook(nullptr);
    b_.client->release_all();
  }
  OpenerPlay(const OpenerPlay&) = delete;
  OpenerPlay& operator=(const OpenerPlay&) = delete;

  void play(const std::string& step, unsigned nth, Fault fault) {
    b_.client->set_hook([this, step, nth, fault](const StepInfo& info) {
      if (info.step != step || seen_++ != nth) return Fault{};
      reached_ = true;
      return fault;
    });
    open();
    seconds(4);
    write(a_, on_a_);
    write(b_, on_b_);
    write(a_, on_a_);
    seconds(4);
    close();
    seconds(4);
    open();
    seconds(4);
    b_.client->set_hook(nullptr);
    b_.client->release_all();
    seconds(12);  // what failed is tried again
    if (b_.client->crashed()) b_.client->land_late_steps();
  }

  bool was_reached() const { return reached_; }
  bool b_lives() const { return !b_.client->crashed(); }

  /// What A writes is told to B, who drops its pages.
  bool is_told() {
    return comes_true([this] {
      kernel_.pages = kernel_.attributes = 0;
      write(a_, on_a_);
      return comes_true([this] { return kernel_.pages != 0 && kernel_.attributes != 0; }, 50);
    });
  }
  /// A, who writes, removes what the dead have left.
  bool goes() {
    const auto removes_them = [this] {
      write(a_, on_a_);
      test::close_file(*a_.file_system, on_a_);  // the next lease reads the keys anew
      on_a_ = test::open_again(*a_.file_system, ino_);
      return keys() == 0;
    };
    return comes_true(removes_them, 20'000);
  }
  void close() {
    if (on_b_ != HandleId{} && b_lives()) test::close_file(*b_.file_system, on_b_);
    on_b_ = {};
  }
  bool loses_its_key() {
    return comes_true([this] {
      seconds(1);
      return keys() == 0;
    });
  }
  std::string damage() {
    std::string text;
    for (const auto& finding : need(check::check_volume(*volume_.new_client()))) text += check::text_of(finding) + "\n";
    return text;
  }

 private:
  void open() {
    const auto opened = b_->open({}, ino_, O_RDWR);
    if (opened) on_b_ = opened->handle;
  }
  void write(test::Mount& mount, HandleId handle) {
    if (handle == HandleId{} || mount.client->crashed()) return;
    static_cast<void>(test::write_at(*mount.file_system, handle, 0, std::to_string(++writes_)));
  }
  void seconds(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      volume_.clock().advance(std::chrono::seconds(1));
      a_->tick();
      b_->tick();
      b_.client->release_all();  // what is to run again later
      // The steps are others' work. One that comes late may not come at all: its cause may be gone by then.
      std::this_thread::sleep_for(std::chrono::milliseconds(reached_ ? 1 : 10));
    }
  }
  static bool comes_true(const std::function<bool()>& is_so, unsigned most_tries = 2000) {
    for (unsigned tries = 0; tries < most_tries; ++tries) {
      if (is_so()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  std::size_t keys() {
    std::size_t count = 0;
    volume_.cluster().with_objects([&](scripted::Objects& objects) {
      for (const auto& [key, value] : objects.metadata().at(format::inode_object(ino_)).keys) {
        // A's stands where B has asked for its lease while it has the file open.
        count += key.starts_with("o/") && !key.ends_with("/" + std::to_string(first_instance)) ? 1 : 0;
      }
    });
    return count;
  }

  static constexpr unsigned first_instance = 2;  // A's, after the root
  Dropped kernel_;
  test::TestVolume volume_;
  test::Mount a_, b_;
  Ino ino_;
  HandleId on_a_{}, on_b_{};
  unsigned writes_ = 0;
  std::atomic<unsigned> seen_ = 0;
  std::atomic<bool> reached_ = false;
};

}  // namespace

TEST_CASE(
    "wherever a step on an opener's key is cut, the volume is valid, the living are told, and the dead's keys go") {
  using Kind = Fault::Kind;
  unsigned cases = 0, deaths = 0;
  for (const std::string step : {"add opener", "remove opener", "release lease", "take lease"}) {
    for (unsigned nth = 0; nth < 2; ++nth) {
      for (const auto kind :
           {Kind::not_applied_and_crash, Kind::applied_and_crash, Kind::crash_and_land_later, Kind::applied_twice,
            Kind::run_again_later, Kind::lost_answer_applied, Kind::lost_answer_not_applied, Kind::fail}) {
        // What is held would hold up the calls that wait for it.
        const bool is_waited_for = step == "release lease" || step == "take lease";
        if (is_waited_for && (kind == Kind::run_again_later || kind == Kind::fail)) continue;
        OpenerPlay play;
        const auto code = kind == Kind::fail ? ErrorCode::no_space : ErrorCode::timed_out;
        play.play(step, nth, {kind, code});
        if (!play.was_reached()) continue;
        INFO(step << " " << nth << ": " << describe(kind));
        ++cases;
        if (play.b_lives()) {
          CHECK(play.is_told());
          play.close();
          CHECK(play.loses_its_key());
        } else {
          ++deaths;
          CHECK(play.goes());
        }
        CHECK(play.damage() == "");
      }
    }
  }
  CHECK(cases >= 30);
  std::printf("openers: %u cuts, %u of them deaths\n", cases, deaths);
}

}  // namespace lccfs::crash
