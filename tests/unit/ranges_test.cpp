// SPDX-License-Identifier: LGPL-2.1-or-later
// fallocate, seek and copy_file_range: what they do, what they cost, what they leave where they fail.
#include <algorithm>
#include <future>
#include <optional>
#include <set>

#include "format/object_names.h"
#include "format/records.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

constexpr int punch_hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
constexpr int zero_range = FALLOC_FL_ZERO_RANGE;
constexpr auto O = object_bytes;

std::uint64_t size_of(FileSystem& fs, Ino ino) { return need(fs.get_attributes(ino)).attributes.size_bytes; }
std::uint64_t blocks_of(FileSystem& fs, Ino ino) { return need(fs.get_attributes(ino)).attributes.blocks_512; }
std::string bytes_of(FileSystem& fs, const OpenFile& file) { return need(read_at(fs, file.handle, 0, 100 * O)); }

template <class T>
std::optional<ErrorCode> error_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error().code);
}

/// A file with bytes that differ from object to object.
OpenFile file_of(FileSystem& fs, const std::string& name, std::uint64_t size_bytes, char letter = 'a') {
  const auto file = create_file(fs, name);
  std::string text(size_bytes, letter);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(letter + i / O % 20);
  if (size_bytes != 0) need(write_at(fs, file.handle, 0, text));
  need(fs.fsync(file.handle, false));
  return file;
}

std::string zeros(std::uint64_t count) { return std::string(count, '\0'); }

std::set<std::string> objects_of(TestVolume& volume, Ino ino) {
  std::set<std::string> names;
  auto prefix = format::data_object(ino, ObjectIndex{0});
  prefix.resize(prefix.rfind('.') + 1);
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    for (const auto& [name, bytes] : objects.data()) {
      if (name.starts_with(prefix)) names.insert(name.substr(prefix.size()));
    }
  });
  return names;
}

Result<> fallocate(FileSystem& fs, const OpenFile& file, int mode, std::uint64_t offset, std::uint64_t size_bytes,
                   const Caller& caller = {}) {
  return fs.fallocate(caller, file.handle, mode, offset, size_bytes);
}
Result<std::uint64_t> copy(FileSystem& fs, const OpenFile& from, std::uint64_t from_offset, const OpenFile& to,
                           std::uint64_t to_offset, std::uint64_t size_bytes) {
  return fs.copy_file_range({}, from.handle, from_offset, to.handle, to_offset, size_bytes);
}

}  // namespace

// ---- room

TEST_CASE("room makes the file longer, reserves nothing, and reads as zeros") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 10);
  need(fallocate(fs, file, 0, 5, 3 * O));
  CHECK(size_of(fs, file.ino) == 3 * O + 5);
  CHECK(bytes_of(fs, file) == std::string(10, 'a') + zeros(3 * O - 5));
  CHECK(blocks_of(fs, file.ino) == 8);
  need(fallocate(fs, file, 0, 0, 100));
  CHECK(size_of(fs, file.ino) == 3 * O + 5);
  need(fallocate(fs, file, FALLOC_FL_KEEP_SIZE, 0, 50 * O));
  CHECK(size_of(fs, file.ino) == 3 * O + 5);
}

TEST_CASE("more room past the end than there is answers that there is no space, and changes nothing") {
  ScriptedCluster::Options options;
  options.total_bytes = 10 * O;
  TestVolume volume(small_objects(), options);
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 4 * O);
  volume.clock().advance(std::chrono::seconds(5));  // since the mount has looked
  for (const int mode : {0, FALLOC_FL_KEEP_SIZE, zero_range, zero_range | FALLOC_FL_KEEP_SIZE}) {
    CHECK(error_of(fallocate(fs, file, mode, 0, 10 * O + 1)) == ErrorCode::no_space);
    CHECK(size_of(fs, file.ino) == 4 * O);
  }
  CHECK(bytes_of(fs, file).substr(0, O) == std::string(O, 'a'));
  need(fallocate(fs, file, punch_hole, 0, 100 * O));
  need(fallocate(fs, file, 0, 0, 10 * O));
  CHECK(size_of(fs, file.ino) == 10 * O);
}

TEST_CASE(
    "where the store does not say how much space there is, statfs and room past the end go by what it said last") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 4 * O);
  const auto before = need(fs.usage());
  volume.clock().advance(std::chrono::minutes(1));
  volume.clock().waits_end_at_once = true;
  volume.cluster().set_away([](const std::string& object) { return object == ScriptedCluster::all_objects; });
  CHECK(need(fs.usage()).available_bytes == before.available_bytes);
  need(fallocate(fs, file, 0, 0, 5 * O));
  CHECK(error_of(fallocate(fs, file, 0, 0, before.available_bytes + 10 * O)) == ErrorCode::no_space);
  volume.cluster().set_away(nullptr);
  volume.clock().waits_end_at_once = false;
  create_file(fs, "another");
  const auto is_seen = [&] { return need(fs.usage()).objects > before.objects; };
  for (unsigned i = 0; i < 1000 && !is_seen(); ++i) std::this_thread::yield();  // an older look may end first
  CHECK(is_seen());
}

