# SPDX-License-Identifier: LGPL-2.1-or-later
"""Images of virtual machines: what qemu-img, mkfs, fio and Nova do with them."""

import json
import os

from harness import MountTest, NOBODY, context, digest, output, run

MIB = 1 << 20


def qemu_img(*words):
    return output("qemu-img", *words)


def image_info(path):
    return json.loads(qemu_img("info", "--output=json", path))


def qemu_io(path, image_format, *commands, cache="none"):
    words = [word for command in commands for word in ("-c", command)]
    answer = output("qemu-io", "-f", image_format, "-t", cache, *words, path)
    if "failed" in answer:
        raise AssertionError(answer)


class ImageTest(MountTest):
    limit_s = 240

    def test_images_are_converted_both_ways_and_checked(self):
        for cache in ["none", "writeback"]:
            with self.subTest(cache=cache):
                self.convert_both_ways(cache)

    def convert_both_ways(self, cache):
        raw, qcow2, again = (self.mount / f"{cache}.{end}" for end in ["raw", "qcow2", "again"])
        qemu_img("create", "-f", "raw", raw, "256M")
        qemu_io(raw, "raw", "write -P 1 0 3M", "write -P 2 77M 512k", "write -P 3 255M 1M", cache=cache)
        qemu_img("convert", "-t", cache, "-T", cache, "-f", "raw", "-O", "qcow2", raw, qcow2)
        qemu_img("convert", "-t", cache, "-T", cache, "-f", "qcow2", "-O", "raw", qcow2, again)
        wanted = digest(raw)
        self.assertEqual(digest(again), wanted)
        self.mount.remount()
        self.assertEqual(digest(raw), wanted)
        self.assertEqual(digest(again), wanted)
        qemu_img("check", qcow2)
        qemu_img("compare", raw, qcow2)
        qemu_io(qcow2, "qcow2", "read -P 2 77M 512k", "read -P 0 78M 1M", "read -P 3 255M 1M")

    def test_an_overlay_reads_its_backing_file_and_is_committed_into_it(self):
        base, overlay = self.mount / "base.qcow2", self.mount / "overlay.qcow2"
        qemu_img("create", "-f", "qcow2", base, "1G")
        qemu_io(base, "qcow2", "write -P 1 0 1M", "write -P 1 512M 1M")
        qemu_img("create", "-f", "qcow2", "-b", "base.qcow2", "-F", "qcow2", overlay)
        qemu_io(overlay, "qcow2", "write -P 2 512k 1M", "write -P 3 1000M 1M")
        self.mount.remount()
        qemu_io(overlay, "qcow2", "read -P 1 0 512k", "read -P 2 512k 1M", "read -P 1 512M 1M", "read -P 3 1000M 1M")
        qemu_io(base, "qcow2", "read -P 1 0 1M", "read -P 0 1000M 1M")
        qemu_img("check", overlay)
        qemu_img("commit", overlay)
        self.mount.remount()
        qemu_img("check", base)
        qemu_io(base, "qcow2", "read -P 2 512k 1M", "read -P 3 1000M 1M")

    def test_sparse_images_tell_what_they_really_use(self):
        raw = self.mount / "sparse.raw"
        qemu_img("create", "-f", "raw", raw, "100G")
        self.assertEqual(os.stat(raw).st_size, 100 << 30)
        self.assert_usage_below(raw, 4 * MIB)  # qemu-img writes the first block
        qemu_io(raw, "raw", "write -P 1 0 8M", "write -P 2 50G 4M")
        for _ in range(2):
            self.assertGreaterEqual(self.usage(raw), 12 * MIB)
            self.assertLessEqual(self.usage(raw), 24 * MIB)
            self.mount.remount()
        self.assertEqual(self.usage(raw), image_info(raw)["actual-size"])

        qcow2 = self.mount / "sparse.qcow2"
        qemu_img("create", "-f", "qcow2", qcow2, "100G")
        self.assert_usage_below(qcow2, 8 * MIB)

    def test_a_small_file_uses_little(self):
        small = self.mount / "small"
        small.write_bytes(b"x" * 5_000)
        self.assert_usage_below(small, 16 << 10)

    def assert_usage_below(self, path, limit):
        self.assertLessEqual(self.usage(path), limit)
        self.assertLessEqual(image_info(path)["actual-size"], limit)

    def usage(self, path):
        return int(output("du", "--block-size=1", path).split()[0])

    def test_ext4_is_made_and_checked_on_an_image(self):
        image = self.mount / "ext4.img"
        image.touch()
        os.truncate(image, 512 * MIB)
        run("mkfs.ext4", "-q", "-F", image)
        content = self.scratch("content")
        content.write_bytes(self.random.randbytes(3 * MIB))
        commands = self.scratch("commands")
        commands.write_text(f"mkdir d\ncd d\nwrite {content} file\nsymlink link file\n", encoding="utf-8")
        run("debugfs", "-w", "-f", commands, image)
        for _ in range(2):
            run("e2fsck", "-f", "-n", image)
            run("debugfs", "-R", f"dump d/file {self.scratch('out')}", image)
            self.assertEqual(digest(self.scratch("out")), digest(content))
            self.mount.remount()

    def test_nova_moves_images_about_as_it_likes(self):
        instances = self.mount / "instances"
        (instances / "_base").mkdir(parents=True)
        base = instances / "_base" / "abc"
        (instances / "_base" / "abc.part").write_bytes(b"image" * 10_000)
        os.rename(instances / "_base" / "abc.part", base)
        os.utime(base, (1, 2))
        self.assertEqual(os.stat(base).st_mtime, 2)
        self.assertEqual(os.stat(base).st_atime, 1)
        os.utime(base)
        self.assertGreater(os.stat(base).st_mtime, 1_000_000_000)

        guest = instances / "guest"
        guest.mkdir()
        disk = guest / "disk"
        qemu_img("create", "-f", "qcow2", "-b", base, "-F", "raw", disk, "64M")
        for word in ["first", "second"]:
            (guest / "disk.info.tmp").write_text(word, encoding="utf-8")
            os.rename(guest / "disk.info.tmp", guest / "disk.info")
            self.assertEqual((guest / "disk.info").read_text(encoding="utf-8"), word)

        os.chown(disk, NOBODY, NOBODY)
        self.assertEqual(os.stat(disk).st_uid, NOBODY)
        qemu_io(disk, "qcow2", "write -P 7 1M 1M")
        os.chown(disk, 0, 0)
        os.rename(guest, instances / "guest_resize")
        guest.mkdir()
        qemu_img("convert", "-O", "qcow2", instances / "guest_resize" / "disk", disk)
        os.rename(instances / "guest_resize", instances / "guest_del")
        run("rm", "-rf", instances / "guest_del")
        self.mount.remount()
        self.assertEqual(sorted(os.listdir(instances)), ["_base", "guest"])
        qemu_io(disk, "qcow2", "read -P 7 1M 1M")


