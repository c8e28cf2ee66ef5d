// SPDX-License-Identifier: LGPL-2.1-or-later
#include "changes.h"

#include "history.h"
#include "holder.h"
#include "rules.h"

namespace lease_model {

namespace {

void note_range(Memory& m, int begin, int end, int change) {
  for (int i = begin; i < end; ++i) m.ranges = static_cast<u16>(m.ranges + change * (1 << 4 * i));
}

bool is_busy(const Memory& m, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    if ((m.ranges >> 4 * i & 15) != 0) return true;
  }
  return false;
}

enum class Came { through, to_nothing };

/// One part of a change returns. What an evicted client still gets answered may be lost with its growth.
void part_returns(State& s, const Thread& t, int part, Came came) {
  const int place = t.id * 2 + part;
  s.history = came == Came::through ? answered_with(s.history, place, 0) : failed(s.history, place, false);
  if (is_fenced(s, t.client)) s.history = growth_lost(s.history);
}

bool refused_for_good(State& s, Thread& t, int parts) {
  if (t.local[0] != not_to_be_had) return false;
  s.wrong = open_file_refused;
  for (int part = 0; part < parts; ++part) part_returns(s, t, part, Came::to_nothing);
  return true;
}

void send_writes(Thread& t, const Memory& m, int begin, int end, int value) {
  for (int part = parts_of(begin, end) - 1; part >= 0; --part) {
    const auto [from, to] = part_of(begin, end, part);
    send(t, m, write_data, from / 2, from % 2, to - from / 2 * 2, value);
    if (part > 0) t.requests[part] = t.requests[0];
  }
}

/// The size rises as a write completes. In local[5] the parts that found no space.
void note_written(Thread& t, Memory& m) {
  t.local[5] = t.local[1] = 0;
  for (int part = 0; part < parts_of(t.local[2], t.local[3]); ++part) {
    if (t.requests[part].reply == no_space) {
      t.local[5] |= static_cast<u8>(1 << part);
    } else {
      t.local[1] = static_cast<u8>(part_of(t.local[2], t.local[3], part).second);
    }
  }
  if (t.local[5] != 0 && on(failed_write_is_cleaned) && t.local[3] > m.size) m.tail_dirty = 1;
  m.size = std::max(m.size, t.local[1]);
}

void write_returns(State& s, const Thread& t, const Memory& m, bool append) {
  for (int part = 0; part < (append ? 1 : parts_of(t.local[2], t.local[3])); ++part) {
    const int end = part_of(t.local[2], t.local[3], part).second;
    const bool nothing = (t.local[5] >> part & 1) != 0 || (is_fenced(s, t.client) && end > m.stored);
    part_returns(s, t, part, nothing ? Came::to_nothing : Came::through);
  }
}

}  // namespace

bool write(State& s, Thread& t, Memory& m, int begin, int end, int value, bool append) {
  RESUMABLE(0)
  t.local[2] = static_cast<u8>(begin);
  t.local[3] = static_cast<u8>(end);
  if (append && !on(append_at_own_size)) {
    READ_INODE();
    t.local[2] = t.seen.size;
    t.local[3] = t.local[2] + 1;
  }
again:
  UNTIL(is_free(m) && (m.holds == 0 || append || !on(overlapping_writes_wait) || !is_busy(m, begin, end)));
  if (m.holds == 0) {
    CALL(acquire(s, t, m));
    if (refused_for_good(s, t, 2)) return true;
    goto again;
  }
  if (append) {
    if (on(append_alone)) {
      m.alone = 1;
      UNTIL(m.changes == 0);
    }
    if (on(append_at_own_size)) {
      t.local[2] = m.size;
      t.local[3] = t.local[2] + 1;
    }
    if (t.local[2] >= blocks) {
      if (on(append_alone)) m.alone = 0;
      part_returns(s, t, 0, Came::through);
      return true;
    }
  }
  m.changes++;
  note_range(m, t.local[2], t.local[3], 1);
  if (on(bits_before_data)) CALL(set_map_bits(s, t, m, t.local[2], t.local[3]));
  send_writes(t, m, t.local[2], t.local[3], value);
  STORE_ANSWERS();
  if (!on(bits_before_data)) CALL(set_map_bits(s, t, m, t.local[2], t.local[3]));
  note_range(m, t.local[2], t.local[3], -1);
  note_written(t, m);
  m.changes--;
  if (append && on(append_alone)) m.alone = 0;
  if (t.local[5] != 0 && m.tail_dirty != 0) {
    if (on(failed_write_cleans_alone)) {
      UNTIL(m.alone == 0 && m.changes == 0 && m.reads == 0);
      if (m.tail_dirty != 0) m.alone = 1;
    }
    if (m.tail_dirty != 0) {
      CALL(cut_tail(t, m, m.size));
      if (on(failed_write_cleans_alone)) m.alone = 0;
      m.tail_dirty = 0;
    }
  }
  write_returns(s, t, m, append);
  RESUMABLE_END;
}

