# SPDX-License-Identifier: LGPL-2.1-or-later
"""What every mount test stands on: volumes on a store, mounts of them by the real lccfs-fuse, and a TestCase.

The runner (./run) fills `context` and runs each test in a process of its own. A Mount runs lccfs-fuse in the
foreground with its log in the test's folder; what a test leaves mounted is unmounted after it, and a client that does
not end cleanly then fails the test.
"""

import contextlib
import ctypes
import dataclasses
import hashlib
import http.client
import itertools
import json
import os
import pathlib
import pickle
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# /etc/lccfs/lccfs.conf is the machine's own. LCCFS_TEST_CONFIG names one with which all mounts are tried.
os.environ["LCCFS_CONFIG"] = os.environ.get("LCCFS_TEST_CONFIG", "")
sys.path.insert(0, str(ROOT / "tests" / "support"))
from ceph_cluster import Cluster, capability, free_port  # noqa: E402,F401  (found by the line above; also for tests)

MOUNT_READY_LIMIT_S = 60
UNMOUNT_LIMIT_S = 60
COMMIT_LIMIT_S = 10
POOL = "lccfs"
TENANT = "tenant"
NOBODY = 65534
libc = ctypes.CDLL(None, use_errno=True)


@dataclasses.dataclass
class Context:
    """Where the programs are, on which store the tests run, and the folder of the one that runs."""
    bin: pathlib.Path
    store: str = "local"  # local, rados, or plain: a plain folder instead of LCCFS, to try the tests themselves
    cluster: Cluster | None = None
    workdir: pathlib.Path = pathlib.Path()
    cache: pathlib.Path = pathlib.Path()  # kept between runs
    seed: int = 0
    full: bool = False


context = Context(ROOT / "build-dev" / "bin")
_numbers = itertools.count(1)


def run(*command, check=True, timeout_s=None, **options):
    """Runs a command with its output to the test's log; the words may be paths."""
    words = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in command]
    print("+", " ".join(words), flush=True)
    return subprocess.run(words, check=check, timeout=timeout_s, text=True, **options)


def output(*command, **options):
    """A command's standard output; its standard error goes to the log."""
    return run(*command, stdout=subprocess.PIPE, **options).stdout


def scaled(number):
    """How many of something a long test does: all in a full run; else one of 40 on RADOS, of 10 elsewhere."""
    if context.full:
        return number
    return number // (40 if context.store == "rados" else 10)


def wait_until(condition, limit_s, what):
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not after {limit_s} s")
        time.sleep(0.05)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_new_file(path):
    with open(path, "xb") as file:
        os.fsync(file)


def pattern_bytes(size, seed):
    return random.Random(seed).randbytes(size)


def mounted_below(folder):
    """Mountpoints in or under `folder`, the innermost first."""
    prefix = str(folder)
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [point for point in reversed(points) if point == prefix or point.startswith(prefix + "/")]


def in_mount_namespace(kept=""):
    """How a command begins that runs in a mount namespace of its own. Of all mounts of LCCFS it has `kept` alone: others
    would not end while they are mounted there."""
    script = 'findmnt -rno TARGET -t fuse.lccfs | grep -vxF "$0" | xargs -r umount -l; exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, kept]


# ---- volumes

class Volume:
    """An address of a volume: made by `make`, mounted by `mount`."""

    def __init__(self, address):
        self.address = [str(word) for word in address]
        self.mounts = []

    @property
    def namespace(self):
        return self.address[self.address.index("-n") + 1]

    def as_client(self, name):
        """The same volume, for another key."""
        return Volume([*self.address[:self.address.index("--id")], "--id", name])

    def lccfs(self, command, *options, **settings):
        return run(context.bin / "lccfs", command, *self.address, *options, **settings)

    def said(self, command, *options):
        """Its standard output."""
        return self.lccfs(command, *options, stdout=subprocess.PIPE).stdout

    def make(self, *options):
        self.lccfs("mkfs", *options)
        return self

    def info(self):
        return json.loads(self.said("info", "--json"))

    def mount(self, *options):
        mount = Mount(self, options)
        self.mounts.append(mount)
        return mount.start()

    def is_valid(self):
        """Whether the invariants hold, as src/check judges them; findings go to the log. Nobody may change it now."""
        return run(context.bin / "check_tool", *self.address, check=False).returncode == 0


class PlainVolume(Volume):
    """A folder; its mounts are bind mounts."""

    def __init__(self):
        folder = context.workdir / f"plain-{next(_numbers)}"
        folder.mkdir()
        super().__init__(["--plain", folder])
        self.folder = folder

    def make(self, *options):
        return self

    def is_valid(self):
        return True

    def mount(self, *options):
        mount = PlainMount(self, options)
        self.mounts.append(mount)
        return mount.start()


