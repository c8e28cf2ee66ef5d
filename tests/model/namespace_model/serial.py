# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether answers and final tree fit some order of the operations: each is done at once, and those that ended
before another began come first. An operation of a crashed client may be done or not."""

from .invariants import names_in
from .store import ROOT, TYPE, load

NOT_RUN = "not run"


def tree_of(volume):
    tree, waiting = {}, [ROOT]
    while waiting:
        directory = waiting.pop()
        if directory in tree:
            continue
        tree[directory] = {}
        for name, ino in names_in(volume, directory):
            if load(volume, ino) is not None:
                tree[directory][name] = ino
                if TYPE[ino] == "d":
                    waiting.append(ino)
    return tree


def fits_an_order(before, after, operations, answers, earlier):
    """`earlier`: pairs (a, b): a had ended when b began."""
    settled = [i for i, answer in enumerate(answers) if answer not in (None, "EAGAIN", NOT_RUN)]
    possible = [i for i, answer in enumerate(answers) if answer not in ("EAGAIN", NOT_RUN)]

    def search(done, tree):
        if all(i in done for i in settled) and _reachable(tree) == after:
            return True
        for i in possible:
            if i in done or any(b == i and a in settled and a not in done for a, b in earlier):
                continue
            copy = {directory: dict(names) for directory, names in tree.items()}
            allowed = _do(copy, *operations[i])
            if (i not in settled or answers[i] in allowed) and search(done | {i}, copy):
                return True
        return False

    return search(frozenset(), before)


def _reachable(tree):
    reachable, waiting = {}, [ROOT]
    while waiting:
        directory = waiting.pop()
        if directory not in reachable:
            reachable[directory] = tree[directory]
            waiting += [ino for ino in tree[directory].values() if TYPE[ino] == "d"]
    return reachable


def _do(tree, kind, *arguments):
    """Does the operation to the tree; the answers it may give."""
    return DO[kind](tree, *arguments)


def _create(tree, directory, name, ino):
    if directory not in tree:
        return {"ENOENT"}
    if name in tree[directory]:
        return {"EEXIST"}
    tree[directory][name] = ino
    if TYPE[ino] == "d":
        tree[ino] = {}
    return {"OK"}


def _lookup(tree, directory, name):
    return {tree.get(directory, {}).get(name, "ENOENT")}


def _unlink(tree, directory, name):
    ino = tree.get(directory, {}).get(name)
    if ino is None or TYPE[ino] == "d":
        return {"ENOENT" if ino is None else "EISDIR"}
    del tree[directory][name]
    return {"OK"}


def _rmdir(tree, directory, name):
    ino = tree.get(directory, {}).get(name)
    if ino is None or TYPE[ino] == "f":
        return {"ENOENT" if ino is None else "ENOTDIR"}
    if tree[ino]:
        return {"ENOTEMPTY"}
    del tree[directory][name]
    del tree[ino]
    return {"OK"}


def _link(tree, directory, name, to_directory, to_name):
    ino = tree.get(directory, {}).get(name)
    errors = set()
    if ino is None or to_directory not in tree:
        errors.add("ENOENT")
    if ino is not None and TYPE[ino] == "d":
        errors.add("EPERM")
    if to_name in tree.get(to_directory, {}):
        errors.add("EEXIST")
    if not errors:
        tree[to_directory][to_name] = ino
    return errors or {"OK"}


def _exchange(tree, directory, first, second):
    names = tree.get(directory, {})
    if first not in names or second not in names:
        return {"ENOENT"}
    names[first], names[second] = names[second], names[first]
    return {"OK"}


def _below(tree, top):
    return {top}.union(*(_below(tree, ino) for ino in tree[top].values() if TYPE[ino] == "d"))


def _rename(tree, directory, old, to_directory, new):
    ino = tree.get(directory, {}).get(old)
    if ino is None or to_directory not in tree:
        return {"ENOENT"} if ino is None else {"ENOENT", "EINVAL"}
    replaced = tree[to_directory].get(new)
    if replaced == ino:
        return {"OK"}
    errors = set()
    if TYPE[ino] == "d" and to_directory in _below(tree, ino):
        errors.add("EINVAL")
    if replaced is not None:
        if TYPE[ino] != TYPE[replaced]:
            errors.add("ENOTDIR" if TYPE[ino] == "d" else "EISDIR")
        elif TYPE[replaced] == "d" and tree[replaced]:
            errors.add("ENOTEMPTY")
    if errors:
        return errors
    if replaced is not None and TYPE[replaced] == "d":
        del tree[replaced]
    del tree[directory][old]
    tree[to_directory][new] = ino
    return {"OK"}


DO = {
    "create": _create,
    "look": _lookup,
    "unlink": _unlink,
    "rmdir": _rmdir,
    "link": _link,
    "exchange": _exchange,
    "rename": _rename,
}
