// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/sampling.h"

#include <algorithm>
#include <cstdlib>

namespace lccfs::crash {

namespace {

constexpr unsigned most_steps_before_fault = 8, most_steps_before_event = 24, most_steps_of_event = 16;
constexpr unsigned runs_for_an_event = 4;  // there is one in one run of so many
constexpr std::pair<Decision::Event, Decision::Event> events[] = {
    {Decision::Event::object_goes, Decision::Event::object_returns},
    {Decision::Event::watches_lapse, Decision::Event::loss_is_heard},
};
constexpr Fault::Kind kinds[] = {
    Fault::Kind::not_applied_and_crash, Fault::Kind::applied_and_crash,       Fault::Kind::crash_and_land_later,
    Fault::Kind::applied_twice,         Fault::Kind::run_again_later,         Fault::Kind::hold,
    Fault::Kind::lost_answer_applied,   Fault::Kind::lost_answer_not_applied,
};

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::uint64_t seed() {
  static const std::uint64_t number = number_in("LCCFS_CRASH_SEED", 0);
  return number;
}

}  // namespace

Sampler::Sampler(std::uint64_t seed, unsigned faulty_lanes)
    : random_(seed),
      faulty_lane_(draw(faulty_lanes)),
      steps_before_fault_(draw(most_steps_before_fault)),
      event_(draw(runs_for_an_event * std::size(events))),
      steps_before_event_(draw(most_steps_before_event)),
      steps_of_event_(draw(most_steps_of_event)) {}

Decision Sampler::operator()(const std::vector<Interleaver::Waiting>& waiting) {
  const auto& chosen = waiting[draw(static_cast<unsigned>(waiting.size()))];
  if (chosen.event != Decision::Event::none) {
    end_of_event_.reset();
    return {chosen.lane, Fault::Kind::none, false, chosen.event};
  }
  if (end_of_event_ && steps_of_event_-- == 0) {
    const auto end = *end_of_event_;
    end_of_event_.reset();
    return end;
  }
  if (event_ < std::size(events) && steps_before_event_-- == 0) {
    const auto& [begins, ends] = events[event_];
    end_of_event_ = {chosen.lane, Fault::Kind::none, false, ends};
    return {chosen.lane, Fault::Kind::none, false, begins};
  }
  if (chosen.lets_go) return {chosen.lane, Fault::Kind::none, true};
  if (chosen.lane != faulty_lane_ || !chosen.mutates || steps_before_fault_-- != 0) return {chosen.lane};
  return {chosen.lane, kinds[draw(std::size(kinds))]};
}

std::string line_of(const std::string& where, const Play& play, const std::vector<Decision>& schedule) {
  return where + "; " + text_of(play) + "; " + text_of(schedule);
}

std::optional<std::string> line_to_replay() {
  const char* line = std::getenv("LCCFS_REPLAY");
  return line == nullptr ? std::nullopt : std::optional<std::string>(line);
}

std::optional<std::vector<Decision>> schedule_in(const std::string& line, const std::string& where, const Play& play) {
  const auto before = line_of(where, play, {});
  if (!line.starts_with(before)) return std::nullopt;
  return parse_schedule(line.substr(before.size()));
}

Rounds::Rounds() : end_(std::chrono::steady_clock::now() + std::chrono::seconds(number_in("LCCFS_CRASH_SECONDS", 0))) {}

std::optional<unsigned> Rounds::next() {
  if (begun_ > 0 && std::chrono::steady_clock::now() >= end_) return std::nullopt;
  return begun_++;
}

bool is_wanted(const std::string& line) {
  const char* part = std::getenv("LCCFS_CRASH_ONLY");
  return part == nullptr || line.find(part) != std::string::npos;
}

std::size_t stride() { return std::max<std::uint64_t>(1, number_in("LCCFS_CRASH_STRIDE", 1)); }

bool is_drawn(std::size_t number) {
  static const std::size_t one_of = stride();
  if (one_of == 1) return true;
  std::mt19937_64 random((seed() << 32) ^ (number / one_of));
  return number % one_of == random() % one_of;
}

std::size_t one_drawn_of(std::size_t size) { return std::mt19937_64(seed())() % size; }

std::vector<std::size_t> drawn_of(std::size_t size) {
  std::vector<std::size_t> drawn;
  for (std::size_t i = 0; i < size; ++i) {
    if (is_drawn(i)) drawn.push_back(i);
  }
  if (drawn.empty()) drawn.push_back(one_drawn_of(size));
  return drawn;
}

}  // namespace lccfs::crash
