# SPDX-License-Identifier: LGPL-2.1-or-later
"""Locks between mounts, with system calls, QEMU and SQLite."""

import contextlib
import errno
import fcntl
import mmap
import os
import signal
import sqlite3
import struct
import subprocess
import time

import qemu
from harness import Child, MountTest, context, run, wait_until

F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW = 36, 37, 38
FLOCK = "hhqqi4x"


def range_lock(fd, kind, first=0, length=0, command=fcntl.F_SETLK):
    """The lock that is in the way, for F_GETLK and F_OFD_GETLK: (kind, first, length, pid)."""
    answer = fcntl.fcntl(fd, command, struct.pack(FLOCK, kind, os.SEEK_SET, first, length, 0))
    kind, _, first, length, pid = struct.unpack(FLOCK, answer)
    return kind, first, length, pid


class LockTest(MountTest):
    stores = ("local", "rados")

    def setUp(self):
        super().setUp()
        self.other = self.volume.mount()
        self.path = self.mount / "file"
        self.path.write_bytes(b"0" * 16)
        self.here = self.open(self.path)
        self.there = self.open(self.other / "file")

    def open(self, path):
        fd = os.open(path, os.O_RDWR)
        self.addCleanup(self.close, fd)
        return fd

    def close(self, fd):
        with contextlib.suppress(OSError):
            os.close(fd)

    def wait_for_waiter(self, mount):
        wait_until(lambda: mount.metric("lccfs_locks_waiting") == 1, 60, "one waits for a lock")

    def refused(self, fd, kind=fcntl.F_WRLCK, *where, command=fcntl.F_SETLK):
        self.assert_errno(errno.EAGAIN, range_lock, fd, kind, *where, command=command)