TEST_CASE("zeros and room below the end ask nobody how much there is, and what follows soon is not asked anew") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 4 * O);
  const auto nobody_says = [&](bool is_away) {
    volume.cluster().set_away(
        [is_away](const std::string& object) { return is_away && object == ScriptedCluster::all_objects; });
  };
  const auto all_at_once = [&](const std::function<void()>& work) {
    auto done = std::async(std::launch::async, work);
    CHECK(done.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    nobody_says(false);
    done.get();
  };
  nobody_says(true);
  all_at_once([&] {
    for (const int mode : {0, FALLOC_FL_KEEP_SIZE, zero_range, zero_range | FALLOC_FL_KEEP_SIZE}) {
      need(fallocate(fs, file, mode, O, 3 * O));
    }
  });
  CHECK(bytes_of(fs, file) == std::string(O, 'a') + zeros(3 * O));
  need(fallocate(fs, file, zero_range, 4 * O, O));
  nobody_says(true);
  all_at_once([&] {
    for (std::uint64_t i = 5; i < 50; ++i) need(fallocate(fs, file, zero_range, i * O, O));
  });
  CHECK(size_of(fs, file.ino) == 50 * O);
}

TEST_CASE("modes that nobody knows are not supported, and senseless ranges are refused") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 10);
  for (const int mode :
       {FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_PUNCH_HOLE, FALLOC_FL_UNSHARE_RANGE}) {
    CHECK(error_of(fallocate(fs, file, mode, 0, O)) == ErrorCode::unsupported);
  }
  CHECK(error_of(fallocate(fs, file, 0, 0, 0)) == ErrorCode::invalid);
  CHECK(error_of(fallocate(fs, file, 0, 1, (std::uint64_t{1} << 63) - 1)) == ErrorCode::file_too_large);
  const OpenFile reader{file.ino, open_again(fs, file.ino, O_RDONLY)};
  CHECK(error_of(fallocate(fs, reader, 0, 0, 1)) == ErrorCode::bad_handle);
}

// ---- holes and zeros

TEST_CASE("a hole over whole objects removes them, gives their space back, and costs one removal each") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 8 * O);
  const auto before = bytes_of(fs, file);
  mount.client->reset_record();
  need(fallocate(fs, file, punch_hole, 2 * O, 5 * O));
  CHECK(mount.client->counts() == StepCounts{.removes = 5});
  CHECK(objects_of(volume, file.ino) == std::set<std::string>{"0", "1", "7"});
  CHECK(blocks_of(fs, file.ino) == 3 * O / 512);
  mount.client->reset_record();
  need(fs.fsync(file.handle, false));
  CHECK(mount.client->counts() == StepCounts{.applies = 1});
  CHECK(bytes_of(fs, file) == before.substr(0, 2 * O) + zeros(5 * O) + before.substr(7 * O));
  CHECK(size_of(fs, file.ino) == 8 * O);
}

TEST_CASE("a hole over parts of objects zeros them, up to the end of the file removes the last") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 4 * O + 100);
  const auto before = bytes_of(fs, file);
  mount.client->reset_record();
  need(fallocate(fs, file, punch_hole, O - 10, O + 20));
  CHECK(mount.client->counts() == StepCounts{.removes = 1, .zeros = 2});
  need(fallocate(fs, file, punch_hole, 3 * O + 5, O + 95));
  CHECK(objects_of(volume, file.ino) == std::set<std::string>{"0", "2", "3"});
  CHECK(bytes_of(fs, file) ==
        before.substr(0, O - 10) + zeros(O + 20) + before.substr(2 * O + 10, O - 5) + zeros(O + 95));
  CHECK(size_of(fs, file.ino) == 4 * O + 100);
}

TEST_CASE("a hole up to the end of the file frees the unit in which the file ends, too") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 8292);
  need(fallocate(fs, file, zero_range, 4096, 100 * O));
  CHECK(blocks_of(fs, file.ino) == 8);
  const auto other = file_of(fs, "g", 8292);
  need(fallocate(fs, other, punch_hole, 4096, 4195));
  CHECK(blocks_of(fs, other.ino) == 16);
  need(fallocate(fs, other, punch_hole, 4096, 4196));
  CHECK(blocks_of(fs, other.ino) == 8);
}

