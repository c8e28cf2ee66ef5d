# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients that are killed while they have files open for writing: how long the others are held up."""

import os
import time

from harness import Mount, MountTest, context

FILES = 20
SAME_HOST_LIMIT_S = 20  # a fence takes a second or so
STAT_LIMIT_S = 15
OPEN_LIMIT_S = 120


class MountElsewhere(Mount):
    """In a PID namespace of its own, whose /proc it does not have: as good as another host."""

    def command(self):
        return ["unshare", "--pid", "--fork", "--kill-child", *super().command()]


class KilledClientTest(MountTest):
    stores = ("local", "rados")
    waits = True
    limit_s = 300

    def mount_elsewhere(self, *options):
        killed = MountElsewhere(self.volume, options)
        self.volume.mounts.append(killed)
        return killed.start()

    def kill_with_open_files(self, mount):
        files = [os.open(mount / f"file {number}", os.O_RDWR | os.O_CREAT) for number in range(FILES)]
        for file in files:
            os.write(file, b"synced")
            os.fsync(file)
            os.write(file, b" and not")
        mount.may_die = True
        mount.process.kill()
        mount.process.wait()
        mount.clean_up()
        for file in files:
            try:
                os.close(file)
            except OSError:
                pass  # its mount is gone

    def seconds_to_stat_all(self):
        began = time.monotonic()
        for number in range(FILES):
            self.assertIn(os.stat(self.mount / f"file {number}").st_size, (len(b"mine"), 6, 14))
        return time.monotonic() - began

    def seconds_to_rewrite(self):
        began = time.monotonic()
        (self.mount / "file 0").write_bytes(b"mine")
        self.assertEqual((self.mount / "file 0").read_bytes(), b"mine")
        return time.monotonic() - began

    def test_on_the_same_host_nobody_waits(self):
        self.kill_with_open_files(self.volume.mount())
        self.assertLess(self.seconds_to_rewrite() + self.seconds_to_stat_all(), SAME_HOST_LIMIT_S)

    def test_on_another_host_a_stat_waits_two_minutes_at_most(self):
        self.kill_with_open_files(self.mount_elsewhere())
        self.assertLess(self.seconds_to_stat_all(), OPEN_LIMIT_S)

    def test_on_another_host_that_stores_names_first_stat_does_not_wait_and_an_open_two_minutes_at_most(self):
        self.kill_with_open_files(self.mount_elsewhere("-o", "names=leased"))
        self.assertLess(self.seconds_to_stat_all(), STAT_LIMIT_S)
        if context.full:
            self.assertLess(self.seconds_to_rewrite(), OPEN_LIMIT_S)
