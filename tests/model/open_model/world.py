# SPDX-License-Identifier: LGPL-2.1-or-later
"""One inode, one reader with pages, and writers."""

from typing import NamedTuple

NOBODY = -1


class Writer(NamedTuple):
    program: tuple  # write, release
    seen: object = None  # (version, whether the reader's key stands): read to take the lease
    held: bool = False
    shared: bool = False  # the reader has opened the file since
    heard: int = 0  # when the opener was heard of; 0: none is known
    times: int = 0  # how often one was
    buffered: object = None  # bytes that the store does not have
    storing: object = None  # bytes of a write that is with the store
    due: bool = False  # a change is to be told
    told: object = None  # the question that is under way: (heard then, "sent" or the answer)


class Reader(NamedTuple):
    program: tuple  # open, read, close
    is_open: bool = False
    pages: object = None
    right: object = None  # the stamp as of which they are; None: not known
    reading: object = None  # bytes on their way into the pages
    drop: bool = False  # pages are to be dropped
    known: bool = False  # the holder knows, or the next one reads the key
    forgotten: bool = False  # it has answered `not open` since it began to make itself known
    phase: str = ""  # of what it does to be known
    asked: int = NOBODY  # whom


class World(NamedTuple):
    reader: Reader
    writers: tuple
    version: int = 0
    lease: int = NOBODY
    taken: int = 0
    key: bool = False
    stored: int = 0
    newest: int = 0  # what was answered last
    wrong: str = ""


def put(items, index, item):
    return items[:index] + (item,) + items[index + 1 :]


def of_reader(world, **changes):
    return world._replace(reader=world.reader._replace(**changes))


def of_writer(world, who, **changes):
    return world._replace(writers=put(world.writers, who, world.writers[who]._replace(**changes)))


def changed(world, **changes):
    """By a step on the inode."""
    return world._replace(version=world.version + 1, **changes)
