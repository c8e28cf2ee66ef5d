# SPDX-License-Identifier: LGPL-2.1-or-later
"""A virtual machine lives on the mount: boots from it, formats and fills a second disk, powers off."""

import guest
from harness import MountTest, digest, output, run


class GuestTest(MountTest):
    limit_s = 300

    def test_a_guest_on_raw_images_without_cache(self):
        self.check("raw", "none")

    def test_a_guest_on_qcow2_images_through_the_cache(self):
        self.check("qcow2", "writeback")

    def check(self, image_format, cache):
        root, data = self.mount / "root", self.mount / "data"
        run("qemu-img", "convert", "-t", cache, "-O", image_format, guest.boot_disk(), root)
        run("qemu-img", "create", "-f", image_format, data, "256M")
        console = output("qemu-system-x86_64", "-accel", "tcg", "-m", "384", "-display", "none", "-nodefaults",
                         "-no-reboot", "-serial", "stdio", *self.drive(root, image_format, cache),
                         *self.drive(data, image_format, cache), timeout_s=self.limit_s - 60)
        self.assertIn("GUEST DONE", console)

        self.mount.remount()
        raw_root, raw_data = self.scratch("root.raw"), self.scratch("data.raw")
        for image, raw in [(root, raw_root), (data, raw_data)]:
            run("qemu-img", "convert", "-f", image_format, "-O", "raw", image, raw)
        with open(raw_root, "rb") as disk:
            disk.seek(guest.MARK_SECTOR * 512)
            self.assertEqual(disk.read(len(guest.MARK)), guest.MARK)
        self.check_data_disk(raw_data)

    def drive(self, path, image_format, cache):
        return ["-drive", f"file={path},format={image_format},cache={cache},if=virtio"]

    def check_data_disk(self, disk):
        run("e2fsck", "-f", "-n", disk)
        out = self.scratch("out")
        out.mkdir()
        run("debugfs", "-R", f"rdump / {out}", disk)
        lines = (out / "sums").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(lines), guest.FILES - 1)
        for line in lines:
            wanted, name = line.split()
            self.assertEqual(digest(out / name), wanted, name)
        self.assertTrue((out / "d" / "renamed").exists())
