# SPDX-License-Identifier: LGPL-2.1-or-later
"""The one loop: for each row the systems take turns, round after round, and each round begins with another system."""

import sys
import time

from comparison.meter import Meter
from comparison.row import Failed


def say(*words, end="\n"):
    print(*words, end=end, file=sys.stderr, flush=True)


def samples(cluster, systems, rows, options):
    """Each as it is taken. A row that fails on a system is told, and has no sample."""
    meter = Meter(cluster, systems)
    deadline = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
    for number in range(options.rounds):
        turn = number % len(systems)
        for row in rows:
            if time.monotonic() > deadline:
                say(f"{options.minutes} minutes are over: the rest of round {number + 1} is left out")
                return
            say(f"round {number + 1}: {row.name} ({row.unit}):", end="")
            for system in [*systems[turn:], *systems[:turn]]:
                if system.name in row.on:
                    try:
                        system.use_options(row.mount_options)
                        sample = meter.measure(row, system, number + 1)
                    except (Failed, OSError, AssertionError) as error:
                        say(f"\n{row.name}: {system.name}: {error}")
                        continue
                    say(f" {system.name} {sample.figure:.4g}", end="")
                    yield sample
            say()
