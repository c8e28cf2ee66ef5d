# SPDX-License-Identifier: LGPL-2.1-or-later
"""create and mkdir, unlink, link: step tables in src/fs/create.cpp,
link.cpp, unlink.cpp. The range intent of create is in the queue from the beginning."""

from .rules import on
from .settling import resolve, settle_seal
from .steps import ATTEMPTS, key_token, log_directory, log_inode, numbered, read, repeatable
from .store import TYPE, Inode


def insert(directory, name, ino, token):
    """The committing step of create and link: "OK", or the errno that another's doing calls for."""
    for _ in range(ATTEMPTS):
        free = [("state", "live"), ("entry", name, None)]
        done = yield from numbered(directory, free, [("set entry", name, ino, None, token)])
        if done == "applied":
            return "OK"
        seen = yield from read(directory, "entries", name)
        if seen is None or seen[0] == "dead":
            return "ENOENT"
        if isinstance(seen[0], tuple):
            yield from settle_seal(directory, seen[0], token)
        elif seen[1] is not None:
            there = yield from resolve(directory, name, token)
            if there[0] == "there":
                return "EEXIST"
    return "EAGAIN"


def create(directory, name, ino, operation):
    token = operation * 10
    there = yield from resolve(directory, name, token)
    if there[0] != "absent":
        return "EEXIST" if there[0] == "there" else there[1]
    yield from repeatable(ino, [], [("make", Inode("live", 1, parents=((directory, token),)))])
    result = yield from insert(directory, name, ino, token)
    if result != "OK":
        removed = yield from repeatable(ino, [("version",)], [("remove",)])
        if removed == "refused":
            yield from log_inode(ino, token)
    return result


def one_name_less(ino, nlink):
    if nlink > 1:
        yield from count_one_less(ino, nlink)


def count_one_less(ino, nlink, more_changes=()):
    while nlink > 0:
        done = yield from numbered(ino, [("nlink", nlink)], [("nlink", nlink - 1), *more_changes])
        if done != "refused":
            return
        seen = yield from read(ino, "state")
        if seen is None:
            return
        nlink = seen[1]


def unlink(directory, name, operation):
    for attempt in range(ATTEMPTS):
        token = operation * 10 + attempt
        there = yield from resolve(directory, name, token)
        if there[0] != "there":
            return "ENOENT" if there[0] == "absent" else there[1]
        _, entry, (_, nlink) = there
        ino = entry[0]
        if TYPE[ino] == "d":
            return "EISDIR"
        yield from log_directory(directory, token)
        guard = ("entry", name, entry) if on("WHOLE_VALUE") else ("entry ino", name, ino)
        done = yield from numbered(
            directory, [guard], [("remove entry", name), ("detach", ino, key_token(token), token)]
        )
        if done == "applied":
            yield from one_name_less(ino, nlink)
            return "OK"
    return "EAGAIN"


def link(directory, name, to_directory, to_name, operation):
    """By name here; the kernel hands over an inode: where that has died meanwhile, the name is looked up
    again."""
    result = None
    for _ in range(ATTEMPTS):
        result = yield from _link_once(directory, name, to_directory, to_name, operation * 10)
        if result is not None:
            return result
    return "EAGAIN"


def _link_once(directory, name, to_directory, to_name, token):
    there = yield from resolve(directory, name, token)
    if there[0] != "there":
        return "ENOENT" if there[0] == "absent" else there[1]
    _, entry, (_, nlink) = there
    ino = entry[0]
    if TYPE[ino] == "d":
        return "EPERM"
    target = yield from resolve(to_directory, to_name, token)
    if target[0] != "absent":
        return "EEXIST" if target[0] == "there" else target[1]
    yield from log_inode(ino, token)
    for _ in range(ATTEMPTS):
        done = yield from numbered(
            ino,
            [("state", "live"), ("nlink", nlink)],
            [("nlink", nlink + 1), ("add parent", to_directory, token)],
        )
        if done == "applied":
            break
        seen = yield from read(ino, "state")
        if seen is None or seen[0] == "dead":
            return None
        nlink = seen[1]
    else:
        return "EAGAIN"
    result = yield from insert(to_directory, to_name, ino, token)
    if result != "OK":
        seen = yield from read(ino, "state")
        if seen is not None:
            yield from count_one_less(ino, seen[1], [("drop parent", to_directory, token)])
    return result
