// SPDX-License-Identifier: LGPL-2.1-or-later
// What the kernel is told.
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/process_stat.h"
#include "fuse/answers.h"
#include "fuse/convert.h"
#include "fuse/fuse_api.h"
#include "fuse/kernel_channel.h"
#include "fuse/killed_callers.h"
#include "fuse/lookup_counts.h"
#include "fuse/request_buffers.h"
#include "fuse/tagged_handle.h"
#include "fuse/top_directories.h"
#include "support/catch.h"

using namespace lccfs;
using namespace lccfs::fuse;
using namespace std::chrono_literals;

namespace {

Attributes some_attributes() {
  Attributes attributes;
  attributes.ino = Ino{77};
  attributes.type = FileType::character_device;
  attributes.mode = 04751;
  attributes.nlink = 3;
  attributes.uid = 1000;
  attributes.gid = 1001;
  attributes.rdev = 0x103;
  attributes.size_bytes = 5'000'000'000;
  attributes.blocks_512 = 16;
  attributes.atime = {-1, 1};
  attributes.mtime = {1'700'000'000, 999'999'999};
  attributes.ctime = {1'800'000'000, 5};
  return attributes;
}

template <class T>
T part(const std::string& bytes, std::size_t offset) {
  T value;
  REQUIRE(bytes.size() >= offset + sizeof value);
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("an entry of a listing carries its attributes, and lookup's trust in them") {
  const EntryReply reply{some_attributes(), 3s, 250ms};
  const DirectoryEntry entry{"name of odd length", Ino{77}, FileType::character_device, 12345};
  const auto told = listed_entry_answer({entry, reply});
  CHECK(told.size() == listed_entry_bytes(entry));
  CHECK(told.size() % 8 == 0);
  CHECK(told.substr(0, sizeof(fuse_entry_out)) == entry_answer(reply));
  const auto dirent = part<fuse_dirent>(told, sizeof(fuse_entry_out));
  CHECK(dirent.ino == 77);
  CHECK(dirent.off == 12345);
  CHECK(dirent.type == DT_CHR);
  CHECK(dirent.namelen == entry.name.size());
  CHECK(told.substr(FUSE_NAME_OFFSET_DIRENTPLUS, entry.name.size()) == entry.name);
  const auto untold = listed_entry_answer({entry, std::nullopt});
  CHECK(untold.size() == told.size());
  CHECK(part<fuse_entry_out>(untold, 0).nodeid == 0);  // which says: look it up
  CHECK(untold.substr(sizeof(fuse_entry_out)) == told.substr(sizeof(fuse_entry_out)));
}

TEST_CASE("every error has its errno") {
  struct Row {
    ErrorCode code;
    int error_number;
  };
  constexpr Row table[] = {
      {ErrorCode::not_found, ENOENT},
      {ErrorCode::exists, EEXIST},
      {ErrorCode::guard_failed, EIO},
      {ErrorCode::fenced, EIO},
      {ErrorCode::no_space, ENOSPC},
      {ErrorCode::quota_exceeded, EDQUOT},
      {ErrorCode::corrupt, EIO},
      {ErrorCode::unsupported, EOPNOTSUPP},
      {ErrorCode::timed_out, EIO},
      {ErrorCode::permission_denied, EACCES},
      {ErrorCode::not_permitted, EPERM},
      {ErrorCode::invalid, EINVAL},
      {ErrorCode::busy, EBUSY},
      {ErrorCode::stale, ESTALE},
      {ErrorCode::not_directory, ENOTDIR},
      {ErrorCode::is_directory, EISDIR},
      {ErrorCode::not_empty, ENOTEMPTY},
      {ErrorCode::name_too_long, ENAMETOOLONG},
      {ErrorCode::cross_device, EXDEV},
      {ErrorCode::file_too_large, EFBIG},
      {ErrorCode::no_attribute, ENODATA},
      {ErrorCode::no_such_offset, ENXIO},
      {ErrorCode::range_too_small, ERANGE},
      {ErrorCode::bad_handle, EBADF},
      {ErrorCode::read_only, EROFS},
      {ErrorCode::too_many_links, EMLINK},
      {ErrorCode::would_block, EAGAIN},
      {ErrorCode::deadlock, EDEADLK},
      {ErrorCode::interrupted, EINTR},
      {ErrorCode::no_locks, ENOLCK},
      {ErrorCode::io, EIO},
  };
  CHECK(std::size(table) == static_cast<std::size_t>(ErrorCode::io) + 1);
  for (const Row& row : table) {
    INFO(describe(row.code));
    CHECK(errno_of(row.code) == row.error_number);
  }
}

TEST_CASE("errors that only the store can have caused are for the log, also where it refuses our key") {
  for (const auto code : {ErrorCode::corrupt, ErrorCode::io, ErrorCode::timed_out, ErrorCode::permission_denied})
    CHECK(is_for_the_log(code));
  for (const auto code : {ErrorCode::not_found, ErrorCode::no_space, ErrorCode::not_permitted, ErrorCode::fenced})
    CHECK_FALSE(is_for_the_log(code));
}

TEST_CASE("every file type has its mode bits, and back") {
  for (const FileType type : {FileType::regular, FileType::directory, FileType::symlink, FileType::fifo,
                              FileType::socket, FileType::character_device, FileType::block_device})
    CHECK(type_of(type_bits(type) | 07777) == type);
  CHECK_FALSE(type_of(0644));
  CHECK_FALSE(type_of(S_IFMT));
}

TEST_CASE("stat shows the attributes") {
  const auto out = part<fuse_attr_out>(attributes_answer({some_attributes(), 2500ms}), 0);
  CHECK(out.attr_valid == 2);
  CHECK(out.attr_valid_nsec == 500'000'000);
  CHECK(out.attr.ino == 77);
  CHECK(out.attr.mode == (S_IFCHR | 04751));
  CHECK(out.attr.nlink == 3);
  CHECK(out.attr.uid == 1000);
  CHECK(out.attr.gid == 1001);
  CHECK(out.attr.rdev == 0x103);
  CHECK(out.attr.size == 5'000'000'000);
  CHECK(out.attr.blocks == 16);
  CHECK(out.attr.blksize == 4096);
  CHECK(static_cast<std::int64_t>(out.attr.atime) == -1);
  CHECK(out.attr.mtimensec == 999'999'999);
  CHECK(out.attr.ctime == 1'800'000'000);
}

TEST_CASE("statfs shows blocks, and as many files as there are objects and blocks") {
  const auto out =
      part<fuse_statfs_out>(usage_answer({.total_bytes = 40'960, .available_bytes = 8'193, .objects = 7}), 0);
  CHECK(out.st.bsize == 4096);
  CHECK(out.st.frsize == 4096);
  CHECK(out.st.blocks == 10);
  CHECK(out.st.bfree == 2);
  CHECK(out.st.bavail == 2);
  CHECK(out.st.files == 9);
  CHECK(out.st.ffree == 2);
  CHECK(out.st.namelen == 255);
}

TEST_CASE("statfs shows no more free files than a quota has objects left") {
  const auto files = [](std::uint64_t available_objects) {
    const VolumeUsage usage{40'960, 8'193, 7, available_objects};
    const auto out = part<fuse_statfs_out>(usage_answer(usage), 0);
    CHECK(out.st.bavail == 2);
    return std::pair(out.st.files, out.st.ffree);
  };
  CHECK(files(3) == std::pair(std::uint64_t{9}, std::uint64_t{2}));
  CHECK(files(1) == std::pair(std::uint64_t{8}, std::uint64_t{1}));
  CHECK(files(0) == std::pair(std::uint64_t{7}, std::uint64_t{0}));
}

TEST_CASE("a time to live that has passed is none") {
  CHECK(part<fuse_attr_out>(attributes_answer({some_attributes(), -1ns}), 0).attr_valid == 0);
  CHECK(part<fuse_attr_out>(attributes_answer({some_attributes(), -1ns}), 0).attr_valid_nsec == 0);
}

TEST_CASE("setattr changes what the kernel names, and nothing else") {
  struct stat values = {};
  values.st_mode = S_IFREG | 04755;
  values.st_uid = 7;
  values.st_size = 9;
  values.st_atim = {.tv_sec = 1, .tv_nsec = 2};
  const TimeSpec now{100, 200};

  const SetAttributes nothing = to_changes(values, 0, now);
  CHECK_FALSE((nothing.mode || nothing.uid || nothing.gid || nothing.size_bytes || nothing.atime || nothing.mtime));

  const SetAttributes mode = to_changes(values, FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID, now);
  CHECK(mode.mode == 04755U);
  CHECK(mode.uid == 7U);
  CHECK_FALSE((mode.gid || mode.size_bytes));

  const SetAttributes size = to_changes(values, FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_ATIME, now);
  CHECK(size.size_bytes == 9U);
  CHECK(size.atime == TimeSpec{1, 2});

  const SetAttributes times = to_changes(
      values, FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW, now);
  CHECK(times.atime == now);
  CHECK(times.mtime == now);
}

TEST_CASE("unknown flags of rename and setxattr are not taken for known ones") {
  CHECK(to_rename_mode(0) == RenameMode::replace);
  CHECK(to_rename_mode(RENAME_NOREPLACE) == RenameMode::no_replace);
  CHECK(to_rename_mode(RENAME_EXCHANGE) == RenameMode::exchange);
  for (const unsigned flags :
       {RENAME_WHITEOUT, RENAME_NOREPLACE | RENAME_EXCHANGE, RENAME_WHITEOUT | RENAME_NOREPLACE, 8})
    CHECK_FALSE(to_rename_mode(flags));
  CHECK(to_xattr_mode(0) == XattrMode::create_or_replace);
  CHECK(to_xattr_mode(XATTR_CREATE) == XattrMode::create);
  CHECK(to_xattr_mode(XATTR_REPLACE) == XattrMode::replace);
  CHECK_FALSE(to_xattr_mode(XATTR_CREATE | XATTR_REPLACE));
  CHECK(to_seek(SEEK_DATA) == SeekTo::data);
  CHECK(to_seek(SEEK_HOLE) == SeekTo::hole);
  CHECK_FALSE(to_seek(SEEK_SET));
}

TEST_CASE("a direct handle passes by the kernel's pages and writes in parallel") {
  const OpenReply bypassing{.handle = HandleId{5}, .bypass_pages = true};
  const auto direct = part<fuse_open_out>(open_answer(bypassing, O_RDWR | O_DIRECT), 0);
  CHECK(direct.fh == 5);
  CHECK(direct.open_flags == (FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES));
  CHECK(part<fuse_open_out>(open_answer(bypassing, O_WRONLY | O_APPEND), 0).open_flags == FOPEN_DIRECT_IO);
  CHECK(part<fuse_open_out>(open_answer({.handle = HandleId{5}}, O_RDWR), 0).open_flags == 0);
}

TEST_CASE("the kernel keeps a file's pages only when told that they are right") {
  const OpenReply reply{.handle = HandleId{5}, .keep_pages = true};
  CHECK(part<fuse_open_out>(open_answer(reply, O_RDONLY), 0).open_flags == FOPEN_KEEP_CACHE);
}

TEST_CASE("create answers the new name and its handle") {
  const CreateReply reply{.entry = {some_attributes(), 1500ms, 0ns}, .open = {.handle = HandleId{9}}};
  const std::string bytes = create_answer(reply, O_WRONLY);
  CHECK(bytes.size() == sizeof(fuse_entry_out) + sizeof(fuse_open_out));
  const auto entry = part<fuse_entry_out>(bytes, 0);
  CHECK(entry.nodeid == 77);
  CHECK(entry.generation == 0);
  CHECK(entry.entry_valid == 1);
  CHECK(entry.entry_valid_nsec == 500'000'000);
  CHECK(entry.attr_valid == 0);
  CHECK(entry.attr_valid_nsec == 0);
  CHECK(entry.attr.ino == 77);
  CHECK(entry.attr.mode == (S_IFCHR | 04751));
  CHECK(entry.attr.size == 5'000'000'000);
  CHECK(entry.attr.rdev == 0x103);
  CHECK(static_cast<std::int64_t>(entry.attr.atime) == -1);
  CHECK(entry.attr.mtimensec == 999'999'999);
  CHECK(part<fuse_open_out>(bytes, sizeof(fuse_entry_out)).fh == 9);
}

TEST_CASE("an inode is forgotten when the kernel has forgotten every lookup") {
  LookupCounts counts;
  counts.add(Ino{5}, metrics::other_directories);
  counts.add(Ino{5}, metrics::other_directories);
  counts.add(Ino{5}, metrics::other_directories);
  const auto is_forgotten_after = [&counts](Ino ino, std::uint64_t lookups) {
    bool is_forgotten = false;
    counts.drop(ino, lookups, [&is_forgotten] { is_forgotten = true; });
    return is_forgotten;
  };
  CHECK_FALSE(is_forgotten_after(Ino{5}, 2));
  CHECK_FALSE(is_forgotten_after(Ino{6}, 1));
  CHECK(is_forgotten_after(Ino{5}, 1));
  CHECK_FALSE(is_forgotten_after(Ino{5}, 1));
}

namespace {

template <class Header, class Body>
std::string message(const Header& header, const Body& body) {
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) +
         std::string(reinterpret_cast<const char*>(&body), sizeof body);
}

constexpr std::uint32_t allow_mmap = 1U << 4;
constexpr std::uint64_t all_three = std::uint64_t{allow_mmap} << 32 | FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT;

}  // namespace

TEST_CASE("what libfuse does not know is taken where the kernel offers it, and nothing else is changed") {
  fuse_in_header request = {};
  request.opcode = FUSE_INIT;
  request.unique = 7;
  fuse_init_in offer = {};
  offer.flags = FUSE_INIT_EXT | FUSE_ASYNC_READ | FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT;
  offer.flags2 = allow_mmap | 1;
  CHECK(offered_by(message(request, offer)).request == 7);
  CHECK(offered_by(message(request, offer)).flags == all_three);
  offer.flags = FUSE_ASYNC_READ | FUSE_HANDLE_KILLPRIV_V2;  // the second word means nothing
  CHECK(offered_by(message(request, offer)).flags == FUSE_HANDLE_KILLPRIV_V2);
  offer.flags = FUSE_INIT_EXT;
  offer.flags2 = 1;
  CHECK(offered_by(message(request, offer)).request == 0);
  offer.flags2 = allow_mmap;
  request.opcode = FUSE_WRITE;
  CHECK(offered_by(message(request, offer)).request == 0);
  CHECK(offered_by("short").request == 0);

  fuse_out_header header = {};
  fuse_init_out answer = {};
  answer.flags = FUSE_ASYNC_READ;
  answer.max_write = 1 << 20;
  const auto taken = [&](std::uint64_t flags) {
    return part<fuse_init_out>(with_offer_taken(message(header, answer), flags), sizeof header);
  };
  CHECK(taken(all_three).flags == (FUSE_ASYNC_READ | FUSE_INIT_EXT | FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT));
  CHECK(taken(all_three).flags2 == allow_mmap);
  CHECK(taken(all_three).max_write == 1 << 20);
  CHECK(taken(FUSE_HANDLE_KILLPRIV_V2).flags == (FUSE_ASYNC_READ | FUSE_HANDLE_KILLPRIV_V2));
  CHECK(taken(FUSE_HANDLE_KILLPRIV_V2).flags2 == 0);
  header.error = -EPROTO;
  CHECK(with_offer_taken(message(header, answer), all_three) == message(header, answer));
}

TEST_CASE("a longer setxattr comes to libfuse in the form that it knows, and tells whether setgid is to go") {
  const std::string behind("system.posix_acl_access\0value", 29);
  fuse_in_header header = {};
  header.opcode = FUSE_SETXATTR;
  header.unique = 7;
  fuse_setxattr_in setxattr = {};
  setxattr.size = 5;
  setxattr.flags = XATTR_CREATE;
  const bool goes = GENERATE(true, false);
  if (goes) setxattr.setxattr_flags = FUSE_SETXATTR_ACL_KILL_SGID;
  header.len = static_cast<std::uint32_t>(sizeof header + sizeof setxattr + behind.size());
  auto request = message(header, setxattr) + behind;
  request.resize(in_libfuse_form(request));
  CHECK(request.size() == header.len - 8);
  CHECK(part<fuse_in_header>(request, 0).len == request.size());
  CHECK(part<fuse_in_header>(request, 0).unique == 7);
  const auto flags = part<std::array<std::uint32_t, 2>>(request, sizeof header);
  CHECK(flags[0] == 5);
  CHECK(flags[1] == (XATTR_CREATE | (goes ? static_cast<std::uint32_t>(setgid_goes_flag) : 0U)));
  CHECK(request.substr(sizeof header + sizeof flags) == behind);

  header.opcode = FUSE_WRITE;
  request = message(header, setxattr) + behind;
  const auto unchanged = request;
  CHECK(in_libfuse_form(request) == unchanged.size());
  CHECK(request == unchanged);
  std::string shorter("short");
  CHECK(in_libfuse_form(shorter) == 5);
}

TEST_CASE("large writes keep the memory of their requests, a bounded number at once, and all keep their bytes") {
  constexpr std::size_t large = 64 << 10, small = 4096;
  std::vector<SharedBytes> kept;
  std::vector<bool> uncopied;
  {
    RequestBuffers buffers;
    const auto receive = [&](char letter, std::size_t size_bytes) {
      auto& memory = buffers.current().mem;
      if (memory == nullptr) memory = std::malloc(1 << 20);  // as libfuse does
      std::memset(memory, letter, 1 << 20);
      const auto* bytes = static_cast<const char*>(memory) + 80;
      kept.push_back(buffers.keep(bytes, size_bytes));
      return kept.back().data == bytes;
    };
    CHECK_FALSE(receive('s', small));
    for (char i = 0; i < 40; ++i) uncopied.push_back(receive(static_cast<char>('A' + i), large));
    CHECK(uncopied == [] {
      std::vector<bool> first(40, true);
      std::fill(first.begin() + 32, first.end(), false);
      return first;
    }());
    kept.erase(kept.begin() + 1);
    CHECK(receive('x', large));
  }
  for (const auto& [owner, data, size_bytes] : kept) {
    CHECK(std::string_view(data, size_bytes) == std::string(size_bytes, *data));
  }
  CHECK(*kept.front().data == 's');
  CHECK(*kept.back().data == 'x');
}

TEST_CASE("the kernel's number for an open file has the handle and the directory that it counts for") {
  for (const std::uint64_t handle : {std::uint64_t{1}, (std::uint64_t{1} << handle_bits) - 1}) {
    for (const std::uint16_t directory : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{0xffff}}) {
      fuse_file_info info = {};
      info.fh = tagged(HandleId{handle}, metrics::DirectoryTag{directory}).value;
      CHECK(handle_of(&info) == HandleId{handle});
      CHECK(directory_of(&info) == metrics::DirectoryTag{directory});
    }
  }
}

TEST_CASE("an inode belongs to the directory that it was found below last") {
  metrics::Directories labels;
  TopDirectories tops(labels);
  LookupCounts counts;
  const auto first = tops.seen(Ino{5}, "vm1"), second = tops.seen(Ino{6}, "vm2");
  CHECK(tops.seen(Ino{5}, "renamed") == first);
  CHECK(first != second);
  counts.add(Ino{7}, first);
  counts.add(Ino{7}, second);
  CHECK(counts.directory_of(Ino{7}) == second);
  CHECK(counts.directory_of(Ino{8}) == metrics::other_directories);
  tops.forgotten(Ino{6});
  CHECK(tops.seen(Ino{6}, "vm2") != second);
  // It has another's name for a while, and its own again.
  const auto other = tops.seen(Ino{9}, "renamed");
  const auto again = tops.seen(Ino{5}, "renamed");
  CHECK(again != first);
  CHECK(again != other);
  labels.count(again, metrics::Directories::Work::read, std::chrono::seconds(1), 42);
  metrics::Exposition page;
  labels.write(page);
  CHECK(page.text().find("lccfs_directory_read_bytes_total{directory=\"renamed\"} 42") != std::string::npos);
}

TEST_CASE("whether a thread is to end is read from its status") {
  const std::string before = "Name:\tdd\nState:\tD (disk sleep)\nThreads:\t1\n", after = "SigBlk:\t0000000000000100\n";
  const auto is_killed = [](const std::string& status) { return thread_state_in(status).is_killed; };
  CHECK(is_killed(before + "SigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n" + after));
  CHECK(is_killed(before + "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000102\n" + after));
  CHECK_FALSE(is_killed(before + "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000002\n" + after));
  CHECK_FALSE(is_killed(before + "SigPnd:\t"));
  CHECK_FALSE(is_killed(""));
  CHECK(thread_state_in("Name:\tdd\nTgid:\t123\nNgid:\t0\nPid:\t124\n").process == 123);
  CHECK(thread_state_in("").process == 0);
  CHECK(thread_state(0).start_ticks == 0);
  const auto own = thread_state(gettid());
  CHECK(own.start_ticks > 0);
  CHECK((!own.is_killed && own.process == getpid()));
}

TEST_CASE("a line of a process is read whatever its command is called") {
  const auto stat = process_stat_in("12 (a (b) 1 2) R 1 12 12 0 -1 4194308 107 0 0 0 1 2 0 0 20 0 3 0 4711 9");
  REQUIRE(stat);
  CHECK(std::tuple(stat->state, stat->flags, stat->threads, stat->start_ticks) == std::tuple('R', 4194308U, 3U, 4711U));
  CHECK_FALSE(process_stat_in("12 (a) R 1 12"));
  CHECK_FALSE(process_stat_in(""));
}

TEST_CASE("a thread that nobody sees may be ending") {
  CHECK_FALSE(is_ending(gettid()));
  CHECK(is_ending(0));
}

namespace {
/// Requests of programs, some of which are killed; what the kernel is answered, and what is posted, is kept.
class Killing {
 public:
  Killing() {
    REQUIRE(pipe2(ends_, O_CLOEXEC | O_NONBLOCK) == 0);
    callers.begin(
        ends_[1], [this](KilledCallers::Work work) { posted.push_back(std::move(work)); },
        [this](std::uint64_t ticket) { interrupted.push_back(ticket); });
  }
  ~Killing() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  static fuse_req_t request(std::uintptr_t number) { return std::bit_cast<fuse_req_t>(number); }
  void begin(std::uintptr_t number, pid_t thread, std::uint64_t handle) {
    callers.began(request(number), {.number = number, .thread = thread, .handle = handle});
  }
  /// The requests that were answered since, each with EINTR.
  std::vector<std::uint64_t> answered() {
    std::vector<std::uint64_t> numbers;
    fuse_out_header answer = {};
    while (::read(ends_[0], &answer, sizeof answer) == sizeof answer) {
      CHECK(answer.error == -EINTR);
      CHECK(answer.len == sizeof answer);
      numbers.push_back(answer.unique);
    }
    return numbers;
  }
  void run_posted() {
    for (auto& work : std::exchange(posted, {})) work();
  }

  std::set<pid_t> killed;
  std::map<pid_t, std::uint64_t> start_ticks;  // of all others: 1
  std::vector<KilledCallers::Work> posted;
  std::vector<std::uint64_t> interrupted;  // tickets of locks
  KilledCallers callers{[this](pid_t thread) {
    const auto began = start_ticks.find(thread);
    return ThreadState{killed.contains(thread), thread / 10, began == start_ticks.end() ? 1 : began->second};
  }};

 private:
  int ends_[2] = {-1, -1};
};
}  // namespace

TEST_CASE("who is killed is let go once, and nobody else is") {
  Killing killing;
  killing.begin(2, 100, 7);
  killing.begin(4, 101, 7);
  killing.begin(6, 0, 7);  // of another namespace
  killing.killed = {0, 101};
  killing.callers.look();  // it has not waited for long
  CHECK(killing.answered().empty());
  killing.killed = {0};
  killing.callers.look();
  CHECK(killing.answered().empty());
  killing.killed = {0, 101};
  killing.callers.look();
  killing.callers.look();
  CHECK(killing.answered() == std::vector<std::uint64_t>{4});
  CHECK((killing.callers.has_let_go(101) && !killing.callers.has_let_go(100)));
  killing.killed = {0};
  killing.callers.look();
  CHECK_FALSE(killing.callers.has_let_go(101));
  killing.callers.answered(Killing::request(2));
  killing.killed = {0, 100, 101};
  killing.callers.look();
  CHECK(killing.answered().empty());
}

TEST_CASE("who has the number of a thread that has ended, and is killed, lets go of nothing that thread began") {
  Killing killing;
  killing.begin(2, 100, 7);  // asynchronous: its thread need not wait
  killing.begin(4, 101, 7);
  killing.callers.began(Killing::request(6), {.number = 6, .thread = 100, .lock_ticket = 5});
  killing.start_ticks = {{100, 100}, {101, 100}};
  SECTION("seen gone") {
    killing.callers.look();
    killing.start_ticks[100] = 0;
    killing.callers.look();
  }
  SECTION("never seen") { killing.start_ticks[100] = 0; }
  SECTION("used at once") {}
  killing.callers.look();
  killing.start_ticks[100] = 900;
  killing.killed = {100, 101};
  killing.callers.look();
  CHECK(killing.answered() == std::vector<std::uint64_t>{4});
  CHECK(killing.interrupted.empty());
}

TEST_CASE("a lock that a killed program asks for is interrupted, and answered by whoever has it in hand") {
  Killing killing;
  killing.killed = {100};
  killing.callers.began(Killing::request(2), {.number = 2, .thread = 100, .lock_ticket = 5});
  killing.callers.began(Killing::request(4), {.number = 4, .thread = 101, .lock_ticket = 6});
  killing.callers.look();
  killing.callers.look();
  CHECK(killing.interrupted == std::vector<std::uint64_t>{5});
  CHECK(killing.answered().empty());
  CHECK_FALSE(killing.callers.has_left_some_by(100, 7));
  killing.callers.answered(Killing::request(2));
  killing.callers.look();
  CHECK(killing.interrupted.size() == 1);
}

TEST_CASE("what comes after the end of a killed program waits for what it was killed in") {
  Killing killing;
  killing.killed = {100};
  killing.begin(2, 100, 7);
  killing.begin(4, 100, 7);
  killing.callers.look();
  CHECK_FALSE(killing.callers.has_left_some_of(7));
  killing.callers.look();
  CHECK(killing.callers.has_left_some_of(7));
  CHECK_FALSE(killing.callers.has_left_some_of(8));
  std::string order;
  for (const char c : {'a', 'b'}) CHECK(killing.callers.after_those_of(7, [&order, c] { order.push_back(c); }));
  CHECK_FALSE(killing.callers.after_those_of(8, [&order] { order.push_back('8'); }));
  killing.callers.answered(Killing::request(4));
  killing.run_posted();
  CHECK(order.empty());
  killing.callers.answered(Killing::request(2));
  killing.run_posted();
  CHECK(order == "ab");
  CHECK_FALSE(killing.callers.has_left_some_of(7));
}

TEST_CASE("what a killed program closes waits for all that it was killed in; what another closes does not") {
  Killing killing;
  killing.killed = {100, 101};
  killing.begin(2, 100, 7);
  killing.begin(4, 101, 9);
  CHECK_FALSE(killing.callers.has_left_some_by(102, 8));
  killing.callers.look();
  killing.callers.look();
  CHECK_FALSE(killing.callers.has_left_some_by(200, 7));
  CHECK(killing.callers.has_left_some_by(102, 8));
  CHECK(killing.callers.has_left_some_by(102, 8));
  std::string order;
  CHECK(killing.callers.after_those_of(8, [&order] { order.push_back('a'); }));
  killing.callers.answered(Killing::request(2));
  killing.run_posted();
  CHECK(killing.callers.has_left_some_of(8));
  CHECK(order.empty());
  killing.callers.answered(Killing::request(4));
  killing.run_posted();
  CHECK(order == "a");
  CHECK_FALSE(killing.callers.has_left_some_of(8));
  CHECK_FALSE(killing.callers.has_left_some_by(102, 8));
}

TEST_CASE("what comes while that runs which had to wait runs after it") {
  Killing killing;
  killing.killed = {100};
  killing.begin(2, 100, 7);
  killing.callers.look();
  killing.callers.look();
  std::string order;
  CHECK(killing.callers.after_those_of(7, [&] {
    order.push_back('a');
    CHECK(killing.callers.has_left_some_of(7));
    CHECK(killing.callers.after_those_of(7, [&order] { order.push_back('b'); }));
    order.push_back('c');
  }));
  killing.callers.answered(Killing::request(2));
  CHECK(killing.callers.has_left_some_of(7));
  killing.run_posted();
  CHECK(order == "acb");
  CHECK_FALSE(killing.callers.has_left_some_of(7));
}
