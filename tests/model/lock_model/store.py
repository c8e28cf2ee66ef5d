# SPDX-License-Identifier: LGPL-2.1-or-later
"""The four steps (docs/LOCKS.md section 2): each is a transaction on the inode.

    ("lease", number, guard, whose keys go)
    ("share", number, guard, locks of the own key)
    ("lock", number, guard, locks of the own key, whose keys go)
    ("unlock", number, guard, locks of the own key)"""

from .rules import on
from .world import LEASED, SHARED, is_leased_by, put


def apply(world, client, step):
    """(whether its guard held, world)."""
    kind, number, guard = step[:3]
    if not guard_holds(world, client, kind, guard):
        return False, world
    if kind == "lease":
        return True, without(world, step[3] | 1 << client)._replace(locks=(LEASED, client, number))
    key = (number, step[3]) if any(step[3]) else None
    if kind == "lock":
        world = without(world, step[4])
    after = world._replace(keys=put(world.keys, client, key))
    if kind == "share":
        return True, after._replace(locks=(SHARED, client, number) if on("LOCKS_STAYS") else None)
    if kind == "lock" and on("LOCK_WRITES_TOKEN"):
        return True, after._replace(locks=(SHARED, client, number))
    return True, after


def guard_holds(world, client, kind, guard):
    if kind == "unlock":
        return not on("UNLOCK_GUARDS_KEY") or same_key(world.keys[client], guard)
    if kind == "lock" and not on("LOCK_GUARDS_TOKEN"):
        return world.locks is not None and world.locks[0] == SHARED
    if kind == "lease" and not on("LEASE_GUARDS_STATE"):
        return not is_leased_by(world.locks, client)
    return world.locks == guard


def same_key(one, other):
    if one is None or other is None or on("KEY_HAS_NUMBER"):
        return one == other
    return one[1] == other[1]


def without(world, mask):
    return world._replace(keys=tuple(None if mask >> c & 1 else key for c, key in enumerate(world.keys)))


def was_applied(me, step, locks, keys):
    """After a failed guard, on the inode as it was read then."""
    kind, number, guard = step[:3]
    if kind == "lease":
        return locks == (LEASED, me, number)
    if kind == "share":
        return on("SHARE_REFUSED_IS_DONE") and locks != guard
    if kind == "unlock":
        return not same_key(keys[me], guard)
    if on("LOCK_DECIDED_BY_KEY"):
        return keys[me] is not None and keys[me][0] == number
    return locks == (SHARED, me, number)
