# SPDX-License-Identifier: LGPL-2.1-or-later
"""Samples as CSV, as tables of medians, and as a chart of ratios."""

import csv
import dataclasses
import statistics

from comparison.meter import Sample
from comparison.row import ALL, RIVALS

FIELDS = [field.name for field in dataclasses.fields(Sample)]


# ---- CSV

class Recorder:
    """Writes each sample at once: a run that is cut short leaves what it has measured."""

    def __init__(self, path):
        self._file = open(path, "w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file)
        self._writer.writerow(FIELDS)

    def add(self, sample):
        self._writer.writerow("" if value is None else f"{value:.6g}" if isinstance(value, float) else value
                              for value in dataclasses.astuple(sample))
        self._file.flush()


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            words = [line[name] for name in FIELDS[:4]]
            numbers = [float(line[name]) if line[name] else None for name in FIELDS[5:]]
            yield Sample(*words, int(line["round"]), *numbers)


# ---- medians

class Medians:
    def __init__(self, samples):
        self._samples = {}
        self.units, self.groups = {}, {}
        for sample in samples:
            self._samples.setdefault((sample.system, sample.row), []).append(sample)
            self.units[sample.row] = sample.unit
            self.groups[sample.row] = sample.group
        self.rows = list(self.units)
        self.systems = [name for name in ALL if any(system == name for system, _ in self._samples)]
        self.others = [name for name in self.systems if RIVALS.get(name) in self.systems]

    def of(self, system, row, field):
        """None if there is none."""
        values = [getattr(sample, field) for sample in self._samples.get((system, row), [])]
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    def ratio(self, row, other):
        """How many times as fast as the other ours is."""
        ours, theirs = (self.of(system, row, "figure") for system in (RIVALS[other], other))
        if not ours or not theirs:
            return None
        return theirs / ours if self.units[row] == "s" else ours / theirs


# ---- tables

def number(value):
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(header, lines):
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for line in lines:
        yield "| " + " | ".join(line) + " |"


def speed_table(medians):
    def line(row):
        ratios = [medians.ratio(row, other) for other in medians.others]
        return [f"{row} ({medians.units[row]})",
                *(number(medians.of(system, row, "figure")) for system in medians.systems),
                *("" if ratio is None else f"{ratio:.2f}" for ratio in ratios)]
    header = ["work", *medians.systems, *(f"{RIVALS[other]} : {other}" for other in medians.others)]
    return table(header, map(line, medians.rows))


def cost_table(medians):
    def cost(system, row):
        values = [medians.of(system, row, field) for field in ("client_cpu_us", "osd_cpu_us", "mds_cpu_us")]
        if values[0] is None:
            return ""
        network = medians.of(system, row, "network_kib")
        shown = values if values[2] and values[2] >= 1 else values[:2]
        return " + ".join(map(number, shown)) + (f"; {number(network)}" if network is not None else "")

    def line(row):
        operation = {"IOPS": "an I/O", "MiB/s": "a MiB", "files/s": "a file", "transactions/s": "a transaction",
                     "names/s": "a name", "s": "all of it"}[medians.units[row]]
        return [f"{row}, {operation}", *(cost(system, row) for system in medians.systems)]
    return table(["work", *medians.systems], map(line, medians.rows))


def print_tables(medians):
    print("How many times as fast LCCFS is stands on the right.\n")
    print("\n".join(speed_table(medians)))
    print("\nCPU of client + OSDs (+ MDS) in us; KiB through the sockets of a mount, for one operation.\n")
    print("\n".join(cost_table(medians)))


# ---- chart

COLOURS = {"ceph-fuse": "tab:orange", "librbd": "tab:blue", "RADOS": "tab:gray", "host": "tab:green"}


def draw_chart(medians, path):
    """A line for each row, with a point for each competitor: right of 1, LCCFS is the faster one (beside the host: its
    local store)."""
    import matplotlib  # only here: not every machine that measures draws
    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = medians.rows[::-1]
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.24 * len(rows)), layout="constrained")
    for other in medians.others:
        points = [(ratio, place) for place, row in enumerate(rows) if (ratio := medians.ratio(row, other))]
        if points:
            axes.scatter(*zip(*points), label=other, color=COLOURS[other], zorder=3)
    for place in range(1, len(rows)):
        if medians.groups[rows[place]] != medians.groups[rows[place - 1]]:
            axes.axhline(place - 0.5, color="lightgray", linewidth=0.8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.grid(axis="x", which="both", linewidth=0.3)
    axes.set_xlabel("how many times as fast LCCFS is as ...")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(COLOURS), frameon=False)
    figure.savefig(path, dpi=110)
