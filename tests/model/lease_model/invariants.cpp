// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>

#include "history.h"
#include "search.h"

namespace lease_model {

namespace {

int block_at(const State& state, int i) { return state.data[i / 2].block[i % 2]; }

bool may_read_like_this(int history, const State& state, int size) {
  std::uint32_t digits = 0;
  for (int i = 0; i < size; ++i) digits |= static_cast<std::uint32_t>(block_at(state, i)) << 3 * i;
  return is_possible(history, static_cast<std::uint32_t>(size), digits);
}

std::string shown(const State& state, int size) {
  std::string digits;
  for (int i = 0; i < size; ++i) digits += std::to_string(block_at(state, i));
  return "'" + digits + "'";
}

/// Invariant M.
std::string broken_map(const State& state) {
  for (int object = 0; object < 2; ++object) {
    if (state.data[object].exists == 0) continue;
    const auto name = "M: Data." + std::to_string(object);
    if (state.inode.exists == 0) return name + " exists, its inode is gone";
    if ((state.inode.map >> object & 1) == 0) return name + " exists, its bit is clear";
  }
  return {};
}

/// Invariant T.
std::string broken_tail(const State& state) {
  if (state.inode.lease != 0) return {};
  for (int i = state.inode.size; i < blocks; ++i) {
    if (block_at(state, i) != 0) {
      return "T: no lease, size " + std::to_string(state.inode.size) + ", and block " + std::to_string(i) + " holds " +
             std::to_string(block_at(state, i));
    }
  }
  return {};
}

/// The holder is alive, and nobody is in the middle of anything: the file reads as the holder would say.
bool holder_is_quiet(const State& state) {
  const int holder = state.inode.lease - 1;
  if (holder < 0 || is_fenced(state, holder)) return false;
  if (state.memory[holder].life != alive || state.memory[holder].holds == 0) return false;
  return std::all_of(state.thread, state.thread + state.threads, [&](const Thread& thread) {
    const bool waits_for_questions = answers_questions(thread) && thread.phase == waits_for_client && thread.at[0] == 0;
    return state.memory[thread.client].life != alive || thread.phase == between || waits_for_questions;
  });
}

}  // namespace

std::string violation(const State& state) {
  if (state.wrong == lease_lost_unfenced) return "a step under the lease is refused, and nobody fenced its holder";
  if (state.wrong == open_file_refused) return "a write to an open file is refused: it was unlinked meanwhile";
  if (state.history < 0) return "an answer fits no serial order";
  if (auto wrong = broken_map(state); !wrong.empty()) return wrong;
  if (state.inode.exists == 0) return {};
  if (auto wrong = broken_tail(state); !wrong.empty()) return wrong;
  if (state.inode.dead != 0) return {};
  const int holder = state.inode.lease - 1;
  const bool holder_lives = holder >= 0 && state.memory[holder].life == alive;
  const int if_all_died = holder_lives ? growth_lost(state.history) : state.history;
  if (!may_read_like_this(if_all_died, state, state.inode.size)) {
    return "were all clients gone now, the file would read " + shown(state, state.inode.size) +
           ": fits no serial order";
  }
  if (holder_is_quiet(state) && !may_read_like_this(state.history, state, state.memory[holder].size)) {
    return "the file reads " + shown(state, state.memory[holder].size) + ": fits no serial order";
  }
  return {};
}

}  // namespace lease_model