TEST_CASE("a hole where the file has none already, or past its end, is one step that proves the lease") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 10);
  need(fallocate(fs, file, 0, 0, 20 * O));
  mount.client->reset_record();
  need(fallocate(fs, file, punch_hole, 5 * O, 8 * O));
  CHECK(mount.client->counts() == StepCounts{.applies = 1});
  need(fallocate(fs, file, punch_hole, 30 * O, O));
  CHECK(mount.client->counts() == StepCounts{.applies = 2});
  CHECK(size_of(fs, file.ino) == 20 * O);
}

TEST_CASE("a range of zeros past the end makes the file longer unless it is to keep its size") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 2 * O);
  need(fallocate(fs, file, zero_range | FALLOC_FL_KEEP_SIZE, O + 5, 3 * O));
  CHECK(bytes_of(fs, file) == std::string(O, 'a') + std::string(5, 'b') + zeros(O - 5));
  need(fallocate(fs, file, zero_range, O, 3 * O));
  CHECK(bytes_of(fs, file) == std::string(O, 'a') + zeros(3 * O));
  CHECK(objects_of(volume, file.ino) == std::set<std::string>{"0"});
}

TEST_CASE("a range of zeros over more objects than fit in one part is done to its end") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  for (std::uint64_t object = 0; object < 1030; ++object) need(write_at(fs, file.handle, object * O, "x"));
  need(write_at(fs, file.handle, 2500 * O, "x"));
  need(fallocate(fs, file, punch_hole, 1, std::uint64_t{1} << 62));
  CHECK(objects_of(volume, file.ino) == std::set<std::string>{"0"});
  CHECK(size_of(fs, file.ino) == 2500 * O + 1);
  CHECK(need(fs.seek(file.handle, 0, SeekTo::hole)) < O);
  CHECK(error_of(fs.seek(file.handle, O, SeekTo::data)) == ErrorCode::no_such_offset);
}

TEST_CASE("a hole of several parts of which one has nothing to remove is followed by one step that proves the lease") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  for (std::uint64_t object = 0; object < 1028; ++object) {
    if (object != 1 && object != 2) need(write_at(fs, file.handle, object * O, "x"));
  }
  mount.client->reset_record();
  need(fallocate(fs, file, punch_hole, 0, 1027 * O + 1));
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .removes = 1026});
}

TEST_CASE("a hole over a file that is nearly all hole costs what is there, however long it is") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const int end_bit = GENERATE(40, 62);
  const auto end = std::uint64_t{1} << end_bit;
  const auto file = create_file(fs, "f");
  SetAttributes longer;
  longer.size_bytes = end;
  need(fs.set_attributes({}, file.ino, longer));
  need(write_at(fs, file.handle, 0, "first"));
  need(write_at(fs, file.handle, end - 4, "last"));
  mount.client->reset_record();
  need(fallocate(fs, file, punch_hole, 0, end));
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .removes = 2});
  CHECK(objects_of(volume, file.ino).empty());
  mount.client->reset_record();
  need(fallocate(fs, file, zero_range | FALLOC_FL_KEEP_SIZE, 5, end));
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .removes = 1, .zeros = 1});
  CHECK(size_of(fs, file.ino) == end);
}

TEST_CASE("a user's hole clears setuid, and changes the times, as a write does") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f", O_RDWR, 06777);
  const auto other = file_of(fs, "g", 100);
  need(write_at(fs, file.handle, 0, std::string(100, 'x')));
  const auto mtime = need(fs.get_attributes(file.ino)).attributes.mtime;
  volume.clock().advance(std::chrono::seconds(10));
  need(fallocate(fs, file, punch_hole, 0, 10, {.uid = 1000, .gid = 1000}));
  CHECK(need(fs.get_attributes(file.ino)).attributes.mode == 0777);
  CHECK(need(fs.get_attributes(file.ino)).attributes.mtime > mtime);
  SetAttributes setuid;
  setuid.mode = 06777;
  need(fs.set_attributes({}, file.ino, setuid));
  need(fs.copy_file_range({.uid = 1000, .gid = 1000}, other.handle, 0, file.handle, 0, 10));
  CHECK(need(fs.get_attributes(file.ino)).attributes.mode == 0777);
}

TEST_CASE("a hole that the store refuses in part leaves old bytes or zeros, and the next one is whole") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 4 * O);
  const auto before = bytes_of(fs, file);
  mount.client->set_hook([](const StepInfo& info) {
    return info.kind == StepKind::remove && info.object.ends_with(".2") ? Fault{Fault::Kind::fail, ErrorCode::io}
                                                                        : Fault{};
  });
  CHECK(error_of(fallocate(fs, file, punch_hole, O, 3 * O)) == ErrorCode::io);
  mount.client->set_hook(nullptr);
  CHECK(bytes_of(fs, file) == before.substr(0, O) + zeros(O) + before.substr(2 * O, O) + zeros(O));
  need(fallocate(fs, file, punch_hole, O, 3 * O));
  CHECK(bytes_of(fs, file) == before.substr(0, O) + zeros(3 * O));
}

