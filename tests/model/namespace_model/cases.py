# SPDX-License-Identifier: LGPL-2.1-or-later
"""For each rule a case that goes wrong without it, the shortest known; and the sweeps over pairs of
operations."""

from .model import NamespaceModel
from .state import Case
from .worlds import WORLDS, is_built, operations_in, with_number

RENAME_ACROSS = ("rename", 2, "a", 3, "b")
RENAME_INSIDE = ("rename", 2, "a", 2, "b")
INTO_EACH_OTHER = (("rename", 2, "a", 5, "c"), ("rename", 3, "b", 4, "c"))
ONLY_REPEATS = {"faults": 1, "crashes": False, "lost_answers": False}
ONE_PASS = {"collectors": 1, "passes": 1}

NEEDED = [
    ("ENTRY_TOKENS", Case("a file", (RENAME_ACROSS, ("then", RENAME_ACROSS, ("rename", 3, "b", 2, "a"))))),
    ("WHOLE_VALUE", Case("a file", (RENAME_ACROSS, ("unlink", 2, "a")))),
    ("REREAD_DEAD", Case("two files", (RENAME_INSIDE,), reader=((2, "b"),), **ONE_PASS)),
    ("REREAD_MARKED", Case("a file", (RENAME_ACROSS,), reader=((3, "b"), (2, "a")))),
    ("RECHECK_ERRORS", Case("two directories", (("rename", 2, "b", 4, "c"), ("rename", 2, "b", 2, "a")))),
    ("SAME_INODE", Case("a file", (RENAME_INSIDE, RENAME_INSIDE))),
    ("STEP_NUMBERS", Case("a file", (("create", 2, "b", 21), ("unlink", 2, "b")), **ONLY_REPEATS)),
    (
        "STEP_NUMBERS_WAIT",
        Case(
            "a file",
            (RENAME_INSIDE, ("then", ("unlink", 2, "b"), ("rmdir", 1, "A"))),
            collectors=1,
            passes=2,
            **ONLY_REPEATS
        ),
    ),
    ("SEAL", Case("a directory", (RENAME_INSIDE, ("rmdir", 2, "a")))),
    ("GONE_STARTS_OVER", Case("two directories", (RENAME_INSIDE, ("rmdir", 2, "b")), **ONE_PASS)),
    (
        "EMPTY_FOR_READERS",
        Case("a file", (RENAME_ACROSS, ("rmdir", 1, "A")), reader=((3, "b"),), faults=1, lost_answers=False),
    ),
    ("OWN_DETACHED_KEY", Case("hard link", (("unlink", 2, "a"), ("unlink", 2, "b")), **ONE_PASS)),
    ("OWN_BACK_POINTER", Case("a file", (("link", 2, "a", 3, "b"),) * 2, faults=1, **ONE_PASS)),
    ("KEEP_BACK_POINTER", Case("a file", (RENAME_ACROSS, ("link", 2, "a", 2, "b")))),
    ("DIRECTORY_ITEM_ACROSS", Case("two files apart", (RENAME_ACROSS,))),
    ("TURNS", Case("two directories apart", INTO_EACH_OTHER)),
    ("TURN_DECIDES", Case("two directories apart", INTO_EACH_OTHER)),
    ("TOMBSTONE_STAYS", Case("a file", (RENAME_ACROSS, ("unlink", 2, "a")), faults=1)),
    ("SETTLER_LOGS", Case("a file", (RENAME_ACROSS, ("unlink", 2, "a")), **ONE_PASS)),
    ("ONLY_WHEN_RETIRED", Case("a file", (("link", 2, "a", 3, "b"),), faults=1, lost_answers=False, **ONE_PASS)),
    (
        "COLLECTOR_TOKENS",
        Case(
            "a file", (RENAME_ACROSS,), faults=1, collectors=2, passes=3, collectors_die=True, after_end=True
        ),
    ),
    ("DEAD_DIRECTORY_WAITS", Case("a file", (("unlink", 2, "a"), ("rmdir", 1, "A")), **ONE_PASS)),
    ("REMOVAL_COUNTS_FIRST", Case("three names", (("unlink", 2, "a"), ("unlink", 2, "b")), **ONE_PASS)),
    ("ONE_OF_DOUBLES", Case("hard link", (("link", 2, "a", 3, "b"), ("unlink", 2, "b")), **ONE_PASS)),
    ("DOUBLES_ARE_RETIRED", Case("a file", (("link", 2, "a", 3, "b"),) * 2, **ONE_PASS)),
    ("RECOUNT_VERSION", Case("a file", (("link", 2, "a", 2, "b"), ("unlink", 2, "a")), **ONE_PASS)),
]


ALL = tuple(world for world in WORLDS if world != "three names")
TWO = ("a file", "a directory")
MAY_DIE = {"collectors_die": True}
READERS = (((2, "a"), (3, "b")), ((3, "b"), (2, "a")), ((2, "a"), (2, "b")), ((2, "b"), (2, "a")))


def singles(world):
    for operation in operations_in(world):
        yield (with_number(operation, 0),)


def pairs(world, operations=None):
    operations = operations or operations_in(world)
    for i, first in enumerate(operations):
        for second in operations[i:]:
            yield (with_number(first, 0), with_number(second, 1))


def built_pairs(world):
    return pairs(world, [operation for operation in operations_in(world) if is_built(operation)])


def sweep(worlds, together, **settings):
    return [Case(world, operations, **settings) for world in worlds for operations in together(world)]


SHORT = [
    ("pairs, no fault", sweep(ALL, built_pairs)),
    ("pairs with renames across directories, no fault", sweep(TWO, pairs)),
    ("pairs, one collector", sweep(TWO, built_pairs, **ONE_PASS)),
    ("pairs, one fault", sweep(("a file",), built_pairs, faults=1)),
    (
        "one operation, one fault, a collector that may die",
        sweep(TWO, singles, faults=1, after_end=True, **MAY_DIE, **ONE_PASS),
    ),
]
LONG = [
    ("pairs, no fault", sweep(ALL, pairs)),
    (
        "one operation, two faults, a collector that may die",
        sweep(ALL, singles, faults=2, collectors=1, passes=3, after_end=True, **MAY_DIE),
    ),
    ("pairs, one fault", sweep(ALL, pairs, faults=1)),
    ("pairs, one fault, one collector", sweep(ALL, pairs, faults=1, **ONE_PASS)),
    (
        "one operation, one fault, a reader",
        [case for names in READERS for case in sweep(ALL, singles, faults=1, reader=names)],
    ),
    ("pairs, two faults", sweep(ALL, pairs, faults=2)),
    (
        "pairs, one fault, two collectors that may die",
        sweep(ALL, pairs, faults=1, collectors=2, passes=2, **MAY_DIE),
    ),
]
model_of = NamespaceModel
