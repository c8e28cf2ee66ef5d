// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cases.h"

namespace lease_model {

namespace {

using Programs = std::vector<std::pair<int, std::vector<Operation>>>;

const std::vector<Operation> changes{
    {op_write, 0, 1, 2},    {op_write, 1, 3, 3},    {op_write, 3, 4, 4},    {op_write, 2, 4, 5},
    {op_truncate, 0, 0, 0}, {op_truncate, 1, 0, 0}, {op_truncate, 3, 0, 0}, {op_truncate, 4, 0, 0},
    {op_punch, 0, 2, 0},    {op_punch, 1, 4, 0},    {op_append, 0, 0, 6},
};
constexpr Operation read_first{op_read, 1, 0, 0};
constexpr Operation read_last{op_read, 3, 0, 0};
constexpr Operation stat{op_stat, 0, 0, 0};
constexpr Operation fsync{op_fsync, 0, 0, 0};
constexpr Operation close{op_close, 0, 0, 0};
constexpr Operation close_keep{op_close_keep, 0, 0, 0};
constexpr Operation collect{op_collect, 0, 0, 0};
constexpr Operation grow{op_truncate, 4, 0, 0};
constexpr u8 only_the_first = 1;

/// What two clients do, their first changes given; several variants.
std::vector<Case> variants(int number, const Operation& x, const Operation& y) {
  const auto one = [](Programs programs) { return Case{.name = {}, .programs = std::move(programs), .crashes = 1}; };
  std::vector<Case> cases;
  switch (number) {
    case 1:
      cases.push_back(one({{0, {x}}, {1, {y}}}));
      cases.back().repeats = 1;
      break;
    case 2:
      for (const auto& z : {read_last, read_first, stat, fsync}) cases.push_back(one({{0, {x, z}}, {1, {y, stat}}}));
      break;
    case 3:
      for (const auto& z : changes) cases.push_back(one({{0, {x, z}}, {1, {y, read_last}}}));
      break;
    case 4:
      for (const auto& z : changes) {
        cases.push_back(one({{0, {x}}, {0, {z}}, {1, {y}}}));
        cases.back().failures = 1;
      }
      break;
    case 5:
      for (const auto& z : changes) {
        cases.push_back(one({{0, {x}}, {1, {z, close}}, {2, {y}}}));
        cases.back().may_crash = only_the_first;
      }
      break;
    case 6:
      cases.push_back(one({{0, {x, close}}, {2, {collect}}, {1, {y, close_keep}}}));
      break;
    case 7:
      cases.push_back(one({{0, {x}}, {1, {y, read_last, stat}}}));
      cases.back().crashes = 0;
      cases.back().evictions = 1;
      break;
    case 8:
      cases.push_back(one({{0, {x}}, {1, {y}}, {2, {read_last, stat}}}));
      break;
    default:
      cases.push_back(one({{0, {x}}, {1, {y}}, {2, {grow, read_last}}}));
      cases.back().crashes = 2;
      break;
  }
  return cases;
}

/// Where C2 takes part it cannot be the dead client that has left a truncate cut short.
bool makes_sense(int number, Beginning beginning, u8 holder) {
  const bool needs_third = number == 5 || number == 6 || number == 8 || number == 9;
  return beginning != cut_short || (holder == 0 && !needs_third);
}

constexpr const char* names[sweep_count] = {"pairs, a crash, a step run twice",
                                            "pairs, then a read, stat or fsync, a crash",
                                            "two operations against one, a crash",
                                            "two at once in one client, no space, a crash",
                                            "three clients in a row, the first dies",
                                            "unlinked while open, a collector, a crash",
                                            "a live client is evicted",
                                            "two and a reader, a crash",
                                            "two crashes"};

}  // namespace

Sweep sweep(int number) {
  Sweep all{names[number - 1], {}};
  const bool given_holder = number == 5 || number == 9;
  for (const auto beginning : {empty_file, full_file, cut_short, half_mapped, two_blocks, one_block}) {
    for (const u8 holder : {u8{0}, u8{1}}) {
      if (!makes_sense(number, beginning, holder)) continue;
      if (given_holder && holder == 0) continue;
      for (const auto& x : changes) {
        for (auto y : changes) {
          if (y.kind == op_write || y.kind == op_append) y.value = 7;
          for (auto& one : variants(number, x, y)) {
            one.beginning = beginning;
            one.holder = holder;
            for (const auto& [client, operations] : one.programs) {
              one.name += "C" + std::to_string(client) + ":";
              for (const auto& operation : operations) one.name += " " + describe(operation);
              one.name += "; ";
            }
            all.cases.push_back(std::move(one));
          }
        }
      }
    }
  }
  return all;
}

}  // namespace lease_model
