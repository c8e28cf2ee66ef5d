# SPDX-License-Identifier: LGPL-2.1-or-later
"""What clients do. Each `yield` is one moment: a step or a read of the inode, or something in the client's
memory (memory.py), which waits until it can be done."""

from actors import runs_operations

from .world import FREE


def lock(_me, byte, mode, waits):
    how = yield ("begin", byte, mode, waits)
    if how[0] == "read":
        seen = yield ("read", byte, mode)
        how = yield ("look", seen, byte, mode)
    if how[0] == "step":
        yield from carry_out(how[1], (byte, mode))
    elif how[0] in ("leased", "conflict"):
        _, other, seen = how
        yield ("ask", other, waits)
        heard = yield ("hear", other)
        if heard == "no answer" or (heard == "done" and how[0] == "conflict" and not waits):
            yield ("refuse", heard, seen[2])
        else:
            if heard == "done":
                yield ("wait for a change", other, seen[:2], waits)
            yield ("again",)


def unlock(_me, byte):
    mode = yield ("drop", byte)
    if mode is None:
        return
    how = yield ("begin unlock", byte, mode)
    if how == "read":
        seen = yield ("read", 0, FREE)
        how = yield ("look for the key", seen, (byte, mode))
    if how != "done":
        yield from carry_out(how, (byte, mode))


def carry_out(step, subject):
    applied = yield ("store", step)
    if applied == "error":
        yield ("failed", step, subject)
    elif applied:
        yield ("applied", step, subject)
    else:
        seen = yield ("read", 0, FREE)
        decided = yield ("decide", step, seen, subject)
        if not decided:
            yield ("again",)


def close(_me):
    yield ("forget",)


def end(_me):
    yield ("end",)


def after_all(_me):
    yield ("wait for the others",)


OPERATIONS = {"lock": lock, "unlock": unlock, "close": close, "end": end, "after all": after_all}


@runs_operations
def program(me, operations):
    kind, *arguments = operations[0]
    return OPERATIONS[kind](me, *arguments)


def answerer(_me):
    """Answers the questions of others, for ever."""
    how, askers = yield ("wake",)
    if how == "read":
        seen = yield ("read", 0, FREE)
        how = yield ("look for the key", seen, askers)
    if how != "done":
        yield from carry_out(how, askers)
