// SPDX-License-Identifier: LGPL-2.1-or-later
// Orders and faults drawn by seed, where there are too many to enumerate; and how long a suite continues.
#pragma once

#include <chrono>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "crash/interleaver.h"
#include "crash/stage.h"

namespace lccfs::crash {

/// Draws who continues, and at most one fault, at one step that changes something; and, in some runs, that an object is
/// away or a client's watches lapse, for a while. To be called in place of Interleaver::Choose.
class Sampler {
 public:
  /// `faulty_lanes`: the fault is in one of the first so many.
  Sampler(std::uint64_t seed, unsigned faulty_lanes);
  Decision operator()(const std::vector<Interleaver::Waiting>& waiting);

 private:
  unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }
  std::mt19937_64 random_;
  unsigned faulty_lane_;
  unsigned steps_before_fault_;
  unsigned event_, steps_before_event_, steps_of_event_;
  std::optional<Decision> end_of_event_;
};

/// The line that plays a case again.
std::string line_of(const std::string& where, const Play& play, const std::vector<Decision>& schedule);
/// LCCFS_REPLAY.
std::optional<std::string> line_to_replay();
/// The schedule in `line`, if it is one of that play.
std::optional<std::vector<Decision>> schedule_in(const std::string& line, const std::string& where, const Play& play);

/// Rounds of an endless suite: one, or as many as begin within LCCFS_CRASH_SECONDS.
class Rounds {
 public:
  Rounds();
  /// The number of the round that begins, from 0; nullopt: enough.
  std::optional<unsigned> next();

 private:
  const std::chrono::steady_clock::time_point end_;
  unsigned begun_ = 0;
};

/// Whether LCCFS_CRASH_ONLY, a part of such a line, is in this one, or not set.
bool is_wanted(const std::string& line);

/// LCCFS_CRASH_STRIDE: one case of so many, where time is short or a sanitizer is slow.
std::size_t stride();
/// Whether the case of this number is tried: one of each stride() that follow each other, which one LCCFS_CRASH_SEED
/// says.
bool is_drawn(std::size_t number);
/// A number below that, by the same seed: for what is fewer than stride(), of which none may be drawn.
std::size_t one_drawn_of(std::size_t size);
/// The numbers below that which are drawn, at least one.
std::vector<std::size_t> drawn_of(std::size_t size);

}  // namespace lccfs::crash