class LockCallsTest(LockTest):
    def test_range_locks_exclude_each_other_between_mounts_where_they_meet(self):
        range_lock(self.here, fcntl.F_WRLCK, 10, 10)
        self.refused(self.there, fcntl.F_WRLCK, 19, 1)
        self.refused(self.there, fcntl.F_RDLCK, 0, 0)
        range_lock(self.there, fcntl.F_WRLCK, 20, 0)
        self.refused(self.here, fcntl.F_WRLCK, 1 << 40, 1)
        range_lock(self.here, fcntl.F_UNLCK)
        range_lock(self.there, fcntl.F_WRLCK)
        self.refused(self.here, fcntl.F_RDLCK, 0, 1)

    def test_a_lock_in_the_way_is_told(self):
        range_lock(self.here, fcntl.F_WRLCK, 10, 10)
        told = range_lock(self.there, fcntl.F_RDLCK, 0, 0, command=fcntl.F_GETLK)
        self.assertEqual(told, (fcntl.F_WRLCK, 10, 10, 0))
        told = range_lock(self.here, fcntl.F_RDLCK, 0, 0, command=F_OFD_GETLK)
        self.assertEqual(told[:3], (fcntl.F_WRLCK, 10, 10))
        free = range_lock(self.there, fcntl.F_WRLCK, 0, 10, command=fcntl.F_GETLK)
        self.assertEqual(free[0], fcntl.F_UNLCK)

    def test_locks_of_open_file_descriptions_go_with_the_last_close(self):
        twin = os.dup(self.here)
        range_lock(self.here, fcntl.F_WRLCK, command=F_OFD_SETLK)
        second = self.open(self.path)
        self.refused(second, command=F_OFD_SETLK)
        self.refused(self.there, command=F_OFD_SETLK)
        os.close(self.here)
        self.refused(self.there, command=F_OFD_SETLK)
        os.close(twin)
        range_lock(self.there, fcntl.F_WRLCK, command=F_OFD_SETLKW)
        self.refused(second, command=F_OFD_SETLK)

    def test_a_process_that_is_killed_or_closes_any_descriptor_of_the_file_has_no_locks(self):
        range_lock(self.here, fcntl.F_WRLCK)
        os.close(self.open(self.path))
        range_lock(self.there, fcntl.F_WRLCK)
        range_lock(self.there, fcntl.F_UNLCK)
        # It says so once it has the lock. To try for it meanwhile would be in its way.
        holder = subprocess.Popen(["flock", self.path, "sh", "-c", "echo; exec sleep 60"], stdout=subprocess.PIPE,
                                  start_new_session=True)
        self.addCleanup(holder.stdout.close)
        self.assertEqual(holder.stdout.readline(), b"\n")
        self.assertFalse(self.is_free(fcntl.LOCK_SH))
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()
        fcntl.flock(self.there, fcntl.LOCK_EX)

    def is_free(self, kind):
        try:
            fcntl.flock(self.there, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(self.there, fcntl.LOCK_UN)
        return True

    def test_flock_waits_for_the_other_mount_and_does_not_see_range_locks(self):
        range_lock(self.there, fcntl.F_WRLCK)
        fcntl.flock(self.here, fcntl.LOCK_EX)
        self.assertFalse(self.is_free(fcntl.LOCK_EX))
        waiter = Child(lambda: fcntl.flock(os.open(self.other / "file", os.O_RDONLY), fcntl.LOCK_SH))
        self.wait_for_waiter(self.other)
        fcntl.flock(self.here, fcntl.LOCK_UN)
        self.assertEqual(waiter.wait(), 0)
        self.assertTrue(self.is_free(fcntl.LOCK_EX))

    def test_to_ask_for_ones_own_locks_drops_none_of_them(self):
        range_lock(self.here, fcntl.F_WRLCK, 0, 10, command=F_OFD_SETLK)
        with contextlib.suppress(OSError):  # Linux before 6.6 refuses the question
            range_lock(self.here, fcntl.F_UNLCK, command=F_OFD_GETLK)
        self.refused(self.there, command=F_OFD_SETLK)

    def make_exclusive(self, path, ready, go):
        fd = os.open(path, os.O_RDWR)
        fcntl.flock(fd, fcntl.LOCK_SH)
        os.write(ready, b"x")
        os.read(go, 1)
        fcntl.flock(fd, fcntl.LOCK_EX)

    def test_two_that_make_a_shared_flock_exclusive_do_not_wait_for_each_other(self):
        for paths in [(self.path, self.path), (self.path, self.other / "file")]:
            is_ready, ready = os.pipe()
            go, say_go = os.pipe()
            children = [Child(self.make_exclusive, path, ready, go) for path in paths]
            os.read(is_ready, 1)
            os.read(is_ready, 1)
            os.write(say_go, b"xx")
            self.assertEqual([child.wait() for child in children], [0, 0])

    def test_a_wait_ends_on_a_signal_and_the_lock_is_not_taken_later(self):
        for mount in [self.mount, self.other]:
            for number, status in [(signal.SIGUSR1, 0), (signal.SIGKILL, -signal.SIGKILL)]:
                with self.subTest(mount=mount.path, signal=number):
                    range_lock(self.here, fcntl.F_WRLCK, command=F_OFD_SETLK)
                    waiter = Child(self.wait_in_vain, mount / "file")
                    self.wait_for_waiter(mount)
                    waiter.signal(number)
                    self.assertEqual(waiter.wait(), status)
                    range_lock(self.here, fcntl.F_UNLCK, command=F_OFD_SETLK)
                    range_lock(self.there, fcntl.F_WRLCK)
                    range_lock(self.there, fcntl.F_UNLCK)

    def wait_in_vain(self, path):
        def stop(*_):
            raise InterruptedError
        file = os.open(path, os.O_RDWR)
        signal.signal(signal.SIGUSR1, stop)
        self.assertRaises(InterruptedError, range_lock, file, fcntl.F_WRLCK, 0, 0, command=fcntl.F_SETLKW)

    def test_processes_that_would_wait_for_each_other_are_told_so(self):
        is_ready, ready = os.pipe()
        range_lock(self.here, fcntl.F_WRLCK, 0, 1)

        def rival():
            fd = os.open(self.path, os.O_RDWR)
            range_lock(fd, fcntl.F_WRLCK, 1, 1)
            os.write(ready, b"x")
            range_lock(fd, fcntl.F_WRLCK, 0, 1, command=fcntl.F_SETLKW)

        child = Child(rival)
        os.read(is_ready, 1)
        self.wait_for_waiter(self.mount)
        self.assert_errno(errno.EDEADLK, range_lock, self.here, fcntl.F_WRLCK, 1, 1, command=fcntl.F_SETLKW)
        range_lock(self.here, fcntl.F_UNLCK)
        self.assertEqual(child.wait(), 0)


class DeadLockHolderTest(LockTest):
    def test_the_locks_of_a_mount_that_was_killed_go_once_it_is_fenced(self):
        for shared in [False, True]:
            with self.subTest(shared=shared):
                holder = self.volume.mount()
                fd = os.open(holder / "file", os.O_RDWR)
                self.addCleanup(self.close, fd)
                if shared:
                    range_lock(self.there, fcntl.F_WRLCK, 100, 1)
                range_lock(fd, fcntl.F_WRLCK, 0, 10)
                self.refused(self.there, fcntl.F_WRLCK, 0, 1)
                holder.may_die = True
                holder.signal(signal.SIGKILL)
                range_lock(self.there, fcntl.F_WRLCK, 0, 1, command=fcntl.F_SETLKW)
                range_lock(self.there, fcntl.F_UNLCK)


class ContentionTest(LockTest):
    limit_s = 900

    def take_turns(self, path, rounds, inside, take, drop):
        fd = os.open(path, os.O_RDWR)
        for _ in range(rounds):
            take(fd)
            inside[0] += 1
            time.sleep(0.001)  # else it is over before another one, let in wrongly, comes
            others = inside[0] - 1
            inside[0] -= 1
            drop(fd)
            if others:
                raise AssertionError("two have the lock")

    def check(self, take, drop):
        inside = mmap.mmap(-1, 4096)  # of all processes
        paths = [self.path, self.other / "file"] * 2
        rounds = 25_000 if context.full else 250
        children = [Child(self.take_turns, path, rounds, inside, take, drop) for path in paths]
        self.assertEqual([child.wait() for child in children], [0] * len(children))
        self.assertEqual(inside[0], 0)

    def test_flock_never_lets_two_in(self):
        self.check(lambda fd: fcntl.flock(fd, fcntl.LOCK_EX), lambda fd: fcntl.flock(fd, fcntl.LOCK_UN))

    def test_lockf_never_lets_two_in(self):
        self.check(lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX), lambda fd: fcntl.lockf(fd, fcntl.LOCK_UN))


