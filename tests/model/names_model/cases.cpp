// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cases.h"

#include "operations.h"

namespace names_model {

namespace {

constexpr auto child_and_file = static_cast<Beginning>(with_child | with_file);
constexpr auto all_there = static_cast<Beginning>(with_file_in_child | with_file);
constexpr u8 first_client = 1, second_client = 2, any_client = 3;

using Some = std::vector<Operation>;

/// Two clients; the first takes leases.
Case two(const char* name, Beginning beginning, Some first, Some second) {
  return {.name = name, .beginning = beginning, .programs = {{0, std::move(first)}, {1, std::move(second)}}};
}
Case three(const char* name, Beginning beginning, Some first, Some second, Some third) {
  Case one = two(name, beginning, std::move(first), std::move(second));
  one.programs.push_back({2, std::move(third)});
  return one;
}
Case with_leases(Case one, Takes first, Takes second = never, Takes third = never) {
  one.takes[0] = first;
  one.takes[1] = second;
  one.takes[2] = third;
  return one;
}
Case both_take(Case one) { return with_leases(std::move(one), always, always); }
Case dies(Case one, u8 clients = first_client) {
  one.crashes = 1;
  one.may_crash = clients;
  return one;
}
Case twice(Case one) {
  one.repeats = 1;
  return one;
}
Case collected(Case one, u8 turns = 2) {
  one.collections = turns;
  return one;
}
Case evicted(Case one) {
  one.evictions = 1;
  return one;
}
/// A lease without a log.
Case without_log(Case one) {
  one.has_log = false;
  return one;
}
Case kernel(Case one) {
  one.has_kernel = true;
  return one;
}
/// Two programs of the first client, and one of the second.
Case one_client(const char* name, Beginning beginning, Some first, Some second, Some other = {}) {
  Case one{.name = name, .beginning = beginning, .programs = {{0, std::move(first)}, {0, std::move(second)}}};
  if (!other.empty()) one.programs.push_back({1, std::move(other)});
  return one;
}
Case one_by_one(Case one) {
  one.learns_one_by_one = true;
  return one;
}

void names_of_one_directory(std::vector<Case>& all) {
  all.push_back(two("create x create", empty, {create_a}, {create_a}));
  all.push_back(two("create x lookup", empty, {create_a}, {lookup_a}));
  all.push_back(two("create, unlink x create, lookup", empty, {create_a, unlink_a}, {create_a, lookup_a}));
  all.push_back(two("create, unlink x lookup twice", empty, {create_a, unlink_a}, {lookup_a, lookup_a}));
  all.push_back(two("unlink x create", with_file, {unlink_a}, {create_a}));
  all.push_back(two("rename x unlink, lookup", with_file, {rename_a_b}, {unlink_a, lookup_a}));
  all.push_back(both_take(two("both: create, unlink", empty, {create_a, unlink_a}, {create_a, unlink_a})));
  all.push_back(both_take(two("both: rename x unlink, create", with_file, {rename_a_b}, {unlink_a, create_a})));
  all.push_back(with_leases(three("three clients: create, unlink, lookup", empty, {create_a}, {unlink_a}, {lookup_a}),
                            always, always));
  all.push_back(
      twice(with_leases(two("step by step: create x unlink, a step twice", empty, {create_a}, {unlink_a}), never)));
  all.push_back(twice(two("create x unlink, a step twice", empty, {create_a}, {unlink_a})));
  all.push_back(evicted(both_take(two("create x create, an eviction", empty, {create_a}, {create_a}))));
  all.push_back(evicted(
      both_take(two("create a, b x lookup, unlink, an eviction", empty, {create_a, create_b}, {lookup_a, unlink_a}))));
}

void prefixes(std::vector<Case>& all) {
  all.push_back(dies(two("create a, b; the holder dies", empty, {create_a, create_b}, {lookup_a, lookup_b})));
  all.push_back(dies(two("create a, b, mkdir, unlink a; the holder dies", empty,
                         {create_a, create_b, mkdir_c, unlink_a}, {lookup_b})));
  all.push_back(
      dies(two("write, rename over; the holder dies", with_file, {create_b, write_b, rename_b_a}, {lookup_a})));
  all.push_back(
      dies(two("create, fsync, rename over; the holder dies", with_file, {create_b, fsync_b, rename_b_a}, {lookup_a})));
  all.push_back(dies(two("create, fsync; the holder dies", empty, {create_a, fsync_a}, {lookup_a})));
  all.push_back(dies(two("mkdir, fsync it; the holder dies", empty, {mkdir_c, fsync_c}, {lookup_c})));
  all.push_back(dies(two("mkdir, create in it, fsync; the holder dies", empty, {mkdir_c, create_a_in_c, fsync_a_in_c},
                         {lookup_c, lookup_a_in_c})));
  all.push_back(dies(
      two("create b, unlink C/a; the holder dies", with_file_in_child, {create_b, unlink_a_in_c}, {lookup_a_in_c})));
  all.push_back(dies(both_take(two("unlink step by step after a create; the holder dies", child_and_file,
                                   {create_a_in_c, unlink_a}, {create_b}))));
  all.back().takes[0] = perhaps;
  all.push_back(dies(two("a file moves twice by copies; the holder dies", child_and_file,
                         {create_a_in_c, unlink_a, create_b, unlink_a_in_c}, {lookup_b})));
  all.push_back(dies(
      collected(two("unlink, create; the holder dies; a collector", with_file, {unlink_a, create_a}, {lookup_a}))));
  all.push_back(collected(two("create; a collector", empty, {create_a}, {lookup_a})));
  all.push_back(dies(collected(two("mkdir, create in it; the holder dies; a collector", empty, {mkdir_c, create_a_in_c},
                                   {lookup_c, lookup_a_in_c}))));
  all.push_back(dies(two("create x create, unlink; any dies", empty, {create_a}, {create_a, unlink_a}), any_client));
}

void removed_directories(std::vector<Case>& all) {
  all.push_back(two("rmdir C x create in C", with_child, {rmdir_c}, {create_a_in_c}));
  all.push_back(both_take(two("rmdir C x create in C, both take", with_child, {rmdir_c}, {create_a_in_c})));
  all.push_back(
      two("rmdir C, mkdir x create, lookup in C", with_child, {rmdir_c, mkdir_c}, {create_a_in_c, lookup_a_in_c}));
  all.push_back(two("create in C x rmdir C", with_child, {create_a_in_c}, {rmdir_c}));
  all.push_back(both_take(two("create, unlink in C x rmdir C", with_child, {create_a_in_c, unlink_a_in_c}, {rmdir_c})));
  all.push_back(two("rmdir C, create in C", with_child, {rmdir_c, create_a_in_c}, {lookup_c}));
  all.push_back(two("unlink in C, rmdir C x create in C, lookup", with_file_in_child, {unlink_a_in_c, rmdir_c},
                    {create_a_in_c, lookup_c}));
  all.push_back(dies(two("rmdir C; the holder dies; create in C", with_child, {rmdir_c}, {create_a_in_c})));
  all.push_back(dies(two("unlink in C, rmdir C; the holder dies", with_file_in_child, {unlink_a_in_c, rmdir_c},
                         {lookup_c, lookup_a_in_c})));
  all.push_back(dies(two("rmdir of what was filled; the holder dies", empty,
                         {mkdir_c, create_a_in_c, unlink_a_in_c, rmdir_c}, {lookup_c})));
  all.push_back(with_leases(
      two("create, unlink in C, rmdir C, P not held", with_child, {create_a_in_c, unlink_a_in_c, rmdir_c}, {lookup_c}),
      perhaps));
  all.push_back(with_leases(
      two("step by step: rmdir x rename, create in it", with_child, {rmdir_c}, {rename_c_b, create_a_in_c}), never));
  all.push_back(both_take(two("rmdir x rmdir", with_child, {rmdir_c}, {rmdir_c})));
  all.push_back(three("rmdir x rmdir x create in C", with_child, {rmdir_c}, {rmdir_c}, {create_a_in_c}));
  all.push_back(dies(collected(
      both_take(two("rmdir C x create in C; a death, a collector", with_child, {rmdir_c}, {create_a_in_c})))));
}

void links_and_moves(std::vector<Case>& all) {
  all.push_back(two("link x lookup there", child_and_file, {link_a_b}, {lookup_b_in_c, lookup_a}));
  all.push_back(two("create, link x lookups", with_child, {create_a, link_a_b}, {lookup_b_in_c, lookup_a}));
  all.push_back(both_take(two("link x create there", child_and_file, {link_a_b}, {create_b_in_c, unlink_b_in_c})));
  all.push_back(two("create, link x chmod, stat", with_child, {create_a, link_a_b, stat_a}, {chmod_b_in_c}));
  all.push_back(dies(
      two("create in C, link into C; the holder dies", child_and_file, {create_a_in_c, link_a_b}, {lookup_b_in_c})));
  all.push_back(
      dies(two("create, link, unlink; the holder dies", with_child, {create_a, link_a_b, unlink_a}, {lookup_b_in_c})));
  all.push_back(collected(two("link x unlink; a collector", child_and_file, {link_a_b}, {unlink_a}), 2));
  all.push_back(two("move x lookups", child_and_file, {move_a_b}, {lookup_b_in_c, lookup_a}));
  all.push_back(both_take(two("both: move x move back", child_and_file, {move_a_a}, {move_a_in_c_a})));
  all.push_back(both_take(two("both: move x unlink", child_and_file, {move_a_b}, {unlink_a, lookup_b_in_c})));
  all.push_back(two("move over a file x lookups", all_there, {move_a_a}, {lookup_a_in_c, lookup_a}));
  all.push_back(
      dies(two("create, move; the holder dies", with_child, {create_a, move_a_b}, {lookup_b_in_c, lookup_a})));
  all.push_back(dies(
      two("create in C, move into C; the holder dies", child_and_file, {create_a_in_c, move_a_b}, {lookup_b_in_c})));
  all.push_back(dies(two("move; the mover dies; create", child_and_file, {move_a_b}, {create_a, lookup_b_in_c})));
  all.push_back(with_leases(
      three("a mark, then a take: move x lookup", child_and_file, {move_a_b}, {create_b, lookup_a}, {lookup_b_in_c}),
      never, always));
  all.push_back(with_leases(three("a mark, then a take of the target", child_and_file, {move_a_b},
                                  {create_a_in_c, lookup_b_in_c}, {lookup_a}),
                            never, always));
  all.push_back(with_leases(one_client("move from a held directory x lookups", child_and_file, {create_b, move_a_b},
                                       {lookup_a}, {lookup_b_in_c}),
                            always));
  all.push_back(
      two("move out of C, rmdir C x lookup in C", all_there, {move_a_in_c_a, rmdir_c}, {lookup_a_in_c, lookup_a}));
  all.push_back(collected(two("move x unlink; a collector", child_and_file, {move_a_b}, {unlink_b_in_c}), 2));
}

/// A client that holds both directories of a move, one of them, or neither (leases are taken or not, in all ways).
void moves_without_log(std::vector<Case>& all) {
  const auto slice = [&](Case one) { all.push_back(one_by_one(without_log(std::move(one)))); };
  const auto perhaps_held = [](Case one) { return with_leases(std::move(one), perhaps); };
  slice(one_client("no log: move from a held directory x lookups", child_and_file, {create_b, move_a_b}, {lookup_a},
                   {lookup_b_in_c}));
  slice(perhaps_held(one_client("no log: move, any held x lookups", child_and_file, {move_a_b}, {lookup_a, lookup_a},
                                {lookup_b_in_c})));
  slice(perhaps_held(one_client("no log: move, any held x lookups there", child_and_file, {move_a_b},
                                {lookup_b_in_c, lookup_b_in_c}, {lookup_a})));
  slice(perhaps_held(one_client("no log: move, any held x lookups of both", child_and_file, {move_a_b},
                                {lookup_a, lookup_b_in_c}, {lookup_b_in_c, lookup_a})));
  slice(perhaps_held(one_client("no log: move over a file, any held x lookups of both", all_there, {move_a_a},
                                {lookup_a_in_c, lookup_a}, {lookup_a, lookup_a_in_c})));
  slice(perhaps_held(one_client("no log: move, any held x create under the old name", child_and_file, {move_a_b},
                                {create_a, lookup_a}, {lookup_b_in_c})));
  slice(perhaps_held(one_client("no log: move, any held x unlink, lookup", child_and_file, {move_a_b},
                                {lookup_a, unlink_a}, {lookup_b_in_c})));
  slice(with_leases(one_client("no log: move into a directory that another holds", child_and_file, {move_a_b},
                               {lookup_b_in_c}, {create_a_in_c, lookup_b_in_c}),
                    perhaps, always));
  slice(with_leases(one_client("no log: move from a directory that another wants", child_and_file, {move_a_b},
                               {lookup_a}, {create_a, lookup_a}),
                    perhaps, always));
  slice(with_leases(
      three("no log: a mark, then a take", child_and_file, {move_a_b}, {create_b, lookup_a}, {lookup_b_in_c}), perhaps,
      always));
  slice(with_leases(three("no log: a mark, then a take of the target", child_and_file, {move_a_b},
                          {create_a_in_c, lookup_b_in_c}, {lookup_a}),
                    perhaps, always));
  slice(both_take(two("no log: move x move back", child_and_file, {move_a_a, lookup_a}, {move_a_in_c_a, lookup_a})));
  slice(twice(perhaps_held(one_client("no log: move, any held x lookups of both, a step twice", child_and_file,
                                      {move_a_b}, {lookup_a, lookup_b_in_c}, {lookup_a}))));
  slice(dies(with_leases(two("no log: move; the mover dies; create, lookups", child_and_file, {move_a_b, lookup_a},
                             {create_a, lookup_b_in_c}),
                         perhaps, perhaps)));
}

void open_files(std::vector<Case>& all) {
  all.push_back(two("create, open, unlink", empty, {create_a, open_a, unlink_a}, {lookup_a}));
  all.push_back(two("create, open, rename over", empty, {create_a, open_a, create_b, rename_b_a}, {}));
  all.push_back(collected(two("open, unlink; a collector", with_file, {open_a, unlink_a}, {})));
  all.push_back(collected(two("unlink x open; a collector", with_file, {unlink_a}, {open_a, close_it})));
  all.push_back(collected(both_take(two("create, unlink x open; a collector", empty, {create_a, unlink_a}, {open_a}))));
  all.push_back(dies(collected(
      two("create, open, unlink; the holder dies; a collector", empty, {create_a, open_a, unlink_a}, {open_a}))));
}

/// A client that removes what nobody else knows of, beside a collector, which may do the same.
void own_removals(std::vector<Case>& all) {
  const auto slice = [&](Case one) {
    one.removes_own = true;
    all.push_back(std::move(one));
  };
  slice(two("own removal: create, unlink", empty, {create_a, unlink_a}, {lookup_a}));
  slice(two("own removal: unlink x open", with_file, {unlink_a}, {open_a, close_it}));
  slice(both_take(two("own removal: create, unlink x open", empty, {create_a, unlink_a}, {open_a})));
  slice(two("own removal: create, open, unlink", empty, {create_a, open_a, unlink_a}, {lookup_a}));
  slice(one_client("own removal: create, unlink x open of one client", empty, {create_a, unlink_a}, {open_a}));
  slice(one_client("own removal: create, rename over x open of one client", empty, {create_a, create_b, rename_b_a},
                   {open_a}));
  slice(one_client("own removal: create, unlink x link of one client", with_child, {create_a, unlink_a}, {link_a_b},
                   {lookup_b_in_c}));
  slice(kernel(one_client("own removal: create, unlink x move of one client", with_child, {create_a, unlink_a},
                          {move_a_b}, {lookup_b_in_c})));
  slice(collected(two("own removal: create, unlink; a collector", empty, {create_a, unlink_a}, {open_a})));
  slice(dies(two("own removal: create, unlink; the holder dies", empty, {create_a, unlink_a}, {open_a, create_a})));
  slice(dies(
      collected(two("own removal: create, unlink; the holder dies; a collector", empty, {create_a, unlink_a}, {}))));
  slice(twice(two("own removal: create, unlink, a batch twice", empty, {create_a, unlink_a}, {create_a})));
  slice(evicted(two("own removal: create, unlink; an eviction", empty, {create_a, unlink_a}, {open_a, create_a})));
}

/// The kernel answers names that it was told with a long time-out; changes run step by step.
void lease_without_log(std::vector<Case>& all) {
  const auto slice = [&](Case one) { all.push_back(without_log(std::move(one))); };
  slice(two("no log: create x create", empty, {create_a}, {create_a}));
  slice(both_take(two("no log: create, unlink x create, lookup", empty, {create_a, unlink_a}, {create_a, lookup_a})));
  slice(two("no log: rename x unlink, lookup", with_file, {rename_a_b}, {unlink_a, lookup_a}));
  slice(both_take(two("no log: rmdir C x create in C", with_child, {rmdir_c}, {create_a_in_c})));
  slice(two("no log: create in C x rmdir C", with_child, {create_a_in_c}, {rmdir_c}));
  slice(dies(two("no log: create, unlink; the holder dies", empty, {create_a, unlink_a}, {lookup_a, create_a})));
  slice(dies(both_take(
      two("no log: rmdir C, lookup x create in C; a death", with_child, {rmdir_c, lookup_c}, {create_a_in_c}))));
  slice(evicted(two("no log: create x lookup, unlink; an eviction", empty, {create_a}, {lookup_a, unlink_a})));
  slice(twice(one_client("no log: create x lookup of one client, a step twice", empty, {create_b, create_a}, {lookup_a},
                         {lookup_a})));
  slice(twice(one_client("no log: rename x lookups of one client, a step twice", with_file, {create_b, rename_a_b},
                         {lookup_a, lookup_b}, {lookup_b})));
  slice(twice(one_client("no log: create x unlink, lookup of one client, a step twice", empty, {create_b, create_a},
                         {unlink_a, lookup_a}, {lookup_a})));
  slice(twice(one_client("no log: unlink x lookup, create of one client, a step twice", with_file, {create_b, unlink_a},
                         {lookup_a, create_a}, {lookup_a, lookup_a})));
  slice(twice(one_client("no log: rename x create, lookup of one client, a step twice", with_file, {rename_a_b},
                         {create_a, lookup_b}, {lookup_a, lookup_b})));
  slice(twice(one_client("no log: rename x rename back of one client, a step twice", with_file, {rename_a_b},
                         {lookup_b, rename_b_a}, {lookup_a, lookup_b})));
  slice(twice(one_client("no log: rmdir x lookup of one client, a step twice", with_child, {create_b, rmdir_c},
                         {lookup_c}, {lookup_c})));
  slice(twice(one_client("no log: link x lookup of one client, a step twice", child_and_file, {create_a_in_c, link_a_b},
                         {lookup_b_in_c}, {lookup_b_in_c})));
  slice(twice(one_client("no log: move x unlink, lookup there, a step twice", child_and_file, {create_a_in_c, move_a_b},
                         {unlink_b_in_c, lookup_b_in_c}, {lookup_b_in_c})));
  slice(twice(one_client("no log: create x move of one client, a step twice", with_child, {create_a},
                         {move_a_b, lookup_a}, {lookup_a, lookup_b_in_c})));
  slice(evicted(one_client("no log: create x lookup of one client; an eviction", empty, {create_b, create_a},
                           {lookup_a, lookup_a}, {lookup_a, unlink_a})));
  slice(evicted(two("no log: lookups x create; an eviction", empty, {create_b, lookup_a, lookup_a}, {create_a})));
  slice(evicted(both_take(two("no log: rename, lookup x unlink, create; an eviction", with_file, {rename_a_b, lookup_b},
                              {unlink_b, create_a}))));
  slice(evicted(both_take(two("no log: rmdir x rename, create in it; an eviction", with_child, {lookup_a, rmdir_c},
                              {rename_c_b, create_a_in_c}))));
  slice(evicted(both_take(two("no log: move, lookups x create; an eviction", child_and_file, {move_a_b, lookup_a},
                              {create_a, lookup_b_in_c}))));
  slice(
      twice(both_take(two("no log: create, unlink x create, a step twice", empty, {create_a, unlink_a}, {create_a}))));

  slice(kernel(two("kernel: lookup of a missing name x create", empty, {lookup_a, lookup_a}, {create_a})));
  slice(kernel(two("kernel: lookup x unlink", with_file, {lookup_a, lookup_a}, {unlink_a, lookup_a})));
  slice(
      kernel(two("kernel: lookups while asked x create", empty, {lookup_a, lookup_a, lookup_a}, {create_a, unlink_a})));
  slice(kernel(both_take(two("kernel: create x create", empty, {create_a, create_b}, {create_a}))));
  slice(kernel(two("kernel: lookup, rename x unlink", with_file, {lookup_a, rename_a_b, lookup_b}, {unlink_b})));
  slice(kernel(
      both_take(two("kernel: two rmdir, each holds one", with_child, {lookup_c, rmdir_c}, {lookup_a_in_c, rmdir_c}))));
  slice(kernel(
      both_take(two("kernel: rmdir, its holder has looked inside", with_child, {lookup_a_in_c, rmdir_c}, {lookup_c}))));
  slice(kernel(both_take(
      two("kernel: two moves, each holds one", all_there, {lookup_b, move_a_b}, {lookup_b_in_c, move_a_in_c_b}))));
  slice(kernel(
      two("kernel: lookup, move x unlink", child_and_file, {lookup_a, move_a_b, lookup_b_in_c}, {unlink_b_in_c})));
  slice(kernel(one_client("kernel: move from a held directory x lookups", child_and_file, {lookup_a, move_a_b},
                          {lookup_a}, {lookup_b_in_c})));
  slice(with_leases(kernel(one_client("kernel: move into a held directory x lookups", child_and_file,
                                      {lookup_b_in_c, move_a_b}, {lookup_b_in_c}, {lookup_a})),
                    perhaps));
  slice(kernel(one_client("kernel: create, unlink x lookups of one client", empty, {create_a, unlink_a},
                          {lookup_a, lookup_a}, {create_a})));
  slice(kernel(two("kernel: create, link x chmod, stat", with_child, {create_a, link_a_b, stat_a}, {chmod_b_in_c})));
  slice(kernel(two("kernel: create, stat x chmod, stat", empty, {create_a, stat_a}, {chmod_a, stat_a})));

  slice(one_by_one(
      one_client("one by one: lookup x create of one client", empty, {create_b, lookup_a}, {create_a, lookup_a})));
  slice(one_by_one(one_client("one by one: lookup in an earlier tenure", empty, {create_b, lookup_a, lookup_a},
                              {create_b}, {create_a})));
  slice(one_by_one(both_take(one_client("one by one: rename, lookup x create of one client x unlink", empty,
                                        {rename_a_b, lookup_a}, {create_a}, {unlink_a}))));
  slice(one_by_one(one_client("one by one: lookup x rename of one client", with_file, {rename_a_b},
                              {lookup_a, lookup_b}, {lookup_b})));
  slice(dies(
      kernel(two("kernel: lookup, unlink; the holder dies", with_file, {lookup_a, unlink_a}, {lookup_a, create_a}))));
}

}  // namespace

std::vector<Case> named_cases() {
  std::vector<Case> all;
  names_of_one_directory(all);
  prefixes(all);
  removed_directories(all);
  links_and_moves(all);
  open_files(all);
  own_removals(all);
  moves_without_log(all);
  lease_without_log(all);
  // The log, and a kernel that keeps names.
  all.push_back(kernel(
      both_take(two("log and kernel: lookup x create, unlink", empty, {lookup_a, create_b}, {create_a, unlink_a}))));
  all.push_back(kernel(
      both_take(two("log and kernel: rmdir x rmdir", with_child, {lookup_c, rmdir_c}, {lookup_a_in_c, rmdir_c}))));
  all.push_back(
      dies(kernel(two("log and kernel: create, stat x chmod; the holder dies", empty, {create_a, stat_a}, {chmod_a}))));
  return all;
}

}  // namespace names_model
