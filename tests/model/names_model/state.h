// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A small world: a directory P, a directory C in it, up to three clients that run programs of a few operations on their
// names a, b and c; and what each client knows that the store does not. Every object is an inode with a number:
//   1 P, 2 C (the name c in P), 3 a file P/a, 4 a file C/a, 5 + g what operation g makes.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace names_model {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using Inodes = u16;     // a set of them
using Operations = u8;  // a set of them
using Clients = u8;     // a set of them
constexpr int most_inodes = 11, most_clients = 3, most_programs = 3, most_operations = 6, most_records = 5, names = 3;
constexpr u8 parent = 1, child = 2, file_in_parent = 3, file_in_child = 4, first_made = 5;

constexpr Inodes bit(int number) { return static_cast<Inodes>(1U << number); }
constexpr bool has(unsigned set, int number) { return (set >> number & 1U) != 0; }

enum Kind : u8 {
  op_create,
  op_mkdir,
  op_unlink,
  op_rmdir,
  op_rename,  // within the directory
  op_link,    // into the other directory
  op_move,    // a rename into the other directory
  op_lookup,
  op_chmod,
  op_stat,
  op_open,
  op_close,
  op_write,
  op_fsync_directory,
  op_fsync_file
};
constexpr bool changes_names(Kind kind) { return kind <= op_move; }
constexpr bool two_directories(Kind kind) { return kind == op_link || kind == op_move; }

struct Operation {
  Kind kind;
  u8 directory;  // P, or C by its number
  u8 name, to;   // `to`: the new name
};

/// What a client does, one after the other. Several programs of a client run at once.
struct Program {
  u8 client;
  std::vector<Operation> operations;
};

enum Takes : u8 { never, always, perhaps };
enum Beginning : u8 { empty = 0, with_child = 1, with_file = 2, with_file_in_child = 5 };  // bits

struct Case {
  std::string name;
  u8 beginning = empty;
  std::vector<Program> programs;
  Takes takes[most_clients] = {always, never, never};  // leases of directories
  bool has_log = true;                                 // false: a lease without a log, each change runs step by step
  bool has_kernel = false;                             // which keeps the names that it was told with a long time-out
  bool removes_own = false;                            // a client removes what was private itself
  bool learns_one_by_one = false;  // a holder knows no name before it has read it; else it lists at once
  u8 crashes = 0, may_crash = 1;   // `may_crash`: clients, of one program each
  u8 repeats = 0, evictions = 0, collections = 0;

  /// Else memory never says anything but what the store says at that moment, and who only reads asks nobody.
  bool readers_ask() const { return has_log || has_kernel; }
};

enum InodeState : u8 { missing, live, dead, sealed };

struct Inode {
  Inodes parents;                   // back-pointers
  Inodes detached;                  // d/ keys: who lost a name here
  Operations traces;                // tokens in it and of its d/ keys
  Operations cancelled, committed;  // x/ keys
  u8 state, sealer;                 // `sealer`: an operation + 1
  u8 is_directory, lease;           // `lease`: a client + 1
  u8 has_size, attributes;
  Clients barred;                // whose fence everybody knows who has read this
  u8 entry[names], mark[names];  // `mark`: an operation + 1
};

enum RecordKind : u8 { insertion, removal, directory_removal, renaming };
struct Record {
  RecordKind kind;
  u8 operation, directory, name, to, ino, replaced;
  u8 takes_own;  // the inode that loses its name is private
};

struct Client {
  Inodes holds, removed;  // directories; `removed`: under their lease
  Inodes told;            // directories that are asked for, and the kernel was told so
  Inodes unsized, open;   // files
  Inodes own;             // private inodes: the kernel keeps their attributes
  Inodes late_inodes;     // of a crashed client: their writes are on the way
  Inodes own_gone;        // private inodes whose removal from the directory is stored: to be removed here
  u8 is_alive, is_over;
  u8 stood_still, is_told;  // of an evicted client: it stood still until then; it has heard that it is fenced
  Clients knows_over;
  u8 records;
  Record log[most_records];
  u8 repeated_on, repeated_batch;  // a batch that was applied, and the answer lost
  u8 known[most_inodes];           // names, in each directory that it holds
  u8 memory[most_inodes][names];
  u8 kernel[most_inodes][names];  // names with a long time-out. 0: none, 1: known to be missing, else inode + 1
  u8 told_names[most_inodes];     // those which the client knows that the kernel has
  Clients asked[most_inodes];     // who asks for the directory
  u8 attributes[most_inodes];
  u8 late_batch[most_inodes];
  u8 removing, removal_phase, removal_stands;  // an own removal under way; whether the version that it guards stands
};

/// One program.
struct Thread {
  Inodes locks;  // of the kernel's, while it waits for the answer
  u8 next, phase, in_kernel;
  u8 ino, other;                    // what the operation is about
  u8 awaited, holder;               // the directory, and who is asked for it
  u8 child;                         // where "C" leads
  u8 file;                          // that it has open
  u8 snapshot, snapshot_stands;     // a version that a step guards
  u8 repeats, late, made, pointed;  // `late`: of a crashed client: a step is on the way
  u8 guards_own;  // its step guards "lease is mine": bit 0 the directory, 1 the other; 2, 3: of an earlier tenure
  u8 keeps;       // still to be kept in memory: bit 0: what is read, or changed under the name; bit 1: the new name
  u8 outcome, settles_name;
  u8 unused;
};

struct State {
  Inode inode[most_inodes];
  Client client[most_clients];
  Thread thread[most_programs];
  Inodes queue;  // inode items
  Operations done, started;
  Operations before[most_operations];
  u8 result[most_operations];
  u8 directory[most_operations], other_directory[most_operations], linked[most_operations];
  u8 collector_phase, collected, collector_stands, collector_parent;
  u8 collections, crashes, repeats, evictions;
  u8 broken;
  u8 unused = 0;
};
static_assert(std::has_unique_object_representations_v<State>);  // it is hashed and compared as bytes

enum Result : u8 { unanswered, ok, exists, no_entry, not_empty, again, found = 16, attributes_are = 64 };
enum Broken : u8 { not_broken, size_exposed, batch_refused, log_full };

struct Successor {
  State state;
  std::string label;
};
using Successors = std::vector<Successor>;

/// The case that is being explored; its operations have numbers through all programs.
struct Plan {
  const Case* now = nullptr;
  int first[most_programs + 1] = {};
  int programs = 0;
  bool with_labels = false;

  int program_of(int operation) const;
  int client_of(int operation) const { return now->programs[static_cast<std::size_t>(program_of(operation))].client; }
  int client_of_thread(int thread) const { return now->programs[static_cast<std::size_t>(thread)].client; }
  const Operation& operation(int number) const;
  int operations() const { return first[programs]; }
  int length(int thread) const { return first[thread + 1] - first[thread]; }
};
extern Plan plan;
void set_plan(const Case& one);

State first_state();
std::string describe(const Case& one);
std::string describe(const Operation& operation);
std::string name_of(int ino);

}  // namespace names_model
