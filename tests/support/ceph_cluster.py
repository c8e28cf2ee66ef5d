#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A throw-away Ceph cluster: real daemons as ordinary processes on 127.0.0.1, all in one directory.

    ceph_cluster.py start DIR [--osds N] [--mds] [--memstore] [--pool NAME]
    ceph_cluster.py stop DIR
    ceph_cluster.py osd-stop DIR I        # kill -9
    ceph_cluster.py osd-start DIR I
    ceph_cluster.py run DIR [--osds N] [--mds] [--memstore] [--pool NAME] -- COMMAND...

`run` starts a cluster, runs COMMAND with LCCFS_TEST_CONF and LCCFS_TEST_POOL set, stops the cluster and exits with the
command's status. As a module: Cluster. Logs and ceph.conf stay in DIR after the end, the stores do not.
"""

import argparse
import base64
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid

START_TIMEOUT_S = 300
ANSWER_TIMEOUT_S = 180
STUCK_S = 10  # nothing that an OSD does takes so long, unless its placement group has stopped
MAX_SOCKET_PATH_BYTES = 107

CONF = """\
[global]
fsid = {fsid}
mon host = {mon_host}
keyring = {dir}/keyring
log file = /dev/null
log to stderr = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 16
osd pool default pgp num = 16
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd crush update on start = true
mon allow pool size one = true
mon allow pool delete = true
mon warn on pool no redundancy = false
mon data avail warn = 2
mon data avail crit = 1
mon osd full ratio = .99
osd failsafe full ratio = .995
auth allow insecure global id reclaim = false
mon osd backfillfull ratio = .985
mon osd nearfull ratio = .98
mon max pg per osd = 4000
{extra}
[mon]
mon data = {dir}/mon
log file = {dir}/log/$name.log
admin socket = {dir}/$name.asok
mon mgr digest period = 1
[mgr]
mgr data = {dir}/mgr
log file = {dir}/log/$name.log
admin socket = {dir}/$name.asok
mgr stats period = 1
mgr tick period = 1
mgr initial modules =
[osd]
osd data = {dir}/osd.$id
log file = {dir}/log/$name.log
admin socket = {dir}/$name.asok
osd objectstore = {objectstore}
bluestore block path =
bluestore block create = true
bluestore block size = 21474836480
bluestore cache autotune = false
bluestore cache size = 134217728
memstore device bytes = 4294967296
ms bind port min = 6800
ms bind port max = 19999
[mds]
mds data = {dir}/mds
log file = {dir}/log/$name.log
admin socket = {dir}/$name.asok
"""

CAPS = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "mgr": "allow *", "osd": "allow *", "mds": "allow *"},
    "mgr.x": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
    "mds.a": {"mon": "allow profile mds", "mgr": "allow profile mds", "osd": "allow *", "mds": "allow *"},
}
CAPABILITIES = pathlib.Path(__file__).resolve().parents[2] / "src" / "store" / "rados" / "capabilities.h"
OSD_CAPS = {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"}


class ClusterError(Exception):
    """What went wrong, for people; the daemons' logs are in DIR/log."""


def capability(service):
    """What the key of a client must permit: "mon" or "osd", the text of the one place that has it."""
    text = CAPABILITIES.read_text(encoding="utf-8")
    return re.search(rf'{service}_capability =\s*R"cap\((.*?)\)cap"', text).group(1)


def _new_key():
    header = struct.pack("<HIIH", 1, int(time.time()), 0, 16)
    return base64.b64encode(header + os.urandom(16)).decode()


def free_port():
    """Below the range of outgoing connections, so that no client takes it before the one who wants it has bound it."""
    for _ in range(1000):
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise ClusterError("no free port on 127.0.0.1")


