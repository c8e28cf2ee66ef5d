// SPDX-License-Identifier: LGPL-2.1-or-later
#include "holder.h"

#include "rules.h"

namespace lease_model {

namespace {

enum How : u8 { taken = 1, taken_over = 2, being_cleaned = 3 };

/// Level 2.
bool cut_past(Thread& t, Memory& m, int size, bool boundary, bool beyond) {
  RESUMABLE(2)
  for (t.local[4] = size / 2; t.local[4] < 2; t.local[4]++) {
    if ((m.map >> t.local[4] & 1) == 0) continue;
    if (t.local[4] * 2 < size) {
      if (!boundary) continue;
      send(t, m, cut_data, t.local[4], 1);
    } else {
      if (!beyond) continue;
      send(t, m, remove_data, t.local[4], 0);
    }
    STORE_ANSWERS();
  }
  RESUMABLE_END;
}

void remember(Memory& m, const Inode& inode) {
  m.size = m.stored = inode.size;
  m.map = inode.map;
}

void now_holds(Memory& m) {
  m.holds = 1;
  m.acquiring = m.acquiring_how = 0;
}

}  // namespace

bool may_step(const Memory& m) { return !on(one_inode_step) || m.inode_step == 0; }

bool cut_tail(Thread& t, Memory& m, int size) {
  RESUMABLE(1)
  CALL(cut_past(t, m, size, true, true));
  RESUMABLE_END;
}

bool acquire(State& s, Thread& t, Memory& m) {
  RESUMABLE(1)
  t.local[0] = 0;
  UNTIL(m.acquiring == 0 || m.holds != 0);
  if (m.holds != 0) return true;
  m.acquiring = 1;
  m.acquiring_how = 0;
again:
  READ_INODE();
  if (t.seen.exists == 0 || (t.seen.dead != 0 && !on(take_needs_no_name) && t.seen.lease == 0)) {
    m.acquiring = 0;
    t.local[0] = not_to_be_had;
    return true;
  }
  if (t.seen.lease == t.client + 1) {
    if (on(own_lease_found_is_cleaned)) goto clean;
    goto got;
  }
  if (t.seen.lease == 0) {
    if (on(take_syncs_fence)) m.knows |= t.seen.fence;
    m.acquiring_how = taken;
    send(t, m, take_lease, t.seen.fence, t.seen.size | t.seen.map << 4);
    STORE_ANSWERS();
    if (was_refused(t)) goto again;
    goto got;
  }
  t.local[5] = t.seen.lease;
  t.question = give_lease_back;
  t.asked = static_cast<u8>(1 << (t.seen.lease - 1));
  UNTIL(all_answered(s, t));
  t.asked = 0;
  if (!is_fenced(s, t.local[5] - 1)) goto again;
  if (on(others_fence_is_synced)) m.knows |= s.fenced;
  m.acquiring_how = taken_over;
  send(t, m, take_over, 0, t.local[5]);
  STORE_ANSWERS();
  if (was_refused(t)) goto again;
clean:
  m.acquiring_how = being_cleaned;
  if (on(take_over_reads_anew)) READ_INODE();
  remember(m, t.seen);
  if (!on(clean_before_answers)) now_holds(m);
  CALL(cut_past(t, m, m.stored, on(take_over_cuts_boundary), on(take_over_removes_beyond)));
  if (!on(clean_before_answers)) return true;
  now_holds(m);
  return true;
got:
  remember(m, t.seen);
  now_holds(m);
  RESUMABLE_END;
}

bool set_map_bits(State& s, Thread& t, Memory& m, int begin, int end) {
  RESUMABLE(1)
  t.local[5] = 0;
  for (int object = begin / 2; object * 2 < end; ++object) t.local[5] |= static_cast<u8>(1 << object);
  if ((t.local[5] & ~m.map) == 0) return true;
  UNTIL(may_step(m));
  t.local[5] |= m.map;
  if (t.local[5] == m.map) return true;
  m.inode_step = 1;
  send(t, m, set_map, 0, t.local[5]);
  STORE_ANSWERS();
  m.inode_step = 0;
  if (was_refused(t)) s.wrong = lease_lost_unfenced;
  m.map |= t.requests[0].argument;
  RESUMABLE_END;
}

namespace {

/// Level 1.
bool give_lease_back_when_asked(Thread& t, Memory& m) {
  RESUMABLE(1)
  if (m.holds == 0) return true;
  if (on(release_lets_nothing_in)) m.releasing = 1;
  UNTIL((!on(release_waits_for_writes) || m.changes == 0) && (!on(reads_are_awaited) || m.reads == 0) && m.alone == 0 &&
        may_step(m) && m.tail_dirty == 0);
  if (m.holds != 0) {
    m.inode_step = 1;
    send(t, m, release, 0, m.size);
    STORE_ANSWERS();
    if (was_refused(t)) READ_INODE();
    m.inode_step = 0;
    m.holds = 0;
  }
  m.releasing = 0;
  RESUMABLE_END;
}

/// Level 1.
bool store_size_when_asked(State& s, Thread& t, Memory& m) {
  RESUMABLE(1)
  if (m.holds == 0) return true;
  UNTIL(may_step(m));
  if (m.holds == 0) return true;
  t.local[2] = m.size;
  m.reads++;
  if (on(holder_stores_size) && m.size != m.stored) {
    m.inode_step = 1;
    send(t, m, store_size, 0, m.size);
    STORE_ANSWERS();
    m.inode_step = 0;
    if (was_refused(t)) s.wrong = lease_lost_unfenced;
    m.stored = t.local[2];
  }
  m.reads--;
  s.thread[t.local[0]].answer = 1;
  RESUMABLE_END;
}

int who_asks(const State& s, const Thread& t) {
  for (int i = 0; i < s.threads; ++i) {
    if ((s.thread[i].asked >> t.client & 1) != 0 && s.memory[s.thread[i].client].life == alive) return i;
  }
  return -1;
}

void begin_anew(Thread& t) {
  Thread fresh{};
  fresh.id = t.id;
  fresh.client = t.client;
  fresh.operation = t.operation;
  fresh.phase = waits_for_client;
  t = fresh;
}

}  // namespace

bool answer_questions(State& s, Thread& t, Memory& m) {
  RESUMABLE(0)
  if (who_asks(s, t) < 0) {
    t.phase = waits_for_client;
    return false;
  }
  t.local[0] = static_cast<u8>(who_asks(s, t));
  t.local[1] = s.thread[t.local[0]].question;
  if (t.local[1] != is_it_open) UNTIL(m.acquiring_how != being_cleaned);
  if (t.local[1] == give_lease_back) CALL(give_lease_back_when_asked(t, m));
  if (t.local[1] == what_size) CALL(store_size_when_asked(s, t, m));
  if (t.local[1] == is_it_open && (m.open != 0 || m.changes != 0)) s.thread[t.local[0]].answer = 1;
  s.thread[t.local[0]].asked &= static_cast<u8>(~(1 << t.client));
  begin_anew(t);
  return false;
  RESUMABLE_END;
}

}  // namespace lease_model
