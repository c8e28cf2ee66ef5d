// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What is in the store: inodes with their entries, and the steps on them. Each is one transaction on one object.
#pragma once

#include "state.h"

namespace names_model {

/// Where an operation stands. Those of `is_step` are steps on the store, and can be late, or run twice.
enum Phase : u8 {
  starting,
  make_inode,
  change_entry,
  seal,
  unseal,
  take_empty,  // a child's lease, at the version that was seen empty
  take,
  take_over,
  bury,  // a directory that was taken over and has no name: dead
  cancel_seal,
  end_seal,
  change_attributes,
  point_to,  // a back-pointer, for link and move
  set_mark,
  commit_move,
  move_out,
  clear_mark,
  cancel_own,
  cancel_mark,
  end_mark,
  last_step = end_mark,
  read_child,
  read_name_again,
  read_what_is_held,
  read_parents,
  read_attributes,
  open_by_number,
  read_decision,
  name_is_read,
  waiting
};
constexpr bool is_step(u8 phase) { return phase > starting && phase <= last_step; }

/// All clients that are expired.
Clients those_over(const State& state);

/// Something has changed there: no version that was read before stands any more.
void changed(State& state, int ino);

/// A client has read an object: fences that it knows of are in force there.
void has_read(State& state, int client, int ino);

inline bool is_stored(const State& state, int ino) { return state.inode[ino].state != missing; }
inline bool is_there(const Inode& inode) { return inode.state == live || inode.state == sealed; }

/// The name has left the directory: a d/ key, for what is stored.
void detach(State& state, int directory, int ino, int operation);

/// In an entry that is not marked, or whose move has not committed.
bool stands(const State& state, int directory, int name);
bool has_name(const State& state, int directory, int ino);
bool is_empty(const Inode& directory);

/// Of operations: none of them is running or relied on.
bool are_retired(const State& state, Operations operations);

/// With all d/ keys of it; what it has names of goes into the queue.
void remove_inode(State& state, int ino);

bool create_inode(State& state, int client, int operation, int directory, bool is_leased);

/// The step of the thread's phase. false: refused, nothing was changed.
bool run_step(State& state, int thread);
/// ... for the fence of its client.
bool step_is_barred(const State& state, int thread);

}  // namespace names_model
