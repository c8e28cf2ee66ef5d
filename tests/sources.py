#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Holds the sources against what the documents claim of them, and puts them together for clang. For tests/run.

    tests/sources.py check                    layers, steps, locks, tests; a line for each finding, with file and line
    tests/sources.py units [--locks] FOLDER   one file for some of each folder's, written to FOLDER; prints their paths
                                              (--locks: only those that use base/mutex.h)

Layers: docs/ARCHITECTURE.md has the table of folders. A file includes what lies in its own folder, in one that its row
names, or below those; a library's CMakeLists.txt uses no others.
Steps: docs/STEPS.md has all names of steps that src/txn gives, and no others, with the function that gives each. What a
step table in the sources puts into brackets is such a name. The indexes of operations in docs/PROTOCOL.md and
docs/DATA.md lead to all files that have a step table, and to others only where the row says "reads only".
Locks: a mutex is that of base/mutex.h, which clang checks.
Tests: each test source has a target.
Precompiled headers: nothing of ours is in them.
Guide: docs/guide/operations.md has a row for each kind of finding.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CODE = ("include", "src", "gc", "fsck")
MUTEX = ROOT / "src/base/mutex.h"
FILES_IN_A_UNIT = 16
PORT = "include"  # the contracts, which everybody may use
# What clang cannot check: a lock that is shared or exclusive, gates, which are no mutexes, and what a Clock is given.
WITH_OTHER_LOCKS = ("src/fs/io_gate.h", "src/fs/kernel_view.h", "src/fs/kernel_view.cpp", "src/base/clock.cpp")


def code_files(folders=CODE, suffixes=(".cpp", ".h")):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)


def lines_of(path):
    return enumerate(path.read_text(encoding="utf-8").splitlines(), 1)


def shown(path):
    return path.relative_to(ROOT)


# ---- layers

def room_of(path):
    """The folder by its name in the table: base, store/local, include, gc."""
    parts = shown(path).parts[:-1]
    return "/".join(parts[1:]) or "." if parts[0] == "src" else parts[0]


