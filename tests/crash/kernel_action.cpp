// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/kernel_action.h"

#include <fcntl.h>

#include <deque>
#include <map>
#include <random>

#include "crash/kernel_model.h"

namespace lccfs::crash {

namespace {

using Kind = Action::Kind;

constexpr unsigned slots = 2;
constexpr unsigned fewest_actions = 6, most_actions = 34;

bool is_direct(int flags) { return (flags & O_DIRECT) != 0; }

const char* name_of(Kind kind) {
  static const std::map<Kind, const char*> names{
      {Kind::open, "open"},
      {Kind::close, "close"},
      {Kind::read, "read"},
      {Kind::write, "write"},
      {Kind::begin_write, "submit"},
      {Kind::do_write, "(done by the file system)"},
      {Kind::end_write, "(ended)"},
      {Kind::map, "mmap"},
      {Kind::unmap, "munmap"},
      {Kind::load, "load"},
      {Kind::store, "store"},
      {Kind::truncate, "ftruncate"},
      {Kind::truncate_in_vain, "ftruncate, refused"},
      {Kind::fsync, "fsync"},
      {Kind::fdatasync, "fdatasync"},
      {Kind::stat, "stat"},
      {Kind::clear_append, "fcntl without O_APPEND"},
      {Kind::chmod, "chmod"},
      {Kind::put_mtime_back, "utimes to the first mtime"},
      {Kind::unlink, "unlink"},
      {Kind::set_capability, "setcap"},
      {Kind::rename, "rename"},
      {Kind::mkdir, "mkdir"},
      {Kind::rmdir, "rmdir"},
      {Kind::list, "list"},
      {Kind::forget, "drop caches"},
      {Kind::wait, "wait"},
      {Kind::kill, "kill -9 of the mount"},
  };
  return names.at(kind);
}

std::string text_of_flags(int flags) {
  std::string text = (flags & O_ACCMODE) == O_RDONLY ? "r" : (flags & O_ACCMODE) == O_WRONLY ? "w" : "rw";
  for (const auto& [flag, name] : {std::pair(O_APPEND, "append"),
                                   {O_DIRECT, "direct"},
                                   {O_DSYNC, "dsync"},
                                   {O_CREAT, "creat"},
                                   {O_EXCL, "excl"},
                                   {O_TRUNC, "trunc"}}) {
    if ((flags & flag) == flag) text += std::string("|") + name;
  }
  return text;
}

/// Each program goes through small pieces of work, as programs have them, one after the other; which of them continues
/// is drawn before each action. Not all that is drawn will be possible.
class Drawing {
 public:
  Drawing(const Mounts& mounts, std::uint64_t seed) : mounts_(mounts), random_(seed), topic_(draw_topic()) {}

  std::vector<Action> draw() {
    std::vector<Action> actions;
    const auto count = fewest_actions + below(most_actions - fewest_actions);
    while (actions.size() < count) {
      const auto program = below(static_cast<unsigned>(mounts_.mount_of_program.size()));
      auto& work = work_[program];
      if (work.empty()) draw_work(work);
      Action action = std::move(work.front());
      work.pop_front();
      action.program = program;
      if (one_of(2) && !actions.empty()) action.within = static_cast<int>(below(6));
      if (mounts_.names_are_remembered && !action.path.empty() && action.path != "/e")
        action.path += std::to_string(program);
      actions.push_back(std::move(action));
    }
    if (mounts_.count > 1 && !mounts_.names_are_remembered && one_of(topic_ == Topic::syncs ? 1 : 6)) {
      actions.push_back({.kind = Kind::kill});
    }
    return actions;
  }

 private:
  using Work = std::deque<Action>;
  /// What a history is about: what takes several calls to come about is rare among all that there is.
  enum class Topic { any, appends, direct_writes, rewriting, maps, syncs, privileges };
  Topic draw_topic() {
    const Topic one[] = {Topic::any, Topic::appends, Topic::direct_writes, Topic::maps, Topic::privileges};
    const Topic two[] = {Topic::any,       Topic::any,   Topic::appends,   Topic::direct_writes,
                         Topic::rewriting, Topic::syncs, Topic::privileges};
    return mounts_.count == 1 ? any_of(one) : any_of(two);
  }

