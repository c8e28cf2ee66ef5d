// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/own_mounts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/unmount.h"
#include "cli/diagnosis.h"
#include "lccfs/clock.h"

namespace lccfs::cli {

namespace {

constexpr std::chrono::milliseconds between_looks{20};
constexpr std::chrono::seconds longest_mount{60}, longest_unmount{60}, longest_once_interrupted{10},
    longest_end_at_once{5};
constexpr int cannot_execute = 127;

std::unexpected<Error> not_done(const std::string& what) {
  return failure(ErrorCode::io, what + ": " + strerror(errno));
}

/// That of this program's own installation, if there is one.
std::string mounting_program() {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = own.parent_path() / "lccfs-fuse";
  return !error && access(beside.c_str(), X_OK) == 0 ? beside.string() : "lccfs-fuse";
}

std::vector<std::string> mount_words(const VolumeAddress& address, const std::string& path) {
  std::vector<std::string> words{mounting_program()};
  if (!address.local_directory.empty()) {
    words.insert(words.end(), {"--local", address.local_directory});
  } else {
    words.insert(words.end(), {"-c", address.conf_file, "-p", address.pool, "--id", address.client_id});
    if (!address.pool_namespace.empty()) words.insert(words.end(), {"-n", address.pool_namespace});
  }
  words.insert(words.end(), {"-m", path, "-f", "-o", "nogc"});
  return words;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Without a file of defaults: what it has for mounts (a port for metrics, a subdirectory) is not meant for this one.
std::vector<std::string> own_environment() {
  std::vector<std::string> variables{"LCCFS_CONFIG="};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(variables.front())) variables.emplace_back(*variable);
  }
  return variables;
}

/// In a session of its own: a Ctrl-C at the terminal ends this program, which then unmounts.
pid_t start(std::vector<std::string> words, int log) {
  auto variables = own_environment();
  const auto arguments = pointers_to(words), environment = pointers_to(variables);
  const pid_t parent = getpid();
  // Until our handlers are gone it is told nothing: they would take what is to end it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  const pid_t child = fork();
  if (child != 0) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return child;
  }
  // From here on only what may be called after a fork with threads.
  Interruption::end();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(cannot_execute);
  const int input = open("/dev/null", O_RDONLY);
  dup2(input, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execvpe(arguments.front(), arguments.data(), environment.data());
  _exit(cannot_execute);
}

/// Asks no file system: one that does not answer would keep this thread for ever.
dev_t device_of(const std::string& path) {
  struct statx found = {};
  if (statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, 0, &found) != 0) return 0;
  return makedev(found.stx_dev_major, found.stx_dev_minor);
}

/// Whether it has ended.
bool has_ended(pid_t process) { return waitpid(process, nullptr, WNOHANG) == process; }

/// Of what the program wrote, and 4 KiB of it at most.
std::string last_line_in(int log) {
  std::array<char, 4096> bytes{};
  const auto end = lseek(log, 0, SEEK_END);
  const auto size = pread(log, bytes.data(), bytes.size(), std::max<off_t>(0, end - static_cast<off_t>(bytes.size())));
  std::istringstream text(std::string(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(0, size))));
  std::string last;
  for (std::string line; std::getline(text, line);) last = line.empty() ? last : line;
  return last.empty() ? "it said nothing" : last;
}

}  // namespace

Result<PrivateFolder> PrivateFolder::make() {
  const char* chosen = std::getenv("TMPDIR");
  std::string path = std::string(chosen == nullptr || *chosen == 0 ? "/tmp" : chosen) + "/lccfs-doctor-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return not_done("cannot make a folder " + path);
  return PrivateFolder(std::move(path));
}

PrivateFolder::~PrivateFolder() {
  if (!path_.empty()) rmdir(path_.c_str());
}

Result<OwnMount> OwnMount::make(const VolumeAddress& address, const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  const Descriptor log(memfd_create("lccfs-fuse", MFD_CLOEXEC));
  if (mkdir(path.c_str(), S_IRWXU) != 0) return not_done("cannot make " + path);
  const dev_t before = device_of(path);
  const pid_t process = start(mount_words(address, path), log.get());
  if (process < 0) {
    rmdir(path.c_str());
    return not_done("cannot start lccfs-fuse");
  }
  const auto end = system_clock().elapsed() + longest_mount;
  while (device_of(path) == before) {
    const bool ended = has_ended(process);
    if (!ended && system_clock().elapsed() < end && !Interruption::is_wanted()) {
      system_clock().sleep_for(between_looks);
      continue;
    }
    const auto why = last_line_in(log.get());
    const OwnMount taken_away(path, ended ? -1 : process);
    return failure(ErrorCode::io, "lccfs-fuse " + std::string(ended ? "has ended: " : "does not mount: ") + why);
  }
  return OwnMount(path, process);
}

OwnMount::~OwnMount() {
  if (path_.empty()) return;
  if (process_ > 0) end_process(longest_unmount);
  unmount_at_once(path_);  // of a program that had to be killed
  rmdir(path_.c_str());
}

void OwnMount::end_at_once() {
  if (process_ < 0) return;
  end_process(longest_end_at_once);
  process_ = -1;
  unmount_at_once(path_);
}

/// The program stores everything first. One that is killed others have to fence.
void OwnMount::end_process(std::chrono::seconds longest) const {
  kill(process_, SIGTERM);
  const auto begin = system_clock().elapsed();
  while (!has_ended(process_)) {
    system_clock().sleep_for(between_looks);
    const auto patience = Interruption::is_wanted() ? std::min(longest, longest_once_interrupted) : longest;
    if (system_clock().elapsed() - begin < patience) continue;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    return;
  }
}

}  // namespace lccfs::cli
