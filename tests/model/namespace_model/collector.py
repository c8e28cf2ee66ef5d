# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a collector does with one item of the queue (docs/PROTOCOL.md section 5; src/reclaim/examine.cpp,
recount.cpp, round_directories.cpp, round_inodes.cpp).

Left out: data, open files and who is asked about them (queue_model/open_files.py), the queue itself
(queue_model). """

from .rules import on
from .settling import settle_mark, settle_seal
from .steps import log_inode, numbered, read, repeatable
from .store import TYPE, owner

STEPS = 4  # each is a race won or lost: who loses so many leaves it for later


def version_as_read():
    return [("version",)] if on("RECOUNT_VERSION") else []


def recount(ino, token):
    """ "done": nothing is left to do here, or "later"."""
    for _ in range(STEPS):
        seen = yield from read(ino, "everything", version=True)
        if seen is None:
            return "done"
        inode, running = seen
        if any(owner(pointer) in running for _, pointer in inode.parents):
            changes = doubles(inode, running)
            if changes:
                yield from repeatable(ino, version_as_read(), changes)
            return "later"
        if inode.is_sealed():
            if owner(inode.state[0]) in running:
                return "later"
            yield from settle_seal(ino, inode.state, token)
            continue
        dead = inode.state == "dead"
        if dead and inode.undecided and on("STEP_NUMBERS_WAIT"):
            return "later"
        names = yield from count_names(inode, ino, token)
        if names in ("again", "later"):
            if names == "later":
                return "later"
            continue
        if dead and names:
            yield from clear_names(ino, names)
        elif dead:
            result = yield from remove_dead(ino, inode, token)
            return result
        elif names:
            changes = trim(ino, inode, names)
            if not changes:
                return "done"
            yield from repeatable(ino, version_as_read(), changes)
        else:
            yield from repeatable(ino, version_as_read(), [("state", "dead")])
    return "later"


def doubles(inode, running):
    """Of an inode that is left for later: one retired back-pointer to a directory is enough."""
    kept = set()
    changes = []
    for parent, pointer in inode.parents:
        if owner(pointer) in running and on("DOUBLES_ARE_RETIRED"):
            continue
        if parent in kept or not on("ONE_OF_DOUBLES"):
            changes.append(("drop parent", parent, pointer))
        kept.add(parent)
    return changes


def count_names(inode, ino, token):
    """[(directory, name)]; marks are settled first: "again", or "later" where one is not retired."""
    names = []
    for directory in sorted({parent for parent, _ in inode.parents}):
        seen = yield from read(directory, "everything")
        if seen is None:
            continue
        removals = [by for (lost, _), by in seen[0].detached if lost == ino]
        if on("REMOVAL_COUNTS_FIRST") and any(owner(by) in seen[1] for by in removals):
            return "later"
        for name, entry in seen[0].entries:
            if entry[0] != ino:
                continue
            if entry[1]:
                if owner(entry[1][0]) in seen[1]:
                    return "later"
                yield from settle_mark(directory, name, entry, token)
                return "again"
            names.append((directory, name))
    return names


def trim(ino, inode, names):
    """One back-pointer stays for each directory that holds a name."""
    parents = {directory for directory, _ in names}
    kept = set()
    changes = []
    for parent, pointer in inode.parents:
        if parent in parents and parent not in kept:
            kept.add(parent)
        else:
            changes.append(("drop parent", parent, pointer))
    if TYPE[ino] == "f" and inode.nlink != len(names):
        changes.append(("nlink", len(names)))
    return changes


def clear_names(ino, names):
    for directory, name in names:
        seen = yield from read(directory, "entries", name, version=True)
        if seen is not None and seen[1] is not None and seen[1][0] == ino:
            yield from repeatable(directory, version_as_read(), [("remove entry", name)])


def remove_dead(ino, inode, token):
    if on("DEAD_DIRECTORY_WAITS") and (inode.detached or inode.decisions):
        return "later"
    if inode.entries:
        for _, entry in inode.entries:
            yield from log_inode(entry[0], token)
        yield from repeatable(ino, version_as_read(), [("remove entry", name) for name, _ in inode.entries])
        return "later"
    removed = yield from repeatable(ino, version_as_read(), [("remove",)])
    return "later" if removed == "refused" else "done"


def finish_decision(directory, decision_token, decision):
    """Of a rename across directories that is retired: its last steps."""
    if decision[0] == "committed":
        _, from_directory, old = decision
        seen = yield from read(from_directory, "entries", old)
        entry = None if seen is None else seen[1]
        if entry is not None and entry[1] and entry[1][0] == decision_token:
            yield from numbered(from_directory, [("entry", old, entry)], [("remove entry", old)])
    yield from repeatable(directory, [], [("forget decision", decision_token)])


def handle_directory(directory, token):
    """d/ and x/ keys, of dead directories too. Whether nothing is left."""
    seen = yield from read(directory, "everything")
    if seen is None:
        return True
    inode, running = seen
    nothing_left = True
    for (ino, key), detached_by in inode.detached:
        if owner(detached_by) in running:
            nothing_left = False
            continue
        result = yield from recount(ino, token)
        if result == "done":
            yield from repeatable(directory, [], [("forget detached", ino, key)])
        else:
            nothing_left = False
    for decision_token, decision in inode.decisions if on("DIRECTORY_ITEM_ACROSS") else ():
        if owner(decision_token) in running:
            nothing_left = False
        else:
            yield from finish_decision(directory, decision_token, decision)
    return nothing_left


def handle(item, collector):
    token = collector * 10
    kind, what, _ = item
    if kind == "directory":
        finished = yield from handle_directory(what, token)
    elif kind == "inode":
        result = yield from recount(what, token)
        finished = result == "done"
    else:  # a range: what it must leave becomes an inode item
        finished = True
        for ino in what:
            result = yield from recount(ino, token)
            if result != "done":
                yield from log_inode(ino, token)
    if finished:
        yield ("unlog", item)
