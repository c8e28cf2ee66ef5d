# SPDX-License-Identifier: LGPL-2.1-or-later
"""For each rule a case that goes wrong without it; and the cases of the short and the long run."""

from .model import BufferModel, Case

W0, W0_AGAIN, W0_THIRD, W1 = ("write", 0, 10), ("write", 0, 11), ("write", 0, 12), ("write", 1, 13)
OTHER_W0 = ("write", 0, 20)
OPEN_0, OPEN_1 = ("open_and_read", 0), ("open_and_read", 1)
FSYNC, CLOSE, STAT, FSTAT, RENAME = ("fsync",), ("close",), ("stat",), ("fstat",), ("rename",)
UNLINK, COLLECT, CLOSE_READER = ("unlink",), ("collect",), ("close_reader",)

REWRITE = Case(((0, (W0, W0_AGAIN, FSYNC, CLOSE)),), holder="taken", size=1, crashes=1, repeats=1)
GROW = Case(((0, (W0, W1, FSYNC, W0_AGAIN, CLOSE)),), crashes=1)
DIRECT = Case(((0, (W0, ("direct", 0, 11), CLOSE)), (0, (OPEN_0,))))
CLOSE_TO_OPEN = Case(((0, (W0, W1, CLOSE)), (1, (OPEN_0, STAT))), crashes=1)
WRITER_IS_ASKED = Case(((0, (W0, CLOSE, W1, W0_AGAIN)), (1, (OPEN_0, STAT))), writers=(2, 0))
STAT_AND_OPEN = Case(((0, (W0, CLOSE)), (1, (STAT,)), (1, (OPEN_0,))))
LATE_RELEASE = Case(((0, (W0, CLOSE, OPEN_0)), (1, (OTHER_W0, CLOSE))), writers=(1, 1), repeats=1)
WRITERS = Case(((0, (W0, W1, CLOSE)), (1, (OTHER_W0, FSYNC, CLOSE))), writers=(1, 1), crashes=1)
OVERSTAT_AND_OPEN = Case(((0, (W0, CLOSE)), (1, (STAT,)), (1, (OPEN_0,))))
WRITERS = Case(
    ((0, (W0, CLOSE)), (1, (OTHER_W0, FSYNC, CLOSE))), holder="taken", size=2, writers=(1, 1), evictions=1, repeats=1
)
REMOVED = Case(((0, (W0, W1, CLOSE)), (1, (UNLINK, COLLECT))), crashes=1)
REMOVED_WHILE_OPENED = Case(((0, (W0, CLOSE, UNLINK)), (1, (OPEN_0,)), (1, (COLLECT,))))
REPLACED = Case(((0, (W0, W1, CLOSE, RENAME)),), crashes=1, repeats=1)
REPLACED_BY_OTHER = Case(((0, (W0, W1, CLOSE)), (1, (RENAME,))), crashes=1)

REMOVED_UNDER_READER = Case(
    ((0, (W0, CLOSE)), (1, (UNLINK, COLLECT)), (1, (FSTAT, CLOSE_READER))), holder="taken", readers=(0, 1)
)
REMOVED_UNDER_OWN_READER = Case(
    ((0, (W0, CLOSE)), (0, (("read_by_handle", 0), CLOSE_READER)), (1, (UNLINK, COLLECT))), readers=(1, 0)
)
LOCAL_READ = Case(((0, (W0, W0_AGAIN, CLOSE)), (0, (OPEN_0, OPEN_0))), holder="taken", size=1)

