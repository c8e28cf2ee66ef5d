// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "base/descriptor.h"
#include "cli/doctor_checks.h"
#include "lccfs/clock.h"

namespace lccfs::cli {

namespace {

constexpr std::size_t block_bytes = 4096;
constexpr off_t mib = 1 << 20;
constexpr const char* about_mounts = "see the log of lccfs-fuse, and docs/guide/operations.md";

std::unexpected<Error> failed(const std::string& what) { return failure(ErrorCode::io, what + ": " + strerror(errno)); }
std::unexpected<Error> wrong(const std::string& what) { return failure(ErrorCode::io, what); }

class File {
 public:
  static Result<File> open(const std::string& path, int flags) {
    Descriptor descriptor(::open(path.c_str(), flags | O_CLOEXEC, 0600));
    if (!descriptor) return failed("open");
    return File(std::move(descriptor));
  }
  int fd() const { return descriptor_.get(); }

  Result<> write(const char* bytes, std::size_t size_bytes, off_t offset) const {
    const auto written = pwrite(fd(), bytes, size_bytes, offset);
    if (written < 0) return failed("write");
    return written == static_cast<ssize_t>(size_bytes) ? Result<>() : wrong("a short write");
  }
  /// As many bytes, all of which are that one.
  Result<> expect(char byte, std::size_t size_bytes, off_t offset) const;
  Result<> sync() const { return fsync(fd()) == 0 ? Result<>() : failed("fsync"); }

