// SPDX-License-Identifier: LGPL-2.1-or-later
// Bytes, sizes and times of one client's files.
#include "check/check.h"
#include "format/object_names.h"
#include "format/records.h"
#include "support/catch.h"
#include "support/file_calls.h"
#include "support/test_volume.h"

using namespace lccfs;
using namespace lccfs::test;

namespace {

std::uint64_t size_of(FileSystem& fs, Ino ino) { return need(fs.get_attributes(ino)).attributes.size_bytes; }
std::uint64_t blocks_of(FileSystem& fs, Ino ino) { return need(fs.get_attributes(ino)).attributes.blocks_512; }

}  // namespace

TEST_CASE("what was written is read back, over the borders of objects") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  std::string text(3 * object_bytes + 5, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  REQUIRE(need(write_at(*mount.file_system, file.handle, 7, text)) == text.size());
  CHECK(need(read_at(*mount.file_system, file.handle, 7, text.size())) == text);
  CHECK(need(read_at(*mount.file_system, file.handle, 0, 8)) == std::string(7, '\0') + text[0]);
  CHECK(need(read_at(*mount.file_system, file.handle, object_bytes - 2, 4)) == text.substr(object_bytes - 9, 4));
  CHECK(need(read_at(*mount.file_system, file.handle, 7 + text.size(), 10)).empty());
  CHECK(size_of(*mount.file_system, file.ino) == 7 + text.size());
}

TEST_CASE("a hole reads as zeros, takes no space, and no store operation but in the first object") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 5 * object_bytes, "end"));
  mount.client->reset_record();
  const std::string zeros(2 * object_bytes, '\0');
  CHECK(need(read_at(*mount.file_system, file.handle, object_bytes + 100, zeros.size())) == zeros);
  CHECK(mount.client->counts() == StepCounts{});
  CHECK(need(read_at(*mount.file_system, file.handle, 100, zeros.size())) == zeros);
  CHECK(mount.client->counts() == StepCounts{.reads = 1});
  CHECK(blocks_of(*mount.file_system, file.ino) == 8);
}

TEST_CASE("reading or overwriting 4 KiB of a mapped object is exactly one operation") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "disk");
  const std::string page(4096, 'p');
  need(write_at(*mount.file_system, file.handle, 0, std::string(65536, 'o')));
  mount.client->reset_record();
  need(write_at(*mount.file_system, file.handle, 8192, page));
  CHECK(mount.client->counts() == StepCounts{.writes = 1});
  mount.client->reset_record();
  CHECK(need(read_at(*mount.file_system, file.handle, 8192, 4096)) == page);
  CHECK(mount.client->counts() == StepCounts{.reads = 1});
}

TEST_CASE("a new file of 4 KiB is four writes one after the other: its inode, its name, its bytes, its size") {
  TestVolume volume;
  auto mount = volume.mount();
  close_file(*mount.file_system, create_file(*mount.file_system, "warm").handle);
  CHECK(!mount->lookup(root_ino, "f"));
  mount.client->reset_record();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, std::string(4096, 'n')));
  close_file(*mount.file_system, file.handle);
  const auto inode = format::inode_object(file.ino);
  CHECK(mount.client->trace() == std::vector<std::string>{"create inode " + inode, "insert entry Inode.1",
                                                          "write " + format::data_object(file.ino, ObjectIndex{0}),
                                                          "release lease " + inode});
  CHECK(blocks_of(*volume.mount().file_system, file.ino) == 8);
}

TEST_CASE("cp -a of a small file is five writes and three reads, one after the other") {
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  close_file(fs, create_file(fs, "warm").handle);
  mount.client->reset_record();
  copy_as_cp_does(fs, "f");
  CHECK(mount.client->counts() == StepCounts{.applies = 4, .queries = 3, .writes = 1});
}

TEST_CASE("a file that was made and not written shows no blocks, here and elsewhere; its first bytes may be anywhere") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  CHECK(blocks_of(*mount.file_system, file.ino) == 0);
  need(mount->fsync(file.handle, false));
  CHECK(blocks_of(*volume.mount().file_system, file.ino) == 0);
  need(write_at(*mount.file_system, file.handle, 2 * object_bytes, "end"));
  CHECK(need(read_at(*mount.file_system, file.handle, 0, 100)) == std::string(100, '\0'));
  CHECK(blocks_of(*mount.file_system, file.ino) == 8);
  close_file(*mount.file_system, file.handle);
  CHECK(blocks_of(*volume.mount().file_system, file.ino) == 8);
}