def table():
    """What each folder may use, as its row says it."""
    rows = {}
    for _, line in lines_of(ROOT / "docs/ARCHITECTURE.md"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        names = re.findall(r"^`(?:src/)?(include|[\w/]+)(?:/lccfs)?`$", cells[0])
        if line.startswith("|") and len(cells) == 3 and names:
            rows[names[0]] = [word.strip(" `") for word in cells[2].split(",")]
    return {name: [word for word in words if word in rows] for name, words in rows.items()}


def below(rows, name, seen=()):
    """The folder, what its row names, and all below that."""
    if name in seen:
        raise SystemExit(f"docs/ARCHITECTURE.md: in a circle: {' -> '.join(seen)} -> {name}")
    return {name, PORT}.union(*(below(rows, used, (*seen, name)) for used in rows[name]))


def row_for(rows, room):
    return room if room in rows else room.split("/")[0]


def may_use(rows, room, used):
    """A folder's own folders are its parts: it uses them, and they use each other where one has a row of its own."""
    if room == used or used.startswith(room + "/"):
        return True
    return used != row_for(rows, room) and used in below(rows, row_for(rows, room))


def target_of(name):
    """Where an include leads."""
    return next((path for path in (ROOT / "include" / name, ROOT / "src" / name, ROOT / name) if path.is_file()), None)


def includes(path):
    for number, line in lines_of(path):
        if found := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
            yield number, found[1]


def wrong_includes(rows):
    for path in code_files():
        for number, name in includes(path):
            target = target_of(name)
            if target is None or shown(target).parts[0] not in CODE:
                yield f"{shown(path)}:{number}: {name}: no file of {', '.join(CODE)}"
            elif not may_use(rows, room_of(path), room_of(target)):
                yield f"{shown(path)}:{number}: {room_of(path)} may not use {room_of(target)} (docs/ARCHITECTURE.md)"


def wrong_libraries(rows):
    uses = {}
    for path in sorted(path for folder in CODE for path in (ROOT / folder).rglob("CMakeLists.txt")):
        for number, line in lines_of(path):
            if found := re.search(r"lccfs_library\((\w+)\s*(.*)\)", line):
                uses[found[1]] = (path, number, re.findall(r"\blccfs_\w+", found[2]))
    for path, number, used in uses.values():
        for library in used:
            if library not in uses:
                yield f"{shown(path)}:{number}: no library {library}"
            elif not may_use(rows, room_of(path), room_of(uses[library][0])):
                yield (f"{shown(path)}:{number}: {room_of(path)} may not use {room_of(uses[library][0])} "
                       "(docs/ARCHITECTURE.md)")


def tests_without_a_target():
    """A test source that no CMakeLists.txt names is never run."""
    for path in sorted((ROOT / "tests").rglob("*_test.cpp")):
        targets = (path.parent / "CMakeLists.txt").read_text(encoding="utf-8")
        if not re.search(rf"\b{path.stem}\b", targets):
            yield f"{shown(path)}: no target in {shown(path.parent)}/CMakeLists.txt"


def wrong_layers():
    rows = table()
    for room in sorted({room_of(path) for path in code_files()} - {"."}):
        if row_for(rows, room) not in rows:
            yield f"docs/ARCHITECTURE.md: no row for {room}"
            return
    yield from wrong_includes(rows)
    yield from wrong_libraries(rows)


# ---- steps

def steps_of_code():
    """The literals that the functions of src/txn give to their transactions; the function and its file; where."""
    for path in code_files(("src/txn",)):
        text = path.read_text(encoding="utf-8")
        for found in re.finditer(r'\b(?:make|make_inode|change|change_super)\(([^";]*)"([^"]+)"', text):
            functions = re.findall(r"^MetaTxn (\w+)\(", text[:found.start()], re.M)
            where = f"{shown(path)}:{text.count(chr(10), 0, found.start(2)) + 1}"
            yield found[2], (functions[-1] if functions else "no function", str(shown(path))), where


def steps_of_docs():
    """Names; the function in the second column, and the file that its link leads to; where."""
    for number, line in lines_of(ROOT / "docs/STEPS.md"):
        if found := re.match(r"\| `([^`]+)` \| (?:\[`(\w+)`\]\(\.\./([\w/.]+)\) \|)?", line):
            yield found[1], (found[2], found[3]), f"docs/STEPS.md:{number}"


def steps_of_tables():
    """What stands in brackets in the rows of a comment's table."""
    for path in code_files():
        for number, line in lines_of(path):
            if re.match(r"\s*// .*\|", line):
                for name in re.findall(r"\[([^]]+)\]", line):
                    yield name, f"{shown(path)}:{number}"


def rows_that_lead_to_files():
    """Of the tables that say where an operation's step table is."""
    for page in ("docs/PROTOCOL.md", "docs/DATA.md"):
        for number, line in lines_of(ROOT / page):
            for name in re.findall(r"\]\(\.\./(src/[\w/.]+)\)", line) if line.startswith("| ") else ():
                yield ROOT / name, line, f"{page}:{number}"


def wrong_index():
    indexed = {path for path, *_ in rows_that_lead_to_files()}
    with_table = {path for path in code_files(("src",))
                  if re.search(r"^// .*\| object +\| step\b", path.read_text(encoding="utf-8"), re.M)}
    for path, line, where in rows_that_lead_to_files():
        if path not in with_table and "reads only" not in line:
            yield f"{where}: no step table in {shown(path)}"
    for path in sorted(with_table - indexed):
        yield f"{shown(path)}: its step table is in no index (docs/PROTOCOL.md section 6, docs/DATA.md)"


def wrong_steps():
    code, docs = list(steps_of_code()), list(steps_of_docs())
    if not code:
        yield "src/txn: no step found: tests/sources.py looks for calls that it does not have"
    made_by = {name: function for name, function, _ in code}
    documented = collections.Counter(name for name, *_ in docs)
    for name, function, where in code:
        if documented[name] != 1:
            yield f"{where}: step \"{name}\" occurs {documented[name]} times in docs/STEPS.md, not once"
        if function != made_by[name]:
            yield f"{where}: step \"{name}\" is made by {made_by[name][0]} of {made_by[name][1]}, too"
    for name, function, where in docs:
        if name in made_by and function != made_by[name]:
            yield f"{where}: step \"{name}\" is made by {made_by[name][0]} of {made_by[name][1]}"
    for name, where in [*((name, where) for name, _, where in docs), *steps_of_tables()]:
        if name not in made_by:
            yield f"{where}: no step \"{name}\" in src/txn"


# ---- locks

def other_locks():
    """Mutexes that clang does not check."""
    for path in code_files(("src", "gc", "fsck")):
        if path == MUTEX or str(shown(path)) in WITH_OTHER_LOCKS:
            continue
        for number, line in lines_of(path):
            if found := re.search(r"std::(\w*mutex|lock_guard|(unique|scoped|shared)_lock)\b", line.split("//")[0]):
                yield f"{shown(path)}:{number}: {found[0]}: use Mutex and Lock of base/mutex.h"
            if re.search(r"\w\.wait\(\s*lock\b", line):
                yield f"{shown(path)}:{number}: use Lock's wait, which says before it that the thread may block"


def uses_mutex(path, known):
    if path not in known:
        known[path] = False  # whoever includes himself
        known[path] = path == MUTEX or any(
            uses_mutex(target, known) for _, name in includes(path) if (target := target_of(name)))
    return known[path]


# ---- what clang reads at once: headers take most of its time

def units():
    """Each library's sources as CMake's unity builds take them together, and each program's main.cpp."""
    for folder in sorted({path.parent for path in code_files(suffixes=(".cpp",))} - {ROOT / "src"}):
        files = sorted(folder.glob("*.cpp"))
        library = [path for path in files if path.name != "main.cpp"]
        parts = [library[at:at + FILES_IN_A_UNIT] for at in range(0, len(library), FILES_IN_A_UNIT)]
        for number, part in enumerate(parts + [[path] for path in files if path.name == "main.cpp"]):
            yield f"{'-'.join(shown(folder).parts)}-{number}.cpp", part


def write_units(target, only_locks):
    target.mkdir(parents=True, exist_ok=True)
    known = {}
    for name, files in units():
        if not only_locks or any(uses_mutex(path, known) for path in files):
            (target / name).write_text("".join(f'#include "{path}"\n' for path in files), encoding="utf-8")
            print(target / name)


# ---- precompiled headers

def ours_precompiled():
    """A compiler cache takes a precompiled header for the same when only comments changed. GCC then reads a header of
    ours again, in spite of #pragma once: what it defines is there twice."""
    left = [ROOT / "src/precompiled.h", ROOT / "tests/support/precompiled.h"]
    for path in left:
        left += [found for _, name in includes(path) for folder in (path.parent, ROOT / "include", ROOT / "src", ROOT / "tests")
                 if (found := folder / name).is_file()]
        if any(line and not line.startswith(("#", "//")) for _, line in lines_of(path)):
            yield f"{shown(path.resolve())}: is in a precompiled header, which takes includes alone"


# ---- what to do about each finding of fsck

def kinds_without_advice():
    kinds = re.findall(r'\{Kind::\w+, "([^"]+)"\}', (ROOT / "src/check/finding.h").read_text(encoding="utf-8"))
    page = ROOT / "docs/guide/operations.md"
    rows = re.findall(r"^\| `([^`]+)` \|", page.read_text(encoding="utf-8"), re.M)
    for kind in sorted(set(kinds) ^ set(rows)):
        yield f"{shown(page)}: a row for each kind of src/check/finding.h, and no other: {kind}"


def check():
    findings = [*wrong_layers(), *kinds_without_advice(), *wrong_steps(), *wrong_index(), *other_locks(),
                *tests_without_a_target(), *ours_precompiled()]
    for finding in findings:
        print(finding)
    return len(findings) != 0


def main(arguments):
    if arguments == ["check"]:
        return check()
    if arguments[:1] == ["units"] and len(arguments) == 2 + ("--locks" in arguments):
        return write_units(pathlib.Path(arguments[-1]), "--locks" in arguments)
    raise SystemExit(__doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