class FioTest(MountTest):
    limit_s = 180

    def test_random_direct_writes_verify(self):
        self.check("--rw=randwrite", "--bs=4k", "--direct=1", "--size=48M")

    def test_random_direct_writes_of_odd_sizes_verify(self):
        self.check("--rw=randwrite", "--bsrange=512-256k", "--blockalign=512", "--direct=1", "--size=96M")

    def test_sequential_direct_writes_verify(self):
        self.check("--rw=write", "--bs=1M", "--direct=1", "--size=256M")

    def test_random_buffered_writes_verify(self):
        self.check("--rw=randwrite", "--bs=4k", "--direct=0", f"--size={24 if context.full else 8}M", "--fsync=64")

    def test_sequential_buffered_writes_verify(self):
        self.check("--rw=write", "--bs=128k", "--direct=0", "--size=128M", "--end_fsync=1")

    def test_random_mixed_direct_io_on_an_existing_image_verifies(self):
        run("fio", *self.job("--rw=write", "--bs=1M", "--direct=1", "--size=48M"), "--verify=0")
        self.check("--rw=randrw", "--bs=4k", "--direct=1", "--size=48M")

    def setUp(self):
        super().setUp()
        self.seed = self.random.randrange(1, 1 << 30)

    def check(self, *options):
        run("fio", *self.job(*options), "--verify=crc32c", "--do_verify=1", "--verify_fatal=1")
        self.mount.remount()
        run("fio", *self.job(*options), "--verify=crc32c", "--verify_only", "--verify_fatal=1")

    def job(self, *options):
        return ["--name=job", f"--filename={self.mount / 'image'}", "--ioengine=libaio", "--iodepth=16",
                f"--randseed={self.seed}", "--verify_state_save=0", "--group_reporting", *options]