NEEDED = [
    ("NO_OVERTAKING", REWRITE),
    ("DIRECT_WAITS", DIRECT),
    ("SIZE_AFTER_BYTES", GROW),
    ("FSYNC_WAITS", REWRITE),
    ("RELEASE_WRITES_OUT", CLOSE_TO_OPEN),
    ("NOTHING_NEW_IN", WRITERS),
    ("RELEASE_ENDS_MEMORY", LATE_RELEASE),
    ("COPY_BEFORE_STORE", LOCAL_READ),
    ("IDLE_IS_ASKED", CLOSE_TO_OPEN),
    ("WRITER_STORES", WRITER_IS_ASKED),
    ("ANSWERS_WHAT_CAME_BEFORE", STAT_AND_OPEN),
    ("OPEN_ASKS", CLOSE_TO_OPEN),
    ("REREAD_AFTER_DONE", CLOSE_TO_OPEN),
    ("TAKE_OVER_CUTS", CLOSE_TO_OPEN),
    ("LEASE_IS_NEED", REMOVED),
    ("GONE_ARE_FENCED", REMOVED),
    ("IN_FLIGHT_IS_DEFINITE", REMOVED),
    ("THROWN_AWAY_WHEN_DEAD", REMOVED_WHILE_OPENED),
    ("THROWN_AWAY_UNSEEN", REMOVED_UNDER_READER),
    ("THROWN_AWAY_CLOSED", REMOVED_UNDER_OWN_READER),
    ("FORGOTTEN_STAYS", REMOVED),
    ("RENAME_STORES", REPLACED),
    ("RENAME_ASKS", REPLACED_BY_OTHER),
    ("RENAME_REFUSES_LOST", REPLACED_BY_OTHER),
]

# ---- pairs

WRITERS_OF_C0 = [
    (W0, W1, CLOSE),
    (W0, W1, FSYNC, W0_AGAIN, CLOSE),
    (W0, W0_AGAIN, CLOSE, UNLINK),
    (W0, ("direct", 1, 13), CLOSE),
    (W0, ("direct", 0, 11), FSYNC, CLOSE),
    (W0, CLOSE, W1, W0_AGAIN, CLOSE),
    (W0, W1, RENAME, W0_AGAIN, CLOSE),
    (W0, CLOSE, OPEN_0, STAT),
]
PROGRAMS_OF_C1 = [
    (OPEN_0, OPEN_1),
    (STAT, OPEN_0),
    (OTHER_W0, FSYNC, CLOSE),
    (("direct", 0, 20), CLOSE, OPEN_0),
    (OTHER_W0, CLOSE, RENAME),
    (RENAME,),
    (FSTAT, CLOSE_READER),
]
REMOVERS = [(UNLINK, COLLECT), (OPEN_0, UNLINK, COLLECT), (OTHER_W0, CLOSE, UNLINK, COLLECT)]
NO_FAULT = {}
FAULTS = [{"crashes": 1}, {"repeats": 1}, {"evictions": 1}, {"silences": 1}]


def pairs(all_faults, starts=(("born", 0), ("taken", 2), ("none", 1)), more=()):
    return [
        Case(
            ((0, one), (1, other), *more),
            holder=holder,
            size=size,
            writers=(one.count(CLOSE), other.count(CLOSE)),
            readers=(0, other.count(CLOSE_READER)),
            **faults,
        )
        for one in WRITERS_OF_C0
        for other in PROGRAMS_OF_C1 + REMOVERS
        for holder, size in starts
        for faults in all_faults
        if not (UNLINK in one and (COLLECT in other or RENAME in other))
        and not (RENAME in one and COLLECT in other)
    ]


NAMED = sorted((case for name, case in globals().items() if isinstance(case, Case)), key=str)
SHORT = [("named cases", NAMED), ("pairs", pairs([NO_FAULT], starts=[("born", 0)])[::2])]
LONG = [
    ("pairs, no fault", pairs([NO_FAULT])),
    ("pairs, one fault", pairs(FAULTS)),
    ("pairs and a reader", pairs([NO_FAULT], more=((1, (OPEN_0, STAT)),))),
    ("pairs, two faults", pairs([{"crashes": 1, "repeats": 2}, {"evictions": 1, "repeats": 1}])),
]


def model_of(case):
    return BufferModel(case)
