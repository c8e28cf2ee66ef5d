// SPDX-License-Identifier: LGPL-2.1-or-later
#include "crash/interleaver.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace lccfs::crash {

namespace {
constexpr std::chrono::milliseconds waits_for_answer_after{1};
constexpr std::chrono::seconds hangs_after{120};
constexpr unsigned most_lanes = 4;
constexpr std::size_t most_steps = 20'000;  // more than any run that ends
constexpr unsigned most_strays = 100, most_strays_in_a_row = 3;

/// One thread runs at a time: to hand over on one processor is three times as quick as to wake another one.
void stay_on_one_processor() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  pthread_setaffinity_np(pthread_self(), sizeof here, &here);
}

constexpr std::pair<char, Fault::Kind> suffixes[] = {
    {'-', Fault::Kind::not_applied_and_crash}, {'+', Fault::Kind::applied_and_crash},
    {'~', Fault::Kind::crash_and_land_later},  {'2', Fault::Kind::applied_twice},
    {'&', Fault::Kind::run_again_later},       {'^', Fault::Kind::hold},
    {'?', Fault::Kind::lost_answer_applied},   {'!', Fault::Kind::lost_answer_not_applied},
};
constexpr char let_go_suffix = '=';
using Event = Decision::Event;
constexpr std::pair<char, Event> event_suffixes[] = {
    {'*', Event::object_goes},
    {'/', Event::object_returns},
    {'%', Event::watches_lapse},
    {':', Event::loss_is_heard},
};

Decision first_of(const std::vector<Interleaver::Waiting>& waiting) {
  const auto& first = waiting.front();
  return {first.lane, Fault::Kind::none, first.lets_go, first.event};
}

}  // namespace

std::string text_of(const std::vector<Decision>& schedule) {
  std::string text;
  for (const Decision& decision : schedule) {
    text += static_cast<char>('A' + decision.lane);
    if (decision.lets_go) text += let_go_suffix;
    for (const auto& [suffix, kind] : suffixes) {
      if (kind == decision.fault) text += suffix;
    }
    for (const auto& [suffix, event] : event_suffixes) {
      if (event == decision.event) text += suffix;
    }
  }
  return text;
}

std::vector<Decision> parse_schedule(const std::string& text) {
  std::vector<Decision> schedule;
  for (const char letter : text) {
    if (letter >= 'A' && letter < static_cast<char>('A' + most_lanes)) {
      schedule.push_back({static_cast<unsigned>(letter - 'A')});
    }
    if (schedule.empty()) continue;
    if (letter == let_go_suffix) schedule.back().lets_go = true;
    for (const auto& [suffix, kind] : suffixes) {
      if (suffix == letter) schedule.back().fault = kind;
    }
    for (const auto& [suffix, event] : event_suffixes) {
      if (suffix == letter) schedule.back().event = event;
    }
  }
  return schedule;
}

Interleaver::Choose follow(std::vector<Decision> schedule) {
  return [schedule = std::move(schedule), at = std::size_t{0}](const auto& waiting) mutable {
    if (at == schedule.size()) return first_of(waiting);
    const Decision decision = schedule[at++];
    if (decision.event != Event::none) return decision;
    const bool is_there = std::ranges::any_of(waiting, [&](const auto& candidate) {
      return candidate.lane == decision.lane && candidate.lets_go == decision.lets_go;
    });
    return is_there ? decision : first_of(waiting);
  };
}

/// Any thread of a client may come to a step: its own, and those that work for it or answer questions. They continue in
/// the order in which they came.
class Interleaver::Crew {
 public:
  explicit Crew(std::chrono::milliseconds moves_within) : moves_within_(moves_within) {
    stay_on_one_processor();
    for (auto& member : members_) {
      member.thread = std::jthread([this, &member](const std::stop_token& stop) { work(member, stop); });
    }
  }
  ~Crew() {
    for (auto& member : members_) member.thread.request_stop();
  }