TEST_CASE("a client that was evicted without knowing is told by a hole over nothing") {
  TestVolume volume(small_objects());
  auto one = volume.mount();
  const auto file = file_of(*one.file_system, "f", O);
  need(fallocate(*one.file_system, file, 0, 0, 4 * O));
  one.client->set_deaf(true);
  one.client->lose_watches();
  volume.clock().advance(std::chrono::seconds(61));
  auto two = volume.mount();
  const OpenFile theirs{file.ino, open_again(*two.file_system, file.ino)};
  need(write_at(*two.file_system, theirs.handle, 2 * O, "new"));
  CHECK(error_of(fallocate(*one.file_system, file, punch_hole, 2 * O, O)) == ErrorCode::fenced);
  CHECK(need(read_at(*two.file_system, theirs.handle, 2 * O, 3)) == "new");
}

TEST_CASE("another client reads the hole, and writes into it") {
  TestVolume volume(small_objects());
  auto one = volume.mount(), two = volume.mount();
  const auto file = file_of(*one.file_system, "f", 3 * O);
  const OpenFile theirs{file.ino, open_again(*two.file_system, file.ino)};
  CHECK(need(read_at(*two.file_system, theirs.handle, O, 3)) == "bbb");
  need(fallocate(*one.file_system, file, punch_hole, O, O));
  CHECK(need(read_at(*two.file_system, theirs.handle, O, 3)) == zeros(3));
  need(write_at(*two.file_system, theirs.handle, O + 1, "x"));
  CHECK(need(read_at(*one.file_system, file.handle, O, 3)) == zeros(1) + "x" + zeros(1));
}

// ---- seek

TEST_CASE("data and holes are found within and between objects, and the end is a hole") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  need(write_at(fs, file.handle, 2 * O + 8192, std::string(4096, 'x')));
  need(write_at(fs, file.handle, 40 * O - 4096, std::string(8192, 'y')));
  need(fallocate(fs, file, 0, 0, 50 * O));
  const auto data = [&](std::uint64_t offset) { return need(fs.seek(file.handle, offset, SeekTo::data)); };
  const auto hole = [&](std::uint64_t offset) { return need(fs.seek(file.handle, offset, SeekTo::hole)); };
  CHECK(data(0) == 2 * O + 8192);
  CHECK(data(2 * O + 9000) == 2 * O + 9000);
  CHECK(hole(0) == 0);
  CHECK(hole(2 * O + 8192) == 2 * O + 12288);
  CHECK(data(2 * O + 12288) == 40 * O - 4096);
  CHECK(hole(40 * O - 4096) == 40 * O + 4096);
  CHECK(hole(49 * O) == 49 * O);
  for (const auto what : {SeekTo::data, SeekTo::hole}) {
    CHECK(error_of(fs.seek(file.handle, 50 * O, what)) == ErrorCode::no_such_offset);
  }
  CHECK(error_of(fs.seek(file.handle, 40 * O + 4096, SeekTo::data)) == ErrorCode::no_such_offset);
  const auto full = file_of(fs, "g", 40 * O + 1);
  CHECK(need(fs.seek(full.handle, 3, SeekTo::hole)) == 40 * O + 1);
}

TEST_CASE("looking for data asks no object that cannot exist, and nothing else than objects under the lease") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  need(write_at(fs, file.handle, 5000 * O, "x"));
  mount.client->reset_record();
  CHECK(need(fs.seek(file.handle, O, SeekTo::data)) == 5000 * O);
  CHECK(mount.client->counts() == StepCounts{.extents = 1});
  CHECK(need(fs.seek(file.handle, O, SeekTo::hole)) == O);
  CHECK(mount.client->counts() == StepCounts{.extents = 1});
}

TEST_CASE("data that another client has written is found, and the end that it has moved") {
  TestVolume volume(small_objects());
  auto one = volume.mount(), two = volume.mount();
  const auto file = file_of(*one.file_system, "f", 10);
  const OpenFile theirs{file.ino, open_again(*two.file_system, file.ino, O_RDONLY)};
  CHECK(need(two->seek(theirs.handle, 0, SeekTo::hole)) == 10);
  need(write_at(*one.file_system, file.handle, 3 * O, std::string(10, 'x')));
  CHECK(need(two->seek(theirs.handle, 10, SeekTo::data)) == 3 * O);
  CHECK(need(two->seek(theirs.handle, 3 * O, SeekTo::hole)) == 3 * O + 10);
}

