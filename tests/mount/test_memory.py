# SPDX-License-Identifier: LGPL-2.1-or-later
"""The client's resident memory stays bounded."""

import os
import subprocess

from harness import MountTest, context, run, scaled

LIMIT_KIB = 300 << 10
FILES, FOLDERS = 100_000, 10
MAKE_FILES = "import os, sys\nfor i in range(int(sys.argv[2])): os.mknod(f'{sys.argv[1]}/{i}')"


class MemoryTest(MountTest):
    limit_s = 600

    def test_a_large_file_written_and_read(self):
        path = self.mount / "large"
        mib = 1024 if context.full else 512
        run("dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={mib}", "conv=fsync", "status=none")
        self.assertEqual(os.stat(path).st_size, mib << 20)
        self.assert_small()
        self.mount.remount()
        run("cmp", "-n", mib << 20, path, "/dev/zero")
        run("dd", f"if={path}", "of=/dev/null", "bs=4M", "iflag=direct", "status=none")
        self.assert_small()

    def test_many_files_made_listed_and_looked_at(self):
        folders = [self.mount / f"folder{number}" for number in range(FOLDERS)]
        makers = []
        for folder in folders:
            folder.mkdir()
            makers.append(subprocess.Popen(["python3", "-c", MAKE_FILES, str(folder), str(scaled(FILES) // FOLDERS)]))
        self.assertEqual([maker.wait() for maker in makers], [0] * len(makers))
        self.assert_small()
        self.mount.remount()
        looked_at = 0
        for folder in folders:
            with os.scandir(folder) as entries:
                looked_at += sum(1 for entry in entries if entry.stat().st_size == 0)
        self.assertEqual(looked_at, scaled(FILES))
        self.assert_small()

    def assert_small(self):
        print("resident peak", self.mount.resident_peak_kib(), "KiB", flush=True)
        self.assertLess(self.mount.resident_peak_kib(), LIMIT_KIB)
