# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients killed and stopped, and OSDs restarted, in the midst of work: what was noted as done stands afterwards.

storm.py says what a note is."""

import os
import signal
import subprocess
import time

from harness import MountTest, context, digest, run, wait_until
from program_storms import Fio, Trees, VerifyingFio
from storm import CLIENT_DIED, CLIENT_FENCED, FOLDER
from storms import Blocks, Names, Records
from test_gc import GONE_AFTER_S, RECLAIM_LIMIT_S, collect, objects_of, what_is_left
from test_outages import fence

KILLS_OF_A_FULL_RUN = {"rados": 50, "local": 20}
KILLS = 12
TURNS_BETWEEN_CHECKS = 6
OBJECT_BYTES = 64 << 10
FIRST_NOTES_LIMIT_S = 240
FENCED_LIMIT_S = 240
STOPS = 4
OSDS = 3
OSD_RESTARTS_OF_A_FULL_RUN, OSD_RESTARTS = 6, 3
RECOVERY_LIMIT_S = 240  # what an object may keep steps waiting that is being copied to an OSD which has come back


class StormTest(MountTest):
    stores = ("local", "rados")
    limit_s = 900
    mkfs_options = ("--grace", "1", "--object-size", "64K")
    # What others change is looked for at once.
    mount_options = ("-o", "attr_timeout=0")

    def setUp(self):
        super().setUp()
        self.scratch_folder = self.scratch("notes")
        self.scratch_folder.mkdir()
        print(f"seed {context.seed}", flush=True)

    def storms(self, prefix, *kinds):
        storms = [kind(f"{prefix}-{kind.__name__.lower()}", self.scratch_folder, context.seed) for kind in kinds]
        for storm in storms:
            self.addCleanup(storm.kill)
        return storms

    def make_ready(self, storms, mount):
        (mount / FOLDER).mkdir()
        for storm in storms:
            storm.prepare(mount.path)

    def check_all(self, storms, mount):
        for storm in storms:
            storm.check(mount.path)

    def wait_for_notes(self, storms, how_many=all):
        wait_until(lambda: how_many(storm.has_noted() for storm in storms if storm.has_notes), FIRST_NOTES_LIMIT_S,
                   "the first notes")

    def expect_all_at_work(self, storms):
        for storm in storms:
            self.assertFalse(storm.has_ended(), f"{storm.name} has ended by itself")

    def objects_of_files(self, mount):
        """All that the volume may hold for what is seen in it, once nobody is mounted."""
        objects = {"Super", "Alloc"}
        for folder, _, names in os.walk(mount.path):
            objects.add(f"Inode.{os.stat(folder).st_ino}")
            for name in names:
                path = os.path.join(folder, name)
                status = os.stat(path)
                os.truncate(path, status.st_size)  # what a dead writer left past the end goes with the next writer
                objects.add(f"Inode.{status.st_ino}")
                objects |= {f"Data.{status.st_ino}.{index}" for index in range(-(-status.st_size // OBJECT_BYTES))}
        return objects

    def expect_clean(self):
        run(context.bin / "lccfs-fsck", *self.volume.address, stdin=subprocess.DEVNULL)

    def collect_and_judge(self, storms):
        """Nobody is mounted. What is left are the files; without them, nothing."""
        print("trusted:", {storm.name: storm.trusted for storm in storms}, flush=True)
        for storm in storms:
            self.assertTrue(storm.trusted or not storm.has_notes, f"{storm.name} never noted anything")
        self.expect_clean()
        looking = self.volume.mount("-o", "nogc")
        expected = self.objects_of_files(looking)
        looking.unmount()
        self.collect_everything()
        self.expect_clean()
        self.assertEqual(sorted(objects_of(self.volume) - expected)[:20], [])
        last = self.volume.mount("-o", "nogc")
        self.check_all(storms, last)
        run("rm", "-r", last / FOLDER)
        last.unmount()
        self.collect_everything()
        self.assertEqual({what: left for what, left in what_is_left(self.volume, []).items() if left}, {})

    def collect_everything(self):
        wait_until(self.collected_all, RECLAIM_LIMIT_S, "that nothing waits to be reclaimed")

    def collected_all(self):
        collect(self.volume)
        return not any(self.volume.info()["backlog"].values())


class KillTest(StormTest):
    """One volume for all the kills: what one leaves meets the next. What is noted here was answered, and not synced: names
    behind the answer have a test of their own (test_names_behind.py)."""

    mount_options = ("-o", "attr_timeout=0,names=leased")

    def set_up_volume(self):
        self.volume = self.new_volume(*self.mkfs_options)
        self.mount = None
        self.other = None  # a client that works on while others are killed
        self.dead = None  # the killed one's instance, not yet fenced

    def test_clients_killed_in_the_midst_of_work_lose_nothing_that_was_noted(self):
        self.storms_of_the_killed = self.storms("k", Records, Blocks, Names, Trees, Fio)
        self.storms_of_the_other = self.storms("o", Records, Blocks, Names)
        self.everything = self.storms_of_the_killed + self.storms_of_the_other
        self.prepare()
        for turn in range(KILLS_OF_A_FULL_RUN[context.store] if context.full else KILLS):
            if turn % TURNS_BETWEEN_CHECKS == TURNS_BETWEEN_CHECKS // 2:
                self.start_other()
            self.turn(turn)
            if turn % TURNS_BETWEEN_CHECKS == TURNS_BETWEEN_CHECKS - 1:
                self.stop_other()
                self.fence_the_dead()
                self.expect_clean()
        self.collect_and_judge(self.everything)

    def prepare(self):
        mount = self.volume.mount(*self.mount_options)
        self.make_ready(self.storms_of_the_killed, mount)
        mount.unmount()

    def turn(self, number):
        """The killed one may be fenced while the next is there already."""
        fence_first = self.random.random() < 0.5
        if fence_first:
            self.fence_the_dead()
        victim = self.volume.mount(*self.mount_options)
        self.fence_the_dead()
        self.check_all(self.storms_of_the_killed, self.other if self.other and self.random.random() < 0.5 else victim)

        storms = self.random.sample(self.storms_of_the_killed, self.random.randint(3, len(self.storms_of_the_killed)))
        instance = victim.instance()
        for storm in storms:
            storm.start(victim.path)
        self.wait_for_notes(storms, self.random.choice([any, all]))
        time.sleep(self.random.uniform(0, 1))
        self.expect_all_at_work(storms)
        victim.may_die = True
        victim.process.kill()
        victim.process.wait()
        for storm in storms:
            storm.wait_for_error(CLIENT_DIED)
        victim.clean_up()
        self.dead = instance
        print(f"turn {number}: killed instance {instance} in {[storm.name for storm in storms]}", flush=True)

    def fence_the_dead(self):
        """Else it would take a minute until it can be taken for dead."""
        if self.dead:
            fence(self.volume, self.dead)
        self.dead = None

    def start_other(self):
        self.other = self.volume.mount(*self.mount_options)
        for storm in self.storms_of_the_other:
            storm.start(self.other.path)

    def stop_other(self):
        """Nothing that it did has failed, and all of it is there, in its own eyes and in others'."""
        if not self.other:
            return
        for storm in self.storms_of_the_other:
            storm.stop()
        self.check_all(self.storms_of_the_other, self.other)
        self.other.remount()
        self.check_all(self.storms_of_the_other, self.other)
        self.other.unmount()
        self.other = None