TEST_CASE("a block of a damaged map whose bytes no offset reaches holds no data, and looking for some ends") {
  TestVolume volume;
  auto one = volume.mount(), two = volume.mount();
  const auto file = create_file(*one.file_system, "f");
  const std::uint64_t object_size = format::object_size_default_bytes;
  need(write_at(*one.file_system, file.handle, 0, "x"));
  need(write_at(*one.file_system, file.handle, 3 * object_size, "x"));
  need(one->fsync(file.handle, false));
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    format::MapBlock block;
    block.may_exist.set(0);
    auto& keys = objects.metadata().at(format::inode_object(file.ino)).keys;
    keys.erase(format::map_key(0));
    keys[format::map_key(std::uint64_t{1} << 32)] = encode(block);
  });
  const OpenFile theirs{file.ino, open_again(*two.file_system, file.ino, O_RDONLY)};
  CHECK(error_of(two->seek(theirs.handle, object_size, SeekTo::data)) == ErrorCode::no_such_offset);
  CHECK(need(two->seek(theirs.handle, object_size, SeekTo::hole)) == object_size);
  const auto target = create_file(*two.file_system, "g");
  CHECK(need(copy(*two.file_system, theirs, 100, target, 0, object_size)) == object_size);
}

// ---- copies

TEST_CASE("objects that line up are copied by the store, one step each, and one for the map") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto from = file_of(fs, "from", 8 * O), to = file_of(fs, "to", 1, 'A');
  mount.client->reset_record();
  CHECK(need(copy(fs, from, 0, to, 0, 8 * O)) == 8 * O);
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .copies = 8});
  need(fs.fsync(to.handle, false));
  CHECK(mount.client->counts() == StepCounts{.applies = 2, .copies = 8});
  CHECK(bytes_of(fs, to) == bytes_of(fs, from));
  CHECK(blocks_of(fs, to.ino) == 8 * O / 512);
}

TEST_CASE("what does not line up is read and written, and the result is the same") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto from = file_of(fs, "from", 5 * O + 77);
  const auto source = bytes_of(fs, from);
  const std::uint64_t offsets[] = {0, 1, O - 1, O, O + 100, 3 * O - 4096};
  for (const auto from_offset : offsets) {
    for (const auto to_offset : offsets) {
      for (const auto size : {std::uint64_t{1}, O, 2 * O + 5, 100 * O}) {
        const auto to = file_of(fs, "to", 3 * O, 'A');
        auto wanted = bytes_of(fs, to);
        const auto copied = source.substr(from_offset, size);
        if (wanted.size() < to_offset + copied.size()) wanted.resize(to_offset + copied.size());
        wanted.replace(to_offset, copied.size(), copied);
        INFO(size << " bytes from " << from_offset << " to " << to_offset);
        CHECK(need(copy(fs, from, from_offset, to, to_offset, size)) == copied.size());
        CHECK((bytes_of(fs, to) == wanted));
        need(fs.unlink(root_ino, "to"));
        close_file(fs, to.handle);
      }
    }
  }
}

TEST_CASE("holes of the source are holes in the copy, wherever they come to lie") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto from = create_file(fs, "from");
  need(write_at(fs, from.handle, 0, std::string(O, 'x')));
  need(write_at(fs, from.handle, 6 * O, std::string(O, 'y')));
  need(fallocate(fs, from, 0, 0, 9 * O));
  for (const std::uint64_t shift : {std::uint64_t{0}, std::uint64_t{4096}}) {
    const auto to = file_of(fs, "to" + std::to_string(shift), 12 * O, 'A');
    auto wanted = bytes_of(fs, to);
    wanted.replace(shift, 9 * O, bytes_of(fs, from));
    CHECK(need(copy(fs, from, 0, to, shift, 20 * O)) == 9 * O);
    CHECK((bytes_of(fs, to) == wanted));
    const auto there = objects_of(volume, to.ino);
    for (const char* hole : {"2", "3", "4", "5"}) CHECK_FALSE(there.contains(hole));
    CHECK(blocks_of(fs, to.ino) == 5 * O / 512);  // two of the source, three that were there
  }
}

TEST_CASE("an object that the source has lost though it may exist is removed from the copy") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto from = file_of(fs, "from", 3 * O), to = file_of(fs, "to", 3 * O, 'A');
  need(fallocate(fs, from, punch_hole, O, O));
  CHECK(need(copy(fs, from, 0, to, 0, 3 * O)) == 3 * O);
  CHECK(bytes_of(fs, to) == bytes_of(fs, from));
  CHECK(objects_of(volume, to.ino) == std::set<std::string>{"0", "2"});
  CHECK(blocks_of(fs, to.ino) == 2 * O / 512);
}