TEST_CASE("fsync with nothing dirty costs nothing, fdatasync after an overwrite neither") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "disk");
  need(write_at(*mount.file_system, file.handle, 0, std::string(65536, 'o')));
  need(mount->fsync(file.handle, false));
  mount.client->reset_record();
  need(mount->fsync(file.handle, false));
  CHECK(mount.client->counts() == StepCounts{});
  need(write_at(*mount.file_system, file.handle, 4096, "new"));
  mount.client->reset_record();
  need(mount->fsync(file.handle, true));
  CHECK(mount.client->counts() == StepCounts{});
  need(mount->fsync(file.handle, false));
  CHECK(mount.client->counts() == StepCounts{});
  volume.clock().advance(std::chrono::milliseconds(4));
  need(write_at(*mount.file_system, file.handle, 4096, "new"));
  mount.client->reset_record();
  need(mount->fsync(file.handle, true));
  CHECK(mount.client->counts() == StepCounts{});
  need(mount->fsync(file.handle, false));
  CHECK(mount.client->counts() == StepCounts{.applies = 1});
}

TEST_CASE("the bytes of a new file of one object cost their write, and one step at close") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  mount.client->reset_record();
  need(write_at(*mount.file_system, file.handle, 0, "hello"));
  need(mount->set_attributes(
      {}, file.ino,
      {.mode = {}, .uid = {}, .gid = {}, .size_bytes = {}, .atime = TimeSpec{7, 0}, .mtime = TimeSpec{8, 9}}));
  close_file(*mount.file_system, file.handle);
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .queries = 1, .writes = 1});
  const auto attributes = need(mount->get_attributes(file.ino)).attributes;
  CHECK(attributes.mtime == TimeSpec{8, 9});
  CHECK(attributes.atime == TimeSpec{7, 0});
  CHECK(attributes.size_bytes == 5);
}

TEST_CASE("a size or time that stays dirty is stored after five seconds") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "hello"));
  mount.client->reset_record();
  mount->tick();
  CHECK(mount.client->counts().applies == 0);
  mount.client->set_hook([](const StepInfo& info) {
    return info.step == "store size, times, map" ? Fault{Fault::Kind::hold, ErrorCode::io} : Fault{};
  });
  volume.clock().advance(std::chrono::seconds(6));
  mount->tick();
  CHECK(mount.client->wait_for_held(1));
  mount.client->release_all();
  CHECK(mount.client->counts().applies == 1);
}

TEST_CASE("truncate cuts what lies beyond, and growing again shows zeros") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, std::string(3 * object_bytes, 'x')));
  mount.client->reset_record();
  need(mount->set_attributes({}, file.ino,
                             {.mode = {}, .uid = {}, .gid = {}, .size_bytes = 100, .atime = {}, .mtime = {}}));
  // One kept object is cut; two were written after it, and two more marked ahead of the writer.
  CHECK(mount.client->counts() == StepCounts{.applies = 1, .queries = 1, .truncates = 1, .removes = 4});
  CHECK(mount.client->trace().front().starts_with("store size"));  // the commit comes first
  need(mount->set_attributes({}, file.ino,
                             {.mode = {}, .uid = {}, .gid = {}, .size_bytes = object_bytes, .atime = {}, .mtime = {}}));
  CHECK(need(read_at(*mount.file_system, file.handle, 98, 4)) == std::string("xx\0\0", 4));
  CHECK(blocks_of(*mount.file_system, file.ino) == 8);
}

TEST_CASE(
    "a truncate takes security.capability away, root's too, and setuid only for a user; a request without a change "
    "takes none") {
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  need(write_at(fs, file.handle, 0, "bytes"));
  SetAttributes mode, size, nothing;
  mode.mode = 06755;
  size.size_bytes = 3;
  need(fs.set_attributes({}, file.ino, mode));
  need(fs.set_xattr(file.ino, "security.capability", "cap", XattrMode::create_or_replace));
  const Caller user{.uid = 1000, .gid = 1000};
  need(fs.set_attributes(user, file.ino, nothing));
  CHECK(need(fs.get_xattr(file.ino, "security.capability")) == "cap");
  CHECK(need(fs.get_attributes(file.ino)).attributes.mode == 06755);
  need(fs.set_attributes({}, file.ino, size));
  CHECK(!fs.get_xattr(file.ino, "security.capability"));
  CHECK(need(fs.get_attributes(file.ino)).attributes.mode == 06755);
  need(fs.set_attributes(user, file.ino, size));
  CHECK(need(fs.get_attributes(file.ino)).attributes.mode == 0755);
}

