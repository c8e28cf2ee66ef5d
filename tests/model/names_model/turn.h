// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What a program does next. A turn is one read or one step on the store, or something that needs neither; all that
// other programs, other clients and the work in the background may do comes between two turns.
#pragma once

#include <string>

#include "state.h"
#include "store.h"

namespace names_model {

class Turn {
 public:
  Turn(const State& before, int thread, Successors& out);
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Adds what may come next. Nothing: it waits.
  void play();

 private:
  // -- turn.cpp: what all operations share
  bool enter_kernel();
  bool other_request_locks() const;
  Inodes locked_by_kernel() const;
  void begin();
  void take_a_step();
  void continue_after(bool applied);
  void play_phase();
  void wait_for_holder();
  bool hears_of_fence();
  void start();
  void answer(u8 result);
  void refuse(u8 result);
  void say(u8 result);
  void go(u8 phase, const char* words);
  void put(const std::string& words);
  bool in_conflict(int directory, bool reads_only);
  void ask_for(int directory, int holder);
  bool settles_seal(int directory);
  bool settles_mark(int directory, int name);
  bool takes_lease(int directory);
  void outdate_reads(int directory, int name);
  void learn(int directory, int name, u8 ino);
  void forget(int directory, int name);
  u8 step_changes(int thread, int directory, int name) const;
  bool is_hidden(int directory, int name) const;
  void outdate_answers();
  bool knows(int directory, int name);
  bool reads_marked(int directory, int name);
  bool waits_for_recall(int directory) const;
  bool holds(int directory) const { return has(mine_.holds, directory); }
  void kernel_learns(int directory, int name, u8 ino);
  void kernel_renames(int directory, int name, int to_directory, int to);
  void read_parents_of_taken();
  void read_taken();
  void keep_name();

  // -- one_directory.cpp
  void no_longer_open(int ino);
  bool synchronizes();
  void from_memory();
  void reads_from_memory(u8 ino);
  void change_in_log(u8 ino);
  void insert_in_log(u8 ino);
  void remove_directory_in_log(u8 ino);
  void change_as_stored();
  void change_by_steps(u8 ino, u8 replaced);
  void from_store();
  void reads_from_store();
  void read_child_directory();
  void changed_entry(bool applied);
  void read_the_inode();
  void open_the_inode();
  u8 takes_own(int ino) const;

  // -- two_directories.cpp
  void start_link();
  void start_move();
  bool resolve_source();
  bool may_change(int directory);
  bool hold_both();
  bool see(int directory, int name, u8& ino);
  void linked(bool applied);
  void about_to_mark();
  void marked();
  void committed();
  void moved();
  void guard(int which);

  State state_;
  const int index_, client_, number_;
  const Operation& operation_;
  Thread& me_;
  Client& mine_;
  const Takes takes_;
  Successors& out_;
  int directory_ = 0, other_ = 0;
};

/// The next turn of a program.
void play(const State& before, int thread, Successors& out);

void hold(State& state, int client, int directory);

}  // namespace names_model
