# SPDX-License-Identifier: LGPL-2.1-or-later
"""The objects Inode.<ino>, and single-object transactions on them (docs/PROTOCOL.md sections 1 and 4):
guards, then mutations, all or nothing; and what each kind of read shows.

Left out: attributes, times, `nsub`, reverse keys and pages (an entry and its reverse key are one here), data.
A step number is kept only while its step is undecided, which makes fewer states and the same verdicts."""

from typing import NamedTuple

from .rules import on

ROOT = 1
# The inode numbers that occur: directories, files, and those that operations make (21 and 22, 31 and 32).
TYPE = {1: "d", 2: "d", 3: "d", 4: "d", 5: "d", 10: "f", 11: "f", 21: "f", 22: "f", 31: "d", 32: "d"}
INODES = sorted(TYPE)
POSITION = {ino: index for index, ino in enumerate(INODES)}
CANCELLED = ("cancelled",)


class Inode(NamedTuple):
    """Each field with keys is a sorted tuple of (key, value)."""

    state: object  # "live", "dead", or the seal (token, parent, name)
    nlink: int
    entries: tuple = ()  # name -> (ino, mark, token); mark: None or (token, directory, name)
    parents: tuple = ()  # (parent, token)
    detached: tuple = ()  # (ino, token) -> token
    decisions: tuple = ()  # token -> ("committed", directory, name) or CANCELLED
    undecided: tuple = ()  # instances whose l/ stands here for a step that they do not know the outcome of

    def is_sealed(self):
        return isinstance(self.state, tuple)


def type_error(ino, replaced):
    """Of a rename over an existing name."""
    if TYPE[ino] != TYPE[replaced]:
        return "ENOTDIR" if TYPE[ino] == "d" else "EISDIR"
    return None


def owner(token):
    """A token is ten times the number of its operation, and the attempt."""
    return token // 10


def get(pairs, key):
    for there, value in pairs:
        if there == key:
            return value
    return None


def put(pairs, key, value):
    return tuple(
        sorted([pair for pair in pairs if pair[0] != key] + [(key, value)], key=lambda pair: pair[0])
    )


def remove(pairs, key):
    return tuple(pair for pair in pairs if pair[0] != key)


# A volume is a tuple with one number for each inode: equal inodes have equal numbers, a missing one has 0.
_inodes = [None]
_numbers = {None: 0}


def number_of(inode):
    number = _numbers.get(inode)
    if number is None:
        number = len(_inodes)
        _inodes.append(inode)
        _numbers[inode] = number
    return number


def load(volume, ino):
    return _inodes[volume[POSITION[ino]]]


def save(volume, ino, inode):
    place = POSITION[ino]
    return volume[:place] + (number_of(inode),) + volume[place + 1 :]


# ---- reads: what a client sees of an inode. `running`: the operations that are not over.


def see_entries(inode, _running, *names):
    return (inode.state, *(get(inode.entries, name) for name in names))


def see_state(inode, _running):
    return (inode.state, inode.nlink)


def see_names_of(inode, _running, ino):
    return (inode.state, tuple(pair for pair in inode.entries if pair[1][0] == ino))


def see_decision(inode, _running, token):
    return (get(inode.decisions, token),)


def see_outcome_of_seal(inode, _running, ino, key_token, token):
    return (get(inode.detached, (ino, key_token)), get(inode.decisions, token))


def see_everything(inode, running):
    """The inode, and which of the operations that left traces in it are not retired."""
    owners = {owner(token) for _, token in inode.parents} | {owner(token) for _, token in inode.detached}
    owners |= {owner(token) for token, _ in inode.decisions}
    owners |= {owner(entry[1][0]) for _, entry in inode.entries if entry[1]}
    if inode.is_sealed():
        owners.add(owner(inode.state[0]))
    return (inode, tuple(sorted(owners & set(running))))


VIEWS = {
    "entries": see_entries,
    "state": see_state,
    "names of": see_names_of,
    "decision": see_decision,
    "outcome of seal": see_outcome_of_seal,
    "everything": see_everything,
}


def look(inode, view, arguments, running):
    return None if inode is None else VIEWS[view](inode, running, *arguments)


# ---- steps

GUARDS = {
    "entry": lambda inode, name, value: get(inode.entries, name) == value,
    "entry ino": lambda inode, name, ino: (get(inode.entries, name) or (None,))[0] == ino,
    "state": lambda inode, state: inode.state == state,
    "not decided": lambda inode, token: get(inode.decisions, token) is None,
    "not detached": lambda inode, ino, token: get(inode.detached, (ino, token)) is None,
    "nlink": lambda inode, nlink: inode.nlink == nlink,
}


def guards_hold(inode, guards, version_is_as_read):
    for kind, *arguments in guards:
        if not (version_is_as_read if kind == "version" else GUARDS[kind](inode, *arguments)):
            return False
    return True


def _set_entry(inode, name, ino, mark, token):
    return inode._replace(entries=put(inode.entries, name, (ino, mark, token if on("ENTRY_TOKENS") else 0)))


def _add_parent(inode, parent, token):
    others = inode.parents if on("OWN_BACK_POINTER") else remove(inode.parents, parent)
    return inode._replace(parents=tuple(sorted(set(others) | {(parent, token)})))


def _drop_parent(inode, parent, token):
    """token None: whatever the operation."""
    return inode._replace(
        parents=tuple(p for p in inode.parents if p[0] != parent or token not in (None, p[1]))
    )


MUTATIONS = {
    "make": lambda _, inode: inode,
    "remove": lambda _: None,
    "set entry": _set_entry,
    "remove entry": lambda inode, name: inode._replace(entries=remove(inode.entries, name)),
    "detach": lambda inode, ino, key_token, token: inode._replace(
        detached=put(inode.detached, (ino, key_token), token)
    ),
    "forget detached": lambda inode, ino, key_token: inode._replace(
        detached=remove(inode.detached, (ino, key_token))
    ),
    "add parent": _add_parent,
    "drop parent": _drop_parent,
    "decide": lambda inode, token, decision: inode._replace(decisions=put(inode.decisions, token, decision)),
    "forget decision": lambda inode, token: inode._replace(decisions=remove(inode.decisions, token)),
    "nlink": lambda inode, nlink: inode._replace(nlink=nlink),
    "state": lambda inode, state: inode._replace(state=state),
}


def mutated(inode, mutations):
    for kind, *arguments in mutations:
        inode = MUTATIONS[kind](inode, *arguments)
    return inode