TEST_CASE("an object that changes whenever the store would copy it is read and written") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto from = file_of(fs, "from", 3 * O), to = file_of(fs, "to", 3 * O, 'A');
  mount.client->set_hook([](const StepInfo& info) {
    return info.kind == StepKind::copy ? Fault{Fault::Kind::fail, ErrorCode::guard_failed} : Fault{};
  });
  CHECK(need(copy(fs, from, 0, to, 0, 3 * O)) == 3 * O);
  CHECK(bytes_of(fs, to) == bytes_of(fs, from));
  CHECK(blocks_of(fs, to.ino) == 3 * O / 512);
}

TEST_CASE("a copy to a descriptor with O_DSYNC outlives the client") {
  TestVolume volume(small_objects());
  auto dead = volume.mount();
  auto heir = volume.mount();
  auto& fs = *dead.file_system;
  const auto source = create_file(fs, "source"), target = create_file(fs, "target");
  const std::string bytes(2 * object_bytes, 's');
  need(write_at(fs, source.handle, 0, bytes));
  need(fs.fsync(source.handle, false));
  const auto synced = open_again(fs, target.ino, O_WRONLY | O_DSYNC);
  CHECK(need(fs.copy_file_range({}, source.handle, 0, synced, 0, bytes.size())) == bytes.size());
  dead.client->crash();
  volume.clock().advance(std::chrono::seconds(61));
  const auto handle = open_again(*heir.file_system, target.ino, O_RDONLY);
  CHECK(need(read_at(*heir.file_system, handle, 0, bytes.size() + 1)) == bytes);
}

TEST_CASE("a copy within a file works, and one onto itself is refused") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 2 * O + 10);
  const auto before = bytes_of(fs, file);
  CHECK(error_of(copy(fs, file, 0, file, O, 2 * O)) == ErrorCode::invalid);
  CHECK(error_of(copy(fs, file, 5, file, 4, 100)) == ErrorCode::invalid);
  CHECK(bytes_of(fs, file) == before);
  CHECK(need(copy(fs, file, 0, file, 4 * O, 100 * O)) == 2 * O + 10);
  CHECK(bytes_of(fs, file) == before + zeros(2 * O - 10) + before);
}

TEST_CASE("a copy ends with its source, and one from past its end copies nothing") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto from = file_of(fs, "from", 100), to = file_of(fs, "to", 10, 'A');
  CHECK(need(copy(fs, from, 90, to, 0, 1000)) == 10);
  CHECK(need(copy(fs, from, 100, to, 0, 1000)) == 0);
  CHECK(need(copy(fs, from, 5000, to, 0, 1000)) == 0);
  CHECK(size_of(fs, to.ino) == 10);
}

TEST_CASE("a copy takes what another client has just written, without taking its lease") {
  TestVolume volume(small_objects());
  auto one = volume.mount(), two = volume.mount();
  const auto from = file_of(*one.file_system, "from", 10);
  need(write_at(*one.file_system, from.handle, 0, std::string(3 * O, 'n')));
  const OpenFile theirs{from.ino, open_again(*two.file_system, from.ino, O_RDONLY)};
  const auto to = create_file(*two.file_system, "to");
  need(write_at(*one.file_system, from.handle, 3 * O, std::string(O, 'm')));
  CHECK(need(copy(*two.file_system, theirs, 0, to, 0, 100 * O)) == 4 * O);
  CHECK(bytes_of(*two.file_system, to) == std::string(3 * O, 'n') + std::string(O, 'm'));
  one.client->reset_record();
  need(write_at(*one.file_system, from.handle, 0, "x"));
  CHECK(one.client->counts() == StepCounts{.writes = 1});
}

TEST_CASE("a copy past the end that fails leaves the size, and nothing past it") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto from = file_of(fs, "from", 4 * O), to = file_of(fs, "to", 10, 'A');
  const auto shift = GENERATE(as<std::uint64_t>{}, 0, 100);
  mount.client->set_hook([&](const StepInfo& info) {
    const bool is_last = info.object == format::data_object(to.ino, ObjectIndex{3});
    const bool brings_bytes = info.kind == StepKind::copy || info.kind == StepKind::write;
    return is_last && brings_bytes ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  CHECK(error_of(copy(fs, from, 0, to, shift, 4 * O)) == ErrorCode::no_space);
  mount.client->set_hook(nullptr);
  CHECK(size_of(fs, to.ino) == 10);
  const auto there = objects_of(volume, to.ino);
  CHECK(std::ranges::all_of(there, [](const std::string& index) { return index == "0"; }));
  need(fallocate(fs, to, 0, 0, 4 * O));
  CHECK(bytes_of(fs, to).substr(10) == zeros(4 * O - 10));
}

TEST_CASE("two copies in opposite directions at once both end") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto a = file_of(fs, "a", 70 * O), b = file_of(fs, "b", 70 * O, 'A');
  auto one = std::async(std::launch::async, [&] { return need(copy(fs, a, 0, b, 0, 70 * O)); });
  auto two = std::async(std::launch::async, [&] { return need(copy(fs, b, 1, a, 0, 70 * O)); });
  CHECK(one.get() == 70 * O);
  CHECK(two.get() == 70 * O - 1);
}

