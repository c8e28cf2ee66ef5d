# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a measurement costs: time, CPU of client, OSDs and MDS, bytes through the client's sockets.

The client is its daemon, if it has one, and the programs that use it: fio with librbd in it is a client, and a part of
what a mounted file system does is done by the kernel in the program that calls it.
"""

import dataclasses
import os
import pathlib
import re
import resource
import time

from comparison.row import KIB, run

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
REST_LOOK_S = 0.25
REST_LOOK_CPU_S = 0.03
REST_LIMIT_S = 10


@dataclasses.dataclass(frozen=True)
class Sample:
    """One measurement; what it costs is for one operation. None: not to be known."""
    system: str
    row: str
    group: str
    unit: str
    round: int
    figure: float
    client_cpu_us: float
    osd_cpu_us: float
    mds_cpu_us: float
    network_kib: float | None


def daemon_cpu_s(pid):
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    user, kernel = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(kernel)) / TICKS_PER_S


def programs_cpu_s():
    """Of this process and of all that it has started and waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def network_bytes(pid):
    """In both directions, through the TCP connections that it holds."""
    total, its_own = 0, False
    for line in run("ss", "-tinpH").splitlines():
        if not line.startswith((" ", "\t")):
            its_own = f"pid={pid}," in line
        elif its_own:
            total += sum(map(int, re.findall(r"bytes_(?:sent|received):(\d+)", line)))
    return total


class Meter:
    def __init__(self, cluster, systems):
        self._osds = cluster.pids("osd.")
        self._mds = cluster.pids("mds.")
        self._systems = systems

    def measure(self, row, system, number):
        row.prepare(system)
        self._rest()
        # ss is a program, too: not between the two looks at the CPU.
        network_before = network_bytes(system.pid) if system.pid else 0
        cpu_before, began = self._cpu_s(system), time.monotonic()
        work = row.work(system)
        took_s, cpu_after = time.monotonic() - began, self._cpu_s(system)
        network = network_bytes(system.pid) - network_before if system.pid else None
        if not work.operations:
            raise ValueError("not one operation was done")
        client, osd, mds = (after - before for before, after in zip(cpu_before, cpu_after))
        seconds = work.seconds or took_s
        return Sample(system.name, row.name, row.group, row.unit, number,
                      seconds if row.unit == "s" else work.operations / seconds,
                      max(0, client - work.start_cpu_s) * 1e6 / work.operations, osd * 1e6 / work.operations,
                      mds * 1e6 / work.operations, None if network is None else network / KIB / work.operations)

    def _cpu_s(self, system):
        client = programs_cpu_s() + (daemon_cpu_s(system.pid) if system.pid else 0)
        return client, sum(map(daemon_cpu_s, self._osds)), sum(map(daemon_cpu_s, self._mds))

    def _rest(self):
        """What one system left to do, as removing objects, must not slow down the next; but some never rest."""
        daemons = [*self._osds, *self._mds, *(system.pid for system in self._systems if system.pid)]
        deadline = time.monotonic() + REST_LIMIT_S
        while time.monotonic() < deadline:
            before = sum(map(daemon_cpu_s, daemons))
            time.sleep(REST_LOOK_S)
            if sum(map(daemon_cpu_s, daemons)) - before <= REST_LOOK_CPU_S:
                return
