# SPDX-License-Identifier: LGPL-2.1-or-later
"""A full store answers, hangs nobody, and can be emptied."""

import errno
import os
import time

import aio
from harness import MountTest, context, run

MIB = 1 << 20
FULL_LIMIT_S = 180  # a cluster needs some seconds to notice


class FullTest(MountTest):
    limit_s = 300
    mkfs_options = ("--object-size", "1M")

    def fill_until_refused(self, prefix="fill"):
        """Writes files until a write fails; returns the errno and the files that were written whole. The other is removed:
        who looks elsewhere for a directory with a name that finds no room takes from it all that comes after (NAMES.md)."""
        whole = []
        deadline = time.monotonic() + FULL_LIMIT_S
        while time.monotonic() < deadline:
            path = self.mount / f"{prefix}-{len(whole)}"
            try:
                with open(path, "wb", buffering=0) as file:
                    for _ in range(4):
                        file.write(b"x" * MIB)
                whole.append(path)
            except OSError as error:
                path.unlink(missing_ok=True)
                return error.errno, whole
        raise AssertionError(f"never full in {FULL_LIMIT_S} s")

    def check_full(self, expected, make_room):
        kept = self.mount / "kept"
        with open(kept, "wb", buffering=0) as file:
            file.write(b"before")
            os.fsync(file.fileno())  # another client is to find it
        number, whole = self.fill_until_refused()
        self.assertEqual(os.strerror(number), os.strerror(expected))
        self.assertEqual(kept.read_bytes(), b"before")
        self.assertEqual(whole[0].read_bytes(), b"x" * 4 * MIB)
        for path in whole[1:]:
            os.unlink(path)
        self.assertNotIn("fill-1", os.listdir(self.mount.path))
        (self.mount / "fill-0").rename(self.mount / "renamed")
        self.check_that_others_can_start(kept)
        make_room()
        deadline = time.monotonic() + FULL_LIMIT_S
        while not self.can_write(self.mount / "new"):
            self.assertLess(time.monotonic(), deadline, "still full with room again")
        self.mount.remount()
        self.assertEqual((self.mount / "new").read_bytes(), b"y" * MIB)
        self.assertEqual((self.mount / "renamed").read_bytes(), b"x" * 4 * MIB)

    def check_that_others_can_start(self, kept):
        """Somebody has to remove something, and to collect it; this mount may not be the one."""
        other = self.volume.mount()
        self.assertEqual((other / "kept").read_bytes(), b"before")
        os.unlink(other / "kept")
        self.assertFalse(kept.exists())
        run(context.bin / "lccfs-gc", *self.volume.address, "--once")
        other.unmount()

    def can_write(self, path):
        try:
            path.write_bytes(b"y" * MIB)
            return True
        except OSError:
            time.sleep(0.5)
            return False


class QuotaTest(FullTest):
    stores = ("rados",)

    def set_up_volume(self):
        self.pool = self.cluster.create_pool(f"quota{os.getpid()}", 8)
        self.volume = self.new_volume(*self.mkfs_options, pool=self.pool)
        self.mount = self.volume.mount()

    def test_a_quota_answers_edquot_and_names_can_be_removed(self):
        self.cluster.set_quota(self.pool, max_bytes=40 * MIB)
        self.check_full(errno.EDQUOT, lambda: self.cluster.set_quota(self.pool, max_bytes=0))


class FullClusterTest(FullTest):
    stores = ("rados",)
    waits = True
    own_cluster = {"osds": 1}

    def test_a_full_cluster_answers_enospc_and_names_can_be_removed(self):
        self.set_full_ratio("0.005")  # of 20 GiB
        self.check_full(errno.ENOSPC, lambda: self.set_full_ratio("0.95"))

    def set_full_ratio(self, ratio):
        if float(ratio) < 0.5:
            for name in ["nearfull", "backfillfull", "full"]:
                self.cluster.ceph("osd", f"set-{name}-ratio", ratio)
        else:
            for name in ["full", "backfillfull", "nearfull"]:
                self.cluster.ceph("osd", f"set-{name}-ratio", ratio)


class FullDirectoryTest(FullTest):
    stores = ("local",)

    def set_up_volume(self):
        self.folder = context.workdir / "small"
        self.folder.mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=64m", "small", self.folder)
        self.addCleanup(run, "umount", self.folder)
        self.volume = self.new_address()
        self.volume.address = ["--local", str(self.folder / "store")]
        self.volume.make(*self.mkfs_options)
        self.addCleanup(self._unmount_all)
        self.mount = self.volume.mount()

    def test_a_full_directory_answers_enospc_and_names_can_be_removed(self):
        self.check_full(errno.ENOSPC, lambda: run("mount", "-o", "remount,size=256m", self.folder))

    def test_a_full_directory_can_be_mounted_and_collected_again(self):
        many = [self.mount / f"{number}-{'x' * 200}" for number in range(500)]
        for path in many:
            path.write_bytes(b"few")
        self.mount.remount()
        self.fill_until_refused()
        with open(self.mount / "small", "wb", buffering=0) as file, self.assertRaises(OSError):
            while True:
                os.pwrite(file.fileno(), b"x" * 4096, file.seek(0, os.SEEK_END))
                os.fsync(file.fileno())
        self.mount.remount()
        self.assertEqual({path.read_bytes() for path in many}, {b"few"})
        for name in os.listdir(self.mount.path):
            os.unlink(self.mount / name)
        deadline = time.monotonic() + FULL_LIMIT_S
        while not self.can_write(self.mount / "new"):
            self.assertLess(time.monotonic(), deadline, "still full with all removed")
            run(context.bin / "lccfs-gc", *self.volume.address, "--once", "--grace", "0")

    def test_an_asynchronous_write_that_fails_past_the_end_cuts_nothing_that_another_host_has_appended(self):
        other = self.volume.mount()
        image = self.mount / "image"
        image.write_bytes(b"a" * MIB)
        file = os.open(image, os.O_RDWR | os.O_DIRECT)
        self.addCleanup(os.close, file)
        self.assertEqual(os.fstat(file).st_size, MIB)
        with open(other / "image", "ab", buffering=0) as appended:
            appended.write(b"b" * 5 * MIB + b"last")
            os.fsync(appended.fileno())
        self.fill_until_refused()
        writer = aio.Writer(4 * MIB, 1)
        self.addCleanup(writer.close)
        for offset in (7 * MIB, 16 * MIB):
            self.assertEqual(writer.try_to_write(file, offset), [-errno.ENOSPC])
            self.assertEqual((other / "image").read_bytes(), b"a" * MIB + b"b" * 5 * MIB + b"last")
            self.assertEqual(image.read_bytes(), b"a" * MIB + b"b" * 5 * MIB + b"last")
