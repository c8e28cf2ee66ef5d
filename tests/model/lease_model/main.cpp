// SPDX-License-Identifier: LGPL-2.1-or-later
//
// An explicit-state model of the write lease (docs/DATA.md). tests/model/run builds and calls it:
//
//   lease_model rules                            the rules that can be switched off
//   lease_model cases LIMIT [RULE]               the named cases, each up to LIMIT states; RULE is switched off
//   lease_model needed LIMIT                     each rule off alone, in its case
//   lease_model trace RULE LIMIT                 what goes wrong without it, step by step
//   lease_model sweep NUMBER SECONDS SEED LIMIT  combinations of operations, in an order that SEED gives
//
// The last line of cases, needed and sweep: "TRIED of ALL cases, STATES states, VIOLATIONS violations, CUT cut short".
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "cases.h"
#include "history.h"
#include "rules.h"
#include "search.h"

namespace lease_model {

namespace {

constexpr int most_shown = 3;

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

void show(const Case& one, const Outcome& outcome) {
  std::printf("   %s\n   %s\n", one.name.c_str(), outcome.violation.c_str());
  for (const auto& label : outcome.trace) std::printf("      %s\n", label.c_str());
}

int rule_named(const std::string& name) {
  for (int rule = 0; rule < rule_count; ++rule) {
    if (name == rule_texts[rule].name) return rule;
  }
  std::fprintf(stderr, "lease_model: no rule %s\n", name.c_str());
  std::exit(2);
}

Case case_named(const std::string& name) {
  for (auto& one : named_cases()) {
    if (one.name == name) return one;
  }
  std::fprintf(stderr, "lease_model: no case %s\n", name.c_str());
  std::exit(2);
}

int print_rules() {
  for (const auto& rule : rule_texts) std::printf("%s: %s\n", rule.name, rule.words);
  return 0;
}

void run_all(const std::vector<Case>& cases, std::size_t limit, double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  Tally tally;
  tally.all = cases.size();
  for (const auto& one : cases) {
    if (std::chrono::steady_clock::now() > until) break;
    const auto outcome = explore(one, limit, tally.violations < most_shown);
    if (!outcome.violation.empty() && tally.violations < most_shown) show(one, outcome);
    tally.add(outcome);
    forget_if_many();
  }
  tally.print();
}

int run_needed(std::size_t limit) {
  Tally tally;
  tally.all = rule_count;
  for (int rule = 0; rule < rule_count; ++rule) {
    switch_off(rule);
    const auto outcome = explore(case_named(rule_texts[rule].needed_by), limit, false);
    if (outcome.violation.empty()) std::printf("   without %s: nothing goes wrong\n", rule_texts[rule].name);
    tally.add(outcome);
    forget_if_many();
  }
  tally.print();
  return 0;
}

int run_trace(int rule, std::size_t limit) {
  switch_off(rule);
  const auto one = case_named(rule_texts[rule].needed_by);
  show(one, explore(one, limit, true));
  return 0;
}

int run_sweep(int number, double seconds, unsigned seed, std::size_t limit) {
  auto [name, cases] = sweep(number);
  std::shuffle(cases.begin(), cases.end(), std::mt19937(seed));
  std::printf("%s\n", name);
  run_all(cases, limit, seconds);
  return 0;
}

int run(const std::vector<std::string>& words) {
  constexpr double for_ever = 1e9;
  const std::string command = words.empty() ? "" : words[0];
  const auto number = [&](std::size_t i) { return std::strtoull(words.at(i).c_str(), nullptr, 10); };
  if (command == "rules") return print_rules();
  if (command == "needed" && words.size() == 2) return run_needed(number(1));
  if (command == "trace" && words.size() == 3) return run_trace(rule_named(words[1]), number(2));
  if (command == "sweep" && words.size() == 5 && number(1) >= 1 && number(1) <= sweep_count) {
    return run_sweep(static_cast<int>(number(1)), static_cast<double>(number(2)), static_cast<unsigned>(number(3)),
                     number(4));
  }
  if (command == "cases" && (words.size() == 2 || words.size() == 3)) {
    if (words.size() == 3) switch_off(rule_named(words[2]));
    run_all(named_cases(), number(1), for_ever);
    return 0;
  }
  std::fprintf(stderr,
               "usage: lease_model rules | cases LIMIT [RULE] | needed LIMIT | trace RULE LIMIT |\n"
               "                   sweep NUMBER SECONDS SEED LIMIT\n");
  return 2;
}

}  // namespace

}  // namespace lease_model

int main(int argc, char** argv) { return lease_model::run({argv + 1, argv + argc}); }
