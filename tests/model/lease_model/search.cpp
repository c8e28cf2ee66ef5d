// SPDX-License-Identifier: LGPL-2.1-or-later
#include "search.h"

#include <algorithm>
#include <unordered_set>

#include "successors.h"

namespace lease_model {

namespace {

using native_model::Digest;
using native_model::digest_of;
using native_model::DigestHash;

/// Somebody is in the middle of something, and nobody can continue.
bool somebody_is_stuck(const State& state) {
  return std::any_of(state.thread, state.thread + state.threads, [&](const Thread& thread) {
    if (state.memory[thread.client].life != alive) return false;
    return answers_questions(thread) ? thread.at[0] != 0 : thread.phase != between;
  });
}

class Search {
 public:
  Search(const Case& one, std::size_t most_states) : case_(one), most_states_(most_states) {}

  Outcome run(bool with_trace) {
    add(first_state(case_), 0);
    Outcome outcome;
    std::size_t i = 0;
    for (; i < states_.size(); ++i) {
      outcome.violation = violation(states_[i]);
      if (!outcome.violation.empty()) break;
      const State state = states_[i];
      const auto next = successors(case_, state, false);
      if (!next.progress && somebody_is_stuck(state)) {
        outcome.violation = "nobody can continue";
        break;
      }
      for (const auto& [after, label] : next.states) add(after, i);
      if (states_.size() > most_states_) {
        outcome.cut = true;
        break;
      }
    }
    outcome.states = std::min(i + 1, states_.size());
    if (with_trace && !outcome.violation.empty()) outcome.trace = trace_to(i);
    return outcome;
  }

 private:
  void add(const State& state, std::size_t from) {
    if (!seen_.insert(digest_of(state)).second) return;
    states_.push_back(state);
    came_from_.push_back(from);
  }

  std::vector<std::string> trace_to(std::size_t i) const {
    std::vector<std::string> labels;
    for (; i != 0; i = came_from_[i]) {
      const auto digest = digest_of(states_[i]);
      for (const auto& [after, label] : successors(case_, states_[came_from_[i]], true).states) {
        if (digest_of(after) != digest) continue;
        labels.push_back(label);
        break;
      }
    }
    std::reverse(labels.begin(), labels.end());
    return labels;
  }

  const Case& case_;
  const std::size_t most_states_;
  std::vector<State> states_;
  std::vector<std::size_t> came_from_;
  std::unordered_set<Digest, DigestHash> seen_;
};

}  // namespace

Outcome explore(const Case& one, std::size_t most_states, bool with_trace) {
  return Search(one, most_states).run(with_trace);
}

}  // namespace lease_model