def new_volume(*mkfs_options):
    """An empty volume on the store that the tests run on."""
    return empty_address().make(*mkfs_options)


def empty_address(cluster=None, pool=POOL):
    """An address that holds no volume yet."""
    number = next(_numbers)
    if context.store == "local":
        return Volume(["--local", context.workdir / f"store-{number}"])
    if context.store == "plain":
        return PlainVolume()
    cluster = cluster or context.cluster
    return Volume(["-c", cluster.conf, "-p", pool, "-n", f"{context.workdir.name}-{number}", "--id", TENANT])


def create_tenant(cluster):
    """What docs and man pages ask for, good for the namespaces of all tests: an admin's key may not do all that it may."""
    cluster.add_client(TENANT, mon=capability("mon"), osd="allow rw namespace=rados-*")
    cluster.ceph("osd", "pool", "application", "enable", POOL, "lccfs")


# ---- mounts

class Mount:
    """One running lccfs-fuse. `path` is the mountpoint; `mount / "name"` a path on it."""

    def __init__(self, volume, options=()):
        number = next(_numbers)
        self.volume = volume
        self.path = context.workdir / f"mnt-{number}"
        self.log = context.workdir / f"client-{number}.log"
        self.process = None
        self.may_die = False  # set by tests that kill or fence it
        self._options = options

    def __truediv__(self, name):
        return self.path / name

    def command(self):
        return [str(context.bin / "lccfs-fuse"), *self.volume.address, "-m", str(self.path), "-f", *self._options]

    def start(self):
        self.path.mkdir(exist_ok=True)
        print("+", " ".join(self.command()), ">", self.log, flush=True)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)
        (context.workdir / f"{self.path.name}.pid").write_text(str(self.process.pid), encoding="utf-8")
        wait_until(self._ready_or_dead, MOUNT_READY_LIMIT_S, f"mounting {self.path}, see {self.log}")
        if not self.is_mounted():
            raise AssertionError(f"lccfs-fuse ended with status {self.process.returncode}: {self.end_of_log()}")
        os.stat(self.path)
        return self

    def unmount(self, limit_s=UNMOUNT_LIMIT_S):
        run("fusermount3", "-u", self.path)
        self.wait_for_end(limit_s)

    def wait_for_end(self, limit_s=UNMOUNT_LIMIT_S):
        status = self.process.wait(limit_s)
        if status != 0 and not self.may_die:
            raise AssertionError(f"lccfs-fuse ended with status {status}: {self.end_of_log()}")

    def remount(self):
        """Unmounts and mounts again: nothing is cached any more, on either side."""
        self.unmount()
        return self.start()

    def is_mounted(self):
        return bool(mounted_below(self.path))

    def log_text(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for_line(self, pattern):
        """Lines are written behind."""
        wait_until(lambda: re.search(pattern, self.log_text()), 10, f"'{pattern}' in {self.log}")

    def end_of_log(self):
        """For a failure's message."""
        return self.log_text()[-4000:]

    def lines_about_fences(self):
        """But for looks for fences that were slow, where nothing answered."""
        text = self.log_text().replace(context.workdir.name, "")  # the test's name
        return [line for line in text.splitlines() if "fenc" in line and "sync_fences" not in line]

    def metric(self, name):
        """What it says now of one, which has its labels as the page has them."""
        with contextlib.closing(http.client.HTTPConnection("mount")) as connection:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(f"/run/lccfs/{self.process.pid}.sock")
            connection.request("GET", "/metrics")
            page = connection.getresponse().read().decode("utf-8")
        return float(re.search(rf"^{re.escape(name)} (\S+)$", page, re.M).group(1))

    def resident_peak_kib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))

    def instance(self):
        """The number of this mount's instance in the volume."""
        return next(entry["number"] for entry in self.volume.info()["instances"]
                    if entry["pid"] == self.process.pid)

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, other):
        """It stands still, but not in the midst of a commit: on a local volume it would hold up all others
        (docs/POSIX.md). `other` is a mount of the volume that can write."""
        for attempt in itertools.count():
            self.signal(signal.SIGSTOP)
            # No process: a child's end closes what it has inherited, and waits for who has stopped.
            commit = threading.Thread(target=sync_new_file, args=[other / f"stop-{self.process.pid}-{attempt}"])
            commit.start()
            commit.join(COMMIT_LIMIT_S)
            if not commit.is_alive():
                return
            self.signal(signal.SIGCONT)
            commit.join()

    def kill(self):
        self.may_die = True
        self.signal(signal.SIGKILL)

    def clean_up(self):
        """Unmounts, whatever state it is in. True: it was fine and ended cleanly."""
        if self.process is None:
            return True
        if self.is_mounted() and not self.may_die:
            try:
                self.unmount()
                return True
            except (subprocess.SubprocessError, AssertionError) as error:
                print(f"unmounting {self.path}: {error}", flush=True)
        clean = self.may_die or (self.process.poll() == 0)
        while self.is_mounted():
            run("fusermount3", "-u", "-z", self.path, check=False)
        self._end_process()
        return clean

    def _end_process(self):
        for number in [signal.SIGCONT, signal.SIGTERM, signal.SIGKILL]:
            if self.process.poll() is not None:
                return
            self.process.send_signal(number)
            if number != signal.SIGCONT:
                try:
                    self.process.wait(10)
                except subprocess.TimeoutExpired:
                    continue

    def _ready_or_dead(self):
        return self.is_mounted() or self.process.poll() is not None


