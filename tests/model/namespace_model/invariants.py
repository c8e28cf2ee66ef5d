# SPDX-License-Identifier: LGPL-2.1-or-later
"""Invariants V, P and Q of docs/PROTOCOL.md section 3, that directories form a tree, and that no link count is too
low. In every state."""

from .rules import on
from .store import INODES, ROOT, TYPE, get, load


def names_in(volume, directory):
    """What a reader sees: entries, but for those that have moved away (docs/PROTOCOL.md section 6)."""
    inode = load(volume, directory)
    if inode is None or inode.state == "dead":
        return []
    names = []
    for name, (ino, mark, _) in inode.entries:
        if mark:
            target = load(volume, mark[1])
            decision = get(target.decisions, mark[0]) if target is not None else None
            if decision is not None and decision[0] == "committed":
                continue
        names.append((name, ino))
    return names


def broken_invariant(volume, queue):
    links, parent_of = {}, {}
    for directory in INODES:
        inode = load(volume, directory)
        if inode is None or TYPE[directory] != "d":
            continue
        for name, (ino, _, _) in inode.entries:
            target = load(volume, ino)
            if target is None or target.state == "dead" or inode.state == "dead":
                continue
            if all(parent != directory for parent, _ in target.parents):
                return f"P: {directory}/{name} -> {ino}, which has no back-pointer"
        for name, ino in names_in(volume, directory):
            target = load(volume, ino)
            if target is None or target.state == "dead":
                if target is not None and not on("SEAL"):
                    return ""
                return f"V: {directory}/{name} -> {ino}, which is {'missing' if target is None else 'dead'}"
            links[ino] = links.get(ino, 0) + 1
            parent_of[ino] = directory
    for ino in INODES:
        inode = load(volume, ino)
        if inode is None or ino == ROOT:
            continue
        wrong = _wrong_with(volume, queue, ino, inode, links.get(ino, 0), parent_of)
        if wrong:
            return wrong
    return ""


def _wrong_with(volume, queue, ino, inode, links, parent_of):
    if TYPE[ino] == "d" and links > 1:
        return f"directory {ino} has {links} names"
    if TYPE[ino] == "f" and inode.state == "live" and inode.nlink < links:
        return f"nlink of {ino} is {inode.nlink}, it has {links} names"
    to_be_repaired = links == 0 or inode.state == "dead" or (TYPE[ino] == "f" and links != inode.nlink)
    if to_be_repaired and not can_be_found(volume, queue, ino):
        return f"Q: nothing in the queue leads to {ino}: {inode.state}, {links} names, nlink {inode.nlink}"
    above = ino if TYPE[ino] == "d" and links else ROOT
    for _ in range(8):
        if above in (ROOT, None):
            break
        above = parent_of.get(above)
    return "" if above == ROOT else f"directory {ino} is not below the root"


def can_be_found(volume, queue, ino):
    for kind, what, _ in queue:
        if (kind == "inode" and what == ino) or (kind == "range" and ino in what):
            return True
    for directory in INODES:
        inode = load(volume, directory)
        if inode is None or all(key[0] != ino for key, _ in inode.detached):
            continue
        if any(kind == "directory" and what == directory for kind, what, _ in queue):
            return True
        if directory not in (ino, ROOT) and can_be_found(volume, queue, directory):
            return True
    return False


def leftover(volume, queue):
    """What must not be there when all is over and collectors have done their work."""
    if queue:
        return f"the queue never drains: {sorted(queue)}"
    links = {}
    for directory in INODES:
        inode = load(volume, directory)
        if inode is None:
            continue
        if inode.state != "live":
            return f"{directory} stays {inode.state}"
        for what, keys in (("d/", inode.detached), ("x/", inode.decisions), ("l/", inode.undecided)):
            if keys:
                return f"{what} keys stay in {directory}: {keys}"
        for name, (ino, mark, _) in inode.entries:
            if mark or load(volume, ino) is None:
                return f"{'a mark' if mark else 'a dangling name'} stays: {directory}/{name}"
            links[ino] = links.get(ino, 0) + 1
    for ino in INODES:
        inode = load(volume, ino)
        if inode is None or ino == ROOT:
            continue
        if ino not in links:
            return f"{ino} stays, and has no name"
        if TYPE[ino] == "f" and inode.nlink != links[ino]:
            return f"nlink of {ino} stays {inode.nlink}, it has {links[ino]} names"
    return ""
