#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes the sources that faults.py names, with all its faults in them, each behind its switch.

    make_sources.py --list          the files, below src/
    make_sources.py SRC TARGET      reads SRC/FILE, writes TARGET/FILE if that changes it
"""

import pathlib
import re
import sys

import faults


def faulty(source, text, file_faults):
    for fault in file_faults:
        for old, new in fault.edits():
            if text.count(old) != 1:
                raise SystemExit(f"{source}: fault {fault.name}: its piece of code occurs {text.count(old)} times, "
                                 f"not once: bring tests/mutations/faults.py up to date\n{old}")
            text = text.replace(old, re.sub(r"\bON\b", f'LCCFS_FAULT("{fault.name}")', new))
    return f'#include "mutations/switch.h"\n#line 1 "{source}"\n{text}'


def main(arguments):
    by_file = {}
    for fault in faults.ALL:
        by_file.setdefault(fault.file, []).append(fault)
    if arguments == ["--list"]:
        print(";".join(sorted(by_file)), end="")
        return
    if len(arguments) != 2:
        raise SystemExit(__doc__)
    src, target = (pathlib.Path(argument) for argument in arguments)
    for file, file_faults in by_file.items():
        made = faulty(src / file, (src / file).read_text(encoding="utf-8"), file_faults)
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        if not (target / file).exists() or (target / file).read_text(encoding="utf-8") != made:
            (target / file).write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
