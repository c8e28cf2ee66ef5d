// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What programs see through a kernel that keeps names, attributes and pages, on one mount and on two, in drawn
// histories (docs/TESTING.md).
#include <fcntl.h>

#include <cstdio>
#include <sstream>

#include "crash/kernel_stage.h"
#include "crash/sampling.h"
#include "support/catch.h"

namespace lccfs::crash {
namespace {

/// Printed at the end, so that a suite that shrinks is seen.
struct CaseCounter : KernelCounts {
  ~CaseCounter() {
    std::printf("histories above a kernel: %zu, of %zu calls, %zu of them within others; %zu ended by kill -9\n",
                histories, calls, within, kills);
  }
} cases;

/// "two mounts; 17; 0 3 4": the seed, and which of its actions are left (none named: all).
std::string line_of(const Mounts& mounts, std::uint64_t seed, const std::vector<std::size_t>& kept) {
  std::string line = mounts.name + "; " + std::to_string(seed) + ";";
  for (const auto one : kept) line += " " + std::to_string(one);
  return line;
}

class Case {
 public:
  Case(const Start& start, const Mounts& mounts, std::uint64_t seed)
      : start_(start), mounts_(mounts), seed_(seed), all_(draw_actions(mounts, seed)) {}

  void play() {
    for (std::size_t i = 0; i < all_.size(); ++i) kept_.push_back(i);
    if (!wrong_of(kept_).empty()) shrink();
  }
  void play_again(const std::string& line) {
    const auto before = mounts_.name + "; " + std::to_string(seed_) + ";";
    if (!line.starts_with(before)) return;
    std::istringstream rest(line.substr(before.size()));
    for (std::size_t i = 0; rest >> i;) kept_.push_back(i);
    report();
  }

 private:
  std::string wrong_of(const std::vector<std::size_t>& kept) {
    std::vector<Action> actions;
    for (const auto i : kept) actions.push_back(all_.at(i));
    return play_on_kernels(start_, mounts_, actions, cases);
  }

  /// As few actions as still go wrong.
  void shrink() {
    for (bool again = true; again;) {
      again = false;
      for (std::size_t i = kept_.size(); i-- > 0;) {
        auto fewer = kept_;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        if (wrong_of(fewer).empty()) continue;
        kept_ = std::move(fewer);
        again = true;
      }
    }
    report();
  }

  void report() {
    const auto wrong = wrong_of(kept_);
    if (!wrong.empty()) FAIL_CHECK("LCCFS_REPLAY='" << line_of(mounts_, seed_, kept_) << "'\n" << wrong);
  }

