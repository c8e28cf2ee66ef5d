# SPDX-License-Identifier: LGPL-2.1-or-later
"""What names mean to a reader (docs/PROTOCOL.md invariant V, rule 4; section 6, reader rule)."""

from .rules import on
from .steps import read
from .store import ROOT


def where_is(directory, name, entry):
    """A marked entry has moved away, is here, or is to be looked at again: it changed while the decision was
    read."""
    token, target, _ = entry[1]
    seen = yield from read(target, "decision", token)
    if seen is not None and seen[0] is not None and seen[0][0] == "committed":
        return "moved"
    if on("REREAD_MARKED"):
        again = yield from read(directory, "entries", name)
        if again is None or again[1] != entry:
            return "again"
    return "here"


def lookup(directory, name):
    for _ in range(3):
        seen = yield from read(directory, "entries", name)
        if seen is None or seen[0] == "dead" or seen[1] is None:
            return "ENOENT"
        entry = seen[1]
        if entry[1]:
            where = yield from where_is(directory, name, entry)
            if where == "moved":
                return "ENOENT"
            if where == "again":
                continue
        inode = yield from read(entry[0], "state")
        if inode is not None and inode[0] != "dead":
            return entry[0]
        if on("REREAD_DEAD"):
            again = yield from read(directory, "entries", name)
            if again is not None and again[1] is not None and again[1] != entry:
                continue
        return "ENOENT"
    return "EAGAIN"


def has_a_name(ino):
    seen = yield from read(ino, "everything")
    if seen is None:
        return False
    for directory in sorted({parent for parent, _ in seen[0].parents}):
        names = yield from read(directory, "names of", ino)
        if names is None or names[0] == "dead":
            continue
        for name, entry in names[1]:
            where = "here"
            if entry[1]:
                where = yield from where_is(directory, name, entry)
            if where != "moved":
                return True
    return False


def is_inside(directory, ino):
    """Whether `directory` is `ino` or below it; None: it changed meanwhile. Under the rename lock."""
    for _ in range(6):
        if directory == ino:
            return True
        if directory == ROOT:
            return False
        seen = yield from read(directory, "everything")
        if seen is None:
            return None
        above = None
        for parent in sorted({parent for parent, _ in seen[0].parents}):
            names = yield from read(parent, "names of", directory)
            for name, entry in names[1] if names is not None else ():
                where = "here"
                if entry[1]:
                    where = yield from where_is(parent, name, entry)
                if where == "again":
                    return None
                if where == "here":
                    above = parent
        if above is None:
            return None
        directory = above
    return None


def unchanged(expected):
    """Whether the names still have these entries: [(directory, name, entry)], one read for each directory."""
    for directory in sorted({one[0] for one in expected}):
        here = [one for one in expected if one[0] == directory]
        seen = yield from read(directory, "entries", *(name for _, name, _ in here))
        if seen is None or list(seen[1:]) != [entry for _, _, entry in here]:
            return False
    return True
