// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What fsync or fsyncdir covered survives any crash. Sequences of calls with something made durable after each, in the
// manner of ACE (Mohan et al., "Finding crash-consistency bugs with bounded black-box crash testing", OSDI 2018): all
// of two calls, and drawn ones of three. The client dies at every step of the last part, or after all of them.
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <random>

#include "crash/model_tree.h"
#include "crash/sampling.h"
#include "crash/stage.h"
#include "support/catch.h"
#include "support/hooks.h"

namespace lccfs::crash {
namespace {

using Kind = Call::Kind;
using test::NthMutation;

constexpr unsigned sequences_of_three = 1500;

/// Printed at the end, so that a suite that shrinks is seen.
struct CaseCounter {
  std::size_t sequences = 0, crashes = 0;
  ~CaseCounter() { std::printf("durability: %zu crashes in %zu sequences\n", crashes, sequences); }
} cases;

enum class Persist { nothing, fsync, fdatasync, fsync_of_directory };
constexpr Persist all_persists[] = {Persist::nothing, Persist::fsync, Persist::fdatasync, Persist::fsync_of_directory};

const char* describe(Persist persist) {
  switch (persist) {
    case Persist::nothing:
      return "";
    case Persist::fsync:
      return ", fsync";
    case Persist::fdatasync:
      return ", fdatasync";
    case Persist::fsync_of_directory:
      return ", fsync of the directory";
  }
  return "?";
}

struct Part {
  Call call;
  Persist persist;
};

/// Calls on few names. Files stay open: nothing is durable because of a close.
std::vector<Call> calls() {
  constexpr std::uint64_t object = object_size_bytes;
  const auto write = [](const char* path, std::uint64_t offset_bytes, std::uint64_t size_bytes, char letter) {
    return Call{
        .kind = Kind::write, .path = path, .offset_bytes = offset_bytes, .size_bytes = size_bytes, .letter = letter};
  };
  return {
      {.kind = Kind::mkfile, .path = "/d/b", .mode = 0610},
      {.kind = Kind::mkdir, .path = "/d/c", .mode = 0711},
      {.kind = Kind::unlink, .path = "/d/a"},
      {.kind = Kind::rmdir, .path = "/d/e"},
      {.kind = Kind::rename, .path = "/d/a", .other = "/d/b"},
      {.kind = Kind::rename, .path = "/d/b", .other = "/d/a"},
      {.kind = Kind::exchange, .path = "/d/a", .other = "/d/e"},
      {.kind = Kind::set_xattr, .path = "/d/a", .other = "user.x", .letter = 'x'},
      {.kind = Kind::truncate, .path = "/d/a", .size_bytes = 40},
      {.kind = Kind::truncate, .path = "/d/a", .size_bytes = 2 * object},
      write("/d/a", 10, 20, 'm'),
      write("/d/a", 50, 200, 'n'),
      write("/d/a", object + 5, 10, 'o'),
      write("/d/b", 0, 30, 'p'),
  };
}

std::string bytes_in(const std::string& line) {
  std::string bytes;
  std::size_t count = 0;
  const auto from = line.find(" f");
  const auto links = line.find(' ', from + 1);
  for (auto at = line.find(' ', links + 1); at != std::string::npos && at < line.size(); ++at) {
    const char letter = line[at];
    if (letter >= '0' && letter <= '9') {
      count = count * 10 + static_cast<std::size_t>(letter - '0');
    } else if (letter == ' ') {
      count = 0;
    } else {
      bytes.append(count, letter == '.' ? '\0' : letter);
      count = 0;
    }
  }
  return bytes;
}

/// What a file may hold after a crash: sizes and bytes that it had since it was last made durable.
class Snapshots {
 public:
  void add(const std::string& bytes) { since_.push_back(bytes); }
  void made_durable() { since_.erase(since_.begin(), since_.end() - 1); }
  bool allow(const std::string& bytes) const {
    const bool has_a_size =
        std::ranges::any_of(since_, [&](const std::string& one) { return one.size() == bytes.size(); });
    if (!has_a_size) return false;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto was_there = [&](const std::string& one) { return (i < one.size() ? one[i] : '\0') == bytes[i]; };
      if (std::ranges::none_of(since_, was_there)) return false;
    }
    return true;
  }

 private:
  std::vector<std::string> since_;
};

/// The client's side: files that are open, by inode.
class OpenFiles {
 public:
  explicit OpenFiles(test::Paths& paths) : paths_(paths) {}

  std::string perform(const Call& call) {
    if (call.kind != Kind::write) return call.perform(paths_);
    const auto handle = handle_of(call.path);
    if (!handle) return text_of(Result<>(std::unexpected(handle.error())));
    return text_of(paths_.write(*handle, call.offset_bytes, std::string(call.size_bytes, call.letter)));
  }
  /// Of what the call has changed.
  Result<> persist(Persist persist, const std::string& path) {
    if (persist == Persist::fsync_of_directory) return paths_.sync_directory("/d");
    LCCFS_TRY(const HandleId handle, handle_of(path));
    return paths_.fsync(handle, persist == Persist::fdatasync);
  }

 private:
  Result<HandleId> handle_of(const std::string& path) {
    LCCFS_TRY(const Ino ino, paths_.find(path));
    if (const auto found = handles_.find(ino); found != handles_.end()) return found->second;
    LCCFS_TRY(const HandleId handle, paths_.open(path, O_RDWR));
    handles_[ino] = handle;
    return handle;
  }

  test::Paths& paths_;
  std::map<Ino, HandleId> handles_;
};

/// What may be found after the crash.
class Expected {
 public:
  explicit Expected(const ModelTree& start) : tree_(start), before_(start) { note(); }

