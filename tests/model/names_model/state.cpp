// SPDX-License-Identifier: LGPL-2.1-or-later
#include "state.h"

namespace names_model {

Plan plan;

int Plan::program_of(int operation) const {
  int program = 0;
  while (operation >= first[program + 1]) ++program;
  return program;
}

const Operation& Plan::operation(int number) const {
  const int program = program_of(number);
  return now->programs[static_cast<std::size_t>(program)].operations[static_cast<std::size_t>(number - first[program])];
}

void set_plan(const Case& one) {
  plan.now = &one;
  plan.programs = static_cast<int>(one.programs.size());
  for (int program = 0; program < plan.programs; ++program) {
    const auto& operations = one.programs[static_cast<std::size_t>(program)].operations;
    plan.first[program + 1] = plan.first[program] + static_cast<int>(operations.size());
  }
}

State first_state() {
  State state{};
  const auto make = [&](int ino, bool is_directory, int in) {
    auto& inode = state.inode[ino];
    inode.state = live;
    inode.is_directory = is_directory;
    inode.parents = bit(in);
    inode.has_size = 1;
  };
  const auto& one = *plan.now;
  make(parent, true, parent);
  if ((one.beginning & with_child) != 0) {
    make(child, true, parent);
    state.inode[parent].entry[2] = child;
  }
  if ((one.beginning & with_file) != 0) {
    make(file_in_parent, false, parent);
    state.inode[parent].entry[0] = file_in_parent;
  }
  if ((one.beginning & with_file_in_child) == with_file_in_child) {
    make(file_in_child, false, child);
    state.inode[child].entry[0] = file_in_child;
  }
  for (const auto& program : one.programs) state.client[program.client].is_alive = 1;
  for (auto& thread : state.thread) thread.child = (one.beginning & with_child) != 0 ? child : 0;
  state.crashes = one.crashes;
  state.repeats = one.repeats;
  state.collections = one.collections;
  state.evictions = one.evictions;
  return state;
}

std::string name_of(int ino) {
  static const char* const fixed[] = {"-", "P", "C", "F", "G"};
  return ino < first_made ? fixed[ino] : "X" + std::to_string(ino - first_made);
}

std::string describe(const Operation& operation) {
  static const char* const kinds[] = {"create", "mkdir", "unlink", "rmdir", "rename", "link",     "move", "lookup",
                                      "chmod",  "stat",  "open",   "close", "write",  "fsyncdir", "fsync"};
  const std::string here = operation.directory == parent ? "P" : "C", there = operation.directory == parent ? "C" : "P";
  const std::string kind = kinds[operation.kind];
  if (operation.kind == op_fsync_directory) return kind + " " + here;
  if (operation.kind == op_close) return kind;
  std::string text = kind + " " + here + "/" + "abc"[operation.name];
  if (operation.kind == op_rename) text += std::string(" to ") + "abc"[operation.to];
  if (two_directories(operation.kind)) text += " to " + there + "/" + "abc"[operation.to];
  return text;
}

std::string describe(const Case& one) {
  std::string text;
  for (const auto& program : one.programs) {
    if (!text.empty()) text += " | ";
    text += "c" + std::to_string(program.client);
    if (one.takes[program.client] != never) text += "(takes)";
    const char* between = ": ";
    for (const auto& operation : program.operations) {
      text += between + describe(operation);
      between = ", ";
    }
  }
  const auto begins = [&](unsigned bits) { return (one.beginning & bits) == bits; };
  text += std::string("; ") + (begins(with_file_in_child) ? "C/a " : begins(with_child) ? "C " : "");
  text += begins(with_file) ? "P/a" : "";
  if (!one.has_log) text += "; no log";
  if (one.has_kernel) text += "; kernel";
  if (one.learns_one_by_one) text += "; one by one";
  if (one.crashes != 0) text += "; crash";
  if (one.repeats != 0) text += "; repeat";
  if (one.evictions != 0) text += "; eviction";
  if (one.collections != 0) text += "; collector";
  return text;
}

}  // namespace names_model
