// SPDX-License-Identifier: LGPL-2.1-or-later
// Listings: pages, cookies, equal hashes, and names that come and go meanwhile.
#include <future>
#include <iterator>
#include <set>

#include "support/catch.h"
#include "support/file_calls.h"
#include "support/namespace_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

std::set<std::string> names_of(const std::vector<DirectoryEntry>& entries) {
  std::set<std::string> names;
  for (const auto& entry : entries) CHECK(names.insert(entry.name).second);
  return names;
}

/// Puts entries under keys of our choice: names whose hashes collide do not turn up by themselves.
void put_raw_entries(TestVolume& volume, Ino directory, const std::string& hash, unsigned count) {
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    auto& keys = objects.metadata().at(format::inode_object(directory)).keys;
    for (unsigned i = 0; i < count; ++i) {
      const auto value = encode(format::EntryRecord{Ino{1000 + i}, FileType::regular, {}});
      keys["n/" + hash + "/" + hash.substr(14) + "." + std::to_string(i)] = value;
    }
  });
}

FileSystemOptions names_hold_for(int seconds) {
  FileSystemOptions options;
  options.entry_ttl = std::chrono::seconds(seconds);
  return options;
}

/// The whole listing with attributes, `at_once` entries a call.
std::vector<ListedEntry> listing_plus(FileSystem& fs, Ino directory, unsigned at_once = 100) {
  const auto handle = need(fs.open_directory(directory));
  std::vector<ListedEntry> all;
  for (std::uint64_t cookie = 0;; cookie = all.back().entry.cookie) {
    unsigned taken = 0;
    auto some = need(fs.read_directory_plus(handle, cookie, [&](const auto&) { return ++taken <= at_once; }));
    if (some.empty()) break;
    std::ranges::move(some, std::back_inserter(all));
  }
  fs.release_directory(handle);
  return all;
}

ScriptedCluster::Options pages_of(std::uint32_t entries) {
  ScriptedCluster::Options options;
  options.page_limit = entries;
  return options;
}

}  // namespace

TEST_CASE("no open directory has the number of an open file") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto file = create_file(*fs.file_system, "f").handle;
  const auto directory = need(fs->open_directory(root_ino));
  CHECK(directory.value > file.value + (std::uint64_t{1} << 46));
  CHECK(directory.value < std::uint64_t{1} << 48);  // the rest is the kernel side's
}

TEST_CASE("an empty directory lists itself and its parent") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make_dir(*fs.file_system, root_ino, "d");
  const auto sub = make_dir(*fs.file_system, d, "sub");
  const auto entries = listing(*fs.file_system, sub);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].name == ".");
  CHECK(entries[0].ino == sub);
  CHECK(entries[1].name == "..");
  CHECK(entries[1].ino == d);
  CHECK(listing(*fs.file_system, root_ino)[1].ino == root_ino);
}

