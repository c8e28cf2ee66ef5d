# SPDX-License-Identifier: LGPL-2.1-or-later
"""A virtual machine that writes all the time goes from one mount to another: it is migrated, or started again."""

import os
import re
import signal
import time

import guest
import qemu
from harness import MountTest, context, run, wait_until
from test_killed_clients import MountElsewhere

# Where guest_writer.cpp puts its records.
RECORD_SIZE = 4096
AROUND = 16
FIRST_BLOCK = 1024
DISKS = {"vda": "raw", "vdb": "qcow2"}
STREAMS = [(disk, kind) for disk in DISKS for kind in "abr"]

SLOWLY = 1 << 20  # bytes in a second; the machine has some 40 MiB that are not zero
BOOT_LIMIT_S = 180
START_LIMIT_S = 60  # of a machine whose host is known to be dead
START_ELSEWHERE_LIMIT_S = 150


def block_of(kind, number):
    return number % AROUND if kind == "r" else FIRST_BLOCK + 2 * number + (kind == "b")


def record(kind, number):
    return b"%s %013d\n" % (kind.encode(), number) * (RECORD_SIZE // 16)


class Console:
    """What the guest has told of its records."""

    def __init__(self, path):
        self.path = path
        self.path.touch()

    def lines(self):
        """Whole ones."""
        return self.path.read_text(encoding="ascii").replace("\r", "").split("\n")[:-1]

    def drop_cut_line(self):
        """A QEMU that was killed in the midst of a line has told nothing by it."""
        told = self.path.read_bytes()
        os.truncate(self.path, told.rfind(b"\n") + 1)

    def acknowledged(self):
        """The number of the last record of each stream that has any; they come one after the other."""
        last = {}
        for line in self.lines():
            found = re.fullmatch(r"(vd[ab]) ([abr]) (found )?(\d+)", line)
            if not found:
                raise AssertionError(f"the guest says: {line}")
            stream, number = found.group(1, 2), int(found.group(4))
            if found.group(3):
                # The last one may have been written without being told.
                if number - 1 - last.get(stream, -1) not in (0, 1):
                    raise AssertionError(f"{line}, after {last.get(stream)}")
                last[stream] = number - 1
            else:
                if number != last.get(stream, -1) + 1:
                    raise AssertionError(f"{line}, after {last.get(stream)}")
                last[stream] = number
        return last

    def wait_for_records(self, more, limit_s):
        """Until each stream has so many more."""
        wanted = {stream: self.acknowledged().get(stream, -1) + more for stream in STREAMS}

        def all_there():
            last = self.acknowledged()
            return all(last.get(stream, -1) >= number for stream, number in wanted.items())
        wait_until(all_there, limit_s, f"{more} records more on each disk")


class WritingGuestTest(MountTest):
    stores = ("local", "rados")
    limit_s = 300
    cache = "none"
    qcow2_states = (0,)  # of qemu-img check(1)

    def setUp(self):
        super().setUp()
        self.console = Console(context.workdir / "records")
        for disk, image_format in DISKS.items():
            run("qemu-img", "create", "-f", image_format, self.mount / disk, "4G")
        self.machine = [*guest.writer(DISKS), "-serial", f"file:{context.workdir / 'console'}",
                        "-chardev", f"file,id=records,path={self.console.path},append=on", "-serial", "chardev:records"]

    def drives(self, mount):
        return [*qemu.drive(mount / "vda", DISKS["vda"], self.cache, "native" if self.cache == "none" else "threads"),
                *qemu.drive(mount / "vdb", DISKS["vdb"], self.cache)]

    def start(self, mount, *arguments):
        machine = qemu.Qemu(*self.machine, *self.drives(mount), *arguments)
        self.addCleanup(machine.kill)
        return machine

    def check_is_locked(self, mount):
        for disk, image_format in DISKS.items():
            said = qemu.start_and_end(*qemu.drive(mount / disk, image_format))
            self.assertRegex(said, "Failed to get .* lock")

    def check_images(self, mount):
        """All that was acknowledged is there."""
        acknowledged = self.console.acknowledged()
        print("acknowledged:", acknowledged, flush=True)
        for disk, image_format in DISKS.items():
            if image_format == "qcow2":
                self.assertIn(run("qemu-img", "check", mount / disk, check=False).returncode, self.qcow2_states)
            raw = self.scratch(f"{disk}.raw")
            run("qemu-img", "convert", "-f", image_format, "-O", "raw", mount / disk, raw)
            with open(raw, "rb") as image:
                for kind in "abr":
                    self.check_stream(image, kind, acknowledged[disk, kind])

    def check_stream(self, image, kind, last):
        first = max(0, last - AROUND + 1) if kind == "r" else 0
        for number in range(first, last + 1):
            image.seek(block_of(kind, number) * RECORD_SIZE)
            found = image.read(RECORD_SIZE)
            allowed = [record(kind, number)]
            if kind == "r" and number == last + 1 - AROUND:
                allowed.append(record(kind, last + 1))
            self.assertTrue(found in allowed, f"{image.name} {kind} {number}: {found[:32]}")
        print(f"{image.name} {kind}: {last + 1 - first} records are there", flush=True)


class MigrationTest(WritingGuestTest):
    def test_a_guest_under_writes_is_migrated_to_the_other_mount_and_back(self):
        self.migrate_to_and_fro()

    def test_a_guest_under_writes_is_migrated_with_its_images_in_the_page_cache(self):
        if not context.full:
            self.skipTest("takes as long as the one without")
        self.cache = "writeback"
        self.migrate_to_and_fro()

    def migrate_to_and_fro(self):
        here, there = self.mount, self.volume.mount()
        running = self.start(here)
        self.console.wait_for_records(10, BOOT_LIMIT_S)
        self.begin_and_cancel(running, there)
        for _ in range(10 if context.full else 2):
            incoming = self.start(there, "-incoming", "defer")
            self.check_is_locked(there)
            running.migrate(incoming)
            self.check_is_locked(here)
            running.quit()
            self.check_is_locked(here)
            self.console.wait_for_records(10, BOOT_LIMIT_S)
            running, here, there = incoming, there, here
        running.quit()
        self.check_images(there)

    def begin_and_cancel(self, running, there):
        """The machine and its locks stay where they are."""
        incoming = self.start(there, "-incoming", "defer")
        running.begin_migration(incoming, SLOWLY)
        self.check_is_locked(there)
        running.cancel_migration()
        incoming.kill()
        self.check_is_locked(there)
        self.console.wait_for_records(10, BOOT_LIMIT_S)


class DeadHostTest(WritingGuestTest):
    """The locks of who died stand until it is fenced."""

    # QEMU counts a cluster before it refers to it: one that is killed in between leaves it leaked (3), but never a
    # corrupt image (2).
    qcow2_states = (0, 3)

    def check_starts_after_the_death_of(self, there, limit_s):
        running = self.start(there)
        self.console.wait_for_records(20, BOOT_LIMIT_S)
        self.check_is_locked(self.mount)
        there.may_die = True
        self.kill(running, there)
        self.console.drop_cut_line()
        running = self.start_within(limit_s)
        self.console.wait_for_records(10, BOOT_LIMIT_S)
        running.quit()
        self.check_images(self.mount)

    def check_starts_at_the_first_try(self, there):
        """It had only locks there, and no write lease that an open waits for."""
        paused = self.start(there, "-S")
        self.check_is_locked(self.mount)
        there.may_die = True
        self.kill(paused, there)
        self.start(self.mount, "-S").quit()

    def start_within(self, limit_s):
        """Once it is not refused any more."""
        deadline = time.monotonic() + limit_s
        while True:
            try:
                return self.start(self.mount)
            except qemu.NotStarted as refusal:
                self.assertRegex(str(refusal), "Failed to (get|lock) ")
                self.assertLess(time.monotonic(), deadline)
                time.sleep(1)


class KilledHereTest(DeadHostTest):
    def kill(self, machine, mount):
        machine.kill()
        mount.signal(signal.SIGKILL)

    def test_a_guest_whose_qemu_and_client_were_killed_starts_on_another_mount(self):
        self.check_starts_after_the_death_of(self.volume.mount(), START_LIMIT_S)

    def test_a_guest_that_had_only_locks_where_it_was_killed_starts_at_the_first_try(self):
        self.check_starts_at_the_first_try(self.volume.mount())


class KilledElsewhereTest(DeadHostTest):
    stores = ("rados",)  # in a local store it is seen at once that a process has ended
    waits = True

    def kill(self, machine, mount):
        mount.signal(signal.SIGKILL)
        machine.kill()

    def test_a_guest_whose_host_died_starts_on_another_mount(self):
        if not context.full:
            self.skipTest("waits for two minutes")
        self.check_starts_after_the_death_of(self.mount_elsewhere(), START_ELSEWHERE_LIMIT_S)

    def test_a_guest_that_had_only_locks_where_its_host_died_starts_at_the_first_try(self):
        if not context.full:
            self.skipTest("waits for two minutes")
        self.check_starts_at_the_first_try(self.mount_elsewhere())

    def mount_elsewhere(self):
        there = MountElsewhere(self.volume)
        self.volume.mounts.append(there)
        return there.start()
