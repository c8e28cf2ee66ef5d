# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds and calls the model of the write lease (lease_model/, in C++: it has many more states than the
others)."""

import functools
import os
import pathlib
import random
import re
import subprocess
import tempfile
import time

SOURCES = pathlib.Path(__file__).parent / "lease_model"
COMPILE = [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror"]
LIMIT, LONG_LIMIT = 400_000, 2_000_000  # states of one case
LONG_SWEEPS = 9
SUMMARY = re.compile(r"(\d+) of (\d+) cases, (\d+) states, (\d+) violations, (\d+) cut short$")


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory(prefix="lccfs-model-")


@functools.cache
def _program():
    program = pathlib.Path(_folder().name) / "lease_model"
    subprocess.run([*COMPILE, "-o", program, *sorted(SOURCES.glob("*.cpp"))], check=True)
    return program


def _call(*words):
    lines = subprocess.run(
        [_program(), *map(str, words)], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()
    return lines


def _part(report, name, expected_violations, *words):
    began = time.monotonic()
    lines = _call(*words)
    tried, of_all, states, violations, cut = map(int, SUMMARY.match(lines[-1]).groups())
    if words[0] == "sweep":
        name = lines.pop(0)
    for line in lines[:-1]:
        print(line)
    good = violations == (tried if expected_violations else 0)
    if expected_violations:
        summary = f"{of_all} rules, {states:,} states, {violations} violations, as there must be"
    else:
        summary = f"{tried} of {of_all} cases, {states:,} states, {violations} violations"
        summary += (f", {cut} cut short" if cut else "") + f" ({time.monotonic() - began:.0f} s)"
    report.line(good, f"lease, {name}", summary)


def run_short(report):
    _part(report, "each rule off alone", True, "needed", LIMIT)
    _part(report, "named cases", False, "cases", LIMIT)


def run_long(report, until):
    for number in range(1, LONG_SWEEPS + 1):
        seconds = max(1, int((until - time.monotonic()) / (LONG_SWEEPS - number + 1)))
        _part(report, "sweep", False, "sweep", number, seconds, random.randrange(1 << 31), LONG_LIMIT)


def trace(rule):
    """0, or 2: there is no such rule."""
    if rule not in (line.split(":")[0] for line in _call("rules")):
        print(f"no rule {rule}: tests/model/run --rules lists them")
        return 2
    print("\n".join(_call("trace", rule, LIMIT)))
    return 0


def print_rules():
    for line in _call("rules"):
        name, words = line.split(": ", 1)
        print(f"{'lease':10} {name:28} 7: {words}")
