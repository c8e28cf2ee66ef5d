# SPDX-License-Identifier: LGPL-2.1-or-later
"""One inode's lock state, its clients' memories of it, and what must be true of them.

Locks are a tuple: of each byte the mode. `locks` in the inode is None (missing), or (LEASED or SHARED, client,
number); a key is None, or (number, locks)."""

from typing import NamedTuple

FREE, READ, WRITE = 0, 1, 2
LEASED, SHARED = "leased", "shared"
NOBODY = -1


class Memory(NamedTuple):
    """What a client remembers of the file. One that has forgotten it remembers that it has no locks."""

    held: tuple  # its locks
    alive: bool = True
    work: int = NOBODY  # who of this client works on the file's locks
    leased: bool = False
    sharing: bool = False
    state: object = None  # `locks` as known
    others: tuple = ()  # the keys as known with it
    key: object = None  # its own, as written
    number: int = 1  # of its next step
    expired: int = 0  # who is expired, as far as it knows: one bit each
    stale: int = NOBODY  # who works for a memory that was forgotten (a rule is off)
    unlocking: tuple = ()  # what must be true: (byte, mode) of unlocks that were not answered
    doubtful: tuple = ()  # ... of steps that ended in an error: they may stand
    wanted: tuple = ()  # ... and of the request whose step is on its way


class World(NamedTuple):
    memory: tuple
    locks: object = None
    keys: tuple = ()
    expired: int = 0  # as their records say
    fenced: int = 0  # of these, who did not end by itself
    barred: int = 0  # of these, who is refused by this object
    questions: frozenset = frozenset()  # (who asks, whom, whether it may wait)
    answers: frozenset = frozenset()  # (who asked, answer)
    late: frozenset = frozenset()  # (client, step): runs that may still come
    crashes: int = 0
    evictions: int = 0
    repeats: int = 0
    slow: int = 0
    errors: int = 0
    interrupts: int = 0
    impatience: int = 0
    wrong: str = ""


def put(items, index, item):
    return items[:index] + (item,) + items[index + 1 :]


def remember(world, client, **changes):
    return world._replace(memory=put(world.memory, client, world.memory[client]._replace(**changes)))


def conflict(one, other):
    return one != FREE and other != FREE and WRITE in (one, other)


def is_in(mask, client):
    return mask >> client & 1 != 0


def is_leased_by(locks, client):
    return locks is not None and locks[:2] == (LEASED, client)


def has(m, byte):
    """The mode that it has at any rate: less while a step makes it less."""
    return min([m.held[byte]] + [mode for where, mode in m.wanted if where == byte])


def stands(world, me, byte, mode):
    """Whether another client has a lock there that conflicts, or has asked for one, or has not heard of its end."""
    for client, m in enumerate(world.memory):
        if client == me or (is_in(world.expired, client) and not m.alive):
            continue
        modes = [m.held[byte]] + [what for where, what in m.unlocking + m.wanted + m.doubtful if where == byte]
        if any(conflict(mode, what) for what in modes):
            return True
    return False


def violation(world):
    if world.wrong:
        return world.wrong
    of = {c: m for c, m in enumerate(world.memory) if any(m.held) and not is_in(world.expired, c)}
    for client, m in of.items():
        modes = [has(m, byte) for byte in range(len(m.held))]
        for other in of:
            for byte, mode in enumerate(modes):
                if other < client and conflict(mode, has(of[other], byte)):
                    return f"C{other} and C{client} both have byte {byte}"
        if m.alive and not is_seen(world, client, modes):
            return f"C{client} has locks {m.held}, and nobody sees them: {stored(world)}"
    return ""


def is_seen(world, client, modes):
    """Of another client that looks."""
    if world.locks is not None and world.locks[0] == LEASED:
        return world.locks[1] == client
    key = world.keys[client]
    return key is not None and all(there >= mode for there, mode in zip(key[1], modes))


def left_over(world):
    """When all is done: a lock that stands for ever."""
    for client, m in enumerate(world.memory):
        if not m.alive or is_in(world.expired, client) or is_leased_by(world.locks, client):
            continue
        key = world.keys[client]
        if key is not None and key[1] != m.held and not m.doubtful:  # those go when another asks
            return f"C{client} has locks {m.held}, and its key still stands: {stored(world)}"
    return ""


def stored(world):
    keys = ", ".join(f"C{c} {key[1]}" for c, key in enumerate(world.keys) if key is not None)
    return f"{words(world.locks)}, {keys or 'no keys'}"


def words(locks):
    return "missing" if locks is None else f"{locks[0]}(C{locks[1]}, {locks[2]})"
