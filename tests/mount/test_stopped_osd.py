# SPDX-License-Identifier: LGPL-2.1-or-later
"""One of two OSDs is stopped: what does not need it continues, nobody is fenced, load ends well, and so does a mount."""

import fcntl
import os
import pathlib
import re
import subprocess
import time

from harness import MountTest, POOL, context, pattern_bytes, run, wait_until
from test_killed_clients import MountElsewhere

DATA_POOL = "bytes"
METADATA_OSD, STOPPED_OSD = 0, 1
FILES = 24  # of one data object each
FILE_BYTES = 4 << 20
LOAD_LIMIT_S = 60  # until the load is at work; it ends itself after that, if nothing hangs
STOPPED_S = 75  # who does not answer for a minute would be fenced
GOES_ON_S = 40  # what hangs does so until the OSD comes back


class StoppedOsdTest(MountTest):
    """Metadata is on one OSD, and so is a part of the files; the others' bytes are on the one that is stopped."""

    stores = ("rados",)
    waits = True
    limit_s = 200
    own_cluster = {"osds": 2}

    def setUp(self):
        if self._testMethodName == "test_the_same_at_every_depth" and not context.full:
            self.skipTest("only with --full")
        super().setUp()

    def set_up_volume(self):
        self.cluster.create_pool(DATA_POOL)
        self.cluster.place_pool(POOL, METADATA_OSD)
        self.volume = self.new_volume("--data-pool", DATA_POOL)
        self.mount, self.other = self.volume.mount(), self.volume.mount()
        self.hung, self.live = [], []
        for number in range(FILES):
            path = self.mount / f"file {number}"
            path.write_bytes(pattern_bytes(FILE_BYTES, number))
            (self.hung if self.osd_of(path) == STOPPED_OSD else self.live).append(path)
        self.assertGreater(min(len(self.hung), len(self.live)), 3, "pools are not placed as they should be")

    def osd_of(self, path):
        return self.cluster.osd_of(DATA_POOL, f"Data.{path.stat().st_ino}.0", self.volume.namespace)

    def test_what_does_not_need_it_continues(self):
        self.stop_under_load(("1M", 128), ("4k", 160))

    def test_the_same_at_every_depth(self):
        for job in [("1M", 1), ("1M", 16), ("1M", 128), ("4k", 160), ("4k", 1024), ("1M", 1024)]:
            with self.subTest(job=job):
                self.stop_under_load(job)

    def test_a_mount_that_is_to_end_when_it_is_fenced_does_so_though_an_object_hangs(self):
        for path in self.hung:
            with open(path, "rb") as stored:
                os.fsync(stored)
        mount = self.volume.mount("-o", "end_when_fenced")
        mount.may_die = True
        self.cluster.pause_osd(STOPPED_OSD)
        try:
            self.spawn("dd", "if=/dev/zero", f"of={mount / self.hung[0].name}", "bs=4k", "count=1", "oflag=direct",
                       "conv=notrunc")
            wait_until(lambda: "has not ended after" in mount.log_text(), GOES_ON_S, "a write hangs")
            self.volume.said("evict", "--client", str(mount.instance()))
            self.assertEqual(mount.process.wait(120), 32)
        finally:
            self.cluster.continue_osd(STOPPED_OSD)

    def stop_under_load(self, *jobs):
        mounts = [self.mount, self.other]
        load = [self.fio(*job) for job in jobs]
        for job in jobs:
            wait_until(lambda job=job: self.is_at_work(*job), LOAD_LIMIT_S, f"fio {job} has written to all files")
        told = len(self.mount.log_text())
        self.cluster.pause_osd(STOPPED_OSD)
        began = time.monotonic()
        try:
            # After so long the requests in flight have become as many as there will be.
            wait_until(lambda: self.is_told_of_what_hangs(told), GOES_ON_S, "what hangs is told of while it hangs")
            wanted = self.append_elsewhere()
            while time.monotonic() - began < STOPPED_S:
                for mount in mounts:
                    self.use(mount)
                time.sleep(1)
            self.assertTrue(all(fio.poll() is None for fio in load), "the OSD was not needed")
            self.assertIsNone(wanted.poll())
        finally:
            self.cluster.continue_osd(STOPPED_OSD)
        self.assertEqual(wanted.wait(120), 0)  # it comes after all that fio had sent: up to 1 GiB
        self.assertEqual([fio.wait(120) for fio in load], [0] * len(load))
        for mount in mounts:
            self.assertEqual(mount.lines_about_fences(), [])

    def is_told_of_what_hangs(self, told):
        """After so many characters of the log."""
        return re.search(r"slow store operation: write_data of Data\.\S+ has not ended after", self.mount.log_text()[told:])

    def fio(self, block, depth):
        return self.spawn(
            "fio", "--status-interval=1", f"--output={self.status_of(block, depth)}", f"--name={block}x{depth}",
            "--rw=randwrite", f"--bs={block}", "--direct=1", "--ioengine=libaio", f"--iodepth={depth}",
            f"--size={FILE_BYTES * len(self.hung[1:])}", "--time_based", f"--runtime={LOAD_LIMIT_S}", "--overwrite=1",
            "--filename=" + ":".join(str(path) for path in self.hung[1:]))

    def status_of(self, block, depth):
        return self.scratch(f"fio {block}x{depth}")

    def is_at_work(self, block, depth):
        """fio takes the files in turn: each had several I/Os, beside as many as it has in flight."""
        status = self.status_of(block, depth)
        done = re.findall(r"issued rwts: total=\d+,(\d+)", status.read_text(encoding="ascii")) if status.exists() else []
        return bool(done) and int(done[-1]) > depth + 4 * len(self.hung)

    def append_elsewhere(self):
        """A file whose bytes hang is wanted by the other mount: it waits, and asks who writes it. A process of its own does
        that: each command that this one starts would close its copy of the descriptor, and wait for the OSD with that."""
        return self.spawn("sh", "-c", 'printf x >>"$0"', self.other.path / self.hung[1].name)

    def use(self, mount):
        """Everything that needs only the OSD that lives, within the time."""
        began = time.monotonic()
        for path in [self.hung[-1], self.live[0]]:
            os.stat(mount / path.name)
        os.listdir(mount.path)
        folder = mount / f"folder {time.monotonic_ns()}"
        folder.mkdir()
        (folder / "empty").touch()
        self.assertEqual(os.listdir(folder), ["empty"])
        with open(mount / self.hung[0].name, "rb"):
            pass
        self.read_and_write(mount)
        self.assertLess(time.monotonic() - began, GOES_ON_S, "what does not need the OSD waited for it")

    def read_and_write(self, mount):
        for path in self.live[1:]:
            number = int(path.name.split()[1])
            with open(mount / path.name, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # it is read from the store
                self.assertEqual(file.read(), pattern_bytes(FILE_BYTES, number))
        run("dd", "if=/dev/zero", f"of={mount / self.live[0].name}", "bs=1M", "count=4", "oflag=direct", "conv=notrunc")


class KilledProgramTest(MountTest):
    """Programs that are killed while they wait for the only OSD, which is stopped."""

    stores = ("rados",)
    waits = True
    own_cluster = {"osds": 1}

    FSYNC = "import os; os.write(1, b'new'); os.write(2, b'w'); os.fsync(1)"
    UNDER_LOCK = (
        "import fcntl, os, sys; ranges, whole, _ = [open(path, 'r+b') for path in sys.argv[1:]]; "
        "fcntl.lockf(ranges, fcntl.LOCK_EX); fcntl.flock(whole, fcntl.LOCK_EX); "
        "os.write(2, b'.'); sys.stdin.read(); os.write(1, b'new'); os.write(2, b'w'); os.fsync(1)"
    )
    ASKS = (
        "import fcntl, os, sys; asked = open(sys.argv[3], 'r+b'); "
        "os.write(2, b'.'); sys.stdin.read(); "
    )
    ASKS_FOR = ("fcntl.flock(asked, fcntl.LOCK_EX)", "fcntl.lockf(asked, fcntl.LOCK_EX | fcntl.LOCK_NB)")

    def set_up_volume(self):
        super().set_up_volume()
        self.old, self.new = pattern_bytes(FILE_BYTES, 1), pattern_bytes(1 << 20, 2)
        for name in ("direct", "appended", "synced", "locked", "read", "looked up", "listed"):
            (self.mount / f"folder of {name}").mkdir()
            self.file(name).write_bytes(self.old)
        self.locks = [self.mount / "range lock", self.mount / "flock", self.mount / "lock that is asked for"]
        for lock in self.locks:
            lock.touch()
        self.mount.remount()
        self.cold = self.volume.mount()

    def file(self, name, mount=None):
        return (mount or self.mount) / f"folder of {name}" / "file"

    def begin_all(self):
        """The OSD stops when all is open, and what is written has its lease."""
        source = context.workdir / "new"
        source.write_bytes(self.new)
        wanted = [
            (["dd", f"if={source}", "bs=1M", "conv=notrunc", "oflag=direct"], self.open("direct")),
            (["dd", f"if={source}", "bs=1M", "conv=notrunc", "oflag=direct", "seek=4"], self.open("appended")),
            (["python3", "-c", self.FSYNC], self.open("synced")),
            (["dd", f"if={self.file('read', self.cold)}", "of=/dev/null", "bs=1M", "iflag=direct"], None),
            (["stat", self.file("looked up", self.cold)], None),
            (["ls", "-l", self.file("listed", self.cold).parent], None),
        ]
        fcntl.flock(wanted[0][1], fcntl.LOCK_EX)
        self.open_locks = [self.enterContext(lock.open("r+b")) for lock in self.locks]
        locked = self.open("locked")
        asks = [self.ASKS + lock for lock in self.ASKS_FOR]
        lockers = [self.begin_locker(program, locked) for program in (self.UNDER_LOCK, *asks)]
        self.assertEqual(self.are_locked(), [True, True])
        run("sync", "-f", self.mount.path)
        self.cluster.pause_osd(0)
        programs = [
            subprocess.Popen(command, stdout=file or subprocess.DEVNULL, stderr=subprocess.PIPE)
            for command, file in wanted
        ]
        for program in programs:
            self.addCleanup(program.stderr.close)
        for locker in lockers:
            locker.stdin.close()
        programs += lockers
        for program in programs:
            wait_until(lambda program=program: self.waits(program), 30, f"{program.args} waits")
        for file in [file for _, file in wanted[:3]] + [locked]:
            os.close(file)
        return programs

    def begin_locker(self, program, stdout):
        """Returns when it has the locks that it begins with."""
        locker = subprocess.Popen(
            ["python3", "-c", program, *self.locks], stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE
        )
        self.assertEqual(locker.stderr.read(1), b".")
        self.addCleanup(locker.stderr.close)
        return locker

    @staticmethod
    def written_by(program):
        """What a file may begin with. A write may wait, too: the kernel asks for attributes first when it keeps none."""
        return [b"new"] if program.stderr.read() == b"w" else [b"old", b"new"]

    def open(self, name):
        file = os.open(self.file(name), os.O_RDWR)
        os.pwrite(file, b"old", 0)
        return file

    def waits(self, program):
        """For an answer, for those to the parts of a direct write, or for FUSE's lock of a directory in which another one
        does."""
        where = pathlib.Path(f"/proc/{program.pid}/wchan")
        before = where.read_text(encoding="ascii")
        time.sleep(0.2)
        return before.startswith(("request_wait_answer", "fuse_")) and where.read_text(encoding="ascii") == before

    def try_lock(self):
        return run("timeout", "5", "flock", "-n", self.file("direct"), "true", check=False).returncode

    def are_locked(self):
        """A range and a whole file, by a program that writes into a third one."""
        return [self.is_locked(how, file) for how, file in zip((fcntl.lockf, fcntl.flock), self.open_locks)]

    @staticmethod
    def is_locked(how, file):
        try:
            how(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        how(file, fcntl.LOCK_UN)
        return False

    def test_they_end_and_what_they_wrote_is_written(self):
        try:
            programs = self.begin_all()
            for program in programs:
                program.kill()
            self.assertEqual([program.wait(60) for program in programs], [-9] * len(programs))
            self.assertNotEqual(self.try_lock(), 0, "the lock is gone before what was written under it is there")
            self.assertEqual(self.are_locked(), [True, True], "a lock of another file is gone before that")
        finally:
            self.cluster.continue_osd(0)
        wait_until(lambda: self.try_lock() == 0, 60, "the lock of the killed program is gone")
        wait_until(lambda: self.are_locked() == [False, False], 60, "its locks of other files are gone")
        written = {"synced": self.written_by(programs[2]), "locked": self.written_by(programs[6])}
        asked = self.open_locks[2]
        for how in (fcntl.flock, fcntl.lockf):
            wait_until(lambda how=how: not self.is_locked(how, asked), 60, "what a killed program asked for is free")
        for mount in (self.mount, self.cold):
            self.assertEqual(self.file("direct", mount).read_bytes(), self.new + self.old[len(self.new):])
            self.assertEqual(self.file("appended", mount).read_bytes(), b"old" + self.old[3:] + self.new)
            for name, begins in written.items():
                read = self.file(name, mount).read_bytes()
                self.assertIn(read[:3], begins, f"{name} at {mount.path}")
                self.assertEqual(read[3:], self.old[3:], f"{name} at {mount.path}")
                begins[:] = [read[:3]]


class StoppedCollectorTest(MountTest):
    """Metadata is on both OSDs; what a mount itself needs is on the one that is not stopped."""

    stores = ("rados",)
    waits = True
    limit_s = 200
    own_cluster = {"osds": 2}
    grace_s = 5

    def set_up_volume(self):
        while True:
            self.volume = self.new_address()
            if all(self.is_live(name) for name in ["Super", "Alloc", "Inode.1"]):
                break
        self.volume.make("--grace", str(self.grace_s))
        self.mount = self.volume.mount()
        while not self.is_live(f"Session.{self.mount.instance()}"):
            self.mount.remount()

    def is_live(self, name):
        return self.cluster.osd_of(POOL, name, self.volume.namespace) == METADATA_OSD

    def mount_whose_session_will_hang(self):
        while True:
            before = self.instances()
            other = MountElsewhere(self.volume)
            self.volume.mounts.append(other)
            other.start()
            number, = self.instances() - before
            if not self.is_live(f"Session.{number}"):
                return other, number
            other.unmount()

    def unmount_once_it_waits_for(self, what, limit_s):
        self.cluster.pause_osd(STOPPED_OSD)
        try:
            wait_until(lambda: what in self.mount.log_text(), limit_s, what)
            self.mount.unmount()
        finally:
            self.cluster.continue_osd(STOPPED_OSD)

    def is_seen(self, number):
        return any(entry["number"] == number and entry["presence"] == "watching"
                   for entry in self.volume.info()["instances"])

    def instances(self):
        return {entry["number"] for entry in self.volume.info()["instances"]}

    def test_a_mount_ends_though_a_dead_client_cannot_be_looked_for(self):
        other, number = self.mount_whose_session_will_hang()
        other.kill()
        other.process.wait()
        wait_until(lambda: not self.is_seen(number), 60, "its watches lapse")
        self.unmount_once_it_waits_for(f"presence of Session.{number}", 100)

    def test_a_mount_ends_though_its_collector_reads_an_object_that_does_not_answer(self):
        directory, number = self.mount / "directory", None
        while number is None:
            directory.mkdir()
            number = directory.stat().st_ino
            if self.is_live(f"Inode.{number}"):
                directory.rename(self.mount / f"directory {number}")
                number = None
        directory.rmdir()
        os.sync()
        self.unmount_once_it_waits_for(f"query of Inode.{number} has not ended", 60)
        self.assertNotIn("directory", os.listdir(self.mount.start().path))
        self.assertEqual(self.mount.lines_about_fences(), [])
