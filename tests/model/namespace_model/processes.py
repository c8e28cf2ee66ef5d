# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients, readers and collectors as processes: each runs operations, and what it does next follows from the
answers that it has had so far. And one transaction of theirs, applied to the volume."""

from typing import NamedTuple

from . import collector, directories, files, reading, renames
from .rules import MENDS, on
from .store import INODES, guards_hold, load, mutated, save

OPERATIONS = {
    "create": files.create,
    "unlink": files.unlink,
    "link": files.link,
    "rmdir": directories.rmdir,
    "rename": renames.rename,
    "exchange": renames.exchange,
    "look": reading.lookup,
    "handle": collector.handle,
}
FIRST_COLLECTOR = 90
LAST_COLLECTOR = 99  # the one that runs when everybody is expired
NEXT_OPERATION = 20  # operations of one client have numbers that lie so far apart


class Process(NamedTuple):
    status: str  # new, running, between (two lookups), idle (a collector), done, crashed, fenced
    kind: str = ""
    arguments: (
        tuple
    ) = ()  # of a client's operation, the last is the operation's number; all that is kept of a crashed one
    replies: tuple = ()
    versions: frozenset = frozenset()  # inodes that nobody has changed since they were read
    in_flight: object = None  # of a crashed one: the step that may still be applied

    def number(self):
        return self.arguments[-1]


_remembered = {}
MENDS.when_changed.append(_remembered.clear)


def next_request(kind, arguments, replies):
    """(what it does at once after the last reply, its next request or ("end", result))"""
    key = (kind, arguments, replies)
    known = _remembered.get(key)
    if known is not None:
        return known
    running = OPERATIONS[kind](*arguments)
    at_once, answered = [], 0
    try:
        request = next(running)
        while True:
            if request[0] in ("log", "unlog"):
                if answered == len(replies):
                    at_once.append(request)
                request = running.send(None)
                continue
            if answered == len(replies):
                break
            request = running.send(replies[answered])
            answered += 1
        found = (tuple(at_once), request)
    except StopIteration as end:
        found = (tuple(at_once), ("end", end.value))
    if len(_remembered) > 1_000_000:
        _remembered.clear()
    _remembered[key] = found
    return found


def change_queue(queue, at_once):
    for kind, *item in at_once:
        if kind == "log":
            queue = queue | {item[0]}
        elif kind == "unlog":
            queue = queue - {item[0]}
    return queue


def drop_numbers(volume, instance, inodes=INODES):
    """l/<instance> is of no more use: its step is decided, or the instance over."""
    for ino in inodes:
        inode = load(volume, ino)
        if inode is not None and instance in inode.undecided:
            volume = save(
                volume, ino, inode._replace(undecided=tuple(i for i in inode.undecided if i != instance))
            )
    return volume


def apply_step(volume, step, instance, versions, undecided=False):
    """(reply, volume). undecided: the answer will be lost, so that its step number is needed."""
    _, ino, guards, mutations, numbered = step
    numbered = numbered and on("STEP_NUMBERS")
    makes = mutations[0][0] == "make"
    inode = load(volume, ino)
    if inode is None and not makes:
        return "missing", volume
    if inode is not None:
        if makes:
            return "applied", volume  # its own fresh number: the birth token is its own
        if numbered and instance in inode.undecided:
            return "refused", volume
        if not guards_hold(inode, guards, ino in versions):
            return "refused", volume
    after = mutated(inode, mutations)
    if numbered and undecided and after is not None:
        after = after._replace(undecided=tuple(sorted(set(after.undecided) | {instance})))
    return "applied", save(volume, ino, after)


def own_number(volume, ino, instance):
    inode = load(volume, ino)
    if inode is None:
        return "missing"
    return "mine" if instance in inode.undecided else "other"