  void start(unsigned lane, Lane with) {
    auto& member = members_[lane];
    with.client->set_hook([this, &member](const StepInfo& info) { return wait_for_leave(member, info); });
    std::unique_lock lock(mutex_);
    ends_ = false;
    member.act = std::move(with.act);
    member.client = with.client;
    member.is_at_work = true;
    member.changed.notify_all();
    wait_for_a_move(lock, moves_within_);
  }
  void resume(const Decision& decision) {
    auto& member = members_[decision.lane];
    if (decision.lets_go) {
      auto answer = member.client->run_held();
      std::unique_lock lock(mutex_);
      // Apart: what hears the answer may come to a step of its own, and waits there for its turn.
      answers_.emplace_back([answer = std::move(answer)]() mutable { answer(); });
      wait_for_a_move(lock, moves_within_);
      return;
    }
    const bool to_be_held = decision.fault == Fault::Kind::run_again_later || decision.fault == Fault::Kind::hold;
    {
      std::unique_lock lock(mutex_);
      const auto place = next_of(member);
      const auto first = *place;
      member.line.erase(place);
      first->fault = decision.fault;
      first->may_go = true;
      member.changed.notify_all();
      if (!to_be_held) {
        wait_for_a_move(lock, moves_within_);
        return;
      }
    }
    member.client->wait_for_held(1);
    std::unique_lock lock(mutex_);
    wait_for_a_move(lock, waits_for_answer_after);
  }
  /// What can be done next; waits until there is something, or all are done. nullopt: they wait for each other.
  std::optional<std::vector<Waiting>> waiting(unsigned lanes) {
    for (;;) {
      std::vector<Waiting> found;
      const auto before = moves_so_far();  // a lane that is done after it was looked at has moved
      const bool all_done = are_all_done(lanes);
      for (unsigned lane = 0; lane < lanes; ++lane) {
        auto& member = members_[lane];
        const bool holds = !member.client->held().empty();
        const std::lock_guard lock(mutex_);
        if (const auto next = next_of(member); next != member.line.end()) found.push_back({lane, (*next)->mutates});
        // Also of a client that is done: another may wait for the lease that it is releasing.
        if (!all_done && holds) found.push_back({lane, false, true});
      }
      if (!found.empty() || all_done) return found;
      std::unique_lock lock(mutex_);
      if (away_ && wait_for_a_move(lock, waits_for_answer_after)) continue;
      if (away_) return {{{.lane = away_->first, .event = Event::object_returns}}};
      const bool none_came = std::ranges::all_of(members_, [](const Member& member) { return member.line.empty(); });
      if (none_came && !moved_.wait_for(lock, hangs_after, [&] { return moves_ != before; })) {
        return std::nullopt;
      }
    }
  }
  /// The object of the lane's next step is away.
  void send_away(unsigned lane) {
    const std::lock_guard lock(mutex_);
    auto& member = members_[lane];
    if (const auto next = next_of(member); next != member.line.end()) away_ = {lane, (*next)->object};
  }
  void bring_back() {
    const std::lock_guard lock(mutex_);
    away_.reset();
  }
  /// Something has been told to a client, whose threads may come to steps now.
  void look_round() {
    std::unique_lock lock(mutex_);
    wait_for_a_move(lock, waits_for_answer_after);
  }
  /// To be called once all are done: nothing works for the clients any more after it.
  void hear_out() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;  // what comes to a step of its own by an answer that nobody waits for continues
      for (auto& member : members_) {
        for (const auto& step : member.line) step->may_go = true;
        member.line.clear();
        member.changed.notify_all();
      }
    }
    answers_.clear();
  }
  /// Whoever comes to a step from now on continues at once.
  void let_go(const Lane& lane) {
    lane.client->set_hook(nullptr);
    lane.client->release_all();  // steps after an answer: nobody waited for them
  }

 private:
  struct Step {
    std::string object;
    bool mutates = false;
    bool may_go = false;
    Fault::Kind fault = Fault::Kind::none;
  };
  struct Member {
    ScriptedClient* client = nullptr;
    std::deque<std::shared_ptr<Step>> line;
    bool is_at_work = false;
    std::function<void()> act;
    std::condition_variable_any changed;  // it is to begin, or one of its steps may go
    std::jthread thread;
  };

  std::uint64_t moves_so_far() {
    const std::lock_guard lock(mutex_);
    return moves_;
  }

  bool are_all_done(unsigned lanes) {
    const std::lock_guard lock(mutex_);
    return std::ranges::none_of(members_.begin(), members_.begin() + lanes, &Member::is_at_work);
  }

  /// The first that does not wait for what is away.
  std::deque<std::shared_ptr<Step>>::iterator next_of(Member& member) {
    return std::ranges::find_if(member.line, [&](const auto& step) { return !away_ || step->object != away_->second; });
  }

  /// Until a thread of any client has come to a step, or a client is done; false: none has.
  bool wait_for_a_move(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds limit) {
    const auto before = moves_;
    return moved_.wait_for(lock, limit, [&] { return moves_ != before; });
  }

  Fault wait_for_leave(Member& member, const StepInfo& info) {
    const auto step = std::make_shared<Step>();
    step->object = info.object;
    step->mutates = info.mutates() && info.kind != StepKind::fence;
    std::unique_lock lock(mutex_);
    if (ends_) return {};
    member.line.push_back(step);
    ++moves_;
    moved_.notify_one();
    member.changed.wait(lock, [&] { return step->may_go; });
    return {step->fault};
  }

  void work(Member& member, const std::stop_token& stop) {
    for (;;) {
      std::unique_lock lock(mutex_);
      if (!member.changed.wait(lock, stop, [&] { return member.is_at_work; })) return;
      lock.unlock();
      member.act();
      lock.lock();
      member.is_at_work = false;
      ++moves_;
      moved_.notify_one();
    }
  }

  const std::chrono::milliseconds moves_within_;
  std::mutex mutex_;  // guards all below
  std::condition_variable moved_;
  std::uint64_t moves_ = 0;
  std::optional<std::pair<unsigned, std::string>> away_;  // an object, and whose step sent it away
  std::array<Member, most_lanes> members_;
  bool ends_ = false;
  std::vector<std::jthread> answers_;  // the driver's alone: what was held is let go of on threads like a store's
};