// ---- what is buffered

namespace {

FileSystemOptions with_write_buffer() {
  FileSystemOptions options;
  options.dirty_limit_bytes = 8 << 20;
  return options;
}

ScriptedClient::Hook refuses_writes() {
  return [](const StepInfo& info) {
    return info.kind == StepKind::write ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  };
}

}  // namespace

TEST_CASE("a small range is read and written as by two programs: one read, and the bytes are buffered") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(with_write_buffer());
  auto& fs = *mount.file_system;
  const auto from = file_of(fs, "from", 1000), to = create_file(fs, "to");
  mount.client->reset_record();
  CHECK(need(copy(fs, from, 0, to, 0, 5 * O)) == 1000);
  CHECK(mount.client->counts() == StepCounts{.reads = 1});
  CHECK(bytes_of(fs, to) == bytes_of(fs, from));
  CHECK(need(copy(fs, from, 1000, to, 1000, 1)) == 0);
  auto visitor = volume.mount();
  need(write_at(*visitor.file_system, open_again(*visitor.file_system, from.ino), 10, std::string(2000, 'x')));
  std::uint64_t copied = 0, part = 0;
  while ((part = need(copy(fs, from, copied, to, copied, 5 * O))) != 0) copied += part;
  CHECK(copied == 2010);
  CHECK(bytes_of(fs, to) == bytes_of(fs, from));
}

TEST_CASE("holes, searches and copies find what is buffered, and nothing of it comes back later") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(with_write_buffer());
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 4 * O);
  auto wanted = bytes_of(fs, file);
  const auto write = [&](std::uint64_t offset, const std::string& text) {
    need(write_at(fs, file.handle, offset, text));
    wanted.resize(std::max(wanted.size(), offset + text.size()));
    wanted.replace(offset, text.size(), text);
  };
  write(O - 50, std::string(100, 'x'));
  need(fallocate(fs, file, punch_hole, O, 2 * O));
  wanted.replace(O, 2 * O, zeros(2 * O));
  CHECK((bytes_of(fs, file) == wanted));
  write(9 * O, std::string(O, 'y'));
  CHECK(need(fs.seek(file.handle, 4 * O, SeekTo::data)) == 9 * O);
  write(O + 5, "late");
  const auto to = file_of(fs, "to", 20 * O, 'A');
  need(write_at(fs, to.handle, 5 * O, std::string(O, 'z')));
  CHECK(need(copy(fs, file, 0, to, 0, 20 * O)) == 10 * O);
  need(fs.fsync(to.handle, false));
  need(fs.fsync(file.handle, false));
  auto other = volume.mount();
  const OpenFile copied{to.ino, open_again(*other.file_system, to.ino, O_RDONLY)};
  const OpenFile source{file.ino, open_again(*other.file_system, file.ino, O_RDONLY)};
  CHECK((bytes_of(*other.file_system, copied).substr(0, 10 * O) == wanted));
  CHECK((bytes_of(*other.file_system, source) == wanted));
}

TEST_CASE("a hole takes the place of bytes that cannot be stored") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(with_write_buffer());
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 3 * O);
  auto wanted = bytes_of(fs, file);
  need(write_at(fs, file.handle, O, std::string(100, 'x')));
  need(write_at(fs, file.handle, 2 * O, std::string(100, 'y')));
  mount.client->set_hook(refuses_writes());
  CHECK(error_of(fs.fsync(file.handle, false)) == ErrorCode::no_space);
  need(fallocate(fs, file, punch_hole, O, 50));
  need(fallocate(fs, file, punch_hole, 2 * O, O));
  mount.client->set_hook(nullptr);
  wanted.replace(O, 100, zeros(50) + std::string(50, 'x'));
  wanted.replace(2 * O, O, zeros(O));
  CHECK((bytes_of(fs, file) == wanted));
  static_cast<void>(fs.fsync(file.handle, false));
  auto other = volume.mount();
  const OpenFile elsewhere{file.ino, open_again(*other.file_system, file.ino, O_RDONLY)};
  CHECK((bytes_of(*other.file_system, elsewhere) == wanted));
}

