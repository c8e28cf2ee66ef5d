// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store.h"

#include <algorithm>
#include <cstring>

#include "history.h"
#include "rules.h"

namespace lease_model {

namespace {

/// After a take-over nothing of the dead and fenced may take effect any more.
void close_what_is_fenced(State& state) {
  if (state.history < 0) return;
  int places = 0;
  for (int i = 0; i < state.threads; ++i) {
    const Thread& thread = state.thread[i];
    const bool gone = is_fenced(state, thread.client) && state.memory[thread.client].life == dead;
    if (!answers_questions(thread) && gone) places |= 3 << thread.id * 2;
  }
  places &= under_way(state.history);
  if (places != 0) state.history = fenced_off(state.history, places);
}

bool may_take(const Inode& inode, const Request& request) {
  if (on(take_guards_absent) && inode.lease != 0) return false;
  if (inode.dead != 0 && !on(take_needs_no_name)) return false;
  const bool as_read = inode.size == (request.argument & 15) && inode.map == (request.argument >> 4 & 3) &&
                       inode.fence == request.object;
  return as_read || !on(take_guards_version);
}

/// Whether its guards hold, and then its change.
bool apply_to_inode(State& state, const Request& request, u8 me) {
  Inode& inode = state.inode;
  if (inode.exists == 0) return false;
  switch (request.kind) {
    case take_lease:
      if (!may_take(inode, request)) return false;
      inode.lease = me;
      break;
    case take_over:
      if (on(take_over_guards_old) && inode.lease != request.argument) return false;
      inode.lease = me;
      inode.fence |= request.knows;
      close_what_is_fenced(state);
      break;
    case store_size:
      if (inode.lease != me) return false;
      inode.size = request.argument;
      break;
    case set_map:
      if (inode.lease != me) return false;
      inode.map = request.argument;
      break;
    case release:
      if (on(release_guards_own) && inode.lease != me) return false;
      inode.size = request.argument;
      inode.lease = 0;
      break;
    case mark_dead:
      inode.dead = 1;
      break;
    default:  // remove_inode
      if (inode.map != request.argument || inode.version != request.end) return false;
      inode = {};
      return true;
  }
  inode.version = (inode.version + 1) & 7;
  if (request.kind == store_size || request.kind == release) state.history = made_durable(state.history, inode.size);
  return true;
}

u8 apply_to_data(DataObject& data, const Request& request) {
  switch (request.kind) {
    case write_data:
      data.exists = 1;
      for (int i = request.argument; i < request.end; ++i) data.block[i] = request.value;
      data.length = std::max(data.length, request.end);
      return done;
    case cut_data:
      if (data.exists == 0 || data.length <= request.argument) return done;
      data.length = request.argument;
      for (int i = request.argument; i < 2; ++i) data.block[i] = 0;
      return done;
    case remove_data:
      data = {};
      return done;
    case zero_data:
      if (data.exists == 0) return done;
      for (int i = request.argument; i < request.end; ++i) data.block[i] = 0;
      if (request.end >= data.length) data.length = std::min(data.length, request.argument);
      return done;
    default:  // read_data
      return data.block[request.argument];
  }
}

}  // namespace

void apply(State& state, Request& request, int client, Inode* seen) {
  if (request.kind == read_inode) {
    *seen = state.inode;
    request.reply = done;
  } else if (request.kind < write_data) {
    request.reply = apply_to_inode(state, request, static_cast<u8>(client + 1)) ? done : refused;
  } else {
    request.reply = apply_to_data(state.data[request.object], request);
  }
}

void tidy(State& state) {
  for (int client = 0; client < most_clients; ++client) {
    if (state.memory[client].life != dead) continue;
    int ended = 0;
    for (int i = 0; i < state.threads; ++i) {
      Thread& thread = state.thread[i];
      if (thread.client != client) continue;
      bool any = false;
      for (Request& request : thread.requests) {
        if (request.state != in_flight) continue;
        const bool reads = request.kind == read_inode || request.kind == read_data;
        if (reads || (state.barred[object_of(request)] >> client & 1) != 0) {
          request = {};
        } else {
          any = true;
        }
      }
      if (!any && !answers_questions(thread)) ended |= 3 << 2 * thread.id;
    }
    ended &= under_way(state.history);
    for (int place = 0; ended >> place != 0; ++place) {
      if ((ended >> place & 1) != 0) state.history = failed(state.history, place, true);
    }
  }
}

void die(State& state, int client) {
  state.memory[client] = {};
  state.memory[client].life = dead;
  for (int i = 0; i < state.threads; ++i) {
    Thread& thread = state.thread[i];
    if (thread.client != client) continue;
    Thread left{};
    left.id = thread.id;
    left.client = thread.client;
    left.operation = thread.operation;
    for (int k = 0; k < 2; ++k) {
      if (thread.requests[k].state == in_flight) left.requests[k] = thread.requests[k];
    }
    thread = left;
  }
  if (state.inode.lease == client + 1) state.history = growth_lost(state.history);
  tidy(state);
}

}  // namespace lease_model