class Cluster:
    """One cluster in `directory`. Usable as a context manager, which starts and stops it.

    With detached=False (the default) the daemons end when this process does, however it ends.
    """

    def __init__(self, directory, objectstore="bluestore", conf=None, detached=False):
        self.dir = pathlib.Path(directory).resolve()
        self.conf = self.dir / "ceph.conf"
        self._pids = self.dir / "pids"
        self._objectstore = objectstore
        self._extra_conf = conf or {}
        self._detached = detached
        self._guard = None
        self._children = {}
        if len(str(self.dir / "osd.000.asok")) > MAX_SOCKET_PATH_BYTES:
            raise ClusterError(f"{self.dir}: too long a path for the daemons' sockets")

    def __enter__(self):
        return self if self._pids.exists() else self.start()

    def __exit__(self, *_):
        self.stop()

    # -- the whole cluster

    def start(self, osds=1, mds=False):
        self._clear_remains()
        try:
            self._start(osds, mds)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        """Kills the daemons and removes their stores. Does nothing where there are none."""
        for pid_file in self._pids.glob("*"):
            self._kill(pid_file.name, signal.SIGKILL)
        for store in [self.dir / "mon", self.dir / "mgr", self.dir / "mds", *self.dir.glob("osd.*")]:
            if store.is_dir():
                shutil.rmtree(store, ignore_errors=True)
            else:
                store.unlink(missing_ok=True)
        for leftover in self.dir.glob("*.asok"):
            leftover.unlink(missing_ok=True)
        shutil.rmtree(self._pids, ignore_errors=True)
        if self._guard:
            self._guard.stdin.close()
            self._guard.wait()
            self._guard = None

    def ceph(self, *args, timeout_s=ANSWER_TIMEOUT_S):
        """`ceph ARGS...` as client.admin; returns its standard output."""
        return self._run("ceph", "-c", str(self.conf), *map(str, args), timeout_s=timeout_s)

    def create_pool(self, name, pg_num=16, size=1, erasure=None, max_bytes=None, max_objects=None):
        """`erasure` = (k, m): an erasure-coded pool with overwrites, for data objects."""
        if erasure:
            k, m = erasure
            self.ceph("osd", "erasure-code-profile", "set", name, f"k={k}", f"m={m}", "crush-failure-domain=osd")
            self.ceph("osd", "pool", "create", name, pg_num, pg_num, "erasure", name)
            self.ceph("osd", "pool", "set", name, "allow_ec_overwrites", "true")
        else:
            self.ceph("osd", "pool", "create", name, pg_num, pg_num, "replicated", "--size", size)
        self.set_quota(name, max_bytes, max_objects)
        return name

    def place_pool(self, pool, osd):
        """All of the pool's placement groups on that OSD, and nowhere else."""
        rule = f"only{osd}"
        if rule not in self.ceph("osd", "crush", "rule", "ls").split():
            self.ceph("osd", "crush", "rm-device-class", f"osd.{osd}")
            self.ceph("osd", "crush", "set-device-class", rule, f"osd.{osd}")
            self.ceph("osd", "crush", "rule", "create-replicated", rule, "default", "osd", rule)
        self.ceph("osd", "pool", "set", pool, "crush_rule", rule)

    def osd_of(self, pool, obj, namespace):
        """The first OSD of the object's placement group."""
        where = self.ceph("osd", "map", pool, obj, namespace, "-f", "json")
        return json.loads(where)["acting_primary"]

    def set_quota(self, pool, max_bytes=None, max_objects=None):
        """0 takes a quota away, None leaves it as it is."""
        if max_bytes is not None:
            self.ceph("osd", "pool", "set-quota", pool, "max_bytes", max_bytes)
        if max_objects is not None:
            self.ceph("osd", "pool", "set-quota", pool, "max_objects", max_objects)

    def add_client(self, name, **caps):
        """A key for client.NAME, e.g. mon="allow r", osd="allow rw pool=x"; returns a conf file that finds it."""
        words = [word for service, cap in caps.items() for word in (service, cap)]
        key = self.ceph("auth", "get-or-create", f"client.{name}", *words)
        with open(self.dir / "keyring", "a", encoding="utf-8") as keyring:
            keyring.write(key)
        return self.conf

    # -- single daemons

    def kill_osd(self, osd):
        self._kill(f"osd.{osd}", signal.SIGKILL)

    def pause_osd(self, osd):
        os.kill(self._pid(f"osd.{osd}"), signal.SIGSTOP)

    def continue_osd(self, osd):
        """It is marked down, as a real cluster has done long since, and comes up again: placement groups of one copy may
        else stay "laggy" for ever after the pause, and answer nothing. Where several stood still,
        see unsticking()."""
        os.kill(self._pid(f"osd.{osd}"), signal.SIGCONT)
        self.ceph("osd", "down", osd)

    @contextlib.contextmanager
    def unsticking(self, osds):
        """Meanwhile those OSDs are marked down whenever an operation waits in one: of several that come up at once, some
        keep a placement group that answers nothing until the next map."""
        done = threading.Event()
        helper = threading.Thread(target=self._unstick, args=(osds, done))
        helper.start()
        try:
            yield
        finally:
            done.set()
            helper.join()

    def _unstick(self, osds, done):
        while not done.wait(STUCK_S):
            for osd in osds:
                with contextlib.suppress(ClusterError):  # it is about to come up
                    waiting = json.loads(self.ceph("tell", f"osd.{osd}", "dump_ops_in_flight", timeout_s=STUCK_S))
                    if any(operation["age"] > STUCK_S for operation in waiting["ops"]):
                        self.ceph("osd", "down", osd)

    def pause_monitor(self):
        os.kill(self._pid("mon.a"), signal.SIGSTOP)

    def continue_monitor(self):
        os.kill(self._pid("mon.a"), signal.SIGCONT)

    def start_osd(self, osd):
        """Starts an OSD that was killed, and waits until it is up again."""
        old_address = self._osd_address(osd)
        self._spawn(f"osd.{osd}", "ceph-osd", "-i", str(osd))
        self._wait_for(f"osd.{osd}", lambda: self._osd_address(osd) != old_address and self._up_osds() >= {osd})

    def pids(self, prefix):
        """Of the daemons whose names begin so, as "osd."."""
        return [self._pid(pid_file.name) for pid_file in self._pids.glob(f"{prefix}*")]

    # -- inside

    def _start(self, osds, mds):
        for folder in ["log", "pids", "mon", "mgr", "mds", *(f"osd.{i}" for i in range(osds))]:
            (self.dir / folder).mkdir(parents=True)
        if not self._detached:
            self._start_guard()
        fsid = str(uuid.uuid4())
        ports = set()
        while len(ports) < 2:  # of those that nobody has, one may be drawn twice
            ports.add(free_port())
        mon_host = "[v2:127.0.0.1:{}/0,v1:127.0.0.1:{}/0]".format(*ports)
        self._write_conf(fsid, mon_host)
        self._write_keyring(osds)
        monmap = str(self.dir / "monmap")
        self._run("monmaptool", "--create", "--clobber", "--fsid", fsid, "--addv", "a", mon_host, monmap)
        self._daemon_tool("ceph-mon", "--mkfs", "-i", "a", "--monmap", monmap, "--keyring", str(self.dir / "keyring"))
        self._spawn("mon.a", "ceph-mon", "-i", "a")
        self._spawn("mgr.x", "ceph-mgr", "-i", "x")
        for osd in range(osds):
            osd_uuid = str(uuid.uuid4())
            self.ceph("osd", "new", osd_uuid, osd, timeout_s=START_TIMEOUT_S)
            self._daemon_tool("ceph-osd", "-i", str(osd), "--mkfs", "--monmap", monmap, "--osd-uuid", osd_uuid)
            self._spawn(f"osd.{osd}", "ceph-osd", "-i", str(osd))
        if mds:
            self._start_mds()
        self._wait_for("OSDs", lambda: self._up_osds() >= set(range(osds)))
        self._wait_for("mgr.x", lambda: self._status()["mgrmap"]["available"])
        if mds:
            self._wait_for("mds.a", lambda: "up:active" in self.ceph("mds", "stat"))

    def _start_mds(self):
        for pool in ["cephfs_metadata", "cephfs_data"]:
            self.create_pool(pool, 32)  # as many as bench/compare gives the pools of the others
        self.ceph("fs", "new", "cephfs", "cephfs_metadata", "cephfs_data")
        self._spawn("mds.a", "ceph-mds", "-i", "a")

    def _start_guard(self):
        """A process that stops the cluster when our end of its pipe closes, which happens however we end."""
        self._guard = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "guard", str(self.dir)],
            stdin=subprocess.PIPE, start_new_session=True)

    def _clear_remains(self):
        if self._pids.exists():
            raise ClusterError(f"{self.dir} holds a running cluster: ceph_cluster.py stop {self.dir}")
        if self.conf.exists():
            shutil.rmtree(self.dir)
        elif self.dir.exists() and any(self.dir.iterdir()):
            raise ClusterError(f"{self.dir} is not empty")

    def _write_conf(self, fsid, mon_host):
        extra = "\n".join(f"{key} = {value}" for key, value in self._extra_conf.items())
        self.conf.write_text(CONF.format(fsid=fsid, mon_host=mon_host, dir=self.dir, extra=extra,
                                         objectstore=self._objectstore), encoding="utf-8")

    def _write_keyring(self, osds):
        """The mon takes every key from here at its mkfs, which saves an `auth` command for each daemon."""
        caps = dict(CAPS) | {f"osd.{osd}": OSD_CAPS for osd in range(osds)}
        with open(self.dir / "keyring", "w", encoding="utf-8") as keyring:
            for entity, entity_caps in caps.items():
                keyring.write(f"[{entity}]\n\tkey = {_new_key()}\n")
                for service, cap in entity_caps.items():
                    keyring.write(f'\tcaps {service} = "{cap}"\n')

    def _status(self):
        return json.loads(self.ceph("status", "-f", "json"))

    def _osds(self):
        return json.loads(self.ceph("osd", "dump", "-f", "json"))["osds"]

    def _up_osds(self):
        return {osd["osd"] for osd in self._osds() if osd["up"]}

    def _osd_address(self, osd):
        """With the nonce, so it changes with each start."""
        return next(json.dumps(entry["public_addrs"]) for entry in self._osds() if entry["osd"] == osd)

    def _wait_for(self, what, ready):
        deadline = time.monotonic() + START_TIMEOUT_S
        while not ready():
            self._complain_about_dead()
            if time.monotonic() > deadline:
                raise ClusterError(f"{what}: not up after {START_TIMEOUT_S} s, see {self.dir}/log")
            time.sleep(0.5)  # to ask takes the processor from those that are waited for

    def _complain_about_dead(self):
        for name, child in self._children.items():
            if child.poll() is not None:
                raise ClusterError(f"{name} ended with status {child.returncode}, see {self.dir}/log/{name}.*")

    def _spawn(self, name, program, *args):
        with open(self.dir / "log" / f"{name}.out", "ab") as out:
            child = subprocess.Popen([program, "-f", "-c", str(self.conf), *args], stdin=subprocess.DEVNULL,
                                     stdout=out, stderr=out, start_new_session=True)
        self._children[name] = child
        (self._pids / name).write_text(str(child.pid), encoding="utf-8")

    def _pid(self, name):
        """The daemon's pid, unless it is gone and the number is somebody else's by now."""
        try:
            pid = int((self._pids / name).read_text(encoding="utf-8"))
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            raise ClusterError(f"{name} is not running in {self.dir}") from None
        if os.fsencode(self.conf) not in command.split(b"\0"):
            raise ClusterError(f"{name} is not running in {self.dir}")
        return pid

    def _kill(self, name, sig):
        try:
            pid = self._pid(name)
            os.kill(pid, sig)
        except (ClusterError, ProcessLookupError):
            pid = None
        child = self._children.pop(name, None)
        if child:
            child.wait()
        while pid and pathlib.Path(f"/proc/{pid}/exe").exists() and self._is_alive(pid):
            time.sleep(0.02)
        (self._pids / name).unlink(missing_ok=True)

    @staticmethod
    def _is_alive(pid):
        try:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] not in "ZX"

    def _daemon_tool(self, program, *args):
        self._run(program, "-c", str(self.conf), *args, timeout_s=START_TIMEOUT_S)

    def _run(self, *command, timeout_s=ANSWER_TIMEOUT_S):
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"{' '.join(command)}: no answer in {timeout_s} s") from None
        if done.returncode != 0:
            raise ClusterError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout


