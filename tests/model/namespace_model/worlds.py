# SPDX-License-Identifier: LGPL-2.1-or-later
"""The trees that cases begin with, and the operations that a sweep tries there, in pairs."""

from .store import INODES, ROOT, TYPE, Inode, number_of

# directory -> {name: inode}; files have numbers from 10 on
WORLDS = {
    "two empty directories": {1: {"A": 2, "B": 3}},
    "a file": {1: {"A": 2, "B": 3}, 2: {"a": 10}},
    "two files apart": {1: {"A": 2, "B": 3}, 2: {"a": 10}, 3: {"b": 11}},
    "two files": {1: {"A": 2, "B": 3}, 2: {"a": 10, "b": 11}},
    "hard link": {1: {"A": 2, "B": 3}, 2: {"a": 10, "b": 10}},
    "hard link apart": {1: {"A": 2, "B": 3}, 2: {"a": 10}, 3: {"b": 10}},
    "three names": {1: {"A": 2, "B": 3}, 2: {"a": 10, "b": 10, "c": 10}},
    "a directory": {1: {"A": 2, "B": 3}, 2: {"a": 4}},
    "two directories apart": {1: {"A": 2, "B": 3}, 2: {"a": 4}, 3: {"b": 5}},
    "two directories": {1: {"A": 2, "B": 3}, 2: {"a": 4, "b": 5}},
    "a file and a directory": {1: {"A": 2, "B": 3}, 2: {"a": 10, "b": 5}},
    "a file, a directory apart": {1: {"A": 2, "B": 3}, 2: {"a": 10}, 3: {"b": 5}},
}
TARGETS = ((2, "a"), (2, "b"), (3, "b"))


def volume_of(world):
    tree = WORLDS[world]
    parents, links = {}, {}
    for directory, names in tree.items():
        for ino in names.values():
            parents.setdefault(ino, set()).add((directory, 0))
            links[ino] = links.get(ino, 0) + 1
    numbers = []
    for ino in INODES:
        inode = None
        if ino == ROOT or ino in parents:
            entries = tuple(sorted((name, (target, None, 0)) for name, target in tree.get(ino, {}).items()))
            inode = Inode("live", links.get(ino, 1), entries, tuple(sorted(parents.get(ino, ()))))
        numbers.append(number_of(inode))
    return tuple(numbers)


def operations_in(world):
    tree = WORLDS[world]
    there = [(directory, name, ino) for directory in (2, 3) for name, ino in tree.get(directory, {}).items()]
    free = [target for target in TARGETS if target[1] not in tree.get(target[0], {})]
    operations = [("create", *target, "f") for target in TARGETS]
    operations += [("create", *target, "d") for target in free[:1]]
    operations += [("create", directory, name, "d") for directory, name, ino in there if TYPE[ino] == "d"][:1]
    for directory, name, ino in there:
        operations.append(("unlink" if TYPE[ino] == "f" else "rmdir", directory, name))
        if TYPE[ino] == "d":
            operations.append(("create", ino, "c", "f"))
    operations += [("rmdir", 1, "A"), ("rmdir", 1, "B")]
    for directory, name, ino in there:
        operations += [
            ("rename", directory, name, *target) for target in TARGETS if target != (directory, name)
        ]
        if TYPE[ino] == "d":
            operations.append(("rename", directory, name, 3, "a"))
        else:
            operations += [("link", directory, name, *target) for target in free]
    if len(tree.get(2, {})) == 2:
        operations.append(("exchange", 2, "a", "b"))
    return operations + [("rename", 1, "B", 2, "b"), ("rename", 1, "A", 3, "b")]


def with_number(operation, client):
    """create gets an inode number of its client's own."""
    if operation[0] != "create":
        return operation
    return operation[:3] + ((21 if operation[3] == "f" else 31) + client,)


def is_built(operation):
    """Renames across directories are in the protocol only."""
    return operation[0] != "rename" or operation[1] == operation[3]