TEST_CASE("space counts in units of a 64th of an object: what was written, and not cut or freed since") {
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  constexpr std::uint64_t object = 4U << 20, unit = object / 64, blocks = unit / 512;
  const auto file = create_file(fs, "thin");
  for (std::uint64_t i = 0; i < 16; ++i) need(write_at(fs, file.handle, (i + 1) * object - unit, "x"));
  need(write_at(fs, file.handle, 16 * object - 1, "end"));
  const auto elsewhere = [&] {
    need(fs.fsync(file.handle, false));
    return blocks_of(*volume.mount().file_system, file.ino);
  };
  CHECK(blocks_of(fs, file.ino) == 16 * blocks + 8);
  CHECK(elsewhere() == 16 * blocks + 8);

  need(write_at(fs, file.handle, 2 * unit - 1, "xx"));
  CHECK(elsewhere() == 18 * blocks + 8);
  constexpr int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  need(fs.fallocate({}, file.handle, punch, unit + 1, 2 * unit - 1));
  CHECK(elsewhere() == 17 * blocks + 8);
  need(fs.fallocate({}, file.handle, punch, object, object));
  CHECK(elsewhere() == 16 * blocks + 8);

  SetAttributes size;
  size.size_bytes = unit + 1;
  need(fs.set_attributes({}, file.ino, size));
  size.size_bytes = object;
  need(fs.set_attributes({}, file.ino, size));
  CHECK(elsewhere() == blocks);
}

TEST_CASE("bytes for a part of an object that was there in part cost fdatasync nothing, and fsync its one step") {
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "thin");
  need(write_with(O_DIRECT, fs, file.handle, 1U << 20, std::string(4096, 'x')));
  need(fs.fsync(file.handle, false));
  need(write_with(O_DIRECT, fs, file.handle, 0, std::string(4096, 'x')));
  mount.client->reset_record();
  need(fs.fsync(file.handle, true));
  CHECK(mount.client->counts() == StepCounts{});
  need(fs.fsync(file.handle, false));
  CHECK(mount.client->counts() == StepCounts{.applies = 1});
  CHECK(blocks_of(*volume.mount().file_system, file.ino) == 128 + 8);
}

TEST_CASE("a volume of before knows whole objects only") {
  TestVolume volume;
  volume.cluster().with_objects([](scripted::Objects& objects) {
    auto& super = objects.metadata().at("Super").xattrs.at("super");
    auto record = need(format::decode<format::SuperRecord>(super));
    record.incompat = 0;
    super = format::encode(record);
  });
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  constexpr std::uint64_t object = 4U << 20;
  need(write_at(fs, file.handle, object - 1, "xx"));
  need(fs.fallocate({}, file.handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, object / 2));
  need(fs.fsync(file.handle, false));
  CHECK(blocks_of(*volume.mount().file_system, file.ino) == object / 512 + 8);
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    CHECK(objects.metadata().at(format::inode_object(file.ino)).keys.at(format::map_key(0))[0] == 1);
  });
}

TEST_CASE("O_TRUNC empties a file at open") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "content"));
  close_file(*mount.file_system, file.handle);
  const auto again = need(mount->open({}, file.ino, O_RDWR | O_TRUNC));
  CHECK(size_of(*mount.file_system, file.ino) == 0);
  CHECK(need(read_at(*mount.file_system, again.handle, 0, 10)).empty());
}

TEST_CASE("a sequential writer marks objects ahead, a writer of one object does not") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  mount.client->reset_record();
  for (std::uint64_t i = 0; i < 64; ++i) {
    need(write_at(*mount.file_system, file.handle, i * object_bytes, std::string(object_bytes, 'x')));
  }
  CHECK(mount.client->counts().writes == 64);
  CHECK(mount.client->counts().applies <= 9);
  CHECK(blocks_of(*mount.file_system, file.ino) == 64 * object_bytes / 512);
}

