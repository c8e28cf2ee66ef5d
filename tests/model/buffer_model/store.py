# SPDX-License-Identifier: LGPL-2.1-or-later
"""Steps: transactions on one object."""

from .world import BLOCKS, DIRECTORY, INODE, Inode, made_durable, put


def object_of(step):
    if step[0] in ("write data", "remove data", "read data"):
        return 1 + step[1]
    return DIRECTORY if step[0] in ("unlink", "rename") else INODE


def apply(world, client, step):
    """(whether its guards held, world)."""
    kind, inode = step[0], world.inode
    if kind == "write data":
        return True, world._replace(data=put(world.data, step[1], step[2]))
    if kind == "remove data":
        return True, world._replace(data=put(world.data, step[1], 0))
    if kind == "unlink":
        return True, world._replace(name="none")
    if kind == "rename":
        return True, made_durable(world._replace(name="x"), dict(world.renames)[step[1]])
    if not inode.exists:
        return False, world
    if kind == "mark dead":
        return True, world._replace(inode=inode._replace(dead=True))
    if kind == "remove inode":
        if inode != step[1]:
            return False, world
        return True, world._replace(inode=Inode(exists=False))
    guarded = {"take lease": 0, "take over": step[-1] + 1}.get(kind, client + 1)
    if inode.lease != guarded or (kind == "take lease" and inode.size != step[1]):
        return False, world
    if kind == "store size":
        inode = inode._replace(size=step[1])
    elif kind == "release":
        inode = inode._replace(size=step[1], lease=0)
    else:
        inode = inode._replace(lease=client + 1)
    return True, world._replace(inode=inode)


def touched(world, step, fenced):
    """Whoever knows of a fence brings it to the object."""
    place = object_of(step)
    return world._replace(barred=put(world.barred, place, world.barred[place] | fenced))


def read(world, step):
    return world.inode if step[0] == "read inode" else world.data[step[1]]


def blocks_past(size):
    return range(size, BLOCKS)
