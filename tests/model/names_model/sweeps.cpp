// SPDX-License-Identifier: LGPL-2.1-or-later
#include <functional>

#include "cases.h"
#include "operations.h"

namespace names_model {

namespace {

using Some = std::vector<Operation>;

const Some names_only{create_a,      create_b,      unlink_a,        rename_a_b,    rename_b_a,
                      mkdir_c,       rmdir_c,       lookup_a,        lookup_c,      fsync_p,
                      create_a_in_c, unlink_a_in_c, rename_a_b_in_c, lookup_a_in_c, fsync_c};
const Some two_places{create_a,      unlink_a,      rename_a_b,    lookup_a,      link_a_b,
                      move_a_b,      move_a_a,      create_a_in_c, unlink_a_in_c, rmdir_c,
                      lookup_a_in_c, lookup_b_in_c, link_a_in_c_b, move_a_in_c_a};
const Some attributes{create_a, create_b, stat_a, chmod_a, stat_b, chmod_b, lookup_a, fsync_p};
const Some one_client{create_a, unlink_a, rename_a_b, lookup_a,      lookup_b,
                      move_a_b, link_a_b, rmdir_c,    lookup_b_in_c, lookup_c};
const Some with_open{create_a, open_a, close_it, unlink_a, rename_b_a, create_b};
constexpr auto all_there = static_cast<Beginning>(with_file_in_child | with_file);

std::vector<Some> programs(const Some& operations, int length) {
  std::vector<Some> all{{}};
  for (int i = 0; i < length; ++i) {
    std::vector<Some> longer;
    for (const auto& program : all) {
      for (const auto& operation : operations) {
        longer.push_back(program);
        longer.back().push_back(operation);
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// Two clients, their programs of so many of these operations, with a few variants of each.
struct Space {
  const char* name;
  const Some* operations;
  int first, second, third;  // lengths
  std::function<void(Case&)> vary;
  bool other_may_take = true;
};

void add(std::vector<Case>& all, const Space& space, Beginning beginning, const Some& first, const Some& second,
         const Some& third) {
  Case one{.name = {}, .beginning = beginning, .programs = {{0, first}, {1, second}}};
  if (!third.empty()) one.programs.push_back({2, third});
  for (const auto other : {never, always}) {
    if (other == always && !space.other_may_take) continue;
    one.takes[1] = other;
    Case varied = one;
    space.vary(varied);
    varied.name = "sweep";
    all.push_back(std::move(varied));
  }
}

const Space spaces[sweep_count] = {
    {"two against one", &names_only, 2, 1, 0, [](Case&) {}},
    {"two against one, leases taken or not", &names_only, 2, 1, 0, [](Case& one) { one.takes[0] = perhaps; }},
    {"two against one, the holder crashes", &names_only, 2, 1, 0, [](Case& one) { one.crashes = 1; }},
    {"two against one, the other crashes", &names_only, 2, 1, 0,
     [](Case& one) {
       one.crashes = 1;
       one.may_crash = 2;
     }},
    {"two against one, a step run twice, a crash", &names_only, 2, 1, 0,
     [](Case& one) { one.repeats = one.crashes = 1; }},
    {"two against one, two turns of a collector", &names_only, 2, 1, 0, [](Case& one) { one.collections = 2; }},
    {"two against one, a collector, a crash", &names_only, 2, 1, 0,
     [](Case& one) { one.collections = one.crashes = 1; }},
    {"two against one, an eviction", &names_only, 2, 1, 0, [](Case& one) { one.evictions = 1; }},
    {"three against one, the holder crashes", &names_only, 3, 1, 0, [](Case& one) { one.crashes = 1; }, false},
    {"three clients, a crash", &names_only, 1, 1, 1,
     [](Case& one) {
       one.crashes = 1;
       one.takes[2] = one.takes[1];
     }},
    {"attributes", &attributes, 3, 2, 0, [](Case&) {}},
    {"links and moves, a crash", &two_places, 2, 1, 0, [](Case& one) { one.crashes = 1; }},
    {"links and moves, a collector", &two_places, 1, 1, 1, [](Case& one) { one.collections = 1; }},
    {"no log, with a kernel", &two_places, 2, 2, 0,
     [](Case& one) {
       one.has_log = false;
       one.has_kernel = true;
     }},
    {"no log, with a kernel, two programs of one client", &one_client, 2, 1, 1,
     [](Case& one) {
       one.has_log = false;
       one.has_kernel = one.takes[1] == never;
       one.learns_one_by_one = !one.has_kernel;
       one.programs[1].client = 0;
       one.programs[2].client = 1;
     }},
    {"no log, two programs of one client, a step run twice", &one_client, 1, 2, 1,
     [](Case& one) {
       one.has_log = false;
       one.learns_one_by_one = one.takes[1] == never;
       one.takes[0] = perhaps;
       one.repeats = 1;
       one.programs[1].client = 0;
       one.programs[2].client = 1;
     }},
    {"no log, two programs of one client, an eviction", &one_client, 1, 2, 1,
     [](Case& one) {
       one.has_log = false;
       one.learns_one_by_one = one.takes[1] == never;
       one.takes[0] = perhaps;
       one.evictions = 1;
       one.programs[1].client = 0;
       one.programs[2].client = 1;
     }},
    {"no log, an eviction", &two_places, 2, 1, 0,
     [](Case& one) {
       one.has_log = false;
       one.evictions = 1;
     }},
    {"open files, a collector, a crash", &with_open, 3, 1, 0, [](Case& one) { one.collections = one.crashes = 1; }},
};

}  // namespace

Sweep sweep(int number) {
  const auto& space = spaces[number - 1];
  Sweep all{space.name, {}};
  for (const auto beginning : {all_there, with_child, empty}) {
    for (const auto& first : programs(*space.operations, space.first)) {
      for (const auto& second : programs(*space.operations, space.second)) {
        for (const auto& third : programs(*space.operations, space.third))
          add(all.cases, space, beginning, first, second, third);
      }
    }
  }
  return all;
}

}  // namespace names_model