bool truncate(State& s, Thread& t, Memory& m, int size) {
  RESUMABLE(0)
again:
  UNTIL(is_free(m));
  if (m.holds == 0) {
    CALL(acquire(s, t, m));
    if (refused_for_good(s, t, 1)) return true;
    goto again;
  }
  if (on(truncate_alone) || size >= m.size) {
    m.alone = 1;
    UNTIL(m.changes == 0 && (!on(reads_are_awaited) || m.reads == 0) && may_step(m));
  }
  if (size == m.size && size == m.stored && !on(step_without_change)) goto over;
  if (size < m.size && !on(size_before_cut)) CALL(cut_tail(t, m, size));
  m.inode_step = 1;
  t.local[1] = size < m.size ? 1 : 0;
  send(t, m, store_size, 0, size);
  STORE_ANSWERS();
  m.inode_step = 0;
  if (was_refused(t)) s.wrong = lease_lost_unfenced;
  m.size = m.stored = static_cast<u8>(size);
  if (t.local[1] == 0 || !on(size_before_cut)) goto over;
  if (!on(cut_is_definite)) m.alone = 0;
  CALL(cut_tail(t, m, size));
  if (!on(cut_is_definite)) goto returns;
over:
  m.alone = 0;
returns:
  part_returns(s, t, 0, Came::through);
  RESUMABLE_END;
}

namespace {

/// Whole objects are removed, parts zeroed; what is not mapped needs nothing. In local[2] how many requests it took.
void send_punches(Thread& t, const Memory& m, int begin, int end) {
  Request requests[2] = {};
  t.local[2] = 0;
  for (int part = 0; begin < end && part < parts_of(begin, end); ++part) {
    const auto [from, to] = part_of(begin, end, part);
    if ((m.map >> from / 2 & 1) == 0) continue;
    const bool whole = to - from == 2;
    send(t, m, whole ? remove_data : zero_data, from / 2, from % 2, to - from / 2 * 2);
    requests[t.local[2]++] = t.requests[0];
  }
  t.requests[0] = requests[0];
  t.requests[1] = requests[1];
}

}  // namespace

bool punch(State& s, Thread& t, Memory& m, int begin, int end) {
  RESUMABLE(0)
again:
  UNTIL(is_free(m) && (m.holds == 0 || !on(punch_alone) || !is_busy(m, begin, end)));
  if (m.holds == 0) {
    CALL(acquire(s, t, m));
    if (refused_for_good(s, t, parts_of(begin, end))) return true;
    goto again;
  }
  t.local[3] = std::min(static_cast<u8>(end), m.size);
  m.changes++;
  if (on(punch_alone)) note_range(m, begin, t.local[3], 1);
  send_punches(t, m, begin, t.local[3]);
  if (t.local[2] != 0) STORE_ANSWERS();
  if (on(step_without_change) && t.local[2] < parts_of(begin, end)) {
    UNTIL(may_step(m));
    m.inode_step = 1;
    t.local[1] = m.size;
    send(t, m, store_size, 0, m.size);
    STORE_ANSWERS();
    m.inode_step = 0;
    m.stored = t.local[1];
  }
  if (on(punch_alone)) note_range(m, begin, t.local[3], -1);
  m.changes--;
  for (int part = 0; part < parts_of(begin, end); ++part) part_returns(s, t, part, Came::through);
  RESUMABLE_END;
}

}  // namespace lease_model