  void begin(const Call& call) {
    before_ = tree_;
    answer_ = tree_.perform(call);
    note();
  }
  const std::string& answer() const { return answer_; }
  void call_ended() { before_ = tree_; }
  void made_durable(const std::string& path) {
    if (const auto id = tree_.id_of(path)) snapshots_[*id].made_durable();
  }
  /// Empty: what was found is right.
  std::string judge(const Tree& found) const {
    if (fits(tree_, found) || fits(before_, found)) return {};
    return "found:\n" + text_of(found) + "expected, but for what is not durable:\n" + text_of(tree_.lines()) + "or:\n" +
           text_of(before_.lines());
  }

 private:
  void note() {
    for (const auto id : tree_.files()) snapshots_[id].add(tree_.bytes_of(id));
  }
  static std::string without_bytes(const std::string& line) {
    const auto links = line.find(' ', line.find(" f") + 1);
    const auto end = line.find(' ', links + 1);
    const auto xattr = line.find(" user.x=x");
    return line.substr(0, end) + (xattr == std::string::npos ? "" : " user.x=x");
  }
  static std::string bytes_part(const std::string& line) {
    const auto xattr = line.find(" user.x=x");
    return xattr == std::string::npos ? line : line.substr(0, xattr) + line.substr(xattr + 9);
  }
  bool fits(const ModelTree& tree, const Tree& found) const {
    const auto lines = tree.lines();
    if (lines.size() != found.size()) return false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const bool is_file = lines[i].find(" f") != std::string::npos;
      if (!is_file && lines[i] != found[i]) return false;
      if (!is_file) continue;
      if (without_bytes(lines[i]) != without_bytes(found[i])) return false;
      const auto id = tree.id_of(lines[i].substr(0, lines[i].find(' ')));
      if (!snapshots_.at(*id).allow(bytes_in(bytes_part(found[i])))) return false;
    }
    return true;
  }

  ModelTree tree_, before_;
  std::map<ModelTree::Id, Snapshots> snapshots_;
  std::string answer_;
};

std::string path_of(const Call& call) { return call.kind == Kind::rename ? call.other : call.path; }

/// The sequence; the client dies at the n-th change of its last part, or after all of it (nullopt). false: there is
/// no such change.
bool crash_in(const Start& start, const std::vector<Part>& parts, Writes writes, std::optional<unsigned> n,
              Fault::Kind kind) {
  World world(start.world);
  Client client = world.mount(writes);
  client.prepare(Memory::cold);
  OpenFiles files(client.paths());
  Expected expected(start.model);
  const NthMutation hook(n.value_or(0), {n ? kind : Fault::Kind::none});
  std::string text;
  for (const Part& part : parts) {
    text += text_of(part.call) + describe(part.persist) + "; ";
    if (n && &part == &parts.back()) client.store().set_hook(hook);
    expected.begin(part.call);
    const auto answer = files.perform(part.call);
    if (client.store().crashed()) break;
    CHECK(answer == expected.answer());
    expected.call_ended();
    if (part.persist == Persist::nothing) continue;
    if (files.persist(part.persist, path_of(part.call)) && part.persist != Persist::fsync_of_directory) {
      expected.made_durable(path_of(part.call));
    }
    if (client.store().crashed()) break;
  }
  if (n && !hook.reached()) {
    client.store().crash();
    client.bury();
    return false;
  }
  client.store().crash();
  client.bury();
  world.let_a_minute_pass();
  ++cases.crashes;
  const auto wrong = expected.judge(world.tree());
  if (!wrong.empty())
    FAIL_CHECK(text << (writes == Writes::wait ? "writes wait, " : "") << (n ? lccfs::describe(kind) : "crash after it")
                    << "\n"
                    << wrong);
  return true;
}

void crash_everywhere(const Start& start, const std::vector<Part>& parts) {
  for (const Writes writes : {Writes::are_buffered, Writes::wait}) {
    ++cases.sequences;
    crash_in(start, parts, writes, std::nullopt, Fault::Kind::none);
    for (const auto kind : {Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash}) {
      for (unsigned n = 0; crash_in(start, parts, writes, n, kind); ++n) continue;
    }
  }
}

Start start_of_all() {
  return Start({{.kind = Kind::mkdir, .path = "/d", .mode = 0700},
                {.kind = Kind::mkfile, .path = "/d/a", .mode = 0601},
                {.kind = Kind::write, .path = "/d/a", .offset_bytes = 0, .size_bytes = 100, .letter = 's'},
                {.kind = Kind::mkdir, .path = "/d/e", .mode = 0702}});
}

TEST_CASE("what was made durable survives a crash at any step: all sequences of two calls") {
  const Start start = start_of_all();
  std::size_t number = 0;
  for (const Call& first : calls()) {
    for (const Persist behind_first : all_persists) {
      for (const Call& second : calls()) {
        for (const Persist behind_second : all_persists) {
          if (!is_drawn(number++)) continue;
          crash_everywhere(start, {{first, behind_first}, {second, behind_second}});
        }
      }
    }
  }
}

TEST_CASE("what was made durable survives a crash at any step: drawn sequences of three calls") {
  const Start start = start_of_all();
  const auto choice = calls();
  Rounds rounds;
  while (const auto round = rounds.next()) {
    std::mt19937_64 random(*round);
    for (unsigned i = 0; i < sequences_of_three; i += static_cast<unsigned>(stride())) {
      std::vector<Part> parts;
      for (unsigned part = 0; part < 3; ++part) {
        const Call& call = choice[random() % choice.size()];
        parts.push_back({call, all_persists[random() % std::size(all_persists)]});
      }
      crash_everywhere(start, parts);
    }
  }
}

}  // namespace
}  // namespace lccfs::crash
