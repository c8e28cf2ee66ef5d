// SPDX-License-Identifier: LGPL-2.1-or-later
// What programs do on mounts with a kernel above them, as values: drawn by seed, printed, left out one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lccfs::crash {

struct Action {
  enum class Kind {
    open,
    close,
    read,
    write,
    begin_write,  ///< an asynchronous direct one: it is sent,
    do_write,     ///< the file system does it,
    end_write,    ///< and the kernel learns so
    map,
    unmap,
    load,
    store,
    truncate,
    truncate_in_vain,  ///< the store has done it, but its answer is lost, and what is sent again is refused
    fsync,
    fdatasync,
    clear_append,  ///< by fcntl
    stat,
    chmod,
    put_mtime_back,  ///< to what it was at first, as rsync does
    set_capability,
    unlink,
    rename,
    mkdir,
    rmdir,
    list,
    forget,  ///< the kernel is short of memory
    wait,    ///< time passes
    kill,    ///< of the first mount, and the end of the history
  };
  static constexpr unsigned at_once = ~0U;
  Kind kind = Kind::stat;
  unsigned program = 0;
  unsigned slot = 0;  ///< which of its descriptors; open: at_once, if it is closed at once
  std::string path{}, other{};
  int flags = 0;
  std::uint64_t offset_bytes = 0, size_bytes = 0;
  char letter = 0;
  std::uint64_t milliseconds = 0;
  /// In the midst of the call before it, at that of the points before and after its requests, if nothing keeps it from
  /// running there; -1: after it.
  int within = -1;
};
std::string text_of(const Action& action);

/// Who there is.
struct Mounts {
  std::string name;
  unsigned count = 1;                        ///< of mounts
  std::vector<unsigned> mount_of_program{};  ///< by program
  unsigned histories = 0;                    ///< in a round
  bool names_are_remembered = false;         ///< entry time-out of a second; only names in one directory are used
  bool clocks_stand = false;                 ///< all that a mount does has the same time
};
std::vector<Mounts> all_mounts();

std::vector<Action> draw_actions(const Mounts& mounts, std::uint64_t seed);

}  // namespace lccfs::crash
