// SPDX-License-Identifier: LGPL-2.1-or-later
#include "state.h"

#include "history.h"

namespace lease_model {

namespace {

constexpr int garbage = 6;

void put(State& state, int object, int length, int first, int second) {
  state.data[object] = {1, static_cast<u8>(length), {static_cast<u8>(first), static_cast<u8>(second)}};
  state.inode.map |= static_cast<u8>(1 << object);
}

void set_content(State& state, int size, const int (&block)[blocks]) {
  state.inode.size = static_cast<u8>(size);
  state.history = first_history(content_of(size, block));
}

void make_file(State& state, Beginning beginning) {
  switch (beginning) {
    case empty_file:
      return set_content(state, 0, {});
    case full_file:
      put(state, 0, 2, 1, 1);
      put(state, 1, 2, 1, 1);
      return set_content(state, 4, {1, 1, 1, 1});
    case cut_short:  // by C2, who is dead and holds the lease
      put(state, 0, 2, 1, garbage);
      put(state, 1, 2, garbage, garbage);
      return set_content(state, 1, {1});
    case half_mapped:
      put(state, 0, 2, 1, 1);
      return set_content(state, 4, {1, 1});
    case two_blocks:
      put(state, 0, 2, 1, 1);
      return set_content(state, 2, {1, 1});
    case one_block:
      put(state, 0, 1, 1, 0);
      return set_content(state, 1, {1});
    case all_holes:
      return set_content(state, 4, {});
  }
}

}  // namespace

State first_state(const Case& one) {
  State state{};
  state.inode.exists = 1;
  make_file(state, one.beginning);
  for (const auto& [client, operations] : one.programs) {
    Thread& thread = state.thread[state.threads];
    thread.id = state.threads++;
    thread.client = static_cast<u8>(client);
    state.memory[client].life = alive;
    state.memory[client].open = 1;
  }
  for (int client = 0; client < most_clients; ++client) {
    if (state.memory[client].life != alive) continue;
    Thread& thread = state.thread[state.threads++];
    thread.id = static_cast<u8>(100 + client);
    thread.client = static_cast<u8>(client);
    thread.phase = waits_for_client;
  }
  const int holder = one.beginning == cut_short ? most_clients : one.holder;
  if (holder == 0) return state;
  state.inode.lease = static_cast<u8>(holder);
  Memory& m = state.memory[holder - 1];
  if (one.beginning == cut_short && m.life == absent) {
    m.life = dead;
  } else {
    m.holds = 1;
    m.size = m.stored = state.inode.size;
    m.map = state.inode.map;
  }
  return state;
}

std::string describe(const Operation& operation) {
  const auto range = "[" + std::to_string(operation.begin) + "," + std::to_string(operation.end) + ")";
  const auto value = "=" + std::to_string(operation.value);
  const auto at = "(" + std::to_string(operation.begin) + ")";
  switch (operation.kind) {
    case op_write:
      return "write" + range + value;
    case op_append:
      return "append" + value;
    case op_truncate:
      return "truncate" + at;
    case op_punch:
      return "punch" + range;
    case op_read:
      return "read" + at;
    case op_stat:
      return "stat";
    case op_fsync:
      return "fsync";
    case op_close:
      return "close";
    case op_close_keep:
      return "close, lease kept";
    case op_collect:
      return "unlink, collect";
  }
  return {};
}

std::string describe(const Request& request) {
  const auto object = "Data." + std::to_string(request.object);
  const auto argument = std::to_string(request.argument);
  const auto range = object + "[" + argument + "," + std::to_string(request.end) + ")";
  switch (request.kind) {
    case no_request:
      return {};
    case read_inode:
      return "reads the inode";
    case take_lease:
      return "takes the lease";
    case take_over:
      return "takes over the lease";
    case store_size:
      return "stores size " + argument;
    case set_map:
      return "sets map " + argument;
    case release:
      return "releases the lease, size " + argument;
    case mark_dead:
      return "marks the inode dead";
    case remove_inode:
      return "removes the inode";
    case write_data:
      return "writes " + range + "=" + std::to_string(request.value);
    case cut_data:
      return "cuts " + object + " at " + argument;
    case remove_data:
      return "removes " + object;
    case zero_data:
      return "zeroes " + range;
    case read_data:
      return "reads " + object + " at " + argument;
  }
  return {};
}

}  // namespace lease_model