class StopTest(StormTest):
    """One client is stopped, for longer than the grace period; the other's collector is at work all the time."""

    stores = ("rados",)
    waits = True
    limit_s = 600

    def setUp(self):
        super().setUp()
        self.other = self.volume.mount(*self.mount_options)
        self.storms_of_the_stopped = self.storms("s", Records, Blocks, Names, Trees)
        self.storms_of_the_other = self.storms("o", Records, Blocks, Names, Trees)
        self.addCleanup(self.mount.signal, signal.SIGCONT)
        self.make_ready([], self.mount)
        for storms, mount in [(self.storms_of_the_stopped, self.mount), (self.storms_of_the_other, self.other)]:
            for storm in storms:
                storm.start(mount.path)
            self.wait_for_notes(storms)

    def test_a_client_stopped_past_the_grace_period_continues_where_it_was(self):
        for _ in range(STOPS):
            time.sleep(self.random.uniform(0, 1.5))
            self.mount.signal(signal.SIGSTOP)
            time.sleep(self.random.uniform(3, 6))
            self.mount.signal(signal.SIGCONT)
        everything = self.storms_of_the_stopped + self.storms_of_the_other
        time.sleep(1)
        self.expect_all_at_work(everything)
        for storm in everything:
            storm.stop()
        for mount in [self.mount, self.other]:
            self.check_all(everything, mount)
        self.mount.unmount()
        self.other.unmount()
        self.collect_and_judge(everything)

    def test_a_client_stopped_until_it_is_taken_for_dead_is_told_so_and_harms_nobody(self):
        instance = self.mount.instance()
        self.mount.may_die = True
        self.mount.signal(signal.SIGSTOP)
        time.sleep(GONE_AFTER_S)
        wait_until(lambda: self.is_expired(instance), FENCED_LIMIT_S, "that the other's collector fences it")
        found = self.content_of_the_stopped()
        self.mount.signal(signal.SIGCONT)
        for storm in self.storms_of_the_stopped:
            storm.wait_for_error(CLIENT_FENCED)
        self.mount.wait_for_line("fenced")
        self.assertEqual(self.content_of_the_stopped(), found)
        self.check_all(self.storms_of_the_stopped, self.other)
        self.expect_all_at_work(self.storms_of_the_other)
        for storm in self.storms_of_the_other:
            storm.stop()
        self.check_all(self.storms_of_the_other, self.other)
        self.mount.clean_up()
        self.other.unmount()
        self.collect_and_judge(self.storms_of_the_stopped + self.storms_of_the_other)

    def is_expired(self, instance):
        return all(entry["number"] != instance or entry["state"] != "live" for entry in self.volume.info()["instances"])

    def content_of_the_stopped(self):
        """Through the other client."""
        top = self.other / FOLDER
        tops = [top / name for name in os.listdir(top) if name.startswith("s-")]
        return {str(path): digest(path) for top in tops for path in [top, *top.rglob("*")] if path.is_file()}


