// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the models in C++ have in common: rules that can be switched off, and the command line, which
// tests/model/native.py calls.
//
//   MODEL rules                            the rules that can be switched off
//   MODEL cases LIMIT [RULE]               the named cases, each up to LIMIT states; RULE is switched off
//   MODEL needed LIMIT                     each rule off alone, in its case
//   MODEL trace RULE LIMIT                 what goes wrong without it, step by step
//   MODEL sweep NUMBER SECONDS SEED LIMIT  combinations of operations, in an order that SEED gives
//
// The last line of cases, needed and sweep: "TRIED of ALL cases, STATES states, VIOLATIONS violations, CUT cut short".
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace native_model {

/// Of the search through one case.
struct Outcome {
  std::size_t states = 0;
  bool cut = false;       // the limit of states was reached
  std::string violation;  // empty: none was found
  std::vector<std::string> trace;
};

/// 128 bits: two states are taken for one with a chance of about one in 10^25 for each pair.
struct Digest {
  std::uint64_t first, second;
  bool operator==(const Digest&) const = default;
};

struct DigestHash {
  std::size_t operator()(const Digest& digest) const { return digest.first; }
};

/// `State` is plain memory without padding that differs.
template <class State>
Digest digest_of(const State& state) {
  std::uint64_t words[(sizeof(State) + 7) / 8] = {};
  std::memcpy(words, &state, sizeof(State));
  Digest digest{0x9E3779B97F4A7C15ULL, 0xC2B2AE3D27D4EB4FULL};
  for (const auto word : words) {
    digest.first = (digest.first ^ word) * 0xff51afd7ed558ccdULL;
    digest.first ^= digest.first >> 32;
    digest.second = (digest.second + word) * 0xc4ceb9fe1a85ec53ULL;
    digest.second ^= digest.second >> 29;
  }
  return digest;
}

struct RuleText {
  const char* name;
  const char* needed_by;
  const char* words;
};

// For a model's list of its rules, X(name, needed_by, words): the names of an enum, and the texts.
#define NATIVE_MODEL_NAME(name, needed_by, words) name,
#define NATIVE_MODEL_TEXT(name, needed_by, words) {#name, needed_by, words},

inline int rule_off = -1;  // none
inline void switch_off(int rule) { rule_off = rule; }
inline bool is_on(int rule) { return rule != rule_off; }

struct Tally {
  std::size_t tried = 0, all = 0, states = 0, violations = 0, cut = 0;

  void add(const Outcome& outcome) {
    ++tried;
    states += outcome.states;
    if (!outcome.violation.empty()) ++violations;
    if (outcome.cut) ++cut;
  }
  void print() const {
    std::printf("%zu of %zu cases, %zu states, %zu violations, %zu cut short\n", tried, all, states, violations, cut);
  }
};

/// `Model` has the members that are used here: its name, rules and cases, the search, and what a case is called.
template <class Model>
class Program {
 public:
  static int run(const std::vector<std::string>& words) {
    constexpr double for_ever = 1e9;
    const std::string command = words.empty() ? "" : words[0];
    const auto number = [&](std::size_t i) { return std::strtoull(words.at(i).c_str(), nullptr, 10); };
    if (command == "rules") return print_rules();
    if (command == "needed" && words.size() == 2) return run_needed(number(1));
    if (command == "trace" && words.size() == 3) return run_trace(rule_named(words[1]), number(2));
    if (command == "sweep" && words.size() == 5 && number(1) >= 1 && number(1) <= Model::sweep_count) {
      return run_sweep(static_cast<int>(number(1)), static_cast<double>(number(2)), static_cast<unsigned>(number(3)),
                       number(4));
    }
    if (command == "cases" && (words.size() == 2 || words.size() == 3)) {
      if (words.size() == 3) switch_off(rule_named(words[2]));
      run_all(Model::named_cases(), number(1), for_ever);
      return 0;
    }
    std::fprintf(stderr,
                 "usage: %s rules | cases LIMIT [RULE] | needed LIMIT | trace RULE LIMIT |\n"
                 "                   sweep NUMBER SECONDS SEED LIMIT\n",
                 Model::name);
    return 2;
  }

 private:
  using Case = typename Model::Case;
  static constexpr int most_shown = 3;

  static void show(const Case& one, const Outcome& outcome) {
    std::printf("   %s\n   %s\n", Model::title(one).c_str(), outcome.violation.c_str());
    for (const auto& label : outcome.trace) std::printf("      %s\n", label.c_str());
  }

  static int rule_named(const std::string& name) {
    int rule = 0;
    for (const auto& text : Model::rules) {
      if (name == text.name) return rule;
      ++rule;
    }
    std::fprintf(stderr, "%s: no rule %s\n", Model::name, name.c_str());
    std::exit(2);
  }

  static Case case_of(int rule) {
    const std::string name = Model::rules[rule].needed_by;
    for (auto& one : Model::named_cases()) {
      if (one.name == name) return one;
    }
    std::fprintf(stderr, "%s: no case %s\n", Model::name, name.c_str());
    std::exit(2);
  }

  static int print_rules() {
    for (const auto& rule : Model::rules) std::printf("%s: %s\n", rule.name, rule.words);
    return 0;
  }

  static void run_all(const std::vector<Case>& cases, std::size_t limit, double seconds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    Tally tally;
    tally.all = cases.size();
    for (const auto& one : cases) {
      if (std::chrono::steady_clock::now() > until) break;
      const auto outcome = Model::explore(one, limit, tally.violations < most_shown);
      if (!outcome.violation.empty() && tally.violations < most_shown) show(one, outcome);
      tally.add(outcome);
      Model::after_a_case();
    }
    tally.print();
  }

  static int run_needed(std::size_t limit) {
    Tally tally;
    tally.all = std::size(Model::rules);
    for (int rule = 0; rule < static_cast<int>(tally.all); ++rule) {
      switch_off(rule);
      const auto outcome = Model::explore(case_of(rule), limit, false);
      if (outcome.violation.empty()) std::printf("   without %s: nothing goes wrong\n", Model::rules[rule].name);
      tally.add(outcome);
      Model::after_a_case();
    }
    tally.print();
    return 0;
  }

  static int run_trace(int rule, std::size_t limit) {
    switch_off(rule);
    const auto one = case_of(rule);
    show(one, Model::explore(one, limit, true));
    return 0;
  }

  static int run_sweep(int number, double seconds, unsigned seed, std::size_t limit) {
    auto [name, cases] = Model::sweep(number);
    std::shuffle(cases.begin(), cases.end(), std::mt19937(seed));
    std::printf("%s\n", name);
    run_all(cases, limit, seconds);
    return 0;
  }
};

}  // namespace native_model