  unsigned below(unsigned count) { return static_cast<unsigned>(random_() % count); }
  bool one_of(unsigned count) { return below(count) == 0; }
  template <class T, std::size_t count>
  T any_of(const T (&choice)[count]) {
    return choice[below(count)];
  }
  /// Most of a history is about one file.
  std::string path() {
    const char* const paths[] = {"/a", "/a", "/a", "/a", "/a", "/a", "/b", "/d/c"};
    return any_of(paths);
  }

  void draw_work(Work& work) {
    if (mounts_.names_are_remembered) return on_names(work);
    if (one_of(topic_ == Topic::privileges ? 4 : 7)) return passes_time(work);
    if (one_of(topic_ == Topic::privileges ? 3 : 7)) return on_path(work, path());
    on_file(work, path());
  }

  void on_names(Work& work) {
    const Kind kinds[] = {Kind::mkdir, Kind::rmdir,  Kind::rmdir,  Kind::stat, Kind::open,
                          Kind::open,  Kind::unlink, Kind::unlink, Kind::wait};
    Action action{.kind = any_of(kinds), .path = "/e"};
    if (action.kind == Kind::wait) action = {.kind = Kind::wait, .milliseconds = 300};
    if (action.kind == Kind::open || action.kind == Kind::unlink) action.path = "/e/of";
    if (action.kind == Kind::open) action.flags = O_RDWR | O_CREAT | O_EXCL;
    action.slot = Action::at_once;
    work.push_back(action);
  }

  void passes_time(Work& work) {
    const std::uint64_t milliseconds[] = {1, 300, 700, 1100, 1100};
    work.push_back({.kind = Kind::wait, .milliseconds = any_of(milliseconds)});
    if (one_of(6)) work.back() = {.kind = Kind::forget};
  }

  void on_path(Work& work, const std::string& path) {
    const Kind kinds[] = {Kind::stat,           Kind::chmod,  Kind::put_mtime_back, Kind::put_mtime_back,
                          Kind::set_capability, Kind::unlink, Kind::rename,         Kind::list};
    Action action{.kind = any_of(kinds), .path = path};
    if (topic_ == Topic::privileges && one_of(2)) action.kind = Kind::set_capability;
    if (action.kind == Kind::chmod) action.flags = static_cast<int>(0600 + below(64));
    if (action.kind == Kind::list) action.path = one_of(2) ? "/" : "/d";
    if (action.kind == Kind::rename) action.path = one_of(2) ? "/a" : "/b";
    if (action.kind == Kind::rename) action.other = action.path == "/a" ? "/b" : "/a";
    work.push_back(action);
  }

  void on_file(Work& work, const std::string& path) {
    const int flags = draw_flags();
    const bool is_async = is_direct(flags) && one_of(2);
    const bool is_mapped = !is_direct(flags) && one_of(topic_ == Topic::maps ? 2 : 5);
    const auto slot = below(slots);
    const auto add = [&](Action action) {
      action.slot = slot;
      work.push_back(std::move(action));
    };
    add({.kind = Kind::open, .path = path, .flags = flags | (one_of(12) ? O_TRUNC : 0) | (one_of(12) ? O_CREAT : 0)});
    if (is_mapped) add({.kind = Kind::map});
    for (auto uses = 1 + below(4); uses > 0; --uses) {
      if (is_mapped && one_of(2)) {
        add(on_bytes(one_of(2) ? Kind::load : Kind::store));
      } else if (is_async && one_of(2)) {
        add(on_bytes(Kind::begin_write));
        add({.kind = Kind::do_write});
        add({.kind = Kind::end_write});
      } else {
        add(use_of(flags));
      }
    }
    if (is_mapped && one_of(2)) add({.kind = Kind::unmap});
    if (!one_of(4)) add({.kind = Kind::close});
    if ((flags & O_ACCMODE) != O_RDONLY && one_of(topic_ == Topic::rewriting ? 1 : 3)) {
      work.push_back({.kind = Kind::put_mtime_back, .path = path});
    }
  }

