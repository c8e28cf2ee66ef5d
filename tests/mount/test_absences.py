# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who is away for a while and comes back: the storage under everybody, or one client among others."""

import concurrent.futures
import errno
import os
import signal
import subprocess
import sys
import time

from harness import MountTest, context, wait_until

MOUNTS = 4
ROUNDS = 20  # with --full, of drawn lengths
AWAY_S = 45  # watches lapse after 30
MOST_AWAY_S = 120
NOT_YET_GONE_S = 55  # who is away for a minute may be taken for gone
TAKEN_OVER_LIMIT_S = 120  # the promise to those who wait for one that is gone
SLACK_S = 30  # beside other tests; with --full the promise is looked at
MOST_STOPPED_S = 150
FENCE_S = 5  # one that has begun may come through after its victim's return
AFTERWARDS_LIMIT_S = 120
FILE = "held"

HOLD = """
import os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.write(file, b"synced, ")
os.fsync(file)
os.pwrite(file, b"synced, ", 0)
print(0, flush=True)
for line in sys.stdin:
    try:
        os.pwrite(file, b"SYNCED, ", 0)
        print(0, flush=True)
    except OSError as error:
        print(error.errno, flush=True)
"""


class Holder:
    """A process that is writing a file. Not the test's own: each command that it starts would close its copy of the
    descriptor, and wait for the store that is away."""

    def __init__(self, path):
        self._process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        self._answer()

    def write(self):
        """Returns the error's number."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _answer(self):
        return int(self._process.stdout.readline())


class AbsenceTest(MountTest):
    """Collectors are at work all the time: they, too, look for who is gone."""

    stores = ("rados",)
    waits = True
    limit_s = 300
    mkfs_options = ("--grace", "1")

    def set_up_volume(self):
        print(f"seed {context.seed}", flush=True)
        self.volume = self.new_volume(*self.mkfs_options)
        self.mounts = [self.volume.mount() for _ in range(MOUNTS)]

    def lengths(self, ordinarily, least, most):
        """In seconds, one for each round."""
        return [self.random.uniform(least, most) for _ in range(ROUNDS)] if context.full else [ordinarily]

    def leave_something_to_collect(self):
        for mount in self.mounts:
            (mount / "removed").write_bytes(b"x" * 100_000)
            (mount / "removed").unlink()

    def hold(self, mount):
        holder = Holder(mount / FILE)
        self.addCleanup(holder.end)
        return holder

    def append(self, mount, text):
        """Waits until whoever writes the file has let go of it, or is expired."""
        with open(mount / FILE, "ab", buffering=0) as file:
            file.write(text)

    def expect_all_at_work(self, mounts):
        for number, mount in enumerate(mounts):
            (mount / f"file {number}").write_text(str(time.monotonic_ns()), encoding="utf-8")
        for number, writer in enumerate(mounts):
            text = (writer / f"file {number}").read_text(encoding="utf-8")
            for reader in mounts:
                self.assertEqual((reader / f"file {number}").read_text(encoding="utf-8"), text)

    def expect_unharmed(self, holder):
        """The holder continues with its file, another has appended to it meanwhile."""
        self.assertEqual(holder.write(), 0)
        holder.end()
        for mount in self.mounts:
            self.assertEqual((mount / FILE).read_bytes(), b"SYNCED, another's")
        self.expect_all_at_work(self.mounts)
        wait_until(self.all_are_seen, AFTERWARDS_LIMIT_S, "that every mount's watches are there")

    def expect_nobody_fenced(self):
        for mount in self.mounts:
            self.assertEqual(mount.lines_about_fences(), [])

    def all_are_seen(self):
        instances = self.volume.info()["instances"]
        live = [one["presence"] for one in instances if one["state"] == "live"]
        self.assertEqual(len(live), MOUNTS, instances)
        return live == ["watching"] * MOUNTS


class StorageAwayTest(AbsenceTest):
    own_cluster = {"osds": 2}

    def test_nobody_is_fenced_when_both_osds_stood_still(self):
        self.be_away(self.pause_osds, self.continue_osds, meanwhile=lambda: None)

    def test_nobody_is_fenced_when_the_monitor_stood_still_and_all_continue_meanwhile(self):
        self.be_away(self.cluster.pause_monitor, self.cluster.continue_monitor,
                     meanwhile=lambda: self.expect_all_at_work(self.mounts))

    def pause_osds(self):
        for osd in range(self.own_cluster["osds"]):
            self.cluster.pause_osd(osd)

    def continue_osds(self):
        for osd in range(self.own_cluster["osds"]):
            self.cluster.continue_osd(osd)

    def be_away(self, pause, resume, meanwhile):
        for seconds in self.lengths(AWAY_S, 5, MOST_AWAY_S):
            print(f"away for {seconds} s", flush=True)
            self.leave_something_to_collect()
            holder = self.hold(self.mounts[0])
            pause()
            began = time.monotonic()
            try:
                while time.monotonic() - began < seconds:
                    meanwhile()
                    time.sleep(1)
            finally:
                resume()
            with self.cluster.unsticking(range(self.own_cluster["osds"])):
                self.append(self.mounts[1], b"another's")  # at once: whose watches have lapsed has not set them again
                self.expect_unharmed(holder)
            self.expect_nobody_fenced()


class ClientAwayTest(AbsenceTest):
    """One mount stands still while another waits for what it holds, and two more are there."""

    def stand_still(self, seconds):
        """(who holds a file on it, whether another, who wanted that at once, had it before this one continued)."""
        self.leave_something_to_collect()
        holder = self.hold(self.mounts[0])
        with concurrent.futures.ThreadPoolExecutor(1) as others:
            self.mounts[0].signal(signal.SIGSTOP)
            try:
                wish = others.submit(self.append, self.mounts[1], b"another's")
                concurrent.futures.wait([wish], seconds)
                taken_over = wish.done()
            finally:
                self.mounts[0].signal(signal.SIGCONT)
            wish.result(AFTERWARDS_LIMIT_S)
        return holder, taken_over

    def test_who_stands_still_for_less_than_a_minute_is_not_fenced_though_another_waits_for_it(self):
        for seconds in self.lengths(AWAY_S, 5, NOT_YET_GONE_S):
            print(f"stopped for {seconds} s", flush=True)
            holder, taken_over = self.stand_still(seconds)
            self.assertFalse(taken_over)
            self.expect_unharmed(holder)
            self.expect_nobody_fenced()

    def test_who_stands_still_for_longer_holds_nobody_up_for_more_than_two_minutes(self):
        for seconds in self.lengths(TAKEN_OVER_LIMIT_S + SLACK_S, NOT_YET_GONE_S, MOST_STOPPED_S):
            print(f"stopped for {seconds} s, or until it is taken over from", flush=True)
            instance = self.mounts[0].instance()
            self.mounts[0].may_die = True
            holder, taken_over = self.stand_still(seconds)
            if seconds >= TAKEN_OVER_LIMIT_S:
                self.assertTrue(taken_over)
            if not taken_over:
                time.sleep(FENCE_S)
            if self.is_expired(instance):
                self.expect_fenced(holder)
                self.mounts[0] = self.volume.mount()
            else:
                self.assertFalse(taken_over, "of two clients each may write the file")
                self.expect_unharmed(holder)
                self.mounts[0].may_die = False

    def is_expired(self, instance):
        return all(one["number"] != instance or one["state"] != "live" for one in self.volume.info()["instances"])

    def expect_fenced(self, holder):
        fenced, *others = self.mounts
        self.assertEqual(holder.write(), errno.EIO)
        self.assert_errno(errno.EIO, os.listdir, fenced.path)
        self.assert_errno(errno.EIO, (fenced / "new").touch)
        fenced.wait_for_line("fenced")
        holder.end()
        fenced.clean_up()
        for mount in others:
            self.assertEqual((mount / FILE).read_bytes(), b"synced, another's")
        self.expect_all_at_work(others)
