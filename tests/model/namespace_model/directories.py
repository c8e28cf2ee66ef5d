# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sealing an empty directory, and rmdir (docs/PROTOCOL.md section 6; src/fs/seals.cpp, rmdir.cpp). The last
step, seal -> dead, is left to recount."""

from .reading import unchanged, where_is
from .rules import on
from .settling import resolve, settle_mark, settle_seal
from .steps import ATTEMPTS, key_token, log_directory, log_inode, numbered, read, repeatable
from .store import TYPE


def _first_entry(ino, inode, token):
    """ "empty", "full", or "again": something was settled or cleaned on the way."""
    for name, entry in inode.entries:
        if not on("EMPTY_FOR_READERS"):
            return "full"
        if entry[1]:
            where = yield from where_is(ino, name, entry)
            if where == "moved":
                yield from settle_mark(ino, name, entry, token)
            return "full" if where == "here" else "again"
        child = yield from read(entry[0], "state")
        if child is not None and child[0] != "dead":
            return "full"
        yield from numbered(ino, [("entry", name, entry)], [("remove entry", name)])
        return "again"
    return "empty"


def seal_empty(ino, seal, expected, token):
    """ "sealed", "again", or an errno. `expected`: the names as read, which an error rests on."""
    seen = yield from read(ino, "everything", version=True)
    if seen is None or seen[0].state == "dead":
        return "again"  # whoever resolves the name again removes the entry
    inode = seen[0]
    if inode.is_sealed():
        yield from settle_seal(ino, inode.state, token)
        return "again"
    content = yield from _first_entry(ino, inode, token)
    if content == "again":
        return "again"
    if content == "full":
        if on("RECHECK_ERRORS"):
            same = yield from unchanged(expected)
            if not same:
                return "again"
        return "ENOTEMPTY"
    yield from log_inode(ino, token)
    yield from log_directory(seal[1], token)
    done = yield from numbered(ino, [("version",)], [("state", seal if on("SEAL") else "dead")])
    if done == "missing" and not on("GONE_STARTS_OVER"):
        return "ENOENT"
    return "sealed" if done == "applied" else "again"


def take_back(ino, seal):
    """By the owner of the seal, whose step in the parent was certainly not applied."""
    yield from numbered(ino, [("state", seal)], [("state", "live")])
    yield from repeatable(seal[1], [], [("forget decision", seal[0])])


def rmdir(directory, name, operation):
    for attempt in range(ATTEMPTS):
        token = operation * 10 + attempt
        there = yield from resolve(directory, name, token)
        if there[0] != "there":
            return "ENOENT" if there[0] == "absent" else there[1]
        entry = there[1]
        ino = entry[0]
        if TYPE[ino] == "f":
            return "ENOTDIR"
        seal = (token, directory, name)
        result = yield from seal_empty(ino, seal, [(directory, name, entry)], token)
        if result == "again":
            continue
        if result != "sealed":
            return result
        if not on("SEAL"):  # as first written: dead first, then the name goes
            yield from numbered(directory, [("entry", name, entry)], [("remove entry", name)])
            return "OK"
        done = yield from numbered(
            directory,
            [("entry", name, entry), ("not decided", token)],
            [("remove entry", name), ("detach", ino, key_token(token), token)],
        )
        if done == "applied":
            return "OK"
        yield from take_back(ino, seal)
    return "EAGAIN"
