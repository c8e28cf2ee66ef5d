// SPDX-License-Identifier: LGPL-2.1-or-later
//
// One file and its clients, as plain bytes: states are compared and hashed as they lie in memory.
//
// The file has 2 data objects of 2 blocks each (object k: blocks 2k and 2k + 1), and sizes from 0 to 4 blocks. A block
// holds a digit; 0 is a hole, 6 is garbage that a truncate cut short has left. Up to 3 instances: C0, C1, C2.
//
// Left out: times, st_blocks and "believed there", mark-ahead windows, the page cache, time-outs of attributes, what a
// handle remembers of the inode between two reads, and that a holder may release the lease when it is only asked.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lease_model {

using u8 = std::uint8_t;
using u16 = std::uint16_t;

constexpr int most_clients = 3;
constexpr int most_threads = 7;
constexpr int blocks = 4;

/// Inode.X. lease: 0, or the holder + 1. fence: the fenced instances, one bit each, as known at the last take-over.
struct Inode {
  u8 exists, dead, size, lease, map, fence, version;
};

struct DataObject {
  u8 exists, length, block[2];
};

enum RequestKind : u8 {
  no_request,
  read_inode,
  take_lease,    // argument: size and map as read; object: fence as read
  take_over,     // argument: the old holder + 1
  store_size,    // argument: size
  set_map,       // argument: map
  release,       // argument: size
  mark_dead,     //
  remove_inode,  // argument: map as read; end: version as read
  write_data,    // of object: blocks [argument, end) = value
  cut_data,      // at block `argument`
  remove_data,   //
  zero_data,     // blocks [argument, end)
  read_data,     // block `argument`
};

enum RequestState : u8 { idle, in_flight, answered };
enum Reply : u8 { refused = 0, done = 1, no_space = 2 };  // of a read_data: the block

/// One transaction on one object. knows: the fences that its client had synced when it was sent.
struct Request {
  RequestKind kind;
  u8 object, argument, end, value;
  RequestState state;
  u8 reply, knows, repeated;
};

enum Life : u8 { absent, alive, dead };

/// The memory of one client.
struct Memory {
  u16 ranges;  // of the writes under way: 4 bits a block
  Life life;
  u8 holds;         // the lease
  u8 size, stored;  // the size; what of it the inode says
  u8 map;
  u8 changes;        // writes and punches under way
  u8 reads;          // reads under way, with the lease
  u8 inode_step;     // a step on the inode is in flight
  u8 alone;          // something runs alone
  u8 acquiring;      // the lease is being acquired...
  u8 acquiring_how;  // ... 1 taken, 2 taken over, 3 taken over and being cleaned
  u8 releasing;
  u8 tail_dirty;  // a failed write may have left something past the end
  u8 open;
  u8 knows;   // the fences it has synced
  u8 unused;  // no gaps between the fields: see State
};

enum Phase : u8 { between, waits_for_store, has_answer, waits_for_client };
enum Question : u8 { no_question, give_lease_back, what_size, is_it_open };

/// A thread of a client: its program, or the one that answers questions. A resumable function (resumable.h): `at` says
/// where each of its three levels of calls continues, and locals live here.
struct Thread {
  u16 at[3];
  u8 id, client, operation;
  Phase phase;
  u8 local[6];
  u8 asked;  // who has still to answer its question, one bit each
  Question question;
  u8 answer;
  u8 split;  // the answer to its request is seen later than it is given
  u8 unused;
  Inode seen;
  Request requests[2];
};

struct State {
  int history;  // the serial orders that are still possible (history.h); -1: none
  u8 fenced;    // one bit each
  u8 crashes, failures, repeats, evictions, wrong, threads;
  u8 barred[3];  // for the inode and each data object, whom the fence bars from it: somebody who knew has touched it
  Inode inode;
  DataObject data[2];
  u8 unused;
  Memory memory[most_clients];
  Thread thread[most_threads];
  u8 unused_too[2];
};
static_assert(std::has_unique_object_representations_v<State>, "states are compared byte by byte");
static_assert(sizeof(State) % 8 == 0, "... and hashed in words");

enum Wrong : u8 { nothing_wrong, lease_lost_unfenced, open_file_refused };

/// What a program is made of.
enum OperationKind : char {
  op_write = 'W',
  op_append = 'A',
  op_truncate = 'T',
  op_punch = 'P',
  op_read = 'R',
  op_stat = 'S',
  op_fsync = 'F',
  op_close = 'C',
  op_close_keep = 'K',  // the lease stays
  op_collect = 'G',     // the file was unlinked: a collector removes it
};
struct Operation {
  OperationKind kind;
  u8 begin, end, value;
};

/// The file in the beginning.
enum Beginning : u8 { empty_file, full_file, cut_short, half_mapped, two_blocks, one_block, all_holes };

struct Case {
  std::string name;
  Beginning beginning = empty_file;
  u8 holder = 0;                                                 // 0: nobody, else the client + 1
  std::vector<std::pair<int, std::vector<Operation>>> programs;  // of a client; several may be of one client
  int crashes = 0, failures = 0, repeats = 0, evictions = 0;     // at most so many
  u8 may_crash = 7;                                              // one bit for each client
};

inline bool answers_questions(const Thread& thread) { return thread.id >= 100; }
inline bool is_fenced(const State& state, int client) { return (state.fenced >> client & 1) != 0; }
inline int object_of(const Request& request) { return request.kind < write_data ? 0 : 1 + request.object; }

std::string describe(const Operation& operation);
std::string describe(const Request& request);
State first_state(const Case& one);

}  // namespace lease_model
