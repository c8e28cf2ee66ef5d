# SPDX-License-Identifier: LGPL-2.1-or-later
"""Seals, marks and dangling names are settled by whoever wants to change something there
(docs/PROTOCOL.md rule 3 and section 6; src/reclaim/settle.cpp, src/fs/seals.cpp)."""

from .reading import has_a_name
from .rules import on
from .steps import key_token, log_directory, numbered, read, repeatable
from .store import CANCELLED

TRIES = 3


def settle_mark(directory, name, entry, token):
    """A rename across directories: finish it if it was committed, else cancel it."""
    ino, (mark_token, target, _), written_by = entry
    as_read = [("entry", name, entry)]
    for _ in range(TRIES):
        seen = yield from read(target, "decision", mark_token)
        decision = None if seen is None else seen[0]
        if seen is not None and decision is None:
            if on("SETTLER_LOGS"):
                yield from log_directory(target, token)
            done = yield from numbered(
                target, [("not decided", mark_token)], [("decide", mark_token, CANCELLED)]
            )
            if done == "refused":
                continue
            decision = CANCELLED
        if decision is not None and decision[0] == "committed":
            yield from numbered(directory, as_read, [("remove entry", name)])
            return
        yield from numbered(directory, as_read, [("set entry", name, ino, None, written_by)])
        if not on("TOMBSTONE_STAYS") and seen is not None:
            yield from repeatable(target, [], [("forget decision", mark_token)])
        return


def settle_seal(ino, seal, token):
    sealing_token, parent, _ = seal
    as_read = [("state", seal)]
    for _ in range(TRIES):
        seen = yield from read(parent, "outcome of seal", ino, key_token(sealing_token), sealing_token)
        if seen is None:  # the step in the parent can never come: a name elsewhere decides
            named = yield from has_a_name(ino)
            yield from numbered(ino, as_read, [("state", "live" if named else "dead")])
            return
        detached, decision = seen
        if detached is not None or decision is not None:
            yield from numbered(ino, as_read, [("state", "dead" if detached is not None else "live")])
            return
        if on("SETTLER_LOGS"):
            yield from log_directory(parent, token)
        neither = [("not decided", sealing_token), ("not detached", ino, key_token(sealing_token))]
        yield from numbered(parent, neither, [("decide", sealing_token, CANCELLED)])


def resolve(directory, name, token):
    """("there", entry, (state, nlink)), ("absent",) or ("error", errno), with marks and dangling names
    settled."""
    for _ in range(TRIES):
        seen = yield from read(directory, "entries", name)
        if seen is None or seen[0] == "dead":
            return ("error", "ENOENT")
        entry = seen[1]
        if entry is None:
            return ("absent",)
        if entry[1]:
            if not on(
                "WHOLE_VALUE"
            ):  # as first written: a mark without a decision was an entry like any other
                decision = yield from read(entry[1][1], "decision", entry[1][0])
                if decision is None or decision[0] is None:
                    inode = yield from read(entry[0], "state")
                    return ("there", entry, inode or ("live", 1))
            yield from settle_mark(directory, name, entry, token)
            continue
        inode = yield from read(entry[0], "state")
        if inode is None or inode[0] == "dead":
            yield from numbered(directory, [("entry", name, entry)], [("remove entry", name)])
            continue
        return ("there", entry, inode)
    return ("error", "EAGAIN")