class StoppedLockHolderTest(LockTest):
    waits = True
    limit_s = 300

    def test_a_holder_that_stands_still_loses_its_lock_and_writes_nothing_after_it(self):
        holder = self.volume.mount()
        fd = os.open(holder / "file", os.O_RDWR | os.O_DIRECT)
        self.addCleanup(self.close, fd)
        page = mmap.mmap(-1, 4096)
        page.write(b"o" * 4096)
        range_lock(fd, fcntl.F_WRLCK)
        os.pwritev(fd, [page], 0)
        holder.may_die = True
        holder.stop(self.mount)
        self.refused(self.there)
        range_lock(self.there, fcntl.F_WRLCK, command=fcntl.F_SETLKW)
        os.pwrite(self.there, b"n" * 4096, 0)
        os.fsync(self.there)
        holder.signal(signal.SIGCONT)
        # A fence of the local store ends the process.
        refusal = errno.ENOTCONN if context.store == "local" else errno.EIO
        self.assert_errno(refusal, os.pwritev, fd, [page], 0)
        self.assertEqual(os.pread(self.there, 4096, 0), b"n" * 4096)


class SharedBytesTest(LockTest):
    limit_s = 300

    def add_up(self, path, times):
        fd = os.open(path, os.O_RDWR)
        for _ in range(times):
            range_lock(fd, fcntl.F_WRLCK, command=fcntl.F_SETLKW)
            number = int(os.pread(fd, 16, 0))
            os.pwrite(fd, b"%016d" % (number + 1), 0)
            range_lock(fd, fcntl.F_UNLCK)

    def test_a_counter_in_a_file_loses_nothing_when_all_who_change_it_lock_it(self):
        times = 60
        children = [Child(self.add_up, path, times) for path in [self.path, self.other / "file"] * 2]
        self.assertEqual([child.wait() for child in children], [0] * len(children))
        self.assertEqual(int(self.path.read_bytes()), len(children) * times)

    def look(self, first, wanted):
        range_lock(self.here, fcntl.F_WRLCK, first, 8, command=fcntl.F_SETLKW)
        self.assertEqual(os.pread(self.here, 8, first), wanted)
        range_lock(self.here, fcntl.F_UNLCK, first, 8)

    def test_all_who_get_a_lock_at_once_see_what_the_other_client_has_written(self):
        for number in range(20):
            tag = b"%08d" % number
            os.pread(self.here, 1 << 14, 0)
            range_lock(self.there, fcntl.F_WRLCK, command=fcntl.F_SETLKW)
            for first in [0, 8192]:
                os.pwrite(self.there, tag, first)
            os.pwrite(self.there, os.urandom(1 << 20), 1 << 20)
            range_lock(self.there, fcntl.F_UNLCK)
            children = [Child(self.look, first, tag) for first in [0, 8192]]
            self.assertEqual([child.wait() for child in children], [0, 0])

    def insert(self, path, who, times):
        with contextlib.closing(sqlite3.connect(path, timeout=120, isolation_level=None)) as database:
            for number in range(times):
                database.execute("BEGIN IMMEDIATE")
                (count,) = database.execute("SELECT count(*) FROM rows").fetchone()
                database.execute("INSERT INTO rows VALUES (?, ?, ?)", (who, number, count))
                database.execute("COMMIT")

    def test_sqlite_on_two_mounts_of_one_database_keeps_all_rows(self):
        with contextlib.closing(sqlite3.connect(self.mount / "db")) as database:
            database.execute("CREATE TABLE rows (who, number, count UNIQUE)")
            database.commit()
        times = 25
        children = [Child(self.insert, path, who, times)
                    for who, path in enumerate([self.mount / "db", self.other / "db"] * 2)]
        self.assertEqual([child.wait() for child in children], [0] * len(children))
        for mount in [self.mount, self.other]:
            with contextlib.closing(sqlite3.connect(mount / "db")) as database:
                self.assertEqual(database.execute("PRAGMA integrity_check").fetchone(), ("ok",))
                counts = [count for (count,) in database.execute("SELECT count FROM rows ORDER BY count")]
                self.assertEqual(counts, list(range(len(children) * times)))


class SecondGuestTest(LockTest):
    """A guest's image is open in one QEMU at a time."""

    def start(self, mount):
        return qemu.Qemu("-S", *qemu.drive(mount / "disk", "raw"))

    def test_a_guest_that_runs_on_one_mount_is_not_started_on_another(self):
        run("qemu-img", "create", "-f", "raw", self.mount / "disk", "64M")
        for first, second in [(self.mount, self.other), (self.other, self.mount), (self.mount, self.mount)]:
            machine = self.start(first)
            self.assertIn("lock", qemu.start_and_end(*qemu.drive(second / "disk", "raw")))
            machine.quit()
        self.start(self.other).kill()
        self.start(self.mount).quit()
