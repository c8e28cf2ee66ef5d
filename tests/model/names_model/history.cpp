// SPDX-License-Identifier: LGPL-2.1-or-later
#include "history.h"

#include <algorithm>

#include "store.h"

namespace names_model {

namespace {

/// What a file system without clients would have.
struct Tree {
  u8 entry[most_inodes][names] = {}, attributes[most_inodes] = {};
  Inodes directories = bit(parent);
};

Tree first_tree() {
  Tree tree;
  const auto begins = plan.now->beginning;
  if ((begins & with_child) != 0) {
    tree.entry[parent][2] = child;
    tree.directories |= bit(child);
  }
  if ((begins & with_file) != 0) tree.entry[parent][0] = file_in_parent;
  if ((begins & with_file_in_child) == with_file_in_child) tree.entry[child][0] = file_in_child;
  return tree;
}

u8 remove_directory(Tree& tree, u8& entry) {
  if (entry == 0) return no_entry;
  const auto* const inside = tree.entry[entry];
  if (std::any_of(inside, inside + names, [](u8 ino) { return ino != 0; })) return not_empty;
  tree.directories &= static_cast<Inodes>(~bit(entry));
  entry = 0;
  return ok;
}

u8 insert(Tree& tree, u8& entry, int operation) {
  if (entry != 0) return exists;
  entry = static_cast<u8>(first_made + operation);
  if (plan.operation(operation).kind == op_mkdir) tree.directories |= bit(entry);
  return ok;
}

/// The new names of rename, link and move.
u8 name_anew(const State& state, Tree& tree, u8& entry, int number) {
  const auto& operation = plan.operation(number);
  const int other = state.other_directory[number];
  if (operation.kind == op_rename) {
    if (entry == 0) return no_entry;
    tree.entry[state.directory[number]][operation.to] = entry;
    entry = 0;
    return ok;
  }
  if (other == 0 || !has(tree.directories, other)) return no_entry;
  u8& there = tree.entry[other][operation.to];
  if (operation.kind == op_link) {  // of an inode that was looked up before
    if (there != 0) return exists;
    there = state.linked[number];
    return there != 0 ? ok : no_entry;
  }
  if (entry == 0) return no_entry;
  if (entry == there) return ok;
  there = entry;
  entry = 0;
  return ok;
}

u8 result_of(const State& state, Tree& tree, int number) {
  const auto& operation = plan.operation(number);
  const int directory = state.directory[number];
  if (directory == 0 || !has(tree.directories, directory)) return no_entry;
  u8& entry = tree.entry[directory][operation.name];
  switch (operation.kind) {
    case op_create:
    case op_mkdir:
      return insert(tree, entry, number);
    case op_unlink: {
      const u8 result = entry != 0 ? ok : no_entry;
      entry = 0;
      return result;
    }
    case op_rmdir:
      return remove_directory(tree, entry);
    case op_rename:
    case op_link:
    case op_move:
      return name_anew(state, tree, entry, number);
    case op_chmod:
      tree.attributes[entry] = static_cast<u8>(number + 1);
      return entry != 0 ? ok : no_entry;
    case op_stat:
      return entry != 0 ? static_cast<u8>(attributes_are + tree.attributes[entry]) : u8{no_entry};
    default:
      return entry != 0 ? static_cast<u8>(found + entry) : u8{no_entry};
  }
}

/// false: this answer does not fit here.
bool do_in_tree(const State& state, Tree& tree, int number, bool any_answer) {
  const auto kind = plan.operation(number).kind;
  if (kind >= op_close || state.result[number] == again) return true;
  // What a link makes a name of was looked up before: a source that is gone by now may fail it.
  if (kind == op_link && state.result[number] == no_entry) return true;
  const auto result = result_of(state, tree, number);
  return any_answer || result == state.result[number];
}

bool same_tree(const State& state, const Tree& tree, int directory) {
  for (int name = 0; name < names; ++name) {
    const u8 ino = stands(state, directory, name) ? state.inode[directory].entry[name] : 0;
    if (ino != tree.entry[directory][name]) return false;
    if (ino != 0 && state.inode[ino].is_directory != 0 && !same_tree(state, tree, ino)) return false;
  }
  return true;
}

bool has_order(const State& state, const Tree& tree, unsigned left) {
  if (left == 0) return same_tree(state, tree, parent);
  for (int number = 0; number < plan.operations(); ++number) {
    if (!has(left, number) || (state.before[number] & left) != 0) continue;
    Tree next = tree;
    if (do_in_tree(state, next, number, !has(state.done, number)) && has_order(state, next, left & ~bit(number)))
      return true;
  }
  return false;
}

// ---- what a crashed client may have lost

Inodes directories_changed(const State& state, int number) {
  const auto kind = plan.operation(number).kind;
  const Inodes here = bit(state.directory[number]), there = bit(state.other_directory[number]);
  if (kind == op_link) return there;
  return kind == op_move ? static_cast<Inodes>(here | there) : here;
}

bool was_answered_ok(const State& state, int number) { return has(state.done, number) && state.result[number] == ok; }

struct Lost {
  unsigned fixed = 0, may = 0, must = 0;  // operations
};

/// An fsync of a file: up to the last operation before that names it.
int last_that_names(const State& state, int number) {
  const auto& operation = plan.operation(number);
  for (int before = number - 1; before >= plan.first[plan.program_of(number)]; --before) {
    const auto& earlier = plan.operation(before);
    if (state.directory[before] != state.directory[number] || state.result[before] != ok) continue;
    if (earlier.kind == op_create && earlier.name == operation.name) return before + 1;
    if (earlier.kind == op_rename && earlier.to == operation.name) return before + 1;
  }
  return -1;
}

void add_synced(const State& state, int number, Lost& lost) {
  const int first = plan.first[plan.program_of(number)];
  const auto add = [&](int until, int directory) {
    for (int before = first; before < until; ++before) {
      const bool changes = changes_names(plan.operation(before).kind) && state.result[before] == ok;
      if (changes && has(directories_changed(state, before), directory)) lost.must |= bit(before);
    }
  };
  const int directory = state.directory[number];
  add(plan.operation(number).kind == op_fsync_directory ? number : last_that_names(state, number), directory);
  const int made_by = directory - first_made;
  if (made_by >= first && made_by < number) add(made_by + 1, state.directory[made_by]);
}

Lost what_may_be_lost(const State& state) {
  Lost lost;
  for (int number = 0; number < plan.operations(); ++number) {
    const auto& client = state.client[plan.client_of(number)];
    const bool was_answered_by_evicted = !plan.now->has_log && has(state.done, number);
    if (client.is_alive != 0 && (client.is_over == 0 || was_answered_by_evicted)) {
      lost.fixed |= bit(number);
      continue;
    }
    const bool failed = has(state.done, number) && state.result[number] != ok;
    if (!has(state.started, number) || failed) continue;
    const auto kind = plan.operation(number).kind;
    if (changes_names(kind)) lost.may |= bit(number);
    if ((kind == op_fsync_directory || kind == op_fsync_file) && was_answered_ok(state, number))
      add_synced(state, number, lost);
  }
  return lost;
}

/// An operation that is there may not be there without an earlier one of the same client.
bool needs(const State& state, int later, int earlier) {
  if ((directories_changed(state, earlier) & directories_changed(state, later)) != 0) return true;
  const auto kind = plan.operation(later).kind, before = plan.operation(earlier).kind;
  return (kind == op_unlink || kind == op_rmdir) && (before == op_create || before == op_mkdir);
}

bool is_allowed(const State& state, const Lost& lost, unsigned kept) {
  if ((kept & lost.must) != lost.must) return false;
  for (int later = 0; later < plan.operations(); ++later) {
    if (!has(kept, later)) continue;
    for (int earlier = plan.first[plan.program_of(later)]; earlier < later; ++earlier) {
      if (has(lost.may & ~kept, earlier) && needs(state, later, earlier)) return false;
    }
  }
  return true;
}

}  // namespace

bool fits_an_order(const State& state) {
  const auto lost = what_may_be_lost(state);
  for (unsigned kept = lost.may;; kept = (kept - 1) & lost.may) {
    if (is_allowed(state, lost, kept) && has_order(state, first_tree(), lost.fixed | kept)) return true;
    if (kept == 0) return false;
  }
}

}  // namespace names_model