class PlainMount(Mount):
    def start(self):
        self.path.mkdir(exist_ok=True)
        run("mount", "--bind", self.volume.folder, self.path)
        return self

    def unmount(self):
        run("umount", self.path)

    def clean_up(self):
        while self.is_mounted():
            run("umount", "-l", self.path, check=False)
        return True

    def resident_peak_kib(self):
        return 0


# ---- the test case

class MountTest(unittest.TestCase):
    """A test with a fresh volume, mounted at self.mount. Class attributes say where and how long it runs."""

    stores = ("local", "rados", "plain")
    limit_s = 120
    waits = False  # it mostly waits: the runner lets it run beside the others
    own_cluster = None  # arguments of Cluster.start, if it harms the cluster: it gets one of its own
    mkfs_options = ()
    mount_options = ()
    leaves_valid_volumes = True  # what is left of every volume that was mounted is judged by src/check

    maxDiff = 2000

    def setUp(self):
        self.random = random.Random(f"{context.seed} {self.id()}")
        self.cluster = context.cluster
        if context.store == "rados" and self.own_cluster is not None:
            # Not in workdir: paths of sockets are short.
            self.cluster = Cluster(context.workdir.parent / f"cluster-{os.getpid()}").start(**self.own_cluster)
            self.addCleanup(self.cluster.stop)
            self.cluster.create_pool(POOL)
            create_tenant(self.cluster)
        self._volumes = []
        self.addCleanup(self._unmount_all)
        self.set_up_volume()

    def set_up_volume(self):
        self.volume = self.new_volume(*self.mkfs_options)
        self.mount = self.volume.mount(*self.mount_options)

    def new_address(self, pool=POOL):
        volume = empty_address(self.cluster, pool)
        self._volumes.append(volume)
        return volume

    def new_volume(self, *mkfs_options, pool=POOL):
        return self.new_address(pool).make(*mkfs_options)

    def scratch(self, name):
        """A path outside the volume."""
        folder = context.workdir / "scratch"
        folder.mkdir(exist_ok=True)
        return folder / name

    def spawn(self, *words, **options):
        """A program that ends with the test, if not before."""
        program = subprocess.Popen(words, **options)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def assert_errno(self, number, function, *arguments, **options):
        with self.assertRaises(OSError) as caught:
            function(*arguments, **options)
        self.assertEqual(os.strerror(caught.exception.errno), os.strerror(number))

    def _unmount_all(self):
        volumes, self._volumes = self._volumes, []
        mounts = [mount for volume in volumes for mount in volume.mounts]
        unclean = [mount for mount in reversed(mounts) if not mount.clean_up()]
        self.assertFalse(unclean, "clients did not end cleanly: " + ", ".join(str(m.log) for m in unclean))
        if self.leaves_valid_volumes:
            damaged = [volume for volume in volumes if volume.mounts and not volume.is_valid()]
            self.assertFalse(damaged, "invariants broken: " + ", ".join(str(v.address) for v in damaged))


def as_user(uid, function, gid=None, groups=()):
    """Runs `function` in a child process as that user; returns what it returns, or raises its OSError's errno."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(list(groups))
            os.setgid(uid if gid is None else gid)
            os.setuid(uid)
            answer = (function(), None)
        except OSError as error:
            answer = (None, error.errno or 0)
        except BaseException as error:  # whatever it is, the parent must hear of it
            answer = (repr(error), -1)
        os.write(writer, pickle.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        value, number = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    if number == -1:
        raise AssertionError(f"as user {uid}: {value}")
    if number is not None:
        raise OSError(number, os.strerror(number))
    return value


class Child:
    """`function` in a process of its own, at once."""

    def __init__(self, function, *arguments):
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                function(*arguments)
                status = 0
            except BaseException:  # whatever it is, the parent must hear of it
                traceback.print_exc()
            os._exit(status)

    def signal(self, number):
        os.kill(self._pid, number)

    def wait(self):
        """0: it ended well."""
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
