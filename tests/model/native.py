# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds and calls the models that are in C++: they have many more states than the others."""

import functools
import os
import pathlib
import random
import re
import subprocess
import tempfile
import time

COMPILE = [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror"]
LIMIT, LONG_LIMIT = 400_000, 2_000_000  # states of one case
SUMMARY = re.compile(r"(\d+) of (\d+) cases, (\d+) states, (\d+) violations, (\d+) cut short$")


@functools.cache
def _folder():
    return tempfile.TemporaryDirectory(prefix="lccfs-model-")


@functools.cache
def _program(folder):
    program = pathlib.Path(_folder().name) / folder
    sources = sorted((pathlib.Path(__file__).parent / folder).glob("*.cpp"))
    subprocess.run([*COMPILE, "-o", program, *sources], check=True)
    return program


class NativeModel:
    """Of one folder; `sweeps` is how many it has, `section` where the docs have its rules."""

    def __init__(self, name, sweeps, section):
        self.name, self.sweeps, self._section = name, sweeps, section

    def _call(self, *words):
        command = [_program(f"{self.name}_model"), *map(str, words)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()

    def _part(self, report, part, expected_violations, *words):
        began = time.monotonic()
        lines = self._call(*words)
        tried, of_all, states, violations, cut = map(int, SUMMARY.match(lines[-1]).groups())
        if words[0] == "sweep":
            part = lines.pop(0)
        for line in lines[:-1]:
            print(line)
        good = violations == (tried if expected_violations else 0)
        if expected_violations:
            summary = f"{of_all} rules, {states:,} states, {violations} violations, as there must be"
        else:
            summary = f"{tried} of {of_all} cases, {states:,} states, {violations} violations"
            summary += (f", {cut} cut short" if cut else "") + f" ({time.monotonic() - began:.0f} s)"
        report.line(good, f"{self.name}, {part}", summary)

    def run_short(self, report):
        self._part(report, "each rule off alone", True, "needed", LIMIT)
        self._part(report, "named cases", False, "cases", LIMIT)

    def run_long(self, report, until):
        for number in range(1, self.sweeps + 1):
            seconds = max(1, int((until - time.monotonic()) / (self.sweeps - number + 1)))
            self._part(report, "sweep", False, "sweep", number, seconds, random.randrange(1 << 31), LONG_LIMIT)

    def rules(self):
        """Names, with what they say."""
        return dict(line.split(": ", 1) for line in self._call("rules"))

    def trace(self, rule):
        print("\n".join(self._call("trace", rule, LIMIT)))

    def print_rules(self):
        for rule, words in self.rules().items():
            print(f"{self.name:10} {rule:28} {self._section}: {words}")


NATIVE_MODELS = (NativeModel("lease", 9, "7"), NativeModel("names", 19, "directory leases"))
