// SPDX-License-Identifier: LGPL-2.1-or-later
// name_operations OPERATION FOLDER PROCESSES NAMES own|shared [fsync]: the seven operations on names that mdtest
// measures (mkdir, create, stat, readdir, rename, unlink, rmdir), by so many processes with NAMES names each, in a
// folder of its own for each or in one for all; at the end perhaps an fsync of the folder. Prints the seconds from the
// start of the first process to the end of the last. What an operation needs, runs before must have made: "create" for
// stat, readdir, rename and unlink, "mkdir" for rmdir.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "name_operations: %s: %s\n", what.c_str(), std::strerror(errno));
  _exit(1);
}

void check(bool done, const std::string& what) {
  if (!done) give_up(what);
}

struct Work {
  std::string operation, folder;
  unsigned long processes, names;
  bool shared, with_fsync;

  std::string folder_of(unsigned long process) const {
    return shared ? folder : folder + "/process " + std::to_string(process);
  }
};

void create(const std::string& path) {
  const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  check(file >= 0, path);
  check(close(file) == 0, path);
}

void look(const std::string& path) {
  struct stat answer {};
  check(stat(path.c_str(), &answer) == 0, path);
}

const std::map<std::string, std::function<void(const std::string&)>> operations{
    {"mkdir", [](const std::string& path) { check(mkdir(path.c_str(), 0755) == 0, path); }},
    {"create", create},
    {"stat", look},
    {"rename", [](const std::string& path) { check(rename(path.c_str(), (path + " renamed").c_str()) == 0, path); }},
    {"unlink", [](const std::string& path) { check(unlink(path.c_str()) == 0, path); }},
    {"rmdir", [](const std::string& path) { check(rmdir(path.c_str()) == 0, path); }},
};

void list(const std::string& path, unsigned long at_least) {
  DIR* const folder = opendir(path.c_str());
  check(folder != nullptr, path);
  unsigned long entries = 0;
  while (readdir(folder) != nullptr) ++entries;
  check(closedir(folder) == 0 && entries >= at_least, path);
}

void run(const Work& work, unsigned long process) {
  const auto folder = work.folder_of(process);
  if (work.operation == "readdir") return list(folder, work.names);
  const auto& operation = operations.at(work.operation);
  for (unsigned long i = 0; i < work.names; ++i) {
    operation(folder + "/name " + std::to_string(process) + " " + std::to_string(i));
  }
  if (!work.with_fsync) return;
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  check(descriptor >= 0 && fsync(descriptor) == 0 && close(descriptor) == 0, folder);
}

/// A mkdir of what is there would make the kernel ask for the name, which it may know.
void make_folders(const Work& work) {
  for (unsigned long process = 0; process < work.processes; ++process) {
    const auto folder = work.folder_of(process);
    struct stat there {};
    check(stat(folder.c_str(), &there) == 0 || mkdir(folder.c_str(), 0755) == 0, folder);
  }
}

/// All start at once.
double measured_s(const Work& work) {
  using Clock = std::chrono::steady_clock;
  void* const page =
      mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(page != MAP_FAILED, "mmap");
  auto& started = *new (page) std::atomic<bool>(false);
  std::vector<pid_t> children;
  for (unsigned long process = 0; process < work.processes; ++process) {
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
      while (!started.load()) std::this_thread::yield();
      run(work, process);
      _exit(0);
    }
    children.push_back(child);
  }
  const auto began = Clock::now();
  started.store(true);
  bool all_done = true;
  for (const auto child : children) {
    int status = 0;
    check(waitpid(child, &status, 0) == child, "waitpid");
    all_done = all_done && status == 0;
  }
  const std::chrono::duration<double> took = Clock::now() - began;
  if (!all_done) _exit(1);
  return took.count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool with_fsync = words.size() == 6 && words[5] == "fsync";
  const bool is_known = words.size() >= 5 && (words[0] == "readdir" || operations.contains(words[0]));
  if (!is_known || (words.size() != 5 && !with_fsync) || (words[4] != "own" && words[4] != "shared")) {
    std::fprintf(stderr, "usage: name_operations OPERATION FOLDER PROCESSES NAMES own|shared [fsync]\n");
    return 2;
  }
  const Work work{words[0],
                  words[1],
                  std::strtoul(words[2].c_str(), nullptr, 10),
                  std::strtoul(words[3].c_str(), nullptr, 10),
                  words[4] == "shared",
                  with_fsync};
  if (work.processes == 0 || work.names == 0) {
    std::fprintf(stderr, "name_operations: PROCESSES and NAMES are at least 1\n");
    return 2;
  }
  make_folders(work);
  std::printf("%.6f\n", measured_s(work));
  return 0;
}