TEST_CASE("a write that finds the store full says so, and leaves nothing past the end") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "start"));
  mount.client->set_hook([](const StepInfo& info) {
    return info.kind == StepKind::write && info.object.ends_with(".1") ? Fault{Fault::Kind::fail, ErrorCode::no_space}
                                                                       : Fault{};
  });
  const auto written = write_at(*mount.file_system, file.handle, 5, std::string(2 * object_bytes, 'y'));
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ErrorCode::no_space);
  mount.client->set_hook(nullptr);
  CHECK(size_of(*mount.file_system, file.ino) == 5);
  need(mount->set_attributes({}, file.ino,
                             {.mode = {}, .uid = {}, .gid = {}, .size_bytes = object_bytes, .atime = {}, .mtime = {}}));
  CHECK(need(read_at(*mount.file_system, file.handle, 0, 8)) == std::string("start\0\0\0", 8));
}

TEST_CASE("a write by another user clears the setuid and setgid bits, one by root does not") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f", O_RDWR, 06755);
  need(write_at(*mount.file_system, file.handle, 0, "root"));
  CHECK(need(mount->get_attributes(file.ino)).attributes.mode == 06755);
  need(write_at(*mount.file_system, file.handle, 0, "user", Caller{1000, 1000}));
  CHECK(need(mount->get_attributes(file.ino)).attributes.mode == 0755);
}

TEST_CASE("a handle is good for what it was opened for, and until it is closed") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  const auto reader = need(mount->open({}, file.ino, O_RDONLY));
  CHECK(write_at(*mount.file_system, reader.handle, 0, "no").error().code == ErrorCode::bad_handle);
  close_file(*mount.file_system, file.handle);
  CHECK(read_at(*mount.file_system, file.handle, 0, 1).error().code == ErrorCode::bad_handle);
}

TEST_CASE("a file cannot grow past 2^63 - 1 bytes") {
  TestVolume volume;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  const auto limit = (std::uint64_t{1} << 63) - 1;
  CHECK(write_at(*mount.file_system, file.handle, limit, "x").error().code == ErrorCode::file_too_large);
  need(write_at(*mount.file_system, file.handle, limit - 1, "x"));
  CHECK(size_of(*mount.file_system, file.ino) == limit);
  CHECK(write_at(*mount.file_system, file.handle, 0, "x"));
}

TEST_CASE("a sequential writer at the end of the largest file marks no object that no file has") {
  const auto object_size_bytes = GENERATE(as<std::uint32_t>(), object_bytes, 4 << 20);
  MakeVolumeOptions made;
  made.object_size_bytes = object_size_bytes;
  TestVolume volume(made);
  const auto limit = (std::uint64_t{1} << 63) - 1;
  auto mount = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  const auto border = limit + 1 - object_size_bytes;
  need(write_at(*mount.file_system, file.handle, border - object_bytes, std::string(object_bytes, 'a')));
  need(write_at(*mount.file_system, file.handle, border, std::string(object_bytes - 1, 'b')));
  close_file(*mount.file_system, file.handle);
  mount.file_system.reset();
  auto other = volume.mount();
  CHECK(size_of(*other.file_system, file.ino) >= border);
  const auto again = open_again(*other.file_system, file.ino);
  CHECK(need(read_at(*other.file_system, again, border, 1)) == "b");
  close_file(*other.file_system, again);
  other.file_system.reset();
  CHECK(need(check::check_volume(*volume.cluster().new_client())).empty());
}

TEST_CASE("the kernel keeps its pages of a file that is as it was last told, and no others") {
  TestVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "one"));
  close_file(*mount.file_system, file.handle);
  need(mount->get_attributes(file.ino));
  auto open = need(mount->open({}, file.ino, O_RDONLY));
  CHECK(open.keep_pages);
  close_file(*mount.file_system, open.handle);
  const auto elsewhere = need(other->open({}, file.ino, O_RDWR));
  volume.clock().advance(std::chrono::milliseconds(1));
  need(write_at(*other.file_system, elsewhere.handle, 0, "two"));
  close_file(*other.file_system, elsewhere.handle);
  open = need(mount->open({}, file.ino, O_RDONLY));
  CHECK_FALSE(open.keep_pages);
  CHECK(need(read_at(*mount.file_system, open.handle, 0, 10)) == "two");
}

