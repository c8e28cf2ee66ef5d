// SPDX-License-Identifier: LGPL-2.1-or-later
// lccfs-fuse's command line and mountpoint.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "fuse/command.h"
#include "fuse/mount_lock.h"
#include "fuse/mount_table.h"
#include "fuse/readahead.h"
#include "support/catch.h"
#include "support/temporary_folder.h"

using namespace lccfs;
using namespace lccfs::fuse;
using namespace std::chrono_literals;

namespace {

Result<MountOptions> parse_options(const std::string& list) {
  MountOptions options;
  LCCFS_CHECK(add_mount_options(list, options));
  return options;
}

}  // namespace

TEST_CASE("the printed command of the paper is understood") {
  const auto command = parse_command({"-c", "/etc/lccfs/rados.conf", "-p", "1", "-m", "/var/lib/nova/instances"});
  REQUIRE(command);
  CHECK(command->answer.empty());
  CHECK(command->address.conf_file == "/etc/lccfs/rados.conf");
  CHECK(command->address.pool == "1");
  CHECK(command->mountpoint == "/var/lib/nova/instances");
  CHECK_FALSE(command->foreground);
  CHECK_FALSE(command->create);
  CHECK(command->log.to_syslog);
  CHECK(command->options.allow_other == (geteuid() == 0));
}

TEST_CASE("the log goes where the command line says") {
  const auto base = std::vector<std::string>{"--local", "/v", "-m", "/m"};
  const auto with = [&base](std::vector<std::string> more) {
    more.insert(more.end(), base.begin(), base.end());
    return *parse_command(more);
  };
  CHECK_FALSE(with({"-f"}).log.to_syslog);
  CHECK(with({"-f", "--log-syslog"}).log.to_syslog);
  CHECK_FALSE(with({"--log-file", "/l"}).log.to_syslog);
  CHECK(with({"--log-file", "/l"}).log.file == "/l");
  CHECK(with({"--log-level", "debug"}).log.level == log::Level::debug);
}

TEST_CASE("help and version need nothing else") {
  CHECK(parse_command({"--help"})->answer.find("Examples:") != std::string::npos);
  CHECK(parse_command({"--version"})->answer.starts_with("lccfs-fuse "));
}

TEST_CASE("a bad mount command is refused with one line") {
  const std::vector<std::vector<std::string>> table = {
      {},
      {"-m", "/m"},
      {"-p", "a"},
      {"-p", "a", "/m"},
      {"-p", "a", "-m"},
      {"-p", "a", "-m", "/m", "-o"},
      {"-p", "a", "-m", "/m", "-o", "big_writes"},
      {"-p", "a", "-m", "/m", "-m", "/n"},
      {"-p", "a", "-m", "/m", "--log-level", "loud"},
      {"-p", "a", "-m", "/m", "--log-file", "/l", "--log-syslog"},
      {"-p", "a", "-m", "/m", "--foreground=yes"},
      {"-p", "a", "-m", ""},
      {"-p", "a", "-m", "/m", "--log-file", ""},
  };
  for (const auto& words : table) {
    INFO(words.size() << " words, the last: " << (words.empty() ? "" : words.back()));
    const auto command = parse_command(words);
    REQUIRE_FALSE(command);
    CHECK(command.error().code == ErrorCode::invalid);
    CHECK(command.error().context.find('\n') == std::string::npos);
  }
}

TEST_CASE("mount options may come in several lists, and the last word wins") {
  const auto command = parse_command({"-p", "a", "-m", "/m", "-o", "ro,nosuid", "-o", "rw,nodev,noexec"});
  REQUIRE(command);
  CHECK_FALSE(command->options.read_only);
  CHECK(command->options.no_suid);
  CHECK(command->options.no_dev);
  CHECK(command->options.no_exec);
}

TEST_CASE("time-outs of names and attributes are options") {
  const auto options = parse_options("entry_timeout=0,attr_timeout=2.5");
  REQUIRE(options);
  CHECK(options->entry_ttl == 0ns);
  CHECK(options->attributes_ttl == 2500ms);
  CHECK_FALSE(parse_options("")->entry_ttl);
}

TEST_CASE("the metrics port is none unless given, and on this host alone unless told") {
  const auto given = parse_options("metrics_port=9475,metrics_address=10.0.0.5,slow_ms=250");
  CHECK(given->monitor.port == 9475);
  CHECK(given->monitor.address == "10.0.0.5");
  CHECK(given->monitor.slow_after == 250ms);
  CHECK_FALSE(parse_options("")->monitor.port);
  CHECK_FALSE(parse_options("")->monitor.address);
  CHECK(parse_options("metrics_address=::1")->monitor.address == "::1");
  for (const char* word : {"metrics_port=0", "metrics_port=70000", "metrics_port=", "slow_ms=2s", "slow_ms=-1",
                           "metrics_address=", "metrics_address=localhost", "metrics_address=10.0.0.5:9475"}) {
    const auto options = parse_options(word);
    REQUIRE_FALSE(options);
    CHECK(options.error().context.starts_with(std::string(word).substr(0, 7)));
  }
}

