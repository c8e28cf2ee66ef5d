# SPDX-License-Identifier: LGPL-2.1-or-later
"""The client's resident memory stays bounded."""

import ctypes
import mmap
import os
import subprocess
import time

from fsx import NOISE, Mapping
from harness import Child, MountTest, context, run, scaled, wait_until

MIB = 1 << 20
LIMIT_KIB = 300 << 10
DIRTY_FILES = 100
WRITERS = 10
STANDS_STILL_S = 60  # with --full
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

    def test_a_hundred_files_with_dirty_bytes_written_and_mapped(self):
        """Far more than the mount may keep; half of it dirty in the kernel's pages until msync."""
        chunk = 128 << 10
        chunks = (1024 if context.full else 128) * MIB // DIRTY_FILES // chunk
        paths = [self.mount / f"file {number}" for number in range(DIRTY_FILES)]
        files = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
        for file in files[1::2]:
            os.truncate(file, chunks * chunk)
        mappings = [Mapping(file, chunks * chunk) for file in files[1::2]]
        for at in range(chunks):
            for number in range(0, DIRTY_FILES, 2):
                os.pwrite(files[number], noise(number, at * chunk, chunk), at * chunk)
                mappings[number // 2].write(at * chunk, noise(number + 1, at * chunk, chunk))
        self.assert_small()
        for mapping in mappings:
            mapping.flush()
            mapping.close()
        for file in files:
            os.fsync(file)
            os.close(file)
        self.assert_small()
        self.mount.remount()
        for number, path in enumerate(paths):
            self.assertTrue(path.read_bytes() == noise(number, 0, chunks * chunk), path)
        self.assert_small()

    def test_small_pieces_all_over_a_file(self):
        """Each takes more memory to remember than it has bytes."""
        pieces = 200_000 if context.full else 20_000
        distance = 32
        path = self.mount / "file"
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        for at in range(0, pieces * distance, distance):
            os.pwrite(file, b"x", at)
        self.assert_small()
        os.close(file)
        self.assert_small()
        self.mount.remount()
        self.assertTrue(path.read_bytes() == (b"x".ljust(distance, b"\0") * pieces)[:1 - distance])

    def assert_small(self):
        print("resident peak", self.mount.resident_peak_kib(), "KiB", flush=True)
        self.assertLess(self.mount.resident_peak_kib(), LIMIT_KIB)


class StoreThatStandsStillTest(MountTest):
    """Writers wait for it, and then all is well."""

    stores = ("rados",)
    waits = True
    limit_s = 300
    own_cluster = {"osds": 2}
    # Else each write asks after a second whether the file has a capability now, and waits: nothing is buffered.
    mount_options = ("-o", "attr_timeout=3600")
    FILE_BYTES = 32 * MIB

    def test_ten_writers_wait_and_nothing_is_lost(self):
        self.write_while_the_store_stands_still(distance=MIB, length=MIB)
        self.assertTrue(self.had_to_wait)

    def test_the_same_with_small_pieces(self):
        if not context.full:
            self.skipTest("only with --full")
        self.write_while_the_store_stands_still(distance=64, length=1)

    def write_while_the_store_stands_still(self, distance, length):
        """Each of ten processes overwrites pieces of its file, until the store is back or the file is at its end."""
        osds = range(self.own_cluster["osds"])
        paths = [self.mount / f"file {number}" for number in range(WRITERS)]
        for path in paths:
            path.write_bytes(bytes(self.FILE_BYTES))
        shared = Shared.from_buffer(mmap.mmap(-1, ctypes.sizeof(Shared)))
        writers = [Child(write_pieces, shared, number, path, self.FILE_BYTES, distance, length)
                   for number, path in enumerate(paths)]
        wait_until(lambda: all(shared.written), 60, "writers at work")
        for osd in osds:
            self.cluster.pause_osd(osd)
        try:
            shared.goes_on = True
            time.sleep(STANDS_STILL_S if context.full else 5)
            self.had_to_wait = max(shared.written) < self.FILE_BYTES // distance
            self.assert_small()
        finally:
            shared.is_back = True
            for osd in osds:
                self.cluster.continue_osd(osd)
        with self.cluster.unsticking(osds):
            self.assertEqual([writer.wait() for writer in writers], [0] * WRITERS)
            self.assert_small()
            self.mount.remount()
            for number, path in enumerate(paths):
                pieces = noise(number, 0, shared.written[number] * length)
                wanted = bytearray(self.FILE_BYTES)
                wanted[0:shared.written[number] * distance:distance // length] = pieces
                self.assertTrue(path.read_bytes() == wanted, path)
        self.assertEqual(self.mount.lines_about_fences(), [])

    def assert_small(self):
        print("resident peak", self.mount.resident_peak_kib(), "KiB", flush=True)
        self.assertLess(self.mount.resident_peak_kib(), LIMIT_KIB)


class Shared(ctypes.Structure):
    _fields_ = [("written", ctypes.c_uint64 * WRITERS), ("goes_on", ctypes.c_bool), ("is_back", ctypes.c_bool)]


def write_pieces(shared, number, path, size, distance, length):
    """The first at once, so that the lease is here; small ones no longer than the store is away."""
    file = os.open(path, os.O_WRONLY)
    for piece in range(size // distance):
        if shared.is_back and length < distance:
            break
        assert os.pwrite(file, noise(number, piece * length, length), piece * distance) == length
        shared.written[number] = piece + 1
        while not shared.goes_on:
            time.sleep(0.05)
    os.fsync(file)
    os.close(file)


def noise(number, offset, length):
    """The bytes of that file there."""
    begin = (number * 4093 + offset) % len(NOISE)
    found = NOISE[begin:begin + length]
    return found if len(found) == length else found + noise(number, offset + len(found), length - len(found))
