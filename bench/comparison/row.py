# SPDX-License-Identifier: LGPL-2.1-or-later
"""How a row of the comparison is described, and what its measurement answers."""

import dataclasses
import os
import subprocess
from collections.abc import Callable

LCCFS, CEPH_FUSE, LIBRBD, RADOS = "LCCFS", "ceph-fuse", "librbd", "RADOS"
LOCAL, HOST = "local store", "host"  # LCCFS on a folder, and the file system of that folder
FILE_SYSTEMS = (LCCFS, CEPH_FUSE)
WITH_IMAGES = (*FILE_SYSTEMS, LIBRBD)
NAMED = (*FILE_SYSTEMS, LOCAL, HOST)
ALL = (*WITH_IMAGES, RADOS, LOCAL, HOST)
RIVALS = {CEPH_FUSE: LCCFS, LIBRBD: LCCFS, RADOS: LCCFS, HOST: LOCAL}  # who is compared with which of ours

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PROGRAM_LIMIT_S = 900


class Failed(Exception):
    """A measurement that came to nothing, with what the program said; the other rows continue."""


@dataclasses.dataclass(frozen=True)
class Work:
    """What was done, in units of the row. Without `seconds`, all that the measurement took counts."""
    operations: float
    seconds: float | None = None
    start_cpu_s: float = 0  # what the program took to begin and to end: that is no operation's


@dataclasses.dataclass(frozen=True)
class Row:
    """`work(system)` is measured, after `prepare(system)`, on each system of `on`.

    What a preparation needs of the workspace is made there: not while something is measured.

    The figure is operations a second in `unit`: IOPS (an operation is one I/O), MiB/s, files/s; or, where the unit is
    s, the seconds of the whole. `mount_options` are those of LCCFS.
    """
    name: str
    group: str
    unit: str
    work: Callable
    prepare: Callable = lambda system: None
    on: tuple[str, ...] = FILE_SYSTEMS
    mount_options: tuple[str, ...] = ()


def run(*words, environment=None):
    """A program's standard output."""
    words = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in words]
    try:
        done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=PROGRAM_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(words)}: not after {PROGRAM_LIMIT_S} s") from None
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)}: status {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout


def in_order(*steps):
    """One preparation of several."""
    def prepare(system):
        for step in steps:
            step(system)
    return prepare


def remounted(system):
    """Nothing is cached any more."""
    system.remount()


def names_stored(path):
    """Its folders are synced: then all that was made in them has its name for good. Not syncfs: the kernel does not tell
    FUSE file systems of that."""
    for folder, _, _ in os.walk(path):
        stored(folder)


def stored(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
