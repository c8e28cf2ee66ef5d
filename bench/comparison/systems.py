# SPDX-License-Identifier: LGPL-2.1-or-later
"""The competitors: LCCFS and ceph-fuse as mounts, librbd and bare RADOS through engines of fio and QEMU."""

import json
import os
import pathlib
import subprocess

from comparison.meter import programs_cpu_s
from comparison.row import CEPH_FUSE, HOST, LCCFS, LIBRBD, LOCAL, RADOS, Failed, run
import harness

POOL = "bench"
OBJECT_MIB = 4


def drop_caches():
    """The kernel's, of all file systems."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n", encoding="utf-8")


class System:
    """One competitor. Its images have numbers: 0 is the large one, the others are small."""

    name = ""
    pid = None  # of the daemon; None: the programs are the clients

    def __init__(self, sizes):
        self._sizes = sizes
        self._filled = set()
        self._start_cpu_s = {}

    def image_mib(self, number):
        return self._sizes.image_mib if number == 0 else self._sizes.small_image_mib

    def use_options(self, options):
        """Mounts with these options from now on."""

    def fill(self, images):
        empty = [number for number in images if number not in self._filled]
        for number in empty:
            self.create(number)
        if empty:
            self.fio("--rw=write", "--bs=4M", "--iodepth=4", images=empty)
        self._filled.update(empty)

    def create(self, number):
        """Before it is filled."""

    def start_cpu_s(self, name, start):
        """What a program takes to begin and to end, by `start`, which has it do next to nothing. Looked at once."""
        if name not in self._start_cpu_s:
            before = programs_cpu_s()
            start()
            self._start_cpu_s[name] = programs_cpu_s() - before
        return self._start_cpu_s[name]

    def fio(self, *words, images):
        command = ["fio", "--output-format=json", "--randrepeat=0", "--norandommap", "--group_reporting", *words]
        for number in images:
            command += [f"--name=job{number}", *self.fio_words(number)]
        answer = run(*command, environment=os.environ | self.environment())
        return json.loads(answer[answer.index("{"):])["jobs"][0]

    def environment(self):
        return {}

    def time_words(self, seconds):
        return [f"--runtime={seconds}", "--time_based"]


class FileSystem(System):
    """`path` is where it is mounted."""

    def fio_words(self, number):
        return ["--ioengine=libaio", "--direct=1", f"--filename={self.image(f'image{number}')}",
                f"--size={self.image_mib(number)}M"]

    def image(self, name):
        """As qemu-img wants it."""
        return self.path / name

    def remove(self, name):
        (self.path / name).unlink(missing_ok=True)


class Lccfs(FileSystem):
    name = LCCFS

    @classmethod
    def on_cluster(cls, sizes, cluster):
        return cls(sizes, harness.empty_address(cluster, POOL).as_client("admin"))

    def __init__(self, sizes, volume):
        super().__init__(sizes)
        self._options = ()
        self._volume = volume
        self._mount = self._volume.mount("--create")

    @property
    def path(self):
        return self._mount.path

    @property
    def pid(self):
        return self._mount.process.pid

    def use_options(self, options):
        if options != self._options:
            self._options = options
            self.remount()

    def remount(self):
        self._mount.unmount()
        self._mount = self._volume.mount(*self._options)

    def close(self):
        for mount in self._volume.mounts:
            try:
                mount.clean_up()
            finally:
                if mount.process:
                    mount.process.kill()  # if a signal cut that short: its cluster is about to go


class LocalStore(Lccfs):
    """LCCFS without a cluster."""

    name = LOCAL

    def __init__(self, sizes, folder):
        super().__init__(sizes, harness.Volume(["--local", folder / "local-store"]))

    def remount(self):
        """Its store is files, which the kernel has cached, too."""
        self._mount.unmount()
        drop_caches()
        self._mount = self._volume.mount(*self._options)


class Host(FileSystem):
    """A folder beside that of the local store. Its client is the kernel, in the programs that call it."""

    name = HOST

    def __init__(self, sizes, folder):
        super().__init__(sizes)
        self.path = folder / "host"
        self.path.mkdir()

    def remount(self):
        """It cannot be: the kernel drops what it has cached."""
        drop_caches()

    def close(self):
        """Nothing runs."""


class CephFuse(FileSystem):
    name = CEPH_FUSE

    def __init__(self, sizes, cluster, folder):
        super().__init__(sizes)
        self._conf = cluster.conf
        self._log = folder / "ceph-fuse.log"
        self.path = folder / "ceph-fuse"
        self.path.mkdir()
        self._mount()

    @property
    def pid(self):
        return self._daemon.pid

    def remount(self):
        self.close()
        self._mount()

    def close(self):
        """Waits for the daemon: umount alone returns before all is stored."""
        subprocess.run(["umount", self.path], check=False)
        try:
            self._daemon.wait(harness.UNMOUNT_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait()

    def _mount(self):
        with open(self._log, "ab") as log:
            self._daemon = subprocess.Popen(["ceph-fuse", "-f", "-c", self._conf, "--id", "admin", self.path],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        harness.wait_until(lambda: harness.mounted_below(self.path) or self._daemon.poll() is not None,
                           harness.MOUNT_READY_LIMIT_S, f"mounting {self.path}")
        if self._daemon.poll() is not None:
            raise Failed(f"ceph-fuse: {self._log.read_text(encoding='utf-8')[-1000:]}")
        os.stat(self.path)


class Librbd(System):
    """With its cache off."""

    name = LIBRBD

    def __init__(self, sizes, cluster):
        super().__init__(sizes)
        self._conf = cluster.conf
        cluster.create_pool("rbd", 32)

    def create(self, number):
        run("rbd", "-c", self._conf, "create", f"image{number}", "--size", self.image_mib(number))

    def fio_words(self, number):
        return ["--ioengine=rbd", "--clientname=admin", "--pool=rbd", f"--rbdname=image{number}",
                f"--size={self.image_mib(number)}M"]

    def environment(self):
        return {"CEPH_CONF": str(self._conf), "CEPH_ARGS": "--rbd_cache=false"}

    def image(self, name):
        return f"rbd:rbd/{name}:id=admin:conf={self._conf}"

    def remove(self, name):
        if name in run("rbd", "-c", self._conf, "ls").splitlines():
            run("rbd", "-c", self._conf, "rm", "--no-progress", name)

    def remount(self):
        """Each program is a new client."""

    def close(self):
        """Nothing runs."""


class BareRados(System):
    """fio's engine for it hangs when it picks its objects at random, or starts over with the first: it stops at the
    end of all objects."""

    name = RADOS

    def __init__(self, sizes, cluster):
        super().__init__(sizes)
        self._conf = cluster.conf
        cluster.create_pool("bare", 32)

    def fio_words(self, number):
        size_mib = self.image_mib(number)
        return ["--ioengine=rados", "--clientname=admin", "--pool=bare", f"--conf={self._conf}",
                f"--nrfiles={size_mib // OBJECT_MIB}", f"--filesize={OBJECT_MIB}M", f"--size={size_mib}M",
                "--file_service_type=roundrobin", "--touch_objects=0"]

    def time_words(self, seconds):
        return [f"--runtime={seconds}"]

    def close(self):
        """Nothing runs."""
