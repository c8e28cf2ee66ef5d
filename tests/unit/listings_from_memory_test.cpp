// SPDX-License-Identifier: LGPL-2.1-or-later
// Listings of directories that are held here, and known whole.
#include <algorithm>

#include "fs/held_directories.h"
#include "support/catch.h"
#include "support/fake_clock.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

using Names = std::vector<std::string>;

/// A client that holds a directory that it has made, and another client.
struct Lister {
  TestVolume volume;
  Mount visitor = volume.mount();
  Mount holder = volume.mount(holding());
  Ino top = make_dir(fs(), root_ino, "top"), d = make_dir(fs(), top, "d");

  explicit Lister(unsigned files) {
    for (unsigned i = 0; i < files; ++i) make_file(fs(), d, std::to_string(i));
    need(fs().lookup(d, "0"));  // Super is read anew
    holder.client->reset_record();
  }
  static FileSystemOptions holding() {
    FileSystemOptions options;
    options.lease_after_changes = 4;
    options.names_behind = true;
    return options;
  }
  FileSystem& fs() { return *holder.file_system; }
  FileSystem& other() { return *visitor.file_system; }
  std::uint64_t reads() { return holder.client->counts().queries; }
  Ino parent_in_listing() {
    const auto all = listing(fs(), d);
    return std::ranges::find(all, "..", &DirectoryEntry::name)->ino;
  }
};

Names numbers(unsigned begin, unsigned end) {
  Names names;
  for (unsigned i = begin; i < end; ++i) names.push_back(std::to_string(i));
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE("a directory that is known whole is listed without a read, with what is not stored yet") {
  Lister l(20);
  need(l.fs().unlink(l.d, "0"));
  CHECK(names_in(l.fs(), l.d) == numbers(1, 20));
  CHECK(l.parent_in_listing() == l.top);
  CHECK(l.reads() == 0);
  CHECK(l.holder.client->trace().empty());
}

TEST_CASE("a large one is listed by pages, whatever is removed and made between them") {
  Lister l(10'000);
  const auto handle = need(l.fs().open_directory(l.d));
  Names seen;
  std::uint64_t cookie = 0;
  for (bool first = true;; first = false) {
    const auto some = need(l.fs().read_directory(handle, cookie, 1000));
    if (some.empty()) break;
    for (const auto& entry : some) {
      if (entry.cookie > 2) seen.push_back(entry.name);
    }
    cookie = some.back().cookie;
    if (!first) continue;
    need(l.fs().unlink(l.d, seen.front()));
    make_file(l.fs(), l.d, "made");
  }
  l.fs().release_directory(handle);
  std::erase(seen, "made");
  std::ranges::sort(seen);
  CHECK(seen == numbers(0, 10'000));
}

TEST_CASE("one that another client has changed is read") {
  Lister l(5);
  need(l.other().lookup(l.top, "d"));
  make_file(l.other(), l.d, "theirs");
  auto names = numbers(0, 5);
  names.emplace_back("theirs");
  CHECK(names_in(l.fs(), l.d) == names);
  CHECK(l.reads() > 0);
}

TEST_CASE("the parent that a listing shows is where another client has moved the directory") {
  Lister l(5);
  const Ino elsewhere = make_dir(l.other(), root_ino, "elsewhere");
  need(l.other().rename(l.top, "d", elsewhere, "d", RenameMode::replace));
  CHECK(l.parent_in_listing() == elsewhere);
}

TEST_CASE("a directory is listed though one where it was once cannot be read") {
  Lister l(2);
  const auto elsewhere = make_dir(l.other(), root_ino, "elsewhere");
  need(l.other().rename(l.top, "d", elsewhere, "d", RenameMode::replace));
  l.volume.cluster().with_objects([&](scripted::Objects& objects) {
    objects.metadata().at(format::inode_object(l.top)).xattrs[format::xattr::attr] = "garbage";
  });
  CHECK(names_in(l.fs(), l.d) == numbers(0, 2));
  CHECK(names_in(l.other(), l.d) == numbers(0, 2));
}

TEST_CASE("after a step that may have changed a name the directory is read") {
  Lister l(5);
  need(l.fs().sync_directory(l.d));
  const Ino e = make_dir(l.fs(), root_ino, "e");
  l.holder.client->set_hook(once_on("remove entry", {Fault::Kind::fail, ErrorCode::io}));
  static_cast<void>(l.fs().rename(l.d, "0", e, "0", RenameMode::replace));
  l.holder.client->set_hook(nullptr);
  const auto before = l.reads();
  const auto names = names_in(l.fs(), l.d);
  CHECK(names == names_in(l.other(), l.d));
  CHECK(l.reads() > before);
}

TEST_CASE("memory lists what it knows whole, and nothing that is being changed or is in doubt") {
  FakeClock clock;
  HeldDirectories held(clock);
  constexpr Ino directory{70};
  constexpr Token tenure{InstanceId{7}, 1};
  const auto name_of = [](const char* text) { return txn::Name{format::VolumeUuid{}, directory, text}; };
  const auto entry_of = [](Ino ino) {
    const format::EntryRecord record{ino, FileType::regular, {InstanceId{7}, ino.value}};
    return txn::Entry{encode(record), record};
  };
  const auto a = name_of("a"), b = name_of("b");
  held.born(directory, tenure, 1);
  held.changed(a, entry_of(Ino{80}), 2);
  held.changed(b, std::nullopt, 3);
  const auto listed = held.list(directory, tenure, "", 10);
  REQUIRE(listed.has_value());
  CHECK(listed->is_all);
  REQUIRE(listed->entries.size() == 1);
  CHECK(listed->entries.front().first == a.key);
  CHECK_FALSE(held.list(directory, tenure, "", 0)->is_all);
  CHECK(held.list(directory, tenure, a.key, 10)->entries.empty());
  SECTION("a step is on its way") {
    const std::array<const txn::Name*, 1> changing{&b};
    held.hide(changing);
    CHECK_FALSE(held.list(directory, tenure, "", 10).has_value());
    held.show(changing);
    CHECK(held.list(directory, tenure, "", 10).has_value());
  }
  SECTION("a name is in doubt") {
    held.doubt(b);
    CHECK_FALSE(held.list(directory, tenure, "", 10).has_value());
  }
  SECTION("the lease is about to be released") {
    held.leave(directory);
    CHECK_FALSE(held.list(directory, tenure, "", 10).has_value());
  }
  SECTION("only a part was read") {
    held.end(directory, tenure);
    held.begin(directory, tenure);
    held.take_effect(directory, tenure, 1);
    CHECK_FALSE(held.list(directory, tenure, "", 10).has_value());
  }
}
