// SPDX-License-Identifier: LGPL-2.1-or-later
#include "search.h"

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "background.h"
#include "history.h"
#include "invariants.h"

namespace names_model {

namespace {

using native_model::Digest;
using native_model::digest_of;
using native_model::DigestHash;

class Search {
 public:
  explicit Search(std::size_t most_states) : most_states_(most_states) {}

  Outcome run(bool with_trace) {
    plan.with_labels = false;
    add(first_state(), {0, 0});
    Outcome outcome;
    std::uint32_t number = 0;
    for (; !to_do_.empty(); ++number) {
      const State state = to_do_.front();
      to_do_.pop_front();
      ++outcome.states;
      outcome.violation = wrong_with(state);
      if (!outcome.violation.empty()) break;
      outcome.cut = came_from_.size() > most_states_;
      for (std::size_t i = 0; i < next_.size() && !outcome.cut; ++i) {
        add(next_[i].state, {number, static_cast<std::uint32_t>(i)});
      }
    }
    if (with_trace && !outcome.violation.empty()) outcome.trace = trace_to(number);
    return outcome;
  }

 private:
  /// A state is reached from another, by one of its successors.
  struct Origin {
    std::uint32_t from, successor;
  };

  void add(const State& state, Origin origin) {
    if (!seen_.insert(digest_of(state)).second) return;
    to_do_.push_back(state);
    came_from_.push_back(origin);
  }

  /// Leaves its successors in next_.
  const char* wrong_with(const State& state) {
    if (const char* const wrong = violation(state)) return wrong;
    next_.clear();
    successors(state, next_);
    if (is_finished(state)) {
      if (!fits_an_order(state)) return "no serial order fits the answers, what may be lost, and the tree";
      if (const char* const left = left_over(state)) return left;
    } else if (next_.empty()) {
      return "nobody can continue";
    }
    return "";
  }

  std::vector<std::string> trace_to(std::uint32_t number) {
    std::vector<std::uint32_t> path;
    for (; number != 0; number = came_from_[number].from) path.push_back(came_from_[number].successor);
    std::reverse(path.begin(), path.end());
    std::vector<std::string> labels;
    State state = first_state();
    plan.with_labels = true;
    for (const auto successor : path) {
      next_.clear();
      successors(state, next_);
      labels.push_back(next_[successor].label);
      state = next_[successor].state;
    }
    plan.with_labels = false;
    return labels;
  }

  const std::size_t most_states_;
  std::deque<State> to_do_;
  std::vector<Origin> came_from_;
  std::unordered_set<Digest, DigestHash> seen_;
  Successors next_;
};

}  // namespace

Outcome explore(const Case& one, std::size_t most_states, bool with_trace) {
  set_plan(one);
  return Search(most_states).run(with_trace);
}

}  // namespace names_model