TEST_CASE("a write goes to its offset or to the end as its own request says, whatever the handle was opened with") {
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f", O_RDWR | O_APPEND);
  need(write_with(O_RDWR | O_APPEND, fs, file.handle, 0, "0123456789"));
  need(write_with(O_RDWR, fs, file.handle, 2, "ab"));  // fcntl has taken O_APPEND away
  CHECK(need(read_at(fs, file.handle, 0, 100)) == "01ab456789");
  const auto plain = open_again(fs, file.ino, O_RDWR);
  need(write_with(O_RDWR | O_APPEND, fs, plain, 0, "end"));  // and given it to this one
  CHECK(need(read_at(fs, file.handle, 0, 100)) == "01ab456789end");
}

TEST_CASE("pages changed by mmap are written back where they belong, and take no setuid bit away") {
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f", O_RDWR | O_APPEND, 06755);
  need(write_with(O_RDWR | O_APPEND, fs, file.handle, 0, "0123456789"));
  auto pages = begin_write(fs, file.handle,
                           {.caller = {1000, 1000},
                            .offset_bytes = 0,
                            .bytes = shared_bytes("mapped"),
                            .flags = O_RDWR | O_APPEND,
                            .writes_back_pages = true});
  CHECK(need(pages.get()) == 6);
  CHECK(need(read_at(fs, file.handle, 0, 100)) == "mapped6789");
  CHECK(need(mount->get_attributes(file.ino)).attributes.mode == 06755);
}

TEST_CASE("pages that are written back after a truncate bring back nothing: a mapping does not grow its file") {
  TestVolume volume(small_objects());
  auto mount = volume.mount(), other = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f", O_RDWR);
  const std::string bytes(3 * 4096, 'b');
  need(write_at(fs, file.handle, 0, bytes));
  const auto write_back = [&] {
    WriteRequest pages{.offset_bytes = 0, .bytes = shared_bytes(bytes), .writes_back_pages = true};
    CHECK(need(begin_write(fs, file.handle, std::move(pages)).get()) == bytes.size());
  };
  close_file(fs, open_again(fs, file.ino, O_WRONLY | O_TRUNC));
  const auto cut = need(mount->get_attributes(file.ino)).attributes;
  volume.clock().advance(std::chrono::seconds(1));
  write_back();
  CHECK(need(read_at(fs, file.handle, 0, 100)).empty());
  CHECK(need(mount->get_attributes(file.ino)).attributes.mtime == cut.mtime);
  SetAttributes to_size;
  to_size.size_bytes = 5000;
  need(other->set_attributes({}, file.ino, to_size));
  write_back();
  CHECK(need(mount->get_attributes(file.ino)).attributes.size_bytes == 5000);
  CHECK(need(read_at(fs, file.handle, 0, 10000)) == std::string(5000, 'b'));
  to_size.size_bytes = 9000;
  need(mount->set_attributes({}, file.ino, to_size));
  CHECK(need(read_at(fs, file.handle, 0, 10000)) == std::string(5000, 'b') + std::string(4000, '\0'));
}

TEST_CASE("a write with O_DSYNC has stored what finds it again, one with O_SYNC its times too, and nothing needless") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  const std::string page(4096, 's');
  need(write_at(fs, file.handle, 0, page));
  const auto costs = [&](int flags, std::uint64_t offset) {
    mount.client->reset_record();
    need(write_with(flags, fs, file.handle, offset, page));
    return mount.client->counts();
  };
  CHECK(costs(O_DIRECT | O_DSYNC, 4096) == StepCounts{.applies = 1, .writes = 1});  // growth
  CHECK(costs(O_DIRECT | O_DSYNC, 0) == StepCounts{.writes = 1});
  CHECK(costs(O_DIRECT | O_SYNC, 0) == StepCounts{.applies = 1, .writes = 1});
  CHECK(costs(O_APPEND | O_DSYNC, 0) == StepCounts{.applies = 1, .writes = 1});
  CHECK(costs(O_DIRECT, 0) == StepCounts{.writes = 1});
}

