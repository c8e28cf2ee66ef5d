# SPDX-License-Identifier: LGPL-2.1-or-later
"""rename across directories: mark, decide, finish; of a directory in turn (src/fs/move.cpp, src/fs/rename_lock.h)."""

from .directories import seal_empty, take_back
from .files import one_name_less
from .reading import is_inside, unchanged
from .rules import on
from .settling import resolve, settle_seal
from .steps import ATTEMPTS, key_token, log_directory, log_inode, numbered, read, repeatable
from .store import CANCELLED, TYPE, type_error


def rename_across(from_directory, old, to_directory, new, operation):
    for attempt in range(ATTEMPTS):
        token = operation * 10 + attempt
        source = yield from resolve(from_directory, old, token)
        if source[0] != "there":
            return "ENOENT" if source[0] == "absent" else source[1]
        entry = source[1]
        is_directory = TYPE[entry[0]] == "d"
        if is_directory and on("TURNS"):
            taken = yield from take_turn(token, to_directory)
            if not taken:
                continue
        inside = False
        if is_directory:
            inside = yield from is_inside(to_directory, entry[0])
        if inside:
            same = yield from unchanged([(from_directory, old, entry)])
            result = "EINVAL" if same else "again"
        elif inside is None:
            result = "again"
        else:
            result = yield from _try_across((from_directory, old, entry), (to_directory, new), token)
        if is_directory and on("TURNS"):
            yield ("swap turn", (token, to_directory, True), (token, to_directory, False))
        if result != "again":
            return result
    return "EAGAIN"


def take_turn(token, to_directory):
    """Super: whose move of a directory it is. Whoever takes it from a move that is not over decides that one first."""
    seen = yield ("read turn",)
    if seen is not None and seen[2] and on("TURN_DECIDES"):
        before, target, _ = seen
        found = yield from read(target, "decision", before)
        if found is not None and found[0] is None:
            yield from log_directory(target, token)
            yield from numbered(target, [("not decided", before)], [("decide", before, CANCELLED)])
    reply = yield ("swap turn", seen, (token, to_directory, True))
    return reply == "applied"


def _try_across(source, target_name, token):
    from_directory, old, entry = source
    to_directory, new = target_name
    ino = entry[0]
    target = yield from resolve(to_directory, new, token)
    if target[0] == "error":
        return target[1]
    replaced = target[1] if target[0] == "there" else None
    expected = [(from_directory, old, entry), (to_directory, new, replaced)]
    if replaced and replaced[0] == ino:
        if on("SAME_INODE"):
            same = yield from unchanged(expected[:1])
            if not same:
                return "again"
        return "OK"
    yield from log_inode(ino, token)
    if on("DIRECTORY_ITEM_ACROSS"):
        yield from log_directory(to_directory, token)
    seal = None
    if replaced:
        error = type_error(ino, replaced[0])
        if error:
            same = yield from unchanged(expected)
            return error if same or not on("RECHECK_ERRORS") else "again"
        if TYPE[ino] == "d":
            seal = (token, to_directory, new)
            result = yield from seal_empty(replaced[0], seal, expected, token)
            if result != "sealed":
                return result
    committed, marked = yield from _mark_and_commit(source, target_name, replaced, token)
    if not committed:
        yield from _take_everything_back(
            source, target_name, replaced if seal and on("SEAL") else None, marked, token
        )
        return "again"
    yield from numbered(from_directory, [("entry", old, marked)], [("remove entry", old)])
    yield from repeatable(to_directory, [], [("forget decision", token)])
    if not on("KEEP_BACK_POINTER"):
        yield from _drop_back_pointer(ino, from_directory)
    if replaced and not seal:
        yield from one_name_less(replaced[0], target[2][1])
    return "OK"


def _mark_and_commit(source, target_name, replaced, token):
    """Steps 1 to 3. Whether they are done, and the marked entry, if it stands."""
    from_directory, old, entry = source
    to_directory, new = target_name
    ino = entry[0]
    done = yield from numbered(ino, [("state", "live")], [("add parent", to_directory, token)])
    if done != "applied":
        seen = yield from read(ino, "state")
        if seen is not None and isinstance(seen[0], tuple):
            yield from settle_seal(ino, seen[0], token)
        return False, None
    mark = (token, to_directory, new)
    done = yield from numbered(
        from_directory, [("entry", old, entry)], [("set entry", old, ino, mark, entry[2])]
    )
    if done != "applied":
        return False, None
    guards = [("state", "live"), ("not decided", token), ("entry", new, replaced)]
    mutations = [("set entry", new, ino, None, token), ("decide", token, ("committed", from_directory, old))]
    if replaced:
        mutations.append(("detach", replaced[0], key_token(token), token))
    done = yield from numbered(to_directory, guards, mutations)
    return done == "applied", (ino, mark, entry[2])


def _take_everything_back(source, target_name, sealed, marked, token):
    from_directory, old, entry = source
    to_directory, new = target_name
    if marked:
        yield from numbered(
            from_directory, [("entry", old, marked)], [("set entry", old, entry[0], None, entry[2])]
        )
    if sealed:
        yield from take_back(sealed[0], (token, to_directory, new))
    else:
        yield from repeatable(to_directory, [], [("forget decision", token)])
    seen = yield from read(to_directory, "state")
    if seen is not None and isinstance(seen[0], tuple):
        yield from settle_seal(to_directory, seen[0], token)


def _drop_back_pointer(ino, directory):
    """As first written: the last step of a rename removed it."""
    yield from read(ino, "state", version=True)
    names = yield from read(directory, "names of", ino)
    if names is None or not names[1]:
        yield from repeatable(ino, [("version",)], [("drop parent", directory, None)])