  const Start& start_;
  const Mounts& mounts_;
  const std::uint64_t seed_;
  const std::vector<Action> all_;
  std::vector<std::size_t> kept_;
};

using Kind = Action::Kind;

/// Found by drawn histories, or by use.
struct Known {
  const char* what;
  unsigned mounts;  ///< of all_mounts
  std::vector<Action> actions;
};

std::vector<Known> known_names_and_sizes() {
  return {{"a name that the kernel keeps is written to, its file removed elsewhere",
           1,
           {{.kind = Kind::stat, .path = "/a"},
            {.kind = Kind::unlink, .program = 1, .path = "/a"},
            {.kind = Kind::open, .path = "/a", .flags = O_RDWR | O_CREAT},
            {.kind = Kind::write, .size_bytes = 10, .letter = 'h'},
            {.kind = Kind::close}}},
          {"a directory is removed and made anew elsewhere",
           3,
           {{.kind = Kind::mkdir, .path = "/e"},
            {.kind = Kind::stat, .program = 1, .path = "/e"},
            {.kind = Kind::rmdir, .path = "/e"},
            {.kind = Kind::mkdir, .path = "/e"},
            {.kind = Kind::open, .program = 1, .slot = Action::at_once, .path = "/e/m", .flags = O_RDWR | O_CREAT}}},
          {"growth by a direct write with O_DSYNC",
           1,
           {{.kind = Kind::open, .path = "/a", .flags = O_RDWR | O_DIRECT | O_DSYNC},
            {.kind = Kind::write, .offset_bytes = 101, .size_bytes = 20, .letter = 'f'},
            {.kind = Kind::kill}}},
          {"a resize that is refused, though the store has done it",
           0,
           {{.kind = Kind::open, .path = "/a", .flags = O_RDWR},
            {.kind = Kind::truncate_in_vain, .size_bytes = 10},
            {.kind = Kind::close}}},
          {"O_RDONLY|O_TRUNC", 0, {{.kind = Kind::open, .path = "/a", .flags = O_RDONLY | O_TRUNC}}},
          {"a mode that is set elsewhere, where the clock is behind",
           1,
           {{.kind = Kind::open, .path = "/a", .flags = O_RDWR},
            {.kind = Kind::write, .size_bytes = 10, .letter = 'm'},
            {.kind = Kind::chmod, .program = 1, .path = "/a", .flags = 0640},
            {.kind = Kind::wait, .milliseconds = 1100},
            {.kind = Kind::stat, .path = "/a"}}},
          {"a capability that is set elsewhere after the open",
           1,
           {{.kind = Kind::open, .path = "/a", .flags = O_RDWR},
            {.kind = Kind::write, .size_bytes = 10, .letter = 'g'},
            {.kind = Kind::set_capability, .program = 1, .path = "/a"},
            {.kind = Kind::wait, .milliseconds = 1100},
            {.kind = Kind::write, .size_bytes = 10, .letter = 'h'}}}};
}

/// Pages that the kernel keeps from open to open.
std::vector<Known> known_pages() {
  return {{"rewritten elsewhere, and its mtime put back",
           1,
           {{.kind = Kind::open, .path = "/a", .flags = O_RDONLY},
            {.kind = Kind::read, .size_bytes = 40},
            {.kind = Kind::close},
            {.kind = Kind::open, .program = 1, .path = "/a", .flags = O_RDWR},
            {.kind = Kind::write, .program = 1, .size_bytes = 10, .letter = 'a'},
            {.kind = Kind::close, .program = 1},
            {.kind = Kind::put_mtime_back, .program = 1, .path = "/a"},
            {.kind = Kind::open, .path = "/a", .flags = O_RDONLY},
            {.kind = Kind::read, .size_bytes = 40}}},
          {"written again, in place and with O_DSYNC, by who then dies",
           1,
           {{.kind = Kind::open, .path = "/a", .flags = O_RDWR | O_DSYNC},
            {.kind = Kind::write, .size_bytes = 10, .letter = 'd'},
            {.kind = Kind::open, .program = 1, .path = "/a", .flags = O_RDONLY},
            {.kind = Kind::read, .program = 1, .size_bytes = 40},
            {.kind = Kind::close, .program = 1},
            {.kind = Kind::write, .size_bytes = 10, .letter = 'e'},
            {.kind = Kind::kill}}},
          {"rewritten elsewhere, and then written in another place at the same time of the clock",
           4,
           {{.kind = Kind::open, .path = "/a", .flags = O_RDWR},
            {.kind = Kind::write, .size_bytes = 10, .letter = 'f'},
            {.kind = Kind::read, .size_bytes = 40},
            {.kind = Kind::open, .program = 1, .path = "/a", .flags = O_RDWR},
            {.kind = Kind::write, .program = 1, .size_bytes = 10, .letter = 'g'},
            {.kind = Kind::close, .program = 1},
            {.kind = Kind::write, .offset_bytes = 64, .size_bytes = 16, .letter = 'h'},
            {.kind = Kind::open, .slot = 1, .path = "/a", .flags = O_RDONLY},
            {.kind = Kind::read, .slot = 1, .size_bytes = 40}}}};
}

std::vector<Known> known_bytes() {
  return {{"a mapped page of a descriptor with O_APPEND",
           0,
           {{.kind = Kind::open, .path = "/a", .flags = O_RDWR | O_APPEND},
            {.kind = Kind::map},
            {.kind = Kind::store, .size_bytes = 10, .letter = 'i'},
            {.kind = Kind::unmap},
            {.kind = Kind::close}}},
          {"an O_APPEND that fcntl has cleared",
           0,
           {{.kind = Kind::open, .path = "/a", .flags = O_RDWR | O_APPEND},
            {.kind = Kind::clear_append},
            {.kind = Kind::write, .size_bytes = 18, .letter = 'c'}}},
          {"read beside a direct write that is under way",
           0,
           {{.kind = Kind::open, .program = 1, .path = "/a", .flags = O_RDONLY},
            {.kind = Kind::open, .path = "/a", .flags = O_RDWR | O_DIRECT},
            {.kind = Kind::begin_write, .size_bytes = 64, .letter = 'b'},
            {.kind = Kind::read, .program = 1, .size_bytes = 40},
            {.kind = Kind::do_write},
            {.kind = Kind::end_write},
            {.kind = Kind::read, .program = 1, .size_bytes = 40}}},
          {"an append over the end of a page, and another's",
           1,
           {{.kind = Kind::open, .path = "/a", .flags = O_WRONLY | O_APPEND},
            {.kind = Kind::open, .program = 1, .path = "/a", .flags = O_WRONLY | O_APPEND},
            {.kind = Kind::write, .size_bytes = 17, .letter = 'c'},
            {.kind = Kind::write, .program = 1, .size_bytes = 64, .letter = 'a', .within = 5}}}};
}

TEST_CASE("histories above a kernel that once went wrong") {
  const Start start(setup_for_kernels());
  const auto mounts = all_mounts();
  for (const auto& all : {known_names_and_sizes(), known_pages(), known_bytes()}) {
    for (const Known& known : all) {
      INFO(known.what);
      const auto wrong = play_on_kernels(start, mounts[known.mounts], known.actions, cases);
      CHECK(wrong == "");  // NOLINT(readability-container-size-empty): the text is to be shown
    }
  }
}

void play_again(const Start& start, const std::string& line) {
  for (const Mounts& mounts : all_mounts()) {
    const auto before = mounts.name + "; ";
    if (line.starts_with(before)) Case(start, mounts, std::stoull(line.substr(before.size()))).play_again(line);
  }
}

TEST_CASE("what programs see through the kernel is what one file system would show them") {
  const Start start(setup_for_kernels());
  if (const auto replay = line_to_replay()) return play_again(start, *replay);
  Rounds rounds;
  while (const auto round = rounds.next()) {
    for (const Mounts& mounts : all_mounts()) {
      for (unsigned i = 0; i < mounts.histories; ++i) {
        if (i % stride() == 0) Case(start, mounts, (std::uint64_t{*round} << 32) + i).play();
      }
    }
  }
}

}  // namespace
}  // namespace lccfs::crash
