// SPDX-License-Identifier: LGPL-2.1-or-later
// The FUSE session on a real mount, over the scripted store. Silent where FUSE cannot be used.
#include "fuse/session.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <thread>

#include "fuse/mount_table.h"
#include "lccfs/volume.h"
#include "support/acls.h"
#include "support/can_mount.h"
#include "support/catch.h"
#include "support/hooks.h"

namespace lccfs {
namespace {

using test::can_mount;
using test::need;

/// A volume in memory, mounted for as long as it lives.
class Mount {
 public:
  explicit Mount(std::shared_ptr<ScriptedCluster> cluster = ScriptedCluster::make(),
                 const FileSystemOptions& fs_options = {}, fuse::SessionOptions session_options = {})
      : cluster_(std::move(cluster)), session_options_(std::move(session_options)) {
    std::string pattern = (std::filesystem::temp_directory_path() / "lccfs-session-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
    if (!describe_volume(*client_)) need(make_volume(*client_, system_clock(), {}));
    fs_ = need(mount_volume(client_, system_clock(), fs_options));
    session_ = need(fuse::Session::mount(*fs_, system_clock(), options()));
    std::promise<void> ready;
    thread_ = std::thread([this, &ready] { served_ = session_->serve([&ready] { ready.set_value(); }); });
    ready.get_future().wait();
  }
  ~Mount() {
    if (thread_.joinable()) end();
    std::filesystem::remove(path_);
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  Result<> end() {
    session_->end();
    return wait_for_end();
  }
  Result<> wait_for_end() {
    thread_.join();
    session_.reset();
    const Result<> unmounted = fs_->unmount();
    fs_.reset();
    return served_ ? unmounted : served_;
  }

  std::string path(const std::string& name = "") const { return path_ + "/" + name; }
  const std::string& mountpoint() const { return path_; }
  ScriptedClient& client() { return *client_; }
  const std::shared_ptr<ScriptedCluster>& cluster() const { return cluster_; }

 private:
  fuse::SessionOptions options() const {
    fuse::SessionOptions options = session_options_;
    options.mountpoint = path_;
    options.source = "a,b";
    options.drain_limit = std::chrono::milliseconds(0);
    return options;
  }

  std::shared_ptr<ScriptedCluster> cluster_;
  const fuse::SessionOptions session_options_;
  std::shared_ptr<ScriptedClient> client_ = cluster_->new_client();
  std::string path_;
  std::unique_ptr<FileSystem> fs_;
  std::unique_ptr<fuse::Session> session_;
  std::thread thread_;
  Result<> served_;
};

class File {
 public:
  File(const std::string& path, int flags, mode_t mode = 0644) : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  int close() { return fd_ < 0 ? 0 : ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

/// The errno of a call that answers -1; 0 if it answers something else.
int errno_after(long answer) { return answer == -1 ? errno : 0; }

std::string read_all(const std::string& path, int flags = O_RDONLY) {
  const File file(path, flags);
  REQUIRE(file.fd() >= 0);
  constexpr std::size_t page = 4096;
  const std::unique_ptr<char, decltype(&std::free)> buffer(static_cast<char*>(std::aligned_alloc(page, page)),
                                                           &std::free);
  std::string result;
  for (ssize_t got = 0; (got = ::read(file.fd(), buffer.get(), page)) > 0;)
    result.append(buffer.get(), static_cast<std::size_t>(got));
  return result;
}

void write_all(const std::string& path, const std::string& text) {
  File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  REQUIRE(file.fd() >= 0);
  REQUIRE(::write(file.fd(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  REQUIRE(file.close() == 0);
}

TEST_CASE("the error of a close counts as told only to a process that hears of it") {
  if (!can_mount()) return;
  FileSystemOptions options;
  options.dirty_limit_bytes = 1 << 20;
  Mount mount(ScriptedCluster::make(), options);
  mount.client().set_hook([](const StepInfo& info) {
    return info.kind == StepKind::write ? Fault{Fault::Kind::fail, ErrorCode::no_space} : Fault{};
  });
  const bool closes = GENERATE(true, false);
  const auto path = mount.path("f");
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0644);
    const bool is_written = write(file, "text", 4) == 4;
    const bool is_right = is_written && (!closes || errno_after(close(file)) == ENOSPC);
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  const auto is_released = [&] {
    const auto trace = mount.client().trace();
    return std::ranges::any_of(trace, [](const auto& line) { return line.starts_with("release lease"); });
  };
  for (unsigned i = 0; i < 10000 && !is_released(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(is_released());
  const auto ended = mount.end();
  CHECK(ended.has_value() == closes);
}

TEST_CASE("files, directories, links and attributes work through the kernel") {
  if (!can_mount()) return;
  Mount mount;
  write_all(mount.path("a"), "hello");
  CHECK(read_all(mount.path("a")) == "hello");
  CHECK(mkdir(mount.path("d").c_str(), 0750) == 0);
  CHECK(rename(mount.path("a").c_str(), mount.path("b").c_str()) == 0);
  CHECK(errno_after(access(mount.path("a").c_str(), F_OK)) == ENOENT);
  CHECK(symlink("b", mount.path("link").c_str()) == 0);
  CHECK(read_all(mount.path("link")) == "hello");
  CHECK(mknod(mount.path("device").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0);

  struct stat values = {};
  REQUIRE(stat(mount.path("b").c_str(), &values) == 0);
  CHECK(values.st_size == 5);
  CHECK(values.st_blksize == 4096);
  CHECK(chmod(mount.path("b").c_str(), 0640) == 0);
  CHECK(truncate(mount.path("b").c_str(), 2) == 0);
  REQUIRE(stat(mount.path("b").c_str(), &values) == 0);
  CHECK(values.st_mode == (S_IFREG | 0640));
  CHECK(values.st_size == 2);
  REQUIRE(stat(mount.path("device").c_str(), &values) == 0);
  CHECK(values.st_rdev == makedev(1, 3));
  REQUIRE(stat(mount.path().c_str(), &values) == 0);
  CHECK(values.st_ino == 1);
  CHECK(values.st_nlink == 3);

  CHECK(errno_after(rmdir(mount.path("b").c_str())) == ENOTDIR);
  CHECK(unlink(mount.path("b").c_str()) == 0);
  CHECK(rmdir(mount.path("d").c_str()) == 0);
  CHECK(mount.end());
}

TEST_CASE("a cold file that is read from front to back is asked for in pieces of about 1 MiB") {
  if (!can_mount()) return;
  Mount writer;
  const std::string text(16 << 20, 'x');
  write_all(writer.path("f"), text);
  CHECK(writer.end());
  Mount reader(writer.cluster());
  CHECK(read_all(reader.path("f")) == text);
  CHECK(reader.client().counts().reads < 90);  // a busy machine makes some smaller; of 128 KiB it would be 128
}

/// Names are trusted for a minute.
FileSystemOptions names_hold() {
  FileSystemOptions options;
  options.entry_ttl = std::chrono::minutes(1);
  return options;
}

TEST_CASE("where names hold for a while, who lists a directory and then stats its files waits for the store no more") {
  if (!can_mount()) return;
  Mount made;
  for (int i = 0; i < 100; ++i) REQUIRE(mknod(made.path("f" + std::to_string(i)).c_str(), S_IFREG | 0644, 0) == 0);
  Mount mount(made.cluster(), names_hold());
  mount.client().reset_record();
  unsigned seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(mount.mountpoint())) {
    struct stat values = {};
    REQUIRE(stat(entry.path().c_str(), &values) == 0);
    CHECK(values.st_mode == (S_IFREG | 0644));
    ++seen;
  }
  CHECK(seen == 100);
  const auto counts = mount.client().counts();
  CHECK(counts.queries >= 101);
  CHECK(counts.queries < 110);  // the rest: the directory itself
  CHECK(mount.end());
  CHECK(made.end());
}

TEST_CASE("a listing of many names is complete, and can be continued anywhere") {
  if (!can_mount()) return;
  Mount mount;
  std::set<std::string> made = {".", ".."};
  for (int i = 0; i < 1500; ++i) {
    const std::string name = "a-rather-long-name-of-a-file-" + std::to_string(i);
    REQUIRE(mknod(mount.path(name).c_str(), S_IFREG | 0644, 0) == 0);
    made.insert(name);
  }
  DIR* directory = opendir(mount.mountpoint().c_str());
  REQUIRE(directory != nullptr);
  std::vector<std::string> listed;
  std::vector<long> places;
  while (const dirent* entry = readdir(directory)) {
    listed.emplace_back(entry->d_name);
    places.push_back(telldir(directory));
  }
  CHECK(std::set<std::string>(listed.begin(), listed.end()) == made);
  CHECK(listed.size() == made.size());
  seekdir(directory, places[700]);
  CHECK(readdir(directory)->d_name == listed[701]);
  closedir(directory);
  CHECK(mount.end());
}

TEST_CASE("a read after a direct write sees it, on an old handle and a new one") {
  if (!can_mount()) return;
  Mount mount;
  write_all(mount.path("f"), std::string(4096, 'a'));
  const File buffered(mount.path("f"), O_RDONLY);
  char byte = 0;
  REQUIRE(pread(buffered.fd(), &byte, 1, 0) == 1);
  CHECK(byte == 'a');

  alignas(4096) static char page[4096];
  std::fill_n(page, sizeof page, 'b');
  const File direct(mount.path("f"), O_RDWR | O_DIRECT);
  REQUIRE(pwrite(direct.fd(), page, sizeof page, 0) == sizeof page);
  REQUIRE(pread(buffered.fd(), &byte, 1, 0) == 1);
  CHECK(byte == 'b');
  CHECK(read_all(mount.path("f")) == std::string(4096, 'b'));
  CHECK(read_all(mount.path("f"), O_RDONLY | O_DIRECT) == std::string(4096, 'b'));
  CHECK(fsync(direct.fd()) == 0);
  CHECK(fdatasync(direct.fd()) == 0);
}

TEST_CASE("extended attributes: sizes are told, small buffers refused") {
  if (!can_mount()) return;
  Mount mount;
  write_all(mount.path("f"), "");
  const std::string path = mount.path("f");
  char buffer[64] = {};
  CHECK(setxattr(path.c_str(), "user.a", "12345", 5, XATTR_CREATE) == 0);
  CHECK(errno_after(setxattr(path.c_str(), "user.a", "1", 1, XATTR_CREATE)) == EEXIST);
  CHECK(errno_after(setxattr(path.c_str(), "user.b", "1", 1, XATTR_REPLACE)) == ENODATA);
  CHECK(getxattr(path.c_str(), "user.a", nullptr, 0) == 5);
  CHECK(getxattr(path.c_str(), "user.a", buffer, sizeof buffer) == 5);
  CHECK(std::string(buffer) == "12345");
  CHECK(errno_after(getxattr(path.c_str(), "user.a", buffer, 4)) == ERANGE);
  CHECK(errno_after(getxattr(path.c_str(), "user.c", buffer, 4)) == ENODATA);
  CHECK(listxattr(path.c_str(), nullptr, 0) == 7);
  CHECK(errno_after(listxattr(path.c_str(), buffer, 3)) == ERANGE);
  CHECK(removexattr(path.c_str(), "user.a") == 0);
  CHECK(listxattr(path.c_str(), buffer, sizeof buffer) == 0);
}

TEST_CASE("an ACL goes from the kernel to the volume and back, and a file without one costs no read for it") {
  if (!can_mount()) return;
  Mount mount;
  write_all(mount.path("f"), "");
  const std::string path = mount.path("f");
  const std::string acl = encode(test::acl_of("u::rw-,u:7:r--,g::---,m::r--,o::---"));
  const char* const name = "system.posix_acl_access";
  std::array<char, 64> buffer{};
  struct stat values = {};
  REQUIRE(stat(path.c_str(), &values) == 0);
  mount.client().reset_record();
  CHECK(errno_after(getxattr(path.c_str(), name, buffer.data(), buffer.size())) == ENODATA);
  const auto lookups = mount.client().counts().queries;
  REQUIRE(stat(path.c_str(), &values) == 0);
  CHECK(mount.client().counts().queries == 2 * lookups);
  REQUIRE(setxattr(path.c_str(), name, acl.data(), acl.size(), 0) == 0);
  REQUIRE(stat(path.c_str(), &values) == 0);
  CHECK((values.st_mode & 07777) == 0640);
  CHECK(getxattr(path.c_str(), name, buffer.data(), buffer.size()) == static_cast<ssize_t>(acl.size()));
  CHECK(std::string(buffer.data(), acl.size()) == acl);
  CHECK(removexattr(path.c_str(), name) == 0);
  CHECK(errno_after(getxattr(path.c_str(), name, buffer.data(), buffer.size())) == ENODATA);
}

TEST_CASE("a hard link goes from the kernel to the volume and back") {
  if (!can_mount()) return;
  Mount mount;
  write_all(mount.path("f"), "x");
  const std::string f = mount.path("f"), g = mount.path("g");
  REQUIRE(link(f.c_str(), g.c_str()) == 0);
  struct stat first = {}, second = {};
  REQUIRE(stat(f.c_str(), &first) == 0);
  REQUIRE(stat(g.c_str(), &second) == 0);
  CHECK(first.st_ino == second.st_ino);
  CHECK(first.st_nlink == 2);
  CHECK(second.st_nlink == 2);
  CHECK(errno_after(link(f.c_str(), g.c_str())) == EEXIST);
  CHECK(errno_after(link(mount.mountpoint().c_str(), mount.path("top").c_str())) == EPERM);
  const File file(f, O_RDWR);
  CHECK(unlink(f.c_str()) == 0);
  CHECK(fstat(file.fd(), &first) == 0);
  CHECK(first.st_nlink == 1);
}

TEST_CASE("what is not there is refused as the kernel and its users expect") {
  if (!can_mount()) return;
  Mount mount;
  write_all(mount.path("f"), "x");
  const std::string f = mount.path("f"), g = mount.path("g");
  CHECK(errno_after(renameat2(AT_FDCWD, f.c_str(), AT_FDCWD, g.c_str(), RENAME_WHITEOUT)) == EINVAL);
  CHECK(errno_after(::open(mount.mountpoint().c_str(), O_TMPFILE | O_RDWR, 0600)) == EOPNOTSUPP);
  const File file(f, O_RDWR);
  CHECK(errno_after(fallocate(file.fd(), FALLOC_FL_COLLAPSE_RANGE, 0, 4096)) == EOPNOTSUPP);
  flock lock = {};
  lock.l_type = F_WRLCK;
  CHECK(fcntl(file.fd(), F_SETLK, &lock) == 0);
  struct statvfs usage = {};
  REQUIRE(statvfs(mount.mountpoint().c_str(), &usage) == 0);
  CHECK(usage.f_namemax == 255);
  CHECK(usage.f_frsize == 4096);
  CHECK(usage.f_favail == usage.f_bavail);
  CHECK(usage.f_files > usage.f_ffree);
  CHECK(usage.f_blocks == (std::uint64_t{1} << 40) / 4096);
}

TEST_CASE("room, holes, zeros and copies of ranges go from the kernel to the file and back") {
  if (!can_mount()) return;
  Mount mount;
  write_all(mount.path("f"), std::string(20'000, 'x'));
  write_all(mount.path("g"), "");
  const File file(mount.path("f"), O_RDWR), other(mount.path("g"), O_RDWR);
  CHECK(fallocate(file.fd(), 0, 0, 40'000) == 0);
  CHECK(lseek(file.fd(), 0, SEEK_END) == 40'000);
  CHECK(errno_after(fallocate(file.fd(), 0, 0, std::int64_t{1} << 50)) == ENOSPC);
  CHECK(fallocate(file.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192) == 0);
  CHECK(fallocate(file.fd(), FALLOC_FL_ZERO_RANGE, 39'000, 2'000) == 0);
  CHECK(lseek(file.fd(), 0, SEEK_END) == 41'000);
  CHECK(lseek(file.fd(), 0, SEEK_HOLE) == 4096);
  CHECK(lseek(file.fd(), 5000, SEEK_DATA) == 12'288);
  CHECK(errno_after(lseek(file.fd(), 41'000, SEEK_DATA)) == ENXIO);
  off64_t from = 12'000, to = 1;
  CHECK(copy_file_range(file.fd(), &from, other.fd(), &to, 1'000'000, 0) == 29'000);
  CHECK(lseek(other.fd(), 0, SEEK_END) == 29'001);
  CHECK(read_all(mount.path("g")) ==
        std::string(289, '\0') + std::string(7'712, 'x') + std::string(29'001 - 289 - 7'712, '\0'));
}

TEST_CASE("what was written is there after unmounting and mounting again") {
  if (!can_mount()) return;
  Mount first;
  const std::string text(3'000'000, 'z');
  write_all(first.path("f"), text);
  CHECK(first.end());
  const Mount second(first.cluster());
  CHECK(read_all(second.path("f")) == text);
}

TEST_CASE("an unmount from outside ends the session") {
  if (!can_mount()) return;
  Mount mount;
  write_all(mount.path("f"), "x");
  REQUIRE(umount2(mount.mountpoint().c_str(), 0) == 0);
  CHECK(mount.wait_for_end());
}

TEST_CASE("a mount in use whose connection is cut by umount -f is taken away") {
  if (!can_mount()) return;
  Mount mount;
  const File file(mount.path("f"), O_RDWR | O_CREAT);
  REQUIRE(errno_after(umount2(mount.mountpoint().c_str(), MNT_FORCE)) == EBUSY);
  CHECK(mount.wait_for_end());
  CHECK_FALSE(fuse::mounted_at(mount.mountpoint()));
}

TEST_CASE("a session that still waits for the store leaves alone what is mounted in its place") {
  if (!can_mount()) return;
  Mount mount;
  write_all(mount.path("f"), "x");
  CHECK(mount.end());
  Mount waits(mount.cluster());
  waits.client().set_hook(
      [](const StepInfo& info) { return info.kind == StepKind::read ? Fault{Fault::Kind::hold} : Fault{}; });
  ssize_t got = 0;
  std::thread reader([&waits, &got] {
    const File file(waits.path("f"), O_RDONLY);
    char byte = 0;
    got = ::read(file.fd(), &byte, 1);
  });
  REQUIRE(waits.client().wait_for_held(1));
  REQUIRE(umount2(waits.mountpoint().c_str(), MNT_FORCE | MNT_DETACH) == 0);
  reader.join();
  CHECK(got == -1);
  // It most often gets the device number that has become free.
  REQUIRE(::mount("other", waits.mountpoint().c_str(), "tmpfs", 0, nullptr) == 0);
  waits.client().set_hook(nullptr);
  waits.client().release_all();
  CHECK(waits.end());
  CHECK(fuse::mounted_at(waits.mountpoint()));
  umount2(waits.mountpoint().c_str(), 0);
}

/// Mounted, and not served yet; `act` is called in between, and may leave a thread to it.
using Act = std::function<std::jthread(fuse::Session& session, const std::string& path)>;
Result<> serve_after(bool& was_ready, const Act& act) {
  const auto cluster = ScriptedCluster::make();
  need(make_volume(*cluster->new_client(), system_clock(), {}));
  const auto fs = need(mount_volume(cluster->new_client(), system_clock(), {}));
  fuse::SessionOptions options;
  options.mountpoint = (std::filesystem::temp_directory_path() / "lccfs-session-XXXXXX").string();
  options.source = "a,b";
  options.drain_limit = std::chrono::milliseconds(0);
  REQUIRE(mkdtemp(options.mountpoint.data()) != nullptr);
  bool told = false;
  const auto session = need(fuse::Session::mount(*fs, system_clock(), options, [&] {
    told = true;
    CHECK_FALSE(fuse::mounted_at(options.mountpoint));
    return Result<>();
  }));
  CHECK(told);
  REQUIRE(fuse::mounted_at(options.mountpoint));
  std::jthread acting = act(*session, options.mountpoint);
  Result<> served = session->serve([&] { was_ready = true; });
  if (acting.joinable()) acting.join();
  CHECK_FALSE(fuse::mounted_at(options.mountpoint));
  need(fs->unmount());
  std::filesystem::remove(options.mountpoint);
  return served;
}

TEST_CASE("a session that is to end before it serves ends cleanly, and was never ready") {
  if (!can_mount()) return;
  bool was_ready = false;
  CHECK(serve_after(was_ready, [](fuse::Session& session, const std::string&) {
    session.end();
    return std::jthread();
  }));
  CHECK_FALSE(was_ready);
}

TEST_CASE("a session that is to end while somebody waits for its first answer ends cleanly") {
  if (!can_mount()) return;
  bool was_ready = false;
  std::jthread looking;
  CHECK(serve_after(was_ready, [&](fuse::Session& session, const std::string& path) {
    std::promise<void> begun;
    looking = std::jthread([&begun, path] {
      begun.set_value();
      struct stat values = {};
      stat(path.c_str(), &values);
    });
    begun.get_future().wait();
    return std::jthread([&session] { session.end(); });
  }));
}

TEST_CASE("what others have unmounted before it was ready is an error") {
  if (!can_mount()) return;
  bool was_ready = false;
  const auto served = serve_after(was_ready, [](fuse::Session&, const std::string& path) {
    REQUIRE(umount2(path.c_str(), UMOUNT_NOFOLLOW) == 0);
    return std::jthread();
  });
  REQUIRE_FALSE(served);
  CHECK(served.error().context.contains("was unmounted before it was ready"));
}

TEST_CASE("a mount in use ends too, and its users are told") {
  if (!can_mount()) return;
  Mount mount;
  const File file(mount.path("f"), O_RDWR | O_CREAT);
  REQUIRE(pwrite(file.fd(), "x", 1, 0) == 1);
  CHECK(mount.end());
  CHECK(errno_after(pwrite(file.fd(), "y", 1, 0)) != 0);
  CHECK(errno_after(access(mount.path("f").c_str(), F_OK)) == ENOENT);  // the directory below is bare again
}

fuse::SessionOptions part(const std::string& subdirectory) {
  fuse::SessionOptions options;
  options.subdirectory = subdirectory;
  return options;
}

/// By the file handle of that directory, changed to lead to another inode; as the kernel makes them.
int errno_after_open_by_handle(const Mount& mount, const std::string& directory, std::uint64_t ino) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ> bytes = {};
  auto* handle = reinterpret_cast<file_handle*>(bytes.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  REQUIRE(name_to_handle_at(AT_FDCWD, directory.c_str(), handle, &mount_id, 0) == 0);
  const std::array<std::uint32_t, 2> halves = {static_cast<std::uint32_t>(ino >> 32), static_cast<std::uint32_t>(ino)};
  std::memcpy(bytes.data() + sizeof(file_handle), halves.data(), sizeof halves);
  const File root(mount.path(), O_RDONLY | O_DIRECTORY);
  const int fd = open_by_handle_at(root.fd(), handle, O_RDONLY);
  const int error = errno_after(fd);
  if (fd >= 0) ::close(fd);
  return error;
}

TEST_CASE("a directory of the volume is mounted as a root of its own, out of which nothing leads") {
  if (!can_mount()) return;
  Mount whole;
  REQUIRE(mkdir(whole.path("a").c_str(), 0755) == 0);
  REQUIRE(mkdir(whole.path("a/b").c_str(), 0750) == 0);
  REQUIRE(mkdir(whole.path("a/b/c").c_str(), 0755) == 0);
  write_all(whole.path("a/b/f"), "below");
  write_all(whole.path("outside"), "above");
  struct stat root = {}, same = {};
  REQUIRE(stat(whole.path("outside").c_str(), &same) == 0);
  const std::uint64_t ino_of_outside = same.st_ino;
  Mount mount(whole.cluster(), {}, part("//a/b/"));
  CHECK(read_all(mount.path("f")) == "below");
  REQUIRE(stat(mount.path().c_str(), &root) == 0);
  REQUIRE(stat(whole.path("a/b").c_str(), &same) == 0);
  CHECK(root.st_mode == (S_IFDIR | 0750));
  CHECK(root.st_ino == same.st_ino);
  REQUIRE(stat(mount.path("c/..").c_str(), &same) == 0);
  CHECK(same.st_dev == root.st_dev);
  CHECK(same.st_ino == root.st_ino);
  CHECK(errno_after(access(mount.path("../outside").c_str(), F_OK)) == ENOENT);

  CHECK(errno_after_open_by_handle(whole, whole.path("a"), ino_of_outside) == 0);
  CHECK(errno_after_open_by_handle(mount, mount.path("c"), ino_of_outside) == ESTALE);
  CHECK(chmod(mount.path().c_str(), 0711) == 0);
  write_all(mount.path("g"), "made here");
  CHECK(rename(mount.path("g").c_str(), mount.path("c/g").c_str()) == 0);
  CHECK(setxattr(mount.path().c_str(), "user.x", "1", 1, 0) == 0);
  CHECK(mount.end());
  Mount again(whole.cluster());
  CHECK(read_all(again.path("a/b/c/g")) == "made here");
  REQUIRE(stat(again.path("a/b").c_str(), &same) == 0);
  CHECK(same.st_mode == (S_IFDIR | 0711));
}

TEST_CASE(
    "a mounted directory may move elsewhere; one that is removed there answers ESTALE, and is unmounted as ever") {
  if (!can_mount()) return;
  Mount whole;
  REQUIRE(mkdir(whole.path("a").c_str(), 0755) == 0);
  Mount mount(whole.cluster(), {}, part("/a"));
  write_all(mount.path("f"), "1");
  REQUIRE(rename(whole.path("a").c_str(), whole.path("b").c_str()) == 0);
  write_all(mount.path("f"), "2");
  CHECK(read_all(whole.path("b/f")) == "2");
  REQUIRE(unlink(whole.path("b/f").c_str()) == 0);
  REQUIRE(rmdir(whole.path("b").c_str()) == 0);
  const int error = errno_after(open(mount.path("new").c_str(), O_WRONLY | O_CREAT, 0644));
  CHECK((error == ESTALE || error == ENOENT));
  CHECK(mount.end());
  CHECK(whole.end());
}

TEST_CASE("what is no directory of the volume is not mounted") {
  if (!can_mount()) return;
  Mount whole;
  write_all(whole.path("file"), "x");
  REQUIRE(symlink("/", whole.path("link").c_str()) == 0);
  const auto fs = need(mount_volume(whole.cluster()->new_client(), system_clock(), {}));
  for (const char* path : {"/none", "/file", "/link", "/file/below", "/../..", "relative"}) {
    INFO(path);
    fuse::SessionOptions options = part(path);
    options.mountpoint = whole.mountpoint();
    CHECK_FALSE(fuse::Session::mount(*fs, system_clock(), options));
  }
  CHECK(fs->unmount());
}

TEST_CASE("a fenced mount that is to end does so by itself") {
  if (!can_mount()) return;
  fuse::SessionOptions options;
  options.end_when_fenced = true;
  Mount mount(ScriptedCluster::make({.lazy_fences = false}), {}, options);
  write_all(mount.path("f"), "x");
  need(mount.cluster()->new_client()->fence(mount.client().identity()));
  CHECK(errno_after(mkdir(mount.path("d").c_str(), 0755)) == EIO);
  CHECK_FALSE(mount.wait_for_end());
}

TEST_CASE("a fenced mount answers EIO until it is unmounted") {
  if (!can_mount()) return;
  Mount mount(ScriptedCluster::make({.lazy_fences = false}));
  write_all(mount.path("f"), "x");
  need(mount.cluster()->new_client()->fence(mount.client().identity()));
  CHECK(errno_after(mkdir(mount.path("d").c_str(), 0755)) == EIO);
  CHECK(errno_after(::open(mount.path("new").c_str(), O_CREAT | O_WRONLY, 0644)) == EIO);
  mount.end();  // not cleanly: there is nothing that it could still store
}

}  // namespace
}  // namespace lccfs