TEST_CASE("how much memory names may take is an option, from 8M on") {
  CHECK(parse_options("")->names_memory_bytes == 64U << 20);
  CHECK(parse_options("names_memory=8M")->names_memory_bytes == 8U << 20);
  for (const char* word : {"names_memory", "names_memory=", "names_memory=0", "names_memory=7M", "names_memory=many"}) {
    const auto options = parse_options(word);
    REQUIRE_FALSE(options);
    CHECK(options.error().context.find("names_memory") != std::string::npos);
  }
}

TEST_CASE("how far the kernel reads ahead is an option, in whole pages") {
  CHECK(parse_options("readahead=16M")->readahead_bytes == 16U << 20);
  CHECK(parse_options("readahead=0")->readahead_bytes == 0U);
  CHECK_FALSE(parse_options("")->readahead_bytes);
  for (const char* word :
       {"readahead", "readahead=", "readahead=-1", "readahead=1000", "readahead=2G", "readahead=4m"}) {
    const auto options = parse_options(word);
    REQUIRE_FALSE(options);
    CHECK(options.error().context.find("readahead") != std::string::npos);
  }
}

TEST_CASE("readahead is set on the mount's own device; where it cannot be, the error says what that costs") {
  const test::TemporaryFolder folder;
  const auto device = folder / "0:77";
  const auto refused = set_readahead("0:77", 4U << 20, folder.path());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().context.find("0:77/read_ahead_kb") != std::string::npos);
  CHECK(refused.error().context.find("128 KiB") != std::string::npos);
  std::filesystem::create_directory(device);
  std::ofstream(device / "read_ahead_kb") << "128\n";
  REQUIRE(set_readahead("0:77", 4U << 20, folder.path()));
  std::string value;
  std::ifstream(device / "read_ahead_kb") >> value;
  CHECK(value.starts_with("4096"));
}

TEST_CASE("a mount collects garbage unless it is told not to") {
  CHECK(parse_options("")->collect_garbage);
  CHECK_FALSE(parse_options("nogc")->collect_garbage);
  CHECK(parse_options("nogc,gc")->collect_garbage);
}

TEST_CASE("a part of the volume is named by a path without dots") {
  CHECK(parse_options("")->subdirectory == "/");
  CHECK(parse_options("subdir=/a/b c")->subdirectory == "/a/b c");
  CHECK(parse_options(R"(subdir=/a\,b\\c\d,ro)")->subdirectory == R"(/a,b\c\d)");
  CHECK(parse_options(R"(subdir=/a\,b,ro)")->read_only);
  for (const char* word :
       {"subdir", "subdir=", "subdir=a", "subdir=/a/..", "subdir=/../a", "subdir=/./a", "subdir=/.."}) {
    INFO(word);
    const auto options = parse_options(word);
    REQUIRE_FALSE(options);
    CHECK(options.error().context.find("subdir") != std::string::npos);
  }
}

TEST_CASE("what mount and systemd say for themselves has no effect") {
  const auto options = parse_options(
      "defaults,rw,_netdev,nofail,user,noauto,noatime,default_permissions,x-systemd.automount,comment=x,,relatime");
  REQUIRE(options);
  CHECK_FALSE(options->read_only);
  CHECK_FALSE(options->no_suid);
}

TEST_CASE("whether directories are held is an option") {
  CHECK(parse_options("")->names == Names::behind);
  CHECK(parse_options("names=sync")->names == Names::sync);
  CHECK(parse_options("names=behind")->names == Names::behind);
  CHECK(parse_options("names=sync,names=leased")->names == Names::leased);
}

TEST_CASE("unknown mount options are refused by name") {
  for (const char* word : {"names=", "names=none", "sync", "RO", "ro=1", "entry_timeout", "entry_timeout=",
                           "attr_timeout=x", "fsname=x", "writeback_cache", "remount", "allow_root", " ro"}) {
    INFO(word);
    const auto options = parse_options(std::string("ro,") + word);
    REQUIRE_FALSE(options);
    CHECK(options.error().code == ErrorCode::invalid);
  }
  CHECK(parse_options("ro,frobnicate").error().context.find("frobnicate") != std::string::npos);
}

TEST_CASE("a volume's source is what fstab has") {
  VolumeAddress address;
  address.pool = "vms";
  CHECK(source_of(address, "/") == "vms");
  address.pool_namespace = "nova";
  CHECK(source_of(address, "/") == "vms/nova");
  CHECK(source_of(address, "/a/b") == "vms/nova:/a/b");
  address.local_directory = "/srv/volume";
  CHECK(source_of(address, "/") == "/srv/volume");
}

TEST_CASE("the source of a local volume is the directory that a link to it leads to, as mount(8) sees it") {
  const test::TemporaryFolder folder;
  const std::string volume = folder / "volume", link = folder / "link";
  std::filesystem::create_directory(volume);
  std::filesystem::create_directory_symlink(volume, link);
  VolumeAddress address;
  address.local_directory = link;
  CHECK(source_of(address, "/") == std::filesystem::canonical(volume).string());
  CHECK(source_of(address, "/part") == link + ":/part");
}

