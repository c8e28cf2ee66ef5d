// SPDX-License-Identifier: LGPL-2.1-or-later
// Several clients at work, one step of one of them at a time: before each step its thread waits until it is chosen.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "scripted/scripted_store.h"

namespace lccfs::crash {

/// Who does its next step, and how it goes.
struct Decision {
  /// In place of a step, something happens to the store, once in a run: what the lane's next step needs is away, for
  /// all of them, until it is back; the lane's client loses its watches, and hears of it later.
  enum class Event { none, object_goes, object_returns, watches_lapse, loss_is_heard };
  unsigned lane = 0;
  Fault::Kind fault = Fault::Kind::none;
  bool lets_go = false;  ///< not its next step, but the one that is held: run_again_later runs again, hold is applied
  Event event = Event::none;
};
/// As one word: the lane's letter for each step, and after it what becomes of it: - not applied and dead, + applied
/// and dead, ~ dead and landing in the end, 2 applied twice, & applied and = run again, ^ in flight and = applied
/// (others of its client may overtake it), ? applied and the answer lost, ! not applied and the answer lost. No step: *
/// its object goes away and / is back, % its watches lapse and : it hears so.
std::string text_of(const std::vector<Decision>& schedule);
/// The other way round. What is no schedule is left out.
std::vector<Decision> parse_schedule(const std::string& text);

/// Threads that are kept from case to case: a lane's thread does one client's work.
class Interleaver {
 public:
  struct Waiting {
    unsigned lane = 0;
    bool mutates = false;  ///< its next step changes an object
    bool lets_go = false;  ///< a step of its is held
    /// All wait for an object that is away: only this can be done.
    Decision::Event event = Decision::Event::none;
  };
  using Choose = std::function<Decision(const std::vector<Waiting>&)>;
  struct Lane {
    ScriptedClient* client = nullptr;
    std::function<void()> act;
  };

  /// A lane that has not come to its next step after so long waits for another one's. Too short is no harm, but where
  /// orders are enumerated: there, no client may wait for another, and a busy machine must not make it look so.
  explicit Interleaver(std::chrono::milliseconds moves_within = std::chrono::milliseconds(20));
  ~Interleaver();

  /// Runs all acts to their end. A lane that waits for another one's step is left alone until it moves again. Steps of
  /// other threads of a client (those that write for it, or answer questions) are its lane's, too.
  void run(std::vector<Lane> lanes, const Choose& choose);
  /// What to replay, printed where the clients come to no end: their threads work on what the caller would destroy, so
  /// the program ends there.
  void replay_by(std::function<std::string()> line) { replay_ = std::move(line); }
  /// Of the last run.
  const std::vector<Decision>& schedule() const { return schedule_; }

 private:
  class Crew;
  [[noreturn]] void give_up(const char* why) const;
  void happens(const Decision& decision, const std::vector<Lane>& lanes);
  const std::unique_ptr<Crew> crew_;
  std::vector<Decision> schedule_;
  std::function<std::string()> replay_;
  std::function<void()> tell_loss_;  // what a client has not heard yet
};

/// As that schedule has it, and then one lane after the other.
Interleaver::Choose follow(std::vector<Decision> schedule);

/// All ways to answer the questions of a run, depth first. After the same answers a run asks the same; one that does not
/// (on a busy machine a thread may come to its step after the others have gone on) is done again.
class Enumeration {
 public:
  /// For the run under way: one of 0 to options - 1. Throws if runs stray for ever.
  unsigned choose(unsigned options);
  /// Before the next run; false: there is none. Throws as choose() does.
  bool next();

 private:
  struct Question {
    unsigned answer = 0, options = 0;
  };
  bool stray();

  std::vector<Question> questions_;
  std::size_t asked_ = 0;
  bool has_strayed_ = false;  // the run under way
  unsigned strays_ = 0, strays_in_a_row_ = 0;
};

}  // namespace lccfs::crash
