// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Operations on one directory, by who holds it (from memory; changes into the log, or step by step if there is no log)
// and by who does not (step by step).
#include <algorithm>
#include <cstring>
#include <utility>

#include "log.h"
#include "rules.h"
#include "turn.h"

namespace names_model {

// ---- fsync, write, close

/// By this program; another of the client may have it open.
void Turn::no_longer_open(int ino) {
  for (int thread = 0; thread < plan.programs; ++thread) {
    if (plan.client_of_thread(thread) == client_ && state_.thread[thread].file == ino) return;
  }
  mine_.open &= static_cast<Inodes>(~bit(ino));
}

/// true: it was one of them; and if nothing was added it waits.
bool Turn::synchronizes() {
  const auto kind = operation_.kind;
  if (kind == op_close) {
    const auto file = std::exchange(me_.file, u8{0});
    no_longer_open(file);
    say(ok);
    return true;
  }
  if (kind != op_fsync_directory && kind != op_fsync_file && kind != op_write) return false;
  const auto named =
      holds(directory_) ? mine_.memory[directory_][operation_.name] : state_.inode[directory_].entry[operation_.name];
  const int file = kind == op_fsync_directory ? 0 : named;
  if (kind == op_write) {
    if (file != 0) mine_.unsized |= bit(file);
    if (file != 0 && is_stored(state_, file)) state_.inode[file].has_size = 0;
    say(file != 0 ? ok : no_entry);
    return true;
  }
  for (int i = 0; i < mine_.records; ++i) {
    const auto& record = mine_.log[i];
    if (kind == op_fsync_directory && record.directory == directory_) return true;
    if (file != 0 && on(fsync_name) && (record.ino == file || record.replaced == file)) return true;
    if (on(fsync_upwards) && record.kind == insertion && record.ino == directory_) return true;
  }
  if (file != 0 && (!is_stored(state_, file) || has(mine_.unsized, file))) return true;
  say(ok);
  return true;
}

// ---- by the holder

namespace {
/// A removal of this directory runs step by step in the same client.
bool is_being_removed(const State& state, int client, int directory) {
  for (int thread = 0; thread < plan.programs; ++thread) {
    const auto& its = state.thread[thread];
    if (plan.client_of_thread(thread) != client || its.next >= plan.length(thread)) continue;
    const bool removes = plan.operation(plan.first[thread] + its.next).kind == op_rmdir;
    const bool has_begun = its.phase == seal || its.phase == change_entry || its.phase == unseal;
    if (removes && has_begun && its.ino == directory) return true;
  }
  return false;
}
}  // namespace

void Turn::from_memory() {
  if (has(mine_.removed, directory_) && on(removed_takes_none)) return say(no_entry);
  const bool changes = changes_names(operation_.kind);
  if (changes && (waits_for_recall(directory_) || is_being_removed(state_, client_, directory_))) return;
  const bool renames = operation_.kind == op_rename;
  if (changes && (is_hidden(directory_, operation_.name) || (renames && is_hidden(directory_, operation_.to))))
    return change_as_stored();
  if (!knows(directory_, operation_.name)) return;
  if (renames && !knows(directory_, operation_.to)) return;
  const auto ino = mine_.memory[directory_][operation_.name];
  if (!changes) return reads_from_memory(ino);
  if (plan.now->has_log) return change_in_log(ino);
  change_by_steps(ino, mine_.memory[directory_][operation_.to]);
}

void Turn::reads_from_memory(u8 ino) {
  if (operation_.kind == op_lookup) {
    kernel_learns(directory_, operation_.name, ino);
    if (ino != 0 && operation_.name == 2) me_.child = ino;
    return say(ino != 0 ? static_cast<u8>(found + ino) : u8{no_entry});
  }
  if (ino == 0) return say(no_entry);
  if (operation_.kind == op_open) {
    me_.ino = ino;
    return go(open_by_number, "knows the inode");
  }
  if (operation_.kind == op_stat && has(mine_.own, ino))
    return say(static_cast<u8>(attributes_are + mine_.attributes[ino]));
  if (!is_stored(state_, ino)) return;
  me_.ino = ino;
  go(operation_.kind == op_stat ? read_attributes : change_attributes, "knows the inode");
}

/// The kernel has looked the name up before: the file may be gone.
void Turn::open_the_inode() {
  const auto ino = me_.ino;
  mine_.open |= bit(ino);
  if (is_stored(state_, ino)) return go(read_attributes, "has registered it");
  const bool is_new = std::any_of(mine_.log, mine_.log + mine_.records, [ino](const Record& record) {
    return record.kind == insertion && record.ino == ino;
  });
  if (!is_new) {
    no_longer_open(ino);
    return go(starting, "the inode is gone");
  }
  me_.file = ino;
  say(static_cast<u8>(found + ino));
}

/// Private: nobody else knows of it.
u8 Turn::takes_own(int ino) const {
  return ino != 0 && plan.now->removes_own && (has(mine_.own, ino) || !on(own_only_private)) ? 1 : 0;
}

void Turn::insert_in_log(u8 ino) {
  if (ino != 0) return say(exists);
  const auto made = static_cast<u8>(first_made + number_);
  add_record(state_, client_,
             {insertion, static_cast<u8>(number_), static_cast<u8>(directory_), operation_.name, 0, made, 0, 0});
  me_.made = 0;
  if (mine_.asked[directory_] == 0) mine_.own |= bit(made);
  learn(directory_, operation_.name, made);
  kernel_learns(directory_, operation_.name, made);
  if (operation_.kind == op_mkdir) {
    me_.child = made;
    if (state_.inode[made].state == missing || state_.inode[made].lease == client_ + 1) {
      hold(state_, client_, made);
      mine_.known[made] = (1U << names) - 1;
    }
  }
  say(ok);
}

void Turn::change_in_log(u8 ino) {
  const auto number = static_cast<u8>(number_), directory = static_cast<u8>(directory_);
  switch (operation_.kind) {
    case op_create:
    case op_mkdir:
      return insert_in_log(ino);
    case op_rmdir:
      return remove_directory_in_log(ino);
    case op_rename:
      if (ino == 0) return say(no_entry);
      add_record(state_, client_,
                 {renaming, number, directory, operation_.name, operation_.to, ino,
                  mine_.memory[directory_][operation_.to], takes_own(mine_.memory[directory_][operation_.to])});
      learn(directory_, operation_.name, 0);
      learn(directory_, operation_.to, ino);
      kernel_renames(directory_, operation_.name, directory_, operation_.to);
      return say(ok);
    default:
      if (ino == 0) return say(no_entry);
      learn(directory_, operation_.name, 0);
      kernel_learns(directory_, operation_.name, 0);
      mine_.kernel[directory_][operation_.name] = 0;
      if (!on(drop_together) && !is_stored(state_, ino)) {
        for (int i = 0; i < mine_.records; ++i) {
          if (mine_.log[i].kind != insertion || mine_.log[i].ino != ino) continue;
          drop(mine_, {i});
          return say(ok);
        }
      }
      add_record(state_, client_, {removal, number, directory, operation_.name, 0, ino, 0, takes_own(ino)});
      if (takes_own(ino) != 0 && !on(own_after_batch)) mine_.own_gone |= bit(ino);
      return say(ok);
  }
}

void Turn::remove_directory_in_log(u8 ino) {
  if (ino == 0) return say(no_entry);
  if (!holds(ino) && on(take_child)) {
    me_.ino = ino;
    return go(read_child, "the child is not held");
  }
  if (holds(ino)) {
    if (waits_for_recall(ino)) return;
    for (int name = 0; name < names; ++name) {
      if (on(know_all_names) && !knows(ino, name)) return;
    }
    if (std::any_of(mine_.memory[ino], mine_.memory[ino] + names, [](u8 entry) { return entry != 0; }))
      return say(not_empty);
    mine_.removed |= bit(ino);
  } else if (!is_empty(state_.inode[ino])) {
    return say(not_empty);
  }
  learn(directory_, operation_.name, 0);
  mine_.kernel[directory_][operation_.name] = 0;
  add_record(state_, client_,
             {directory_removal, static_cast<u8>(number_), static_cast<u8>(directory_), operation_.name, 0, ino, 0, 0});
  say(ok);
}

/// Another program changes such a name now.
void Turn::change_as_stored() {
  has_read(state_, client_, directory_);
  if (settles_mark(directory_, operation_.name)) return;
  if (operation_.kind == op_rename && settles_mark(directory_, operation_.to)) return;
  const auto* const entry = state_.inode[directory_].entry;
  change_by_steps(entry[operation_.name], entry[operation_.to]);
}

/// As without a lease, but that it need not be read: what is known is right.
void Turn::change_by_steps(u8 ino, u8 replaced) {
  me_.guards_own = 1;
  me_.keeps = 3;
  if (operation_.kind == op_create || operation_.kind == op_mkdir) {
    if (ino != 0) return say(exists);
    return go(me_.made != 0 ? change_entry : make_inode, "knows that the name is free");
  }
  if (ino == 0) return say(no_entry);
  me_.ino = ino;
  me_.other = operation_.kind == op_rename ? replaced : 0;
  go(operation_.kind == op_rmdir ? read_child : change_entry, "knows the name");
}

// ---- without the lease, and the steps of both

void Turn::from_store() {
  has_read(state_, client_, directory_);
  const auto& inode = state_.inode[directory_];
  if (!is_there(inode)) return say(no_entry);
  const bool changes = changes_names(operation_.kind);
  if (in_conflict(directory_, !changes)) return;
  if (!changes) return reads_from_store();
  if (inode.state == sealed) return static_cast<void>(settles_seal(directory_));
  if (settles_mark(directory_, operation_.name)) return;
  if (operation_.kind == op_rename && settles_mark(directory_, operation_.to)) return;
  if (takes_lease(directory_)) return;
  me_.guards_own = 0;
  me_.keeps = 0;
  me_.ino = inode.entry[operation_.name];
  me_.other = operation_.kind == op_rename ? inode.entry[operation_.to] : 0;
  if (operation_.kind == op_create || operation_.kind == op_mkdir) {
    if (me_.ino != 0) return say(exists);
    return go(me_.made != 0 ? change_entry : make_inode, "has read that the name is free");
  }
  if (me_.ino == 0) return say(no_entry);
  if (on(barrier_step) && insertions_elsewhere(mine_, directory_, mine_.records)) return;
  go(operation_.kind == op_rmdir ? read_child : change_entry, "has read the name");
}

/// A name with a mark: the decision tells whether it stands. true: the turn is over.
bool Turn::reads_marked(int directory, int name) {
  const auto mark = state_.inode[directory].mark[name];
  if (mark == 0) return false;
  me_.ino = state_.inode[directory].entry[name];
  me_.other = mark;
  me_.awaited = state_.other_directory[mark - 1];
  go(read_decision, "has read a marked name");
  return true;
}

void Turn::reads_from_store() {
  const auto& inode = state_.inode[directory_];
  if (plan.now->has_kernel && inode.state == live && takes_lease(directory_)) return;
  const auto ino = inode.entry[operation_.name];
  if (ino != 0 && operation_.kind == op_lookup && operation_.name == 2) me_.child = ino;
  if (ino == 0) return say(no_entry);
  if (reads_marked(directory_, operation_.name)) return;
  me_.ino = ino;
  if (operation_.kind == op_lookup) return say(static_cast<u8>(found + ino));
  if (operation_.kind == op_open) mine_.open |= bit(ino);
  go(operation_.kind == op_chmod ? change_attributes : read_attributes, "has looked the name up");
}

/// stat, and open, which has registered the file already.
void Turn::read_the_inode() {
  const auto ino = me_.ino;
  has_read(state_, client_, ino);
  const auto& inode = state_.inode[ino];
  if (inode.state == missing || inode.state == dead) {
    if (operation_.kind == op_open) no_longer_open(ino);
    return go(starting, "the inode is gone");
  }
  if (operation_.kind == op_stat) return say(static_cast<u8>(attributes_are + inode.attributes));
  mine_.open |= bit(ino);
  me_.file = ino;
  say(static_cast<u8>(found + ino));
}

/// For rmdir: is it empty?
void Turn::read_child_directory() {
  const int ino = me_.ino;
  has_read(state_, client_, ino);
  const auto& inode = state_.inode[ino];
  const bool by_lease = plan.now->has_log && holds(directory_);
  if (by_lease && (mine_.memory[directory_][operation_.name] != ino || holds(ino)))
    return go(starting, "things have changed");
  if (!by_lease && holds(ino) && on(own_child_stored) && has_records(mine_, ino)) return;
  if (!is_there(inode)) return go(starting, "the child is gone");
  for (int name = 0; name < names; ++name) {
    if (settles_mark(ino, name)) return;
  }
  if (inode.state == sealed) return static_cast<void>(settles_seal(ino));
  if ((on(seal_unleased) || by_lease) && in_conflict(ino, false)) return;
  if (!is_empty(inode)) {
    const bool is_sure = (plan.now->has_log && holds(directory_)) || !on(recheck_not_empty);
    return is_sure ? say(not_empty) : go(read_name_again, "the child is not empty");
  }
  me_.snapshot = me_.ino;
  me_.snapshot_stands = 1;
  go(by_lease ? take_empty : seal, "the child is empty");
}

void Turn::changed_entry(bool applied) {
  const auto kind = operation_.kind;
  if (!applied) {
    me_.phase = kind == op_rmdir ? unseal : starting;
    return;
  }
  const bool inserts = kind == op_create || kind == op_mkdir;
  const auto made = static_cast<u8>(first_made + number_);
  const bool keeps_name = holds(directory_) && has(me_.keeps, 0);
  if (keeps_name) learn(directory_, operation_.name, inserts ? made : 0);
  if (kind == op_rename && holds(directory_) && has(me_.keeps, 1)) learn(directory_, operation_.to, me_.ino);
  if (inserts && keeps_name && plan.now->readers_ask() && mine_.asked[directory_] == 0) mine_.own |= bit(made);
  if (inserts) {
    kernel_learns(directory_, operation_.name, made);
  } else if (kind == op_rename) {
    kernel_renames(directory_, operation_.name, directory_, operation_.to);
  } else {
    mine_.kernel[directory_][operation_.name] = 0;
  }
  if (kind == op_mkdir) {
    me_.child = made;
    if (takes_ != never) {
      hold(state_, client_, made);
      mine_.known[made] = (1U << names) - 1;
    }
  }
  if (kind == op_rmdir) mine_.holds &= static_cast<Inodes>(~bit(me_.ino));
  answer(ok);
}

}  // namespace names_model
