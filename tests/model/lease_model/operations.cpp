// SPDX-License-Identifier: LGPL-2.1-or-later
#include "operations.h"

#include "changes.h"
#include "history.h"
#include "holder.h"
#include "rules.h"

namespace lease_model {

namespace {

/// What an evicted client that does not know it is answered may be old (POSIX.md): any answer will do.
void read_returns(State& s, Thread& t) {
  const int place = t.id * 2;
  s.history = is_fenced(s, t.client) ? fenced_off(s.history, 1 << place) : answered_with(s.history, place, t.local[1]);
}

/// Level 1: the size, asked for and stored by the holder. In local[0] whether to start over.
bool ask_holder(State& s, Thread& t, Memory& m) {
  RESUMABLE(1)
  t.local[0] = 1;
  t.answer = 0;
  t.local[5] = t.seen.lease;
  t.question = what_size;
  t.asked = static_cast<u8>(1 << (t.seen.lease - 1));
  UNTIL(all_answered(s, t));
  t.asked = 0;
  if (is_fenced(s, t.local[5] - 1)) {
    if (on(others_fence_is_synced)) m.knows |= s.fenced;
    if (on(reread_after_fence)) {
      READ_INODE();
      if (t.seen.lease != t.local[5]) return true;
    }
  } else {
    if (t.answer == 0) return true;
    READ_INODE();
  }
  t.answer = 0;
  t.local[0] = 0;
  if (on(read_syncs_fence)) m.knows |= t.seen.fence;
  RESUMABLE_END;
}

bool read_or_stat(State& s, Thread& t, Memory& m, int block, bool is_stat) {
  RESUMABLE(0)
again:
  UNTIL(is_free(m));
  if (m.holds != 0) {
    t.local[1] = is_stat ? m.size : end_of_file;
    if (is_stat || block >= m.size) goto answered_now;
    m.reads++;
    send(t, m, read_data, block / 2, block % 2);
    STORE_ANSWERS();
    m.reads--;
    t.local[1] = t.requests[0].reply;
    goto answered_now;
  }
  READ_INODE();
  if (m.holds != 0 || m.acquiring != 0) goto again;
  if (on(read_syncs_fence)) m.knows |= t.seen.fence;
  if (t.seen.lease == t.client + 1) {
    t.local[1] = end_of_file;
    UNTIL(m.holds != 0 || m.acquiring == 0);
    goto again;
  }
  if (on(end_asks_holder) && t.seen.lease != 0 && (is_stat || block >= t.seen.size)) {
    CALL(ask_holder(s, t, m));
    if (t.local[0] != 0) goto again;
  }
  t.local[1] = is_stat ? t.seen.size : end_of_file;
  if (is_stat || block >= t.seen.size) goto answered_now;
  t.local[3] = t.seen.version;
  send(t, m, read_data, block / 2, block % 2);
  STORE_ANSWERS();
  t.local[1] = t.requests[0].reply;
  if (on(missing_bytes_reread) && t.local[1] == 0) {
    READ_INODE();
    if (t.seen.version != t.local[3]) goto again;
  }
answered_now:
  read_returns(s, t);
  RESUMABLE_END;
}

bool fsync(State& s, Thread& t, Memory& m) {
  RESUMABLE(0)
  UNTIL(is_free(m) && may_step(m));
  if (on(fsync_stores_size) && m.holds != 0 && m.size != m.stored) {
    m.inode_step = 1;
    t.local[1] = m.size;
    send(t, m, store_size, 0, m.size);
    STORE_ANSWERS();
    m.inode_step = 0;
    if (was_refused(t)) s.wrong = lease_lost_unfenced;
    m.stored = t.local[1];
  }
  // What other clients have not stored is theirs.
  if (m.holds != 0 && s.inode.lease == t.client + 1) {
    s.history = made_durable(s.history, is_fenced(s, t.client) ? m.size : 7);
  }
  RESUMABLE_END;
}

bool close(Thread& t, Memory& m, bool keep) {
  RESUMABLE(0)
  UNTIL(is_free(m) && m.changes == 0 && m.reads == 0 && may_step(m) && m.tail_dirty == 0);
  m.alone = 1;
  m.inode_step = 1;
  if (m.holds != 0 && !keep) {
    send(t, m, release, 0, m.size);
    STORE_ANSWERS();
    if (was_refused(t)) READ_INODE();
    m.holds = 0;
  } else if (m.holds != 0 && m.size != m.stored) {
    send(t, m, store_size, 0, m.size);
    STORE_ANSWERS();
    m.stored = m.size;
  }
  m.open = m.alone = m.inode_step = 0;
  RESUMABLE_END;
}

u8 others_to_ask(const State& s, const Thread& t) {
  int others = 0;
  for (int client = 0; on(collector_asks) && client < most_clients; ++client) {
    const Life life = s.memory[client].life;
    if (client != t.client && (life == alive || (life == dead && on(collector_fences_gone)))) others |= 1 << client;
  }
  return static_cast<u8>(others);
}

bool nobody_has_it_open(const State& s, const Thread& t) {
  for (int client = 0; client < most_clients; ++client) {
    const Memory& m = s.memory[client];
    if (client != t.client && m.life == alive && (m.open != 0 || m.changes != 0)) return false;
  }
  return true;
}

/// The file was unlinked: mark it dead, ask who has it open, remove it. Where someone has, it comes again later.
bool collect(State& s, Thread& t, Memory& m) {
  RESUMABLE(0)
  send(t, m, mark_dead, 0, 0);
  STORE_ANSWERS();
again:
  t.answer = 0;
  t.question = is_it_open;
  t.asked = others_to_ask(s, t);
  UNTIL(all_answered(s, t));
  t.asked = 0;
  if (on(others_fence_is_synced)) m.knows |= s.fenced;
  if (t.answer != 0) {
    UNTIL(nobody_has_it_open(s, t));
    goto again;
  }
  READ_INODE();
  t.local[0] = t.seen.map;
  t.local[1] = t.seen.version;
  for (t.local[4] = 0; t.local[4] < 2; t.local[4]++) {
    if ((t.local[0] >> t.local[4] & 1) == 0) continue;
    send(t, m, remove_data, t.local[4], 0);
    STORE_ANSWERS();
  }
  send(t, m, remove_inode, 0, t.local[0], t.local[1]);
  STORE_ANSWERS();
  if (was_refused(t)) {
    READ_INODE();
    if (t.seen.exists != 0) goto again;
  }
  RESUMABLE_END;
}

}  // namespace

bool run_on(State& s, Thread& t, const Operation& operation) {
  Memory& m = s.memory[t.client];
  switch (operation.kind) {
    case op_write:
      return write(s, t, m, operation.begin, operation.end, operation.value, false);
    case op_append:
      return write(s, t, m, 0, 0, operation.value, true);
    case op_truncate:
      return truncate(s, t, m, operation.begin);
    case op_punch:
      return punch(s, t, m, operation.begin, operation.end);
    case op_read:
      return read_or_stat(s, t, m, operation.begin, false);
    case op_stat:
      return read_or_stat(s, t, m, 0, true);
    case op_fsync:
      return fsync(s, t, m);
    case op_close:
      return close(t, m, false);
    case op_close_keep:
      return close(t, m, true);
    case op_collect:
      return collect(s, t, m);
  }
  return true;
}

void begin(State& s, Thread& t, const Operation& operation) {
  const int place = t.id * 2;
  const int from = operation.begin;
  const int to = operation.end;
  switch (operation.kind) {
    case op_write:
    case op_punch:
      for (int part = 0; part < parts_of(from, to); ++part) {
        const auto [begin, end] = part_of(from, to, part);
        const auto kind = operation.kind == op_write ? Effect::write : Effect::punch;
        s.history = begun(s.history, place + part, effect(kind, begin, end, operation.value));
      }
      break;
    case op_truncate:
      s.history = begun(s.history, place, effect(Effect::truncate, from));
      break;
    case op_append:
      s.history = begun(s.history, place, effect(Effect::append, 0, 0, operation.value));
      break;
    case op_read:
      s.history = begun(s.history, place, effect(Effect::read, from));
      break;
    case op_stat:
      s.history = begun(s.history, place, effect(Effect::stat));
      break;
    default:
      break;
  }
}

}  // namespace lease_model