class OsdRestartTest(StormTest):
    """With three copies each restart makes others answer for the same objects: what got lost is sent again."""

    stores = ("rados",)
    waits = True
    limit_s = 600
    own_cluster = {"osds": OSDS}

    def set_up_volume(self):
        self.cluster.create_pool("copies", size=OSDS)
        self.volume = self.new_volume(*self.mkfs_options, pool="copies")
        self.mount = self.volume.mount(*self.mount_options)

    def test_nothing_fails_and_nothing_is_lost_while_osds_are_killed_and_started_again(self):
        storms = self.storms("r", Records, Names, Trees, VerifyingFio)
        self.make_ready(storms, self.mount)
        for storm in storms:
            storm.start(self.mount.path)
        self.wait_for_notes(storms)
        for _ in range(OSD_RESTARTS_OF_A_FULL_RUN if context.full else OSD_RESTARTS):
            osd = self.random.randrange(OSDS)
            self.cluster.kill_osd(osd)
            time.sleep(self.random.uniform(0, 4))
            self.cluster.start_osd(osd)
            self.expect_all_at_work(storms)
            time.sleep(self.random.uniform(0, 2))
        for storm in storms:
            storm.stop()
        self.check_all(storms, self.mount)
        self.mount.unmount(RECOVERY_LIMIT_S)
        self.collect_and_judge(storms)
