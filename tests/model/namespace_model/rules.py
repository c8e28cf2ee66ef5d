# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rules of the namespace that can be switched off, one at a time. Those that say "across" belong to
renames across directories (docs/PROTOCOL.md section 6; their steps: src/fs/move.cpp)."""

from mends import Mends

MENDS = Mends(
    {
        "ENTRY_TOKENS": ("PROTOCOL, rule 2", "an entry carries the token of the step that wrote it"),
        "WHOLE_VALUE": ("PROTOCOL, rule 2", "a guard on an entry compares its whole value, mark included"),
        "REREAD_DEAD": (
            "PROTOCOL 3, V",
            "a reader that finds the inode dead or gone reads the entry again before it says: absent",
        ),
        "REREAD_MARKED": (
            "PROTOCOL 6, reader rule",
            "across: a reader that finds no decision reads the marked entry again",
        ),
        "RECHECK_ERRORS": (
            "PROTOCOL, rule 4",
            "an error that rests on two reads is given after the first, done again, is the same",
        ),
        "SAME_INODE": ("PROTOCOL 6, rename", "one inode under both names: success only if one more read shows both"),
        "STEP_NUMBERS": (
            "PROTOCOL, rule 5",
            "a guarded step also guards and sets l/<me>, which decides what became of it",
        ),
        "STEP_NUMBERS_WAIT": (
            "PROTOCOL 5, recount",
            "a dead inode with an l/ that is not retired is left for a later pass",
        ),
        "SEAL": (
            "PROTOCOL 6, rmdir",
            "an empty directory is sealed first; the step in its parent commits; then it is dead",
        ),
        "GONE_STARTS_OVER": (
            "PROTOCOL 6",
            "a seal that meets no object any more starts the operation over",
        ),
        "EMPTY_FOR_READERS": (
            "PROTOCOL 6, rmdir",
            "names that moved away, and dangling ones, do not make a directory full",
        ),
        "OWN_DETACHED_KEY": ("PROTOCOL 1", "d/<ino>/<token>: a key for each name removed, that nobody else writes"),
        "OWN_BACK_POINTER": ("PROTOCOL 1", "p/<parent>/<token>: a key for each operation, that nobody else writes"),
        "KEEP_BACK_POINTER": ("PROTOCOL 6; move.cpp, step 5", "across: the old back-pointer is left to recount"),
        "DIRECTORY_ITEM_ACROSS": (
            "PROTOCOL 6; move.cpp, step 0",
            "across: directory item P2 is logged, and leads to x/ keys as well",
        ),
        "TURNS": ("PROTOCOL 6", "across: directories move one after the other, by the turn on Super"),
        "TURN_DECIDES": (
            "PROTOCOL 6",
            "across: who takes the turn from a move that is not over decides that move first, then reads",
        ),
        "TOMBSTONE_STAYS": ("PROTOCOL 6; rule 6", "x/t = cancelled stays until t is retired"),
        "SETTLER_LOGS": ("PROTOCOL 5, 6", "whoever settles logs a directory item of its own before it cancels"),
        "ONLY_WHEN_RETIRED": (
            "PROTOCOL 2",
            "a trace is acted on when its operation is over or its instance fenced, not when it is old",
        ),
        "COLLECTOR_TOKENS": (
            "PROTOCOL 2",
            "what a collector writes and logs is not retired for other collectors while it works",
        ),
        "DEAD_DIRECTORY_WAITS": (
            "PROTOCOL 5, recount",
            "a dead directory with d/ or x/ keys stays: its own item comes first",
        ),
        "REMOVAL_COUNTS_FIRST": (
            "PROTOCOL 5, recount",
            "an inode that has just lost a name waits for the operation that took it: it corrects nlink by one",
        ),
        "ONE_OF_DOUBLES": (
            "PROTOCOL 5, recount",
            "of the retired back-pointers to one directory, of an inode that is left, one stays",
        ),
        "DOUBLES_ARE_RETIRED": (
            "PROTOCOL 5, recount",
            "a back-pointer that is not retired stands in for no other: it may be taken back",
        ),
        "RECOUNT_VERSION": ("PROTOCOL 5, recount", "recount's steps guard the version as read"),
    }
)
on = MENDS.on
