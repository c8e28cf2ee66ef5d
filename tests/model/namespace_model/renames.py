# SPDX-License-Identifier: LGPL-2.1-or-later
"""rename and EXCHANGE inside one directory: one step (docs/PROTOCOL.md section 6; src/fs/rename.cpp)."""

from .across import rename_across
from .directories import seal_empty, take_back
from .files import one_name_less
from .reading import unchanged
from .rules import on
from .settling import resolve
from .steps import ATTEMPTS, key_token, log_directory, numbered
from .store import TYPE, type_error


def rename(from_directory, old, to_directory, new, operation):
    if from_directory == to_directory:
        result = yield from rename_inside(from_directory, old, new, operation)
    else:
        result = yield from rename_across(from_directory, old, to_directory, new, operation)
    return result


def rename_inside(directory, old, new, operation):
    for attempt in range(ATTEMPTS):
        token = operation * 10 + attempt
        source = yield from resolve(directory, old, token)
        if source[0] != "there":
            return "ENOENT" if source[0] == "absent" else source[1]
        target = yield from resolve(directory, new, token)
        if target[0] == "error":
            return target[1]
        entry = source[1]
        replaced = target[1] if target[0] == "there" else None
        expected = [(directory, old, entry), (directory, new, replaced)]
        error = replaced and ("OK" if replaced[0] == entry[0] else type_error(entry[0], replaced[0]))
        if error:
            if on("SAME_INODE" if error == "OK" else "RECHECK_ERRORS"):
                same = yield from unchanged(expected)
                if not same:
                    continue
            return error
        seal = None
        if replaced and TYPE[replaced[0]] == "d":
            seal = (token, directory, new)
            result = yield from seal_empty(replaced[0], seal, expected, token)
            if result == "again":
                continue
            if result != "sealed":
                return result
        elif replaced:
            yield from log_directory(directory, token)
        guards = [("entry", old, entry), ("entry", new, replaced)]
        mutations = [("remove entry", old), ("set entry", new, entry[0], None, token)]
        if replaced:
            mutations.append(("detach", replaced[0], key_token(token), token))
        if seal and on("SEAL"):
            guards.append(("not decided", token))
        done = yield from numbered(directory, guards, mutations)
        if done == "applied":
            if replaced and not seal:
                yield from one_name_less(replaced[0], target[2][1])
            return "OK"
        if seal and on("SEAL"):
            yield from take_back(replaced[0], seal)
    return "EAGAIN"


def exchange(directory, first, second, operation):
    for attempt in range(ATTEMPTS):
        token = operation * 10 + attempt
        one = yield from resolve(directory, first, token)
        if one[0] != "there":
            return "ENOENT" if one[0] == "absent" else one[1]
        other = yield from resolve(directory, second, token)
        if other[0] != "there":
            return "ENOENT" if other[0] == "absent" else other[1]
        done = yield from numbered(
            directory,
            [("entry", first, one[1]), ("entry", second, other[1])],
            [("set entry", first, other[1][0], None, token), ("set entry", second, one[1][0], None, token)],
        )
        if done == "applied":
            return "OK"
    return "EAGAIN"