Interleaver::Interleaver(std::chrono::milliseconds moves_within) : crew_(std::make_unique<Crew>(moves_within)) {}
Interleaver::~Interleaver() = default;

void Interleaver::run(std::vector<Lane> lanes, const Choose& choose) {
  schedule_.clear();
  const auto count = static_cast<unsigned>(lanes.size());
  for (unsigned lane = 0; lane < count; ++lane) crew_->start(lane, lanes[lane]);
  for (;;) {
    const auto waiting = crew_->waiting(count);
    if (!waiting) give_up("the clients wait for each other for ever");
    if (waiting->empty()) break;
    if (schedule_.size() == most_steps) give_up("the clients do not come to an end");
    try {
      schedule_.push_back(choose(*waiting));
    } catch (const std::exception& error) {
      give_up(error.what());
    }
    if (schedule_.back().event != Event::none) {
      happens(schedule_.back(), lanes);
    } else {
      crew_->resume(schedule_.back());
    }
  }
  for (const Lane& lane : lanes) crew_->let_go(lane);
  crew_->bring_back();
  crew_->hear_out();
  if (tell_loss_) std::exchange(tell_loss_, nullptr)();
}

void Interleaver::give_up(const char* why) const {
  std::fflush(stdout);
  std::fprintf(stderr, "LCCFS_REPLAY='%s'\n%s\n", replay_ ? replay_().c_str() : text_of(schedule_).c_str(), why);
  std::_Exit(EXIT_FAILURE);
}

void Interleaver::happens(const Decision& decision, const std::vector<Lane>& lanes) {
  if (decision.event == Event::object_goes) crew_->send_away(decision.lane);
  if (decision.event == Event::object_returns) crew_->bring_back();
  if (decision.event == Event::watches_lapse) {
    tell_loss_ = lanes.at(decision.lane).client->lapse_watches([](const std::string&) { return true; });
  }
  if (decision.event != Event::loss_is_heard || !tell_loss_) return;
  std::exchange(tell_loss_, nullptr)();
  crew_->look_round();
}

unsigned Enumeration::choose(unsigned options) {
  if (has_strayed_) return 0;
  if (asked_ == questions_.size()) questions_.push_back({0, options});
  if (questions_[asked_].options != options) {
    if (stray()) questions_.push_back({0, options});
    return 0;
  }
  return questions_[asked_++].answer;
}

/// true: all do. It was the first that had strayed, and what is below is forgotten, to be tried anew.
bool Enumeration::stray() {
  has_strayed_ = true;
  if (++strays_ > most_strays) throw std::runtime_error("runs ask something else than those before them");
  if (++strays_in_a_row_ <= most_strays_in_a_row) return false;
  strays_in_a_row_ = 0;
  questions_.resize(asked_);
  return true;
}

bool Enumeration::next() {
  if (!has_strayed_ && asked_ < questions_.size()) stray();  // the run has ended before its last question
  asked_ = 0;
  if (std::exchange(has_strayed_, false)) return true;
  strays_in_a_row_ = 0;
  while (!questions_.empty() && questions_.back().answer + 1 == questions_.back().options) questions_.pop_back();
  if (questions_.empty()) return false;
  ++questions_.back().answer;
  return true;
}

}  // namespace lccfs::crash
