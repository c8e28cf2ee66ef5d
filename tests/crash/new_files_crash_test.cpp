// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Small files that are made, written, closed and removed by one client (docs/NAMES.md section 5), with each step that
// stores or removes them cut, lost, repeated and late: a name that others see has its bytes, whoever lives loses nothing,
// and nothing of the dead stays.
#include <fcntl.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "check/check.h"
#include "format/object_names.h"
#include "support/catch.h"
#include "support/collecting.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

namespace lccfs::crash {
namespace {

using test::need;
using Kind = Fault::Kind;

constexpr Kind kinds[] = {Kind::not_applied_and_crash,
                          Kind::applied_and_crash,
                          Kind::crash_and_land_later,
                          Kind::applied_twice,
                          Kind::lost_answer_applied,
                          Kind::lost_answer_not_applied,
                          Kind::fail};

class NewFiles {
 public:
  explicit NewFiles(Fault fault, unsigned nth) : nth_(nth, fault) {
    for (unsigned i = 0; i < 4; ++i) test::make_file(maker(), root_ino, "old" + std::to_string(i));
    need(maker().sync_directory(root_ino));
    maker_.client->set_hook(nth_);
    play();
    maker_.client->set_hook(nullptr);
    volume_.clock().advance(std::chrono::seconds(6));
    maker().tick();
    static_cast<void>(maker().unmount());
  }

  bool was_reached() const { return nth_.reached(); }
  bool has_crashed() const { return maker_.client->crashed(); }

  void check_what_others_see(bool is_all_there) {
    if (has_crashed()) maker_.client->land_late_steps();
    check_volume();
    volume_.clock().advance(std::chrono::seconds(120));
    auto visitor = volume_.mount();
    std::set<std::string> seen;
    for (const auto& [name, bytes] : files_) {
      const auto found = visitor->lookup(root_ino, name);
      if (!found) continue;
      seen.insert(name);
      const auto ino = found->attributes.ino;
      const bool is_small = bytes.size() < test::object_bytes;
      const auto there =
          need(test::read_at(*visitor.file_system, test::open_again(*visitor.file_system, ino), 0, 1 << 20));
      if (is_small || !has_crashed()) CHECK((there == bytes));
    }
    if (is_all_there) CHECK(seen.size() == files_.size());
    CHECK_FALSE(visitor->lookup(root_ino, "removed"));
    need(visitor->unmount());
    for (unsigned pass = 0; pass < 3; ++pass) {
      test::collect(volume_.cluster(), volume_.clock());
      volume_.clock().advance(std::chrono::seconds(120));
    }
    check_volume();
    check_nothing_is_left();
  }

 private:
  FileSystem& maker() { return *maker_.file_system; }

  /// Empties `bytes` where they were refused.
  void make(const std::string& name, std::string& bytes, int flags = 0, Ino directory = root_ino) {
    const auto made = maker().create({}, directory, name, 0600, O_RDWR | O_CREAT | O_EXCL);
    if (!made) return;
    if (!bytes.empty() && !test::write_with(flags, maker(), made->open.handle, 0, bytes)) bytes.clear();
    static_cast<void>(maker().flush(made->open.handle));
    maker().release(made->open.handle);
  }

  void play() {
    for (auto& [name, bytes] : files_) make(name, bytes);
    std::string bytes = "bytes";
    make("removed", bytes, O_DIRECT);
    static_cast<void>(maker().unlink(root_ino, "removed"));
    if (const auto tree = maker().make_node({}, root_ino, "tree", {FileType::directory, 0700, 0, {}})) {
      std::string long_bytes = files_.at("long");
      make("stored before any name of the tree", long_bytes, O_DIRECT, tree->attributes.ino);
    }
    for (unsigned i = 0; i < 2; ++i) static_cast<void>(maker().unlink(root_ino, "old" + std::to_string(i)));
    static_cast<void>(maker().sync_directory(root_ino));
    maker().tick();
  }

  void check_volume() {
    const auto findings = need(check::check_volume(*volume_.new_client()));
    for (const auto& finding : findings) UNSCOPED_INFO(check::text_of(finding));
    CHECK(findings.empty());
  }

  void check_nothing_is_left() {
    const auto objects = test::object_names(volume_.cluster());
    for (const auto& name : objects) {
      const auto parsed = format::parse_object_name(name).value();
      const auto* data = std::get_if<format::DataName>(&parsed);
      if (data != nullptr && !objects.contains(format::inode_object(data->ino))) FAIL_CHECK("left: " << name);
    }
    CHECK(test::traces_left(volume_.cluster()).empty());
  }

  std::map<std::string, std::string> files_{
      {"empty", ""}, {"small", "some bytes"}, {"long", std::string(test::object_bytes + 10, 'x')}};
  test::TestVolume volume_{test::small_objects(), {.deaths_are_seen = true}};
  test::Mount maker_ = volume_.mount(test::new_files_behind());
  test::NthMutation nth_;
};

}  // namespace

TEST_CASE("each step that stores new small files may be cut, lost, repeated or late") {
  unsigned cases = 0;
  for (const Kind kind : kinds) {
    for (unsigned nth = 0;; ++nth) {
      INFO(describe(kind) << ", change " << nth);
      NewFiles files({kind, ErrorCode::io}, nth);
      files.check_what_others_see(!files.has_crashed());
      if (!files.was_reached()) break;
      ++cases;
    }
  }
  CHECK(cases > 50);
  std::printf("cases of new files: %u\n", cases);
}

}  // namespace lccfs::crash
