// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Functions that stop in the middle, and whose whole state is bytes in the Thread `t`: what C++ coroutines cannot do is
// be copied and compared. A resumable function returns true at its end, and false whenever it stops; called again, it
// continues where it stopped. Its locals live in t.local. Up to three may call each other: levels 0, 1 and 2.
#pragma once

#include "state.h"

#define RESUMABLE(level)                                  \
  switch (constexpr int level_ = (level); t.at[level_]) { \
    case 0:

#define RESUMABLE_END \
  }                   \
  return true

#define LEASE_MODEL_STOP(here) \
  do {                         \
    t.at[level_] = (here) + 1; \
    return false;              \
    case (here) + 1:;          \
  } while (false)

#define LEASE_MODEL_UNTIL(here, condition) \
  do {                                     \
    t.at[level_] = (here) + 1;             \
    [[fallthrough]];                       \
    case (here) + 1:                       \
      if (!(condition)) {                  \
        t.phase = waits_for_client;        \
        return false;                      \
      }                                    \
  } while (false)

#define LEASE_MODEL_CALL(here, function) \
  do {                                   \
    t.at[level_ + 1] = 0;                \
    t.at[level_] = (here) + 1;           \
    [[fallthrough]];                     \
    case (here) + 1:                     \
      if (!(function)) return false;     \
  } while (false)

/// After send(): continues when the store has answered.
#define STORE_ANSWERS() LEASE_MODEL_STOP(__COUNTER__)
/// Continues when others have brought about the condition.
#define UNTIL(condition) LEASE_MODEL_UNTIL(__COUNTER__, condition)
/// Of a resumable function of the next level.
#define CALL(function) LEASE_MODEL_CALL(__COUNTER__, function)
/// A read of the inode into t.seen: others may act between what it shows and its use.
#define READ_INODE()              \
  do {                            \
    t.split = 1;                  \
    send(t, m, read_inode, 0, 0); \
    STORE_ANSWERS();              \
  } while (false)

namespace lease_model {

inline void send(Thread& t, const Memory& m, RequestKind kind, int object, int argument, int end = 0, int value = 0) {
  t.requests[0] = {kind,
                   static_cast<u8>(object),
                   static_cast<u8>(argument),
                   static_cast<u8>(end),
                   static_cast<u8>(value),
                   in_flight,
                   refused,
                   m.knows,
                   0};
  t.phase = waits_for_store;
}

inline bool was_refused(const Thread& t) { return t.requests[0].reply == refused; }

}  // namespace lease_model