  int draw_flags() {
    const int any[] = {O_RDONLY,
                       O_RDWR,
                       O_RDWR | O_DSYNC,
                       O_WRONLY | O_APPEND,
                       O_RDWR | O_APPEND,
                       O_RDONLY | O_DIRECT,
                       O_RDWR | O_DIRECT,
                       O_RDWR | O_DIRECT | O_DSYNC,
                       O_WRONLY | O_DIRECT | O_APPEND};
    const int appending[] = {O_WRONLY | O_APPEND, O_WRONLY | O_APPEND, O_RDWR | O_APPEND, O_RDONLY};
    const int direct[] = {O_RDWR | O_DIRECT, O_RDONLY};
    const int rewriting[] = {O_RDONLY, O_RDONLY, O_RDWR, O_RDWR | O_DIRECT};
    const int mapping[] = {O_RDWR, O_RDWR, O_RDWR | O_APPEND, O_RDWR | O_DIRECT, O_RDONLY};
    const int synced[] = {O_RDWR | O_DIRECT | O_DSYNC, O_RDWR | O_DSYNC, O_RDWR | O_DIRECT, O_RDWR};
    switch (topic_) {
      case Topic::any:
        return any_of(any);
      case Topic::appends:
        return any_of(appending);
      case Topic::direct_writes:
        return any_of(direct);
      case Topic::rewriting:
        return any_of(rewriting);
      case Topic::maps:
        return any_of(mapping);
      case Topic::syncs:
        return any_of(synced);
      case Topic::privileges:
        return any_of(any);
    }
    return O_RDONLY;
  }

  Action use_of(int flags) {
    if ((flags & O_ACCMODE) == O_RDONLY) return on_bytes(Kind::read);
    const Kind kinds[] = {Kind::read,  Kind::read,  Kind::write,    Kind::write,     Kind::write,
                          Kind::write, Kind::fsync, Kind::truncate, Kind::fdatasync, Kind::clear_append};
    if (topic_ == Topic::rewriting) return on_bytes(Kind::write);
    Action action = on_bytes(any_of(kinds));
    if (action.kind == Kind::truncate) action.size_bytes = below(90);
    if (action.kind == Kind::truncate && mounts_.count == 1 && one_of(3)) action.kind = Kind::truncate_in_vain;
    return action;
  }

  Action on_bytes(Kind kind) {
    Action action{.kind = kind};
    if (kind == Kind::fsync || kind == Kind::fdatasync || kind == Kind::clear_append) return action;
    action.offset_bytes = one_of(3) ? 0 : below(70);
    if (topic_ == Topic::syncs) action.offset_bytes = 60 + below(60);
    action.size_bytes = one_of(3) ? KernelModel::most_bytes_at_once : 1 + below(40);
    if (kind == Kind::write || kind == Kind::begin_write || kind == Kind::store) {
      action.letter = static_cast<char>('a' + letters_++ % 26);
    }
    return action;
  }

  const Mounts& mounts_;
  std::mt19937_64 random_;
  const Topic topic_;
  std::map<unsigned, Work> work_;  // by program: what is left of it
  unsigned letters_ = 0;
};

}  // namespace

std::string text_of(const Action& action) {
  std::string text = std::string(1, static_cast<char>('A' + action.program)) + ": " + name_of(action.kind);
  const bool of_slot =
      action.path.empty() && action.kind != Kind::wait && action.kind != Kind::forget && action.kind != Kind::kill;
  if (of_slot || (action.kind == Kind::open && action.slot != Action::at_once)) {
    text += " [" + std::to_string(action.slot) + "]";
  }
  if (!action.path.empty()) text += " " + action.path;
  if (!action.other.empty()) text += " " + action.other;
  if (action.kind == Kind::open) text += " " + text_of_flags(action.flags);
  if (action.size_bytes != 0)
    text += " at " + std::to_string(action.offset_bytes) + " " + std::to_string(action.size_bytes);
  if (action.letter != 0) text += action.letter;
  if (action.kind == Kind::wait) text += " " + std::to_string(action.milliseconds) + " ms";
  if (action.within >= 0) text += ", within the one before, at " + std::to_string(action.within);
  return text;
}

std::vector<Mounts> all_mounts() {
  return {{"one mount", 1, {0, 0}, 2000},
          {"two mounts", 2, {0, 1}, 2000},
          {"two mounts, three programs", 2, {0, 1, 0}, 1000},
          {"two mounts that remember names", 2, {0, 1}, 300, true},
          {"two mounts whose clocks stand still", 2, {0, 1}, 300, false, true}};
}

std::vector<Action> draw_actions(const Mounts& mounts, std::uint64_t seed) { return Drawing(mounts, seed).draw(); }

}  // namespace lccfs::crash