TEST_CASE("a listing shows each name once with inode and type, whatever is asked for at once") {
  TestVolume volume;
  auto fs = volume.mount();
  std::set<std::string> all{".", ".."};
  for (int i = 0; i < 2500; ++i) {
    const auto name = "f" + std::to_string(i);
    make_file(*fs.file_system, root_ino, name);
    all.insert(name);
  }
  const auto d = make_dir(*fs.file_system, root_ino, "d");
  all.insert("d");
  for (const std::size_t at_once : {1U, 7U, 1024U, 100'000U}) {
    const auto entries = listing(*fs.file_system, root_ino, at_once);
    CHECK(names_of(entries) == all);
    CHECK(std::ranges::is_sorted(entries, {}, &DirectoryEntry::cookie));
    for (const auto& entry : entries) CHECK(entry.cookie < (std::uint64_t{1} << 63));
    const auto found = std::ranges::find(entries, "d", &DirectoryEntry::name);
    CHECK(found->ino == d);
    CHECK(found->type == FileType::directory);
  }
  fs.client->reset_record();
  listing(*fs.file_system, root_ino, 200);
  CHECK(fs.client->counts().queries == 3);
}

TEST_CASE("names that stay are listed exactly once while others come and go, over several pages") {
  TestVolume volume({}, pages_of(64));
  auto fs = volume.mount();
  auto other = volume.mount();
  std::set<std::string> staying{".", ".."};
  for (int i = 0; i < 600; ++i) {
    staying.insert("s" + std::to_string(i));
    make_file(*fs.file_system, root_ino, "s" + std::to_string(i));
    make_file(*fs.file_system, root_ino, "g" + std::to_string(i));
  }
  const auto handle = need(fs->open_directory(root_ino));
  std::set<std::string> seen;
  int turn = 0;
  for (std::uint64_t cookie = 0;; ++turn) {
    const auto some = need(fs->read_directory(handle, cookie, 20));
    if (some.empty()) break;
    cookie = some.back().cookie;
    for (const auto& entry : some) CHECK(seen.insert(entry.name).second);
    for (int i = 0; i < 5 && turn * 5 + i < 600; ++i) {
      need(other->unlink(root_ino, "g" + std::to_string(turn * 5 + i)));
      make_file(*other.file_system, root_ino, "n" + std::to_string(turn * 5 + i));
    }
  }
  CHECK(std::ranges::includes(seen, staying));
}

TEST_CASE("a listing that starts at the front again, or goes back, shows what is there now") {
  TestVolume volume;
  auto fs = volume.mount();
  make_file(*fs.file_system, root_ino, "old");
  const auto handle = need(fs->open_directory(root_ino));
  const auto before = need(fs->read_directory(handle, 0, 100));
  CHECK(names_of(before) == std::set<std::string>{".", "..", "old"});
  need(fs->unlink(root_ino, "old"));
  make_file(*fs.file_system, root_ino, "new");
  CHECK(names_of(need(fs->read_directory(handle, 0, 100))) == std::set<std::string>{".", "..", "new"});
  CHECK(names_of(need(fs->read_directory(handle, 1, 100))) == std::set<std::string>{"..", "new"});
  CHECK(names_of(need(fs->read_directory(handle, 2, 100))) == std::set<std::string>{"new"});
  auto second = volume.mount();
  const auto other_handle = need(second->open_directory(root_ino));
  CHECK(names_of(need(second->read_directory(other_handle, 2, 100))) == std::set<std::string>{"new"});
}

TEST_CASE("names of equal hash come together, over the ends of pages and of answers") {
  for (const std::uint32_t page : {3U, 4U, 5U, 8U}) {
    TestVolume volume({}, pages_of(page));
    auto fs = volume.mount();
    put_raw_entries(volume, root_ino, "1000000000000001", 2);
    put_raw_entries(volume, root_ino, "2000000000000002", 7);
    put_raw_entries(volume, root_ino, "3000000000000003", 1);
    for (const std::size_t at_once : {1U, 2U, 3U, 4U, 100U}) {
      INFO("pages of " << page << ", " << at_once << " at once");
      const auto entries = listing(*fs.file_system, root_ino, at_once);
      CHECK(names_of(entries).size() == 12);
      const auto handle = need(fs->open_directory(root_ino));
      const auto group = need(fs->read_directory(handle, entries[3].cookie, at_once));
      REQUIRE(group.size() >= 7);
      CHECK(group[6].cookie == group[0].cookie);
      CHECK((group.size() == 7 || at_once == 100));
    }
  }
}

TEST_CASE("a sealed directory lists empty, a dead one and a file that is none are told apart") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make_dir(*fs.file_system, root_ino, "d");
  const auto f = make_file(*fs.file_system, root_ino, "f");
  CHECK(error_of(fs->open_directory(f)) == ErrorCode::not_directory);
  CHECK(error_of(fs->open_directory(Ino{999'999})) == ErrorCode::stale);
  const auto handle = need(fs->open_directory(d));
  CHECK(need(fs->read_directory(handle, 0, 10)).size() == 2);
  fs->release_directory(handle);
  CHECK(error_of(fs->read_directory(handle, 0, 10)) == ErrorCode::bad_handle);
}

TEST_CASE("a damaged entry or a foreign key hides no other name, and its directory is not taken for empty") {
  TestVolume volume;
  auto fs = volume.mount();
  const auto d = make_dir(*fs.file_system, root_ino, "d");
  make_file(*fs.file_system, d, "f");
  const auto damage = [&](const std::string& key, const std::string& value) {
    volume.cluster().with_objects(
        [&](scripted::Objects& objects) { objects.metadata().at(format::inode_object(d)).keys[key] = value; });
  };
  const auto good = encode(format::EntryRecord{Ino{5}, FileType::regular, {}});
  SECTION("its value") { damage(format::entry_key({}, "x"), "garbage"); }
  SECTION("a key after all") { damage("n/zz", good); }
  SECTION("a key before all") { damage("n/\x1b[31m", good); }
  SECTION("pages of them") {
    for (int i = 0; i < 3000; ++i) damage("n/!" + std::to_string(i), good);
  }
  SECTION("a key below which a name stands") { damage("n/" + std::string(16, '0') + "/", good); }
  CHECK(names_in(*fs.file_system, d) == std::vector<std::string>{"f"});
  CHECK(fs->lookup(d, "f"));
  need(fs->unlink(d, "f"));
  CHECK(names_in(*fs.file_system, d).empty());
  CHECK(error_of(fs->rmdir(root_ino, "d")) == ErrorCode::corrupt);
  CHECK(fs->lookup(root_ino, "d"));
}

TEST_CASE("a listing with attributes tells what lookup would, but of the directory itself and its parent nothing") {
  TestVolume volume;
  auto other = volume.mount();
  const auto written_there = create_file(*other.file_system, "written there");
  auto fs = volume.mount(names_hold_for(5));
  const auto written_here = create_file(*fs.file_system, "written here");
  need(write_at(*fs.file_system, written_here.handle, 0, "hello"));
  make_dir(*fs.file_system, root_ino, "d");
  need(fs->make_node({}, root_ino, "l", {FileType::symlink, 0, 0, "to"}));
  volume.clock().advance(std::chrono::seconds(10));
  const auto listed = listing_plus(*fs.file_system, root_ino);
  REQUIRE(listed.size() == 6);
  for (const auto& [entry, reply] : listed) {
    CHECK(reply.has_value() == (entry.name[0] != '.'));
    if (!reply) continue;
    const auto looked_up = need(fs->lookup(root_ino, entry.name));
    CHECK(reply->attributes.ino == looked_up.attributes.ino);
    CHECK(reply->attributes.type == entry.type);
    CHECK(reply->attributes.nlink == looked_up.attributes.nlink);
    CHECK(reply->attributes.size_bytes == looked_up.attributes.size_bytes);
    CHECK(reply->attributes.mtime == looked_up.attributes.mtime);
    CHECK(reply->entry_ttl == std::chrono::seconds(5));
    CHECK(reply->attributes_ttl == looked_up.attributes_ttl);
    CHECK((reply->attributes_ttl == std::chrono::seconds(0)) == (entry.ino == written_there.ino));
  }
}

TEST_CASE("trust in a listed name begins when its page was read") {
  TestVolume volume;
  auto fs = volume.mount(names_hold_for(5));
  make_file(*fs.file_system, root_ino, "f");
  const auto handle = need(fs->open_directory(root_ino));
  volume.clock().advance(std::chrono::seconds(2));
  const auto listed = need(fs->read_directory_plus(handle, 0, [](const DirectoryEntry&) { return true; }));
  CHECK(listed.at(2).reply.value().entry_ttl == std::chrono::seconds(3));
  fs->release_directory(handle);
}

TEST_CASE("where names are not to be trusted, or the page is old, a listing reads no inodes") {
  const auto seconds_of_trust = GENERATE(0, 5);
  TestVolume volume;
  auto fs = volume.mount(names_hold_for(seconds_of_trust));
  make_file(*fs.file_system, root_ino, "f");
  const auto handle = need(fs->open_directory(root_ino));
  volume.clock().advance(std::chrono::seconds(seconds_of_trust));
  fs.client->reset_record();
  const auto listed = need(fs->read_directory_plus(handle, 0, [](const DirectoryEntry&) { return true; }));
  REQUIRE(listed.size() == 3);
  CHECK(listed[2].entry.name == "f");
  CHECK(!listed[2].reply);
  CHECK(fs.client->counts() == StepCounts{});
  fs->release_directory(handle);
}

TEST_CASE("a listing with attributes leaves out those that are gone, and those that the store does not show") {
  TestVolume volume;
  auto fs = volume.mount(names_hold_for(60));
  const auto hung = make_file(*fs.file_system, root_ino, "hung");
  const auto gone = make_file(*fs.file_system, root_ino, "gone");
  const auto dead = make_file(*fs.file_system, root_ino, "dead");
  make_file(*fs.file_system, root_ino, "f");
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    objects.metadata().erase(format::inode_object(gone));
    format::StateRecord state;
    state.kind = format::StateRecord::Kind::dead;
    objects.metadata().at(format::inode_object(dead)).xattrs[format::xattr::state] = encode(state);
  });
  fs.client->set_hook([&](const StepInfo& info) {
    return info.object == format::inode_object(hung) ? Fault{Fault::Kind::hold} : Fault{};
  });
  auto listed = std::async(std::launch::async, [&] { return listing_plus(*fs.file_system, root_ino); });
  REQUIRE(fs.client->wait_for_held(1));
  volume.clock().advance(std::chrono::seconds(1));
  for (const auto& [entry, reply] : listed.get()) CHECK(reply.has_value() == (entry.name == "f"));
  fs.client->release_all();  // nobody waits for it any more
}

TEST_CASE("a mount ends though what a listing has given up is not answered") {
  TestVolume volume;
  auto fs = volume.mount(names_hold_for(60));
  const auto hung = make_file(*fs.file_system, root_ino, "hung");
  fs.client->set_hook([&](const StepInfo& info) {
    return info.object == format::inode_object(hung) ? Fault{Fault::Kind::hold} : Fault{};
  });
  auto listed = std::async(std::launch::async, [&] { return listing_plus(*fs.file_system, root_ino); });
  REQUIRE(fs.client->wait_for_held(1));
  volume.clock().advance(std::chrono::seconds(1));
  listed.get();
  auto ended = std::async(std::launch::async, [&fs] {
    need(fs->unmount());
    fs.file_system.reset();
  });
  CHECK(ended.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  fs.client->release_all();
  ended.get();
}

TEST_CASE("where names are trusted, what was listed without extended attributes has none for as long, at no cost") {
  TestVolume volume;
  auto other = volume.mount();
  const auto file = make_file(*other.file_system, root_ino, "f");
  const bool are_names_trusted = GENERATE(true, false);
  CAPTURE(are_names_trusted);
  auto fs = volume.mount(are_names_trusted ? names_hold_for(1) : FileSystemOptions());
  need(fs->lookup(root_ino, "f"));
  listing_plus(*fs.file_system, root_ino);
  need(other.file_system->set_xattr(file, "user.a", "1", XattrMode::create));
  const auto before = fs.client->counts();
  const auto value = fs->get_xattr(file, "user.a");
  CHECK(fs.client->counts().queries == before.queries + (are_names_trusted ? 0 : 1));
  CHECK(value.has_value() != are_names_trusted);
  volume.clock().advance(std::chrono::seconds(1));
  CHECK(need(fs->get_xattr(file, "user.a")) == "1");
}

TEST_CASE("what this client has set is there at once, however names are trusted") {
  TestVolume volume;
  auto fs = volume.mount(names_hold_for(5));
  const auto file = make_file(*fs.file_system, root_ino, "f");
  listing_plus(*fs.file_system, root_ino);
  CHECK(error_of(fs->get_xattr(file, "user.a")) == ErrorCode::no_attribute);
  need(fs->set_xattr(file, "user.a", "1", XattrMode::create));
  CHECK(need(fs->get_xattr(file, "user.a")) == "1");
}

TEST_CASE("a listing with attributes ends where there is no more room, and continues there") {
  TestVolume volume;
  auto fs = volume.mount(names_hold_for(60));
  for (int i = 0; i < 50; ++i) make_file(*fs.file_system, root_ino, "f" + std::to_string(i));
  fs.client->reset_record();
  std::vector<DirectoryEntry> all;
  for (const auto& listed : listing_plus(*fs.file_system, root_ino, 7)) all.push_back(listed.entry);
  CHECK(names_of(all).size() == 52);
  CHECK(fs.client->counts() == StepCounts{.queries = 51});
}