 private:
  explicit File(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

/// Aligned as direct I/O needs it.
class Buffer {
 public:
  explicit Buffer(char byte = 0)
      : bytes_(static_cast<char*>(std::aligned_alloc(block_bytes, block_bytes)), &std::free) {
    std::memset(bytes_.get(), byte, block_bytes);
  }
  char* data() { return bytes_.get(); }

 private:
  std::unique_ptr<char, decltype(&std::free)> bytes_;
};

Result<> File::expect(char byte, std::size_t size_bytes, off_t offset) const {
  Buffer buffer;
  const auto bytes = pread(fd(), buffer.data(), size_bytes, offset);
  if (bytes < 0) return failed("read");
  if (bytes != static_cast<ssize_t>(size_bytes)) return wrong("a short read");
  if (std::string_view(buffer.data(), size_bytes) != std::string(size_bytes, byte))
    return wrong("other bytes are read");
  return {};
}

/// What is true soon, if another mount has to hear of it first.
bool soon(const std::function<bool()>& is_true) {
  constexpr std::chrono::seconds longest{15};
  constexpr std::chrono::milliseconds between{10};
  const auto end = system_clock().elapsed() + longest;
  while (!is_true()) {
    if (system_clock().elapsed() > end || Interruption::is_wanted()) return false;
    system_clock().sleep_for(between);
  }
  return true;
}

/// One directory, seen through two mounts.
class TwoMounts {
 public:
  TwoMounts(const std::string& one, const std::string& other) : one_(one), other_(other) {}

  std::string here(const char* name) const { return one_ + "/" + name; }
  std::string there(const char* name) const { return other_ + "/" + name; }

  Result<> is_one_folder() const {
    struct stat found = {};
    return stat(other_.c_str(), &found) == 0 ? Result<>() : wrong("the other mount does not see what this one made");
  }

  Result<std::string> direct() const {
    LCCFS_TRY(const auto writer, File::open(here("direct"), O_CREAT | O_RDWR | O_DIRECT));
    LCCFS_CHECK(writer.write(Buffer('d').data(), block_bytes, 0));
    LCCFS_CHECK(writer.write(Buffer('e').data(), block_bytes, mib));
    LCCFS_TRY(const auto reader, File::open(there("direct"), O_RDONLY | O_DIRECT));
    LCCFS_CHECK(reader.expect('d', block_bytes, 0));
    LCCFS_CHECK(reader.expect(0, block_bytes, block_bytes));
    LCCFS_CHECK(reader.expect('e', block_bytes, mib));
    return "what one mount writes, the other reads";
  }

  Result<std::string> sync() const {
    LCCFS_TRY(const auto writer, File::open(here("synced"), O_CREAT | O_WRONLY));
    LCCFS_CHECK(writer.write(Buffer('s').data(), block_bytes, 0));
    LCCFS_CHECK(writer.sync());
    LCCFS_TRY(const auto reader, File::open(there("synced"), O_RDONLY));
    LCCFS_CHECK(reader.expect('s', block_bytes, 0));
    LCCFS_TRY(const auto directory, File::open(one_, O_RDONLY | O_DIRECTORY));
    LCCFS_CHECK(directory.sync());
    return "files and directories";
  }

  Result<std::string> rename_over() const {
    {
      LCCFS_TRY(const auto old, File::open(there("name"), O_CREAT | O_WRONLY));
      LCCFS_CHECK(old.write("o", 1, 0));
      LCCFS_TRY(const auto changed, File::open(here("name.new"), O_CREAT | O_WRONLY));
      LCCFS_CHECK(changed.write("n", 1, 0));
      LCCFS_CHECK(changed.sync());
    }
    if (rename(here("name.new").c_str(), here("name").c_str()) != 0) return failed("rename");
    const bool is_new = soon([this] {
      const auto reader = File::open(there("name"), O_RDONLY);
      return reader && reader->expect('n', 1, 0);
    });
    if (!is_new) return wrong("the other mount still has the old file");
    return "the other mount has the new file";
  }

  Result<std::string> exclusive() const {
    LCCFS_CHECK(File::open(here("once"), O_CREAT | O_EXCL | O_WRONLY));
    if (const auto second = File::open(there("once"), O_CREAT | O_EXCL | O_WRONLY); second || errno != EEXIST)
      return wrong("a name was made twice");
    if (unlink(there("once").c_str()) != 0) return failed("unlink");
    struct stat found = {};
    if (!soon([&] { return stat(here("once").c_str(), &found) != 0 && errno == ENOENT; }))
      return wrong("a name that the other mount removed is still there");
    return "names are made once, and removed for both mounts";
  }

  Result<std::string> whole_file_locks() const {
    return locks("flock", [](int fd, bool lock) { return flock(fd, (lock ? LOCK_EX : LOCK_UN) | LOCK_NB) == 0; });
  }

  Result<std::string> range_locks() const {
    return locks("ranges", [](int fd, bool lock) {
      struct flock range = {};
      range.l_type = lock ? F_WRLCK : F_UNLCK;
      range.l_whence = SEEK_SET;
      range.l_start = 100;  // as QEMU has its locks
      range.l_len = 1;
      return fcntl(fd, F_OFD_SETLK, &range) == 0;
    });
  }

  Result<std::string> room_and_holes() const {
    LCCFS_TRY(const auto file, File::open(here("room"), O_CREAT | O_RDWR));
    if (fallocate(file.fd(), 0, 0, 2 * mib) != 0) return failed("fallocate");
    LCCFS_CHECK(file.write(Buffer('h').data(), block_bytes, mib));
    if (fallocate(file.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, mib, mib) != 0) return failed("punch a hole");
    LCCFS_CHECK(file.expect(0, block_bytes, mib));
    if (fallocate(file.fd(), FALLOC_FL_ZERO_RANGE, 0, mib) != 0) return failed("zero a range");
    struct stat found = {};
    if (stat(there("room").c_str(), &found) != 0) return failed("stat");
    if (found.st_size != 2 * mib) return wrong("the other mount sees another size");
    return "room, holes and zeros";
  }

  Result<std::string> seek() const {
    constexpr off_t start = 64 * mib;  // objects before it are not there, whatever their size
    LCCFS_TRY(const auto file, File::open(here("sparse"), O_CREAT | O_RDWR));
    LCCFS_CHECK(file.write(Buffer('x').data(), block_bytes, start));
    LCCFS_CHECK(file.sync());
    if (lseek(file.fd(), 0, SEEK_HOLE) != 0) return wrong("SEEK_HOLE does not find the hole at the start");
    const off_t data = lseek(file.fd(), 0, SEEK_DATA);
    if (data <= 0 || data > start) return wrong("SEEK_DATA does not find the data");
    return "holes are found";
  }

  Result<std::string> attributes() const {
    LCCFS_CHECK(File::open(here("attributes"), O_CREAT | O_WRONLY));
    if (setxattr(here("attributes").c_str(), "user.lccfs", "value", 5, 0) != 0) return failed("setxattr");
    char value[8] = {};
    if (getxattr(there("attributes").c_str(), "user.lccfs", value, sizeof value) != 5 ||
        std::string_view(value) != "value") {
      return wrong("the other mount has another value");
    }
    return "user attributes";
  }

  /// As a live migration does: the disk is open on both, one writes, then the other.
  Result<std::string> migration() const {
    LCCFS_TRY(const auto source, File::open(here("disk"), O_CREAT | O_RDWR | O_DIRECT));
    LCCFS_CHECK(source.write(Buffer('1').data(), block_bytes, 0));
    LCCFS_TRY(const auto target, File::open(there("disk"), O_RDWR | O_DIRECT));
    LCCFS_CHECK(source.write(Buffer('2').data(), block_bytes, 0));
    LCCFS_CHECK(source.sync());
    LCCFS_CHECK(target.expect('2', block_bytes, 0));
    LCCFS_CHECK(target.write(Buffer('3').data(), block_bytes, 0));
    LCCFS_CHECK(target.write(Buffer('4').data(), block_bytes, block_bytes));
    LCCFS_CHECK(source.expect('3', block_bytes, 0));
    LCCFS_CHECK(source.expect('4', block_bytes, block_bytes));
    return "a disk that is open on both moves from one to the other";
  }

  /// Also of the folder itself.
  Result<> clean_up() const {
    for (const char* name :
         {"direct", "synced", "name", "name.new", "once", "flock", "ranges", "room", "sparse", "attributes", "disk"}) {
      unlink(here(name).c_str());
    }
    return rmdir(one_.c_str()) == 0 ? Result<>() : failed("rmdir");
  }

 private:
  Result<std::string> locks(const char* name, const std::function<bool(int fd, bool lock)>& set) const {
    LCCFS_TRY(const auto mine, File::open(here(name), O_CREAT | O_RDWR));
    LCCFS_TRY(const auto theirs, File::open(there(name), O_RDWR));
    if (!set(mine.fd(), true)) return failed("lock");
    if (set(theirs.fd(), true)) return wrong("both mounts have got the same lock");
    if (!set(mine.fd(), false)) return failed("unlock");
    if (!soon([&] { return set(theirs.fd(), true); })) return wrong("a lock that was dropped is not to be had");
    return "a lock of one mount keeps the other out, until it is dropped";
  }

  const std::string one_, other_;
};

/// Its name.
Result<std::string> make_folder(const std::string& mountpoint) {
  std::string path = mountpoint + "/.lccfs-doctor-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return failed("cannot make a folder in the volume");
  return path.substr(mountpoint.size() + 1);
}

}  // namespace

void check_mounts(Diagnosis& diagnosis, PatientCalls& calls, const std::string& one, const std::string& other) {
  const auto name = calls.run([one] { return make_folder(one); });
  if (!name) return diagnosis.fail("write on a mount", name.error().context, about_mounts);
  const TwoMounts mounts(one + "/" + *name, other + "/" + *name);
  const auto seen = calls.run([mounts] { return mounts.is_one_folder(); });
  if (!seen) {
    diagnosis.fail("visibility", seen.error().context, calls.has_given_up() ? about_mounts : "are both of one volume?");
  } else {
    const auto run = [&](const char* what, Result<std::string> (TwoMounts::*check)() const) {
      if (calls.has_given_up()) return;
      diagnosis.run(what, about_mounts, [&] { return calls.run([mounts, check] { return (mounts.*check)(); }); });
    };
    run("visibility", &TwoMounts::exclusive);
    run("direct I/O", &TwoMounts::direct);
    run("fsync", &TwoMounts::sync);
    run("rename over", &TwoMounts::rename_over);
    run("flock", &TwoMounts::whole_file_locks);
    run("fcntl locks", &TwoMounts::range_locks);
    run("fallocate", &TwoMounts::room_and_holes);
    run("SEEK_HOLE", &TwoMounts::seek);
    run("extended attributes", &TwoMounts::attributes);
    run("migration", &TwoMounts::migration);
  }
  if (const auto removed = calls.run([mounts] { return mounts.clean_up(); }); !removed)
    diagnosis.warn("cleaning up", *name + ": " + removed.error().context, "remove it from the volume");
}

}  // namespace lccfs::cli
