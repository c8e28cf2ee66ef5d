# SPDX-License-Identifier: LGPL-2.1-or-later
"""How far the kernel reads ahead: what was asked for stands at the mount's own device."""

import os
import pathlib

from harness import MountTest, pattern_bytes

OBJECT = 4 << 20


class ReadaheadTest(MountTest):
    stores = ("local", "rados")

    def kib(self, mount):
        device = os.stat(mount.path).st_dev
        path = pathlib.Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
        return int(path.read_text(encoding="utf-8"))

    def test_it_is_one_object_or_what_was_asked_for(self):
        self.assertEqual(self.kib(self.mount), 4096)
        for option, kib in [("readahead=512K", 512), ("readahead=0", 0), ("readahead=1G", 1 << 20)]:
            other = self.volume.mount("-o", option)
            self.assertEqual(self.kib(other), kib)
            other.unmount()
        self.assertEqual(self.kib(self.mount), 4096)

    def test_a_cold_file_is_read_right_however_far_it_is_read_ahead(self):
        content = pattern_bytes(5 * OBJECT + 12_345, 3)
        (self.mount / "file").write_bytes(content)
        for option in ["readahead=0", "readahead=4K", "readahead=4M", "readahead=64M"]:
            other = self.volume.mount("-o", option)
            with open(other / "file", "rb", buffering=0) as file:
                for piece in [1_000, 131_072, 1 << 20]:
                    file.seek(0)
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                    read = b"".join(iter(lambda size=piece, file=file: file.read(size), b""))
                    self.assertTrue(read == content, (option, piece))
            other.unmount()