TEST_CASE("the mount table tells the topmost mount of a directory") {
  constexpr std::string_view table =
      "21 1 0:20 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
      "30 21 0:40 / /mnt rw - tmpfs tmpfs rw\n"
      "31 30 0:51 / /mnt rw,nosuid shared:9 master:2 - fuse.lccfs vms/nova rw,user_id=0\n"
      "32 21 0:52 / /with\\040space\\134x rw - fuse.lccfs vms rw\n"
      "broken\n";
  const test::TemporaryFolder folder;
  const std::string file = folder / "mountinfo";
  std::ofstream(file) << table;
  const auto topmost = mounted_at("/mnt", file.c_str());
  REQUIRE(topmost);
  CHECK(topmost->device == "0:51");
  CHECK(topmost->type == "fuse.lccfs");
  CHECK(mounted_at("/with space\\x", file.c_str())->device == "0:52");
  CHECK_FALSE(mounted_at("/mnt/below", file.c_str()));
  CHECK_FALSE(mounted_at("/mnt", (folder / "missing").c_str()));
  CHECK(mounted_at("/proc")->type == "proc");
}

TEST_CASE("the lock of a mount is held until its process lets go of it, and says what was stored") {
  const test::TemporaryFolder folder;
  const auto locks = folder / "locks";
  const auto is_held = [&](int fd) { return flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK; };
  const auto opened = [&] { return open((locks / "0:51").c_str(), O_RDONLY | O_CLOEXEC); };
  const auto text = [](int fd) {
    char bytes[64] = {};
    REQUIRE(pread(fd, bytes, sizeof bytes - 1, 0) > 0);
    return std::string(bytes);
  };
  auto first = MountLock::take(locks, "0:51");
  REQUIRE(first);
  const int first_fd = opened();
  CHECK(is_held(first_fd));
  const std::string process = std::to_string(getpid()) + "\n";
  CHECK(text(first_fd) == process);
  {
    // Its number is used again while it still stores.
    const auto second = MountLock::take(locks, "0:51");
    REQUIRE(second);
    const int second_fd = opened();
    CHECK(is_held(second_fd));
    first->stored();
    CHECK(text(first_fd) == process + "stored\n");
    CHECK(text(second_fd) == process);
    CHECK(is_held(first_fd));
    const MountLock moved = std::move(*first);
    CHECK(is_held(first_fd));
    close(second_fd);
  }
  CHECK(!is_held(first_fd));
  close(first_fd);
  CHECK(MountLock::is_free(locks, "0:51"));
  const auto third = MountLock::take(locks, "0:51");
  CHECK_FALSE(MountLock::is_free(locks, "0:51"));
  CHECK_FALSE(MountLock::is_free(locks, "0:52"));
  CHECK_FALSE(MountLock::take("", "0:51"));
  CHECK_FALSE(MountLock::take(locks, ""));
  CHECK_FALSE(MountLock::take(folder / "missing" / "locks", "0:51"));
}

TEST_CASE("a directory is a mountpoint, full or empty, by way of links too") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  std::filesystem::create_directory_symlink(folder.path(), folder / "link");
  CHECK(*check_mountpoint(folder.path(), "") == std::filesystem::canonical(folder.path()));
  CHECK(*check_mountpoint(folder / "link", "") == std::filesystem::canonical(folder.path()));
}

TEST_CASE("a volume in a directory is not mounted over itself") {
  const test::TemporaryFolder folder;
  const auto path = std::filesystem::canonical(folder.path());
  for (const char* name : {"v/below", "v2"}) std::filesystem::create_directories(path / name);
  std::filesystem::create_directory_symlink(path / "v", path / "link");
  for (const char* directory : {"v", "v/", "link", "v2/../v"}) {
    INFO(directory);
    const auto itself = check_apart(path / "v", path / directory);
    REQUIRE_FALSE(itself);
    CHECK(itself.error().context ==
          "the mountpoint " + (path / "v").string() + " is the volume's own directory; choose another");
    const auto below = check_apart(path / "v" / "below", path / directory);
    REQUIRE_FALSE(below);
    CHECK(below.error().context.ends_with("/v/below is in the volume's own directory; choose another"));
    CHECK(check_apart(path / "v2", path / directory));
    const auto above = check_apart(path, path / directory);
    REQUIRE_FALSE(above);
    CHECK(above.error().context.ends_with(" would hide the volume's own directory; choose another"));
  }
  CHECK(check_apart(path / "v", path / "missing"));
  CHECK(check_apart(path / "v", ""));
}

TEST_CASE("what cannot be mounted on is refused with what to do") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  const auto missing = check_mountpoint(folder / "missing", "");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::not_found);
  CHECK(missing.error().context.find("mkdir") != std::string::npos);
  CHECK(check_mountpoint(folder / "file", "").error().code == ErrorCode::not_directory);
  CHECK_FALSE(check_mountpoint(folder / "file" / "below", ""));
}
