# SPDX-License-Identifier: LGPL-2.1-or-later
"""One file, its clients' memories, and what must be true of it.

The file has BLOCKS blocks; each is a unit of the buffer and a data object. A block holds the number of the
write that wrote it; 0: a hole, or past the end; 1: from the beginning; 10 to 19: by C0, 20 to 29: by C1."""

from typing import NamedTuple

BLOCKS = 2
NOTHING = (0,) * BLOCKS
INODE, DIRECTORY = 0, BLOCKS + 1  # the objects; data objects are between the two


class Inode(NamedTuple):
    exists: bool = True
    dead: bool = False
    size: int = 0
    lease: int = 0  # 0, or the holder + 1


class Memory(NamedTuple):
    alive: bool = True
    holds: bool = False  # the lease
    acquiring: int = 0  # 1: it acquires the lease; 2: it takes over
    releasing: bool = False
    stepping: bool = False  # a step on the inode is in flight
    size: int = 0
    stored: int = 0  # what of the size the inode says
    dirty: tuple = NOTHING
    flying: tuple = ((),) * BLOCKS  # buffered bytes on their way
    direct: tuple = NOTHING  # direct writes under way
    writers: int = 0  # handles open for writing
    handles: int = 0  # others
    opening: int = 0
    unseen: bool = False  # born leased, and never asked by another instance
    throws_away: bool = False  # what is dirty when it releases


class World(NamedTuple):
    inode: Inode
    name: str  # x.tmp, x (it was renamed over another file), or none
    data: tuple
    memory: tuple
    fenced: int = 0  # one bit each
    barred: tuple = (0,) * (BLOCKS + 2)  # of each object, whom the fence bars from it
    questions: frozenset = frozenset()  # (who asks, kind, client)
    silent: frozenset = frozenset()  # who asks, and was not answered
    crashes: int = 0
    repeats: int = 0
    evictions: int = 0
    silences: int = 0
    # What must be true
    order: tuple = ()  # of each block, its values in the order in which they were written
    durable: tuple = NOTHING  # the store must show this, or newer
    published: tuple = NOTHING  # an open that begins now must see this, or newer
    floors: frozenset = frozenset()  # (who, what its read must see)
    renames: frozenset = frozenset()  # (who, what x must show from its commit on)
    wrong: str = ""


def put(items, index, item):
    return items[:index] + (item,) + items[index + 1 :]


def remember(world, client, **changes):
    return world._replace(memory=put(world.memory, client, world.memory[client]._replace(**changes)))


def is_fenced(world, client):
    return world.fenced >> client & 1 != 0


def visible(world, block):
    """What a reader finds in the store."""
    return world.data[block] if world.inode.exists and block < world.inode.size else 0


def newer(world, block, one, other):
    order = world.order[block]
    return one if order.index(one) >= order.index(other) else other


def writer_of(value):
    return value // 10 - 1


def last_own(world, client, block):
    """That was answered."""
    unanswered = world.memory[client].direct[block]
    order = reversed(world.order[block])
    return next((value for value in order if writer_of(value) == client and value != unanswered), 0)


def written(world, client, block, value):
    """A client that was evicted and does not know it: a write from before the eviction that lands late."""
    order = world.order[block]
    at = order.index(visible(world, block)) + 1 if is_fenced(world, client) else len(order)
    return world._replace(order=put(world.order, block, order[:at] + (value,) + order[at:]))


def closed(world, client):
    if is_fenced(world, client):
        return world
    last = [newer(world, b, last_own(world, client, b), world.published[b]) for b in range(BLOCKS)]
    return world._replace(published=tuple(last))


def lost(world, client):
    """A client died, or was evicted: what of its bytes the store does not show may be gone."""

    def still_there(values):
        return tuple(
            newer(world, b, world.durable[b], visible(world, b))
            if writer_of(value) == client and newer(world, b, visible(world, b), value) == value
            else value
            for b, value in enumerate(values)
        )

    floors = frozenset((who, still_there(values)) for who, values in world.floors)
    return world._replace(published=still_there(world.published), floors=floors)


def made_durable(world, values):
    return world._replace(durable=tuple(newer(world, b, values[b], world.durable[b]) for b in range(BLOCKS)))


def violation(before, after):
    if after.wrong:
        return after.wrong
    if not after.inode.exists:
        return f"M: data objects {after.data}, and no inode" if any(after.data) else ""
    size, data = after.inode.size, after.data
    if after.inode.lease == 0 and any(data[size:]):
        return f"T: no lease, size {size}, and {data} is there"
    if after.inode.dead:
        return ""
    if not all(data[:size]):
        return f"the size covers bytes that were never written: {data[:size]}"
    for b in range(BLOCKS):
        shown = visible(after, b)
        if newer(after, b, shown, after.durable[b]) != shown:
            return f"block {b} shows {shown}; {after.durable[b]} must survive every crash"
        if newer(after, b, shown, visible(before, b)) != shown:
            return f"block {b} goes back from {visible(before, b)} to {shown}"
    return ""