TEST_CASE("growth that a write with O_DSYNC was answered for outlives the client") {
  TestVolume volume;
  auto dead = volume.mount();
  auto heir = volume.mount();
  const auto file = create_file(*dead.file_system, "f");
  need(write_with(O_DIRECT | O_DSYNC, *dead.file_system, file.handle, 0, "acknowledged"));
  need(write_with(O_APPEND | O_DSYNC, *dead.file_system, file.handle, 0, ", appended"));
  dead.client->crash();
  volume.clock().advance(std::chrono::seconds(61));
  const auto handle = open_again(*heir.file_system, file.ino, O_RDONLY);
  CHECK(need(read_at(*heir.file_system, handle, 0, 100)) == "acknowledged, appended");
}

TEST_CASE("a write with O_DSYNC waits for a size that somebody else is just storing") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  need(write_at(fs, file.handle, 0, std::string(100, 'a')));
  // Both writes have grown the file when the first stores its size, the second's with it.
  std::optional<std::future<Result<std::size_t>>> second;
  mount.client->set_hook([&, stored = std::make_shared<std::atomic<bool>>(false)](const StepInfo& info) {
    const bool first = info.step == "store size, times, map" && !stored->exchange(true);
    return first ? Fault{Fault::Kind::hold, ErrorCode::io} : Fault{};
  });
  need(write_at(fs, file.handle, 200, "second"));
  auto first = begin_write(fs, file.handle, {.offset_bytes = 100, .bytes = shared_bytes("first"), .flags = O_DSYNC});
  REQUIRE(mount.client->wait_for_held(1));
  auto again = begin_write(fs, file.handle, {.offset_bytes = 200, .bytes = shared_bytes("again"), .flags = O_DSYNC});
  // Its bytes are stored by now, on this thread: if it did not wait for the size, it would be answered.
  const bool waits = again.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  mount.client->release_all();  // a check that failed before would leave the step held, and the unmount waiting
  need(first.get());
  need(again.get());
  CHECK(waits);
}

TEST_CASE("O_TRUNC empties a file that is opened for reading, too") {
  TestVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, "content"));
  close_file(*mount.file_system, file.handle);
  const auto again = open_again(*mount.file_system, file.ino, O_RDONLY | O_TRUNC);
  CHECK(need(read_at(*mount.file_system, again, 0, 10)).empty());
  CHECK(size_of(*other.file_system, file.ino) == 0);
  close_file(*mount.file_system, again);
  CHECK(size_of(*other.file_system, file.ino) == 0);
}

TEST_CASE("a resize that failed leaves the old size, in memory and in the store once it is synced") {
  TestVolume volume(small_objects());
  auto mount = volume.mount();
  auto other = volume.mount();
  const auto file = create_file(*mount.file_system, "f");
  need(write_at(*mount.file_system, file.handle, 0, std::string(100, 'a')));
  need(mount->fsync(file.handle, false));
  mount.client->set_hook(once_on("store size, times, map", {Fault::Kind::fail, ErrorCode::no_space}));
  SetAttributes longer;
  longer.size_bytes = 1000;
  CHECK_FALSE(mount->set_attributes({}, file.ino, longer));
  CHECK(size_of(*mount.file_system, file.ino) == 100);
  mount.client->reset_record();
  need(mount->fsync(file.handle, true));
  CHECK(mount.client->counts() == StepCounts{.applies = 1});  // the store may have got the new one
  CHECK(size_of(*other.file_system, file.ino) == 100);
}