def _environment(cluster, pool):
    return {"LCCFS_TEST_CONF": str(cluster.conf), "LCCFS_TEST_POOL": pool}


def _start(options, detached):
    cluster = Cluster(options.dir, "memstore" if options.memstore else "bluestore", detached=detached)
    cluster.start(options.osds, options.mds)
    try:
        cluster.create_pool(options.pool)
    except BaseException:
        cluster.stop()
        raise
    return cluster


def _run_command(options):
    if not options.command:
        raise ClusterError("run: no command given after --")
    cluster = _start(options, detached=False)
    try:
        status = subprocess.run(options.command, env=os.environ | _environment(cluster, options.pool), check=False).returncode
    finally:
        cluster.stop()
    return status if status >= 0 else 128 - status


def _guard(options):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdin.buffer.read()
    Cluster(options.dir).stop()


def _parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="action", required=True, metavar="start|stop|osd-stop|osd-start|run")
    for action in ["start", "run"]:
        starting = commands.add_parser(action)
        starting.add_argument("dir")
        starting.add_argument("--osds", type=int, default=1)
        starting.add_argument("--mds", action="store_true", help="also CephFS, named cephfs")
        starting.add_argument("--memstore", action="store_true")
        starting.add_argument("--pool", default="test", help="made at the start (default: test)")
    for action in ["stop", "guard", "osd-stop", "osd-start"]:
        other = commands.add_parser(action)
        other.add_argument("dir")
        if action.startswith("osd-"):
            other.add_argument("osd", type=int)
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:split])
    options.command = arguments[split + 1:]
    return options


def main(arguments):
    options = _parse(arguments)
    if options.action == "guard":
        return _guard(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if options.action == "start":
            cluster = _start(options, detached=True)
            for name, value in _environment(cluster, options.pool).items():
                print(f"{name}={value}")
        elif options.action == "run":
            return _run_command(options)
        elif options.action == "stop":
            Cluster(options.dir).stop()
        elif options.action == "osd-stop":
            Cluster(options.dir).kill_osd(options.osd)
        elif options.action == "osd-start":
            Cluster(options.dir, detached=True).start_osd(options.osd)
    except (ClusterError, OSError) as error:
        print(f"ceph_cluster.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