TEST_CASE("bytes that cannot be stored are data, and copied as such") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(with_write_buffer());
  auto& fs = *mount.file_system;
  const auto file = file_of(fs, "f", 2 * O), to = file_of(fs, "to", 0);
  SetAttributes longer;
  longer.size_bytes = 8 * O;
  need(fs.set_attributes({}, file.ino, longer));
  need(write_at(fs, file.handle, 4 * O - 50, std::string(100, 'x')));
  need(write_at(fs, file.handle, 2 * O, std::string(60, 'y')));
  std::set<std::string> objects;
  for (std::uint64_t i = 0; i < 8; ++i) objects.insert(format::data_object(file.ino, ObjectIndex{i}));
  mount.client->set_hook([objects](const StepInfo& info) {
    const bool is_refused = info.kind == StepKind::write && objects.contains(info.object);
    return is_refused ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  CHECK(need(fs.seek(file.handle, O, SeekTo::hole)) == 2 * O + 60);
  CHECK(need(fs.seek(file.handle, 2 * O + 60, SeekTo::data)) == 4 * O - 50);
  CHECK(need(fs.seek(file.handle, 4 * O, SeekTo::data)) == 4 * O);
  CHECK(need(fs.seek(file.handle, 4 * O - 1, SeekTo::hole)) == 4 * O + 50);
  CHECK(error_of(fs.seek(file.handle, 4 * O + 50, SeekTo::data)) == ErrorCode::no_such_offset);
  std::uint64_t copied = 0, part = 0;
  while ((part = need(copy(fs, file, copied, to, copied, 8 * O))) != 0) copied += part;
  CHECK(copied == 8 * O);
  need(fs.fsync(to.handle, false));
  const auto wanted = bytes_of(fs, file);
  CHECK(wanted.substr(4 * O - 50, 100) == std::string(100, 'x'));
  auto other = volume.mount();
  const OpenFile elsewhere{to.ino, open_again(*other.file_system, to.ino, O_RDONLY)};
  CHECK((bytes_of(*other.file_system, elsewhere) == wanted));
  CHECK(error_of(fs.fsync(file.handle, false)) == ErrorCode::no_space);
}

TEST_CASE("a copy of a file that grows meanwhile has no zeros where bytes were answered") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(with_write_buffer());
  auto& fs = *mount.file_system;
  const auto from = file_of(fs, "from", O), to = file_of(fs, "to", 0);
  need(write_at(fs, from.handle, 0, std::string(100, 'x')));
  mount.client->set_hook(
      [](const StepInfo& info) { return info.kind == StepKind::write ? Fault{Fault::Kind::hold} : Fault{}; });
  auto copied = std::async(std::launch::async, [&] { return copy(fs, from, 0, to, 0, 2 * O); });
  REQUIRE(mount.client->wait_for_held(1));
  need(write_at(fs, from.handle, O, std::string(O, 'y')));
  REQUIRE(mount.client->wait_for_held(2));
  mount.client->set_hook(nullptr);
  mount.client->release();
  std::uint64_t done = need(copied.get()), part = 0;
  mount.client->release_all();
  CHECK(done > 0);
  while ((part = need(copy(fs, from, done, to, done, 2 * O))) != 0) done += part;
  CHECK((bytes_of(fs, to) == bytes_of(fs, from)));
}

TEST_CASE("a copy onto bytes that cannot be stored is refused, and leaves them") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(with_write_buffer());
  auto& fs = *mount.file_system;
  const auto from = file_of(fs, "from", 2 * O), to = create_file(fs, "to");
  const std::string bytes(O, 'b');
  mount.client->set_hook(refuses_writes());
  static_cast<void>(write_at(fs, to.handle, 0, bytes));
  const auto before = bytes_of(fs, to);
  CHECK(before == bytes);
  CHECK(error_of(copy(fs, from, 0, to, 0, 2 * O)) == ErrorCode::no_space);
  CHECK((bytes_of(fs, to) == before));
  mount.client->set_hook(nullptr);
  static_cast<void>(fs.fsync(to.handle, false));
  need(fs.fsync(to.handle, false));
  auto other = volume.mount();
  const OpenFile elsewhere{to.ino, open_again(*other.file_system, to.ino, O_RDONLY)};
  CHECK((bytes_of(*other.file_system, elsewhere) == before));
}

TEST_CASE("a copy whose objects cannot be noted in the map leaves the target as it was") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto from = file_of(fs, "from", 4 * O), to = file_of(fs, "to", 10);
  const auto before = bytes_of(fs, to);
  mount.client->set_hook([object = format::inode_object(to.ino)](const StepInfo& info) {
    const bool is_refused = info.kind == StepKind::apply && info.object == object;
    return is_refused ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  CHECK(error_of(copy(fs, from, 0, to, 0, 4 * O)) == ErrorCode::no_space);
  mount.client->set_hook(nullptr);
  need(fs.fsync(to.handle, false));
  auto other = volume.mount();
  const OpenFile elsewhere{to.ino, open_again(*other.file_system, to.ino, O_RDONLY)};
  CHECK((bytes_of(*other.file_system, elsewhere) == before));
}