TEST_CASE("a size that is just being stored, and may be refused, is told to nobody") {
  TestVolume volume;
  auto mount = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  need(write_at(fs, file.handle, 0, std::string(100, 'a')));
  need(fs.fsync(file.handle, false));
  const bool is_refused = GENERATE(false, true);
  std::uint64_t size_meanwhile = 0;
  mount.client->set_hook([&](const StepInfo& info) {
    if (info.step != "store size, times, map") return Fault{};
    if (size_meanwhile == 0) size_meanwhile = size_of(fs, file.ino);
    return is_refused ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  const auto cut = fs.open({}, file.ino, O_WRONLY | O_TRUNC);
  mount.client->set_hook(nullptr);
  CHECK(size_meanwhile == 100);
  CHECK(cut.has_value() != is_refused);
  CHECK(size_of(fs, file.ino) == (is_refused ? 100 : 0));
}

namespace {

SetAttributes new_mode(std::uint32_t mode) {
  SetAttributes changes;
  changes.mode = mode;
  return changes;
}

constexpr Caller user{1000, 1000};

}  // namespace

TEST_CASE("a setuid bit that another client has set is cleared by a user's write, at the latest after a second") {
  TestVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f", O_RDWR, 0777);
  need(write_at(fs, file.handle, 0, "user", user));
  need(other->set_attributes({}, file.ino, new_mode(04777)));
  mount.client->reset_record();
  need(write_at(fs, file.handle, 0, "soon", user));
  CHECK(mount.client->counts() == StepCounts{.writes = 1});  // memory is still young
  volume.clock().advance(std::chrono::milliseconds(1001));
  need(write_at(fs, file.handle, 0, "root"));
  CHECK(need(other->get_attributes(file.ino)).attributes.mode == 04777);
  need(write_at(fs, file.handle, 0, "late", user));
  CHECK(need(other->get_attributes(file.ino)).attributes.mode == 0777);
  mount.client->reset_record();
  need(write_at(fs, file.handle, 0, "next", user));
  CHECK(mount.client->counts() == StepCounts{.writes = 1});
}

TEST_CASE("a mode changed by a client whose clock is behind is seen, and its setuid bit cleared") {
  TestVolume volume;
  FakeClock behind;
  volume.clock().advance(std::chrono::hours(1));
  auto mount = volume.mount();
  const auto other = need(mount_volume(volume.new_client(), behind, {}));
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f", O_RDWR, 0777);
  need(write_at(fs, file.handle, 0, "mine"));
  need(other->set_attributes({}, file.ino, new_mode(04777)));
  CHECK(need(fs.get_attributes(file.ino)).attributes.mode == 04777);
  need(write_at(fs, file.handle, 0, "user", user));
  CHECK(need(fs.get_attributes(file.ino)).attributes.mode == 0777);
}

TEST_CASE("a capability that another client has set on an open file is seen after a second, and a write takes it") {
  const std::string capability = "security.capability";
  TestVolume volume;
  auto mount = volume.mount();
  auto other = volume.mount();
  auto& fs = *mount.file_system;
  const auto file = create_file(fs, "f");
  CHECK(fs.get_xattr(file.ino, capability).error().code == ErrorCode::no_attribute);
  need(other->set_xattr(file.ino, capability, "cap", XattrMode::create));
  volume.clock().advance(std::chrono::milliseconds(1001));
  CHECK(need(fs.get_xattr(file.ino, capability)) == "cap");
  need(fs.get_attributes(file.ino));
  need(write_with(O_DIRECT, fs, file.handle, 0, "direct"));
  CHECK(other->get_xattr(file.ino, capability).error().code == ErrorCode::no_attribute);
}

TEST_CASE("what is removed under a reader without a record is never zeros") {
  TestVolume volume;
  auto writer = volume.mount();
  const auto file = create_file(*writer.file_system, "f");
  need(write_at(*writer.file_system, file.handle, 0, "hello"));
  need(writer->flush(file.handle));
  writer->release(file.handle);
  const auto client = volume.new_client();
  client->set_hook([](const StepInfo& info) {
    const bool reads = info.kind == StepKind::query || info.kind == StepKind::read;
    return reads ? Fault{} : Fault{Fault::Kind::fail, ErrorCode::permission_denied};
  });
  FileSystemOptions options;
  options.read_only = true;
  auto reader = need(mount_volume(client, volume.clock(), options));
  const auto handle = need(reader->open({}, file.ino, O_RDONLY)).handle;
  CHECK(need(read_at(*reader, handle, 0, 5)) == "hello");

  std::promise<Result<>> removed;
  volume.new_client()->remove_data(format::data_object(file.ino, ObjectIndex{0}),
                                   [&](Result<> result) { removed.set_value(std::move(result)); });
  need(removed.get_future().get());
  const bool inode_stands = GENERATE(true, false);
  volume.cluster().with_objects([&](scripted::Objects& objects) {
    auto& metadata = objects.metadata();
    const auto inode = metadata.find(format::inode_object(file.ino));
    if (inode_stands)
      inode->second.xattrs[format::xattr::state] =
          encode(format::StateRecord{format::StateRecord::Kind::dead, {}, {}, {}});
    else
      metadata.erase(inode);
  });
  const auto read = read_at(*reader, handle, 0, 5);
  REQUIRE(!read);
  CHECK(read.error().code == ErrorCode::stale);
  reader->release(handle);
  need(reader->unmount());
}
