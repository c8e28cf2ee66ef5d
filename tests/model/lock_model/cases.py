# SPDX-License-Identifier: LGPL-2.1-or-later
"""For each rule a case that goes wrong without it; and the cases of the short and the long run."""

from .model import Case, LockModel
from .world import READ, WRITE


def try_lock(byte, mode=WRITE):
    return ("lock", byte, mode, False)


def wait_lock(byte, mode=WRITE):
    return ("lock", byte, mode, True)


UNLOCK, UNLOCK_1, CLOSE, END, AFTER_ALL = ("unlock", 0), ("unlock", 1), ("close",), ("end",), ("after all",)
TRY, WAIT, WAIT_1, TRY_1 = try_lock(0), wait_lock(0), wait_lock(1), try_lock(1)
LAST = (AFTER_ALL, TRY)

READ_0, WRITE_0 = try_lock(0, READ), try_lock(0)
A, B = (WAIT, UNLOCK), (WAIT_1, UNLOCK_1)

TWO = Case(((0, A), (1, A)))
LEASES_AGAIN = Case(((0, A), (1, A * 2)), leases_again=True)
OTHER_BYTES = Case(((0, A), (1, B)), size=2, leases_again=True)
UNLOCK_TWICE = Case(((0, A * 2), (1, (TRY, UNLOCK))), repeats=1)
SHARE_TWICE = Case(((0, A * 2), (1, A)), repeats=1)
INTERRUPTED = Case(((0, A), (1, A + B)), size=2, repeats=1, interrupts=1)
FORGETS = Case(((0, (*A, CLOSE, *A)), (1, A)))
SLOW = Case(((0, A), (1, A)), slow=1)
EVICTED = Case(((0, A), (1, A)), evictions=1)
THREE = Case(((0, A), (1, A), (2, A)))
TRIES = Case(((0, (WAIT, TRY_1, UNLOCK, UNLOCK_1)), (1, B)), size=2)

FULL = Case(((0, A * 2), (1, A)), repeats=1, errors=1)
LESSENED = Case(((0, (WRITE_0, READ_0, UNLOCK)), (1, (READ_0, UNLOCK))), repeats=1, errors=1)

NEEDED = [
    ("LEASE_GUARDS_STATE", TWO),
    ("LEASED_WHEN_ALONE", OTHER_BYTES),
    ("LOCK_GUARDS_TOKEN", LEASES_AGAIN),
    ("LOCK_WRITES_TOKEN", LEASES_AGAIN),
    ("UNLOCK_GUARDS_KEY", UNLOCK_TWICE),
    ("KEY_HAS_NUMBER", UNLOCK_TWICE),
    ("LOCKS_STAYS", THREE),
    ("SHARING_GRANTS_NOTHING", FORGETS),
    ("SHARE_REFUSED_IS_DONE", SHARE_TWICE),
    ("LOCK_DECIDED_BY_KEY", INTERRUPTED),
    ("ERROR_KNOWS_NOTHING", FULL),
    ("ERROR_LESSENS", LESSENED),
    ("OWN_LEASE_IS_ADOPTED", FORGETS),
    ("ONE_AT_A_TIME", SLOW),
    ("DROPPED_MEANWHILE", TRIES),
    ("UNLOCK_WAITS", TRIES),
    ("FORGOTTEN_WHEN_IDLE", FORGETS),
    ("HOLDER_READS", FORGETS),
    ("FENCE_FIRST", EVICTED),
    ("REFUSED_ON_READ", TRIES),
]

# ---- pairs

PROGRAMS = [
    A,
    A * 2,
    (*A, CLOSE, *A, CLOSE),
    (TRY, UNLOCK, CLOSE, TRY, UNLOCK),
    (READ_0, WRITE_0, UNLOCK),
    (WRITE_0, READ_0, UNLOCK),
    (*A, END),
]
OF_TWO_BYTES = [(WAIT, WAIT_1, UNLOCK, UNLOCK_1), (TRY_1, TRY, UNLOCK, UNLOCK_1), (*B, *A, CLOSE)]
NO_FAULT = {}
FAULTS = [
    {"repeats": 1},
    {"slow": 1},
    {"crashes": 1},
    {"evictions": 1},
    {"errors": 1},
    {"impatience": 1},
]
MORE_FAULTS = [
    {"crashes": 1, "repeats": 1},
    {"evictions": 1, "slow": 1},
    {"interrupts": 1, "repeats": 1},
    {"errors": 1, "repeats": 1},
    {"slow": 1, "repeats": 2},
]


def pairs(all_faults, programs=PROGRAMS, leases_again=(False, True), size=1, more=()):
    return [
        Case(((0, one), (1, other), *more), size=size, leases_again=again, **faults)
        for k, one in enumerate(programs)
        for j, other in enumerate(programs)
        for again in leases_again
        for faults in all_faults
        if j >= k or "crashes" in faults or "evictions" in faults
    ]


LAST = (AFTER_ALL, TRY, UNLOCK)
OWNERS = Case(((0, A), (0, (*B, CLOSE)), (1, (TRY, UNLOCK))), size=2, leases_again=True)
LARGE = (THREE, FULL)
NAMED = sorted((case for case in list(globals().values()) if isinstance(case, Case) and case not in LARGE), key=str)
WITH_A_THIRD = [
    Case(((0, A), (1, A), (2, LAST)), leases_again=True),
    Case(((0, A), (1, A), (2, LAST)), evictions=1),
    Case(((0, A), (1, A), (2, LAST)), crashes=1),
    Case(((0, (*A, END)), (1, A), (2, LAST)), repeats=1),
]
SHORT = [
    ("named cases", NAMED),
    ("one that comes last", WITH_A_THIRD),
    ("pairs, no fault", pairs([NO_FAULT], [A, A * 2, (TRY, UNLOCK, CLOSE, TRY, UNLOCK)], (False,))),
    ("pairs, one fault", pairs(FAULTS, [A], (True,))),
]
LONG = [
    ("pairs, no fault", pairs([NO_FAULT])),
    ("pairs, two bytes", pairs([NO_FAULT], [A, *OF_TWO_BYTES], size=2)),
    ("pairs, one fault", pairs(FAULTS)),
    ("pairs, two faults", pairs(MORE_FAULTS)),
    ("three clients", [THREE._replace(leases_again=again, **f) for again in (False, True) for f in FAULTS]),
]


def model_of(case):
    return LockModel(case)
