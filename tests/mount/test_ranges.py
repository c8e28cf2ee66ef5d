# SPDX-License-Identifier: LGPL-2.1-or-later
"""Room, holes, zeros and copies of ranges: what the kernel, coreutils and QEMU do with them."""

import errno
import mmap
import os

from fsx import KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE, fallocate
from harness import MountTest, digest, output, run
from test_gc import objects_of
from test_vm_disks import MIB, qemu_img, qemu_io

OBJECT = 4 * MIB
SEEK_DATA, SEEK_HOLE = os.SEEK_DATA, os.SEEK_HOLE


class RangesTest(MountTest):
    stores = ("local", "rados")
    limit_s = 240

    def setUp(self):
        super().setUp()
        self.path = self.mount / "file"

    def data_objects(self):
        return {name for name in objects_of(self.volume) if name.startswith("Data.")}

    def usage(self, path=None):
        return os.stat(path or self.path).st_blocks * 512

    def write(self, size, path=None):
        content = self.random.randbytes(size)
        with open(path or self.path, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return bytearray(content)

    def check(self, wanted, path=None):
        """Also as it is in the store."""
        path = path or self.path
        self.assertEqual(path.read_bytes() == wanted, True)
        self.mount.remount()
        self.assertEqual(path.read_bytes() == wanted, True)


class FallocateTest(RangesTest):
    def test_room_makes_a_file_longer_and_takes_nothing(self):
        run("fallocate", "-l", "100M", self.path)
        self.assertEqual(os.stat(self.path).st_size, 100 * MIB)
        self.assertEqual(self.usage(), 0)
        run("fallocate", "-n", "-l", "200M", self.path)
        self.assertEqual(os.stat(self.path).st_size, 100 * MIB)
        done = run("fallocate", "-l", "1P", self.path, check=False, capture_output=True)
        self.assertIn("No space left", done.stderr)
        self.assertEqual(os.stat(self.path).st_size, 100 * MIB)
        self.assertEqual(self.data_objects(), set())

    def test_a_hole_frees_whole_objects_at_once_and_reads_as_zeros(self):
        content = self.write(5 * OBJECT + 1000)
        self.assertEqual(len(self.data_objects()), 6)
        self.path.read_bytes()  # so that the kernel has pages of it
        run("fallocate", "-p", "-o", OBJECT - 100, "-l", 3 * OBJECT + 200, self.path)
        content[OBJECT - 100:4 * OBJECT + 100] = bytes(3 * OBJECT + 200)
        self.assertEqual(len(self.data_objects()), 3)
        self.assertEqual(self.usage(), 2 * OBJECT + 4096)
        self.check(content)
        self.assertEqual(self.usage(), 2 * OBJECT + 4096)

    def test_zeros_past_the_end_make_a_file_longer(self):
        content = self.write(2 * OBJECT)
        run("fallocate", "-z", "-o", OBJECT + 7, "-l", 2 * OBJECT, self.path)
        self.check(content[:OBJECT + 7] + bytes(2 * OBJECT))
        run("fallocate", "-z", "-n", "-o", 5, "-l", 100 * OBJECT, self.path)
        self.check(content[:5] + bytes(3 * OBJECT + 2))

    def test_pages_of_every_descriptor_and_mapping_see_the_hole(self):
        content = self.write(MIB)
        with open(self.path, "r+b", buffering=0) as one, open(self.path, "rb", buffering=0) as two:
            direct = os.open(self.path, os.O_RDWR | os.O_DIRECT)
            self.assertEqual(two.read(), content)
            fallocate(direct, PUNCH_HOLE | KEEP_SIZE, 5000, 100_000)
            content[5000:105_000] = bytes(100_000)
            for file in [one, two]:
                file.seek(0)
                self.assertEqual(file.read(), content)
            os.pwrite(one.fileno(), b"new", 6000)
            fallocate(one.fileno(), ZERO_RANGE, 6001, 1)
            content[6000:6003] = b"n\0w"
            self.assertEqual(os.pread(two.fileno(), MIB, 0), content)
            os.close(direct)
        self.check(content)

    def test_modes_that_nobody_can_are_refused(self):
        self.write(3 * OBJECT)
        with open(self.path, "r+b", buffering=0) as file:
            for mode in [8, 0x20, 0x40]:  # COLLAPSE_RANGE, INSERT_RANGE, UNSHARE_RANGE
                self.assert_errno(errno.EOPNOTSUPP, fallocate, file.fileno(), mode, 0, OBJECT)


class SeekTest(RangesTest):
    def test_data_and_holes_are_found(self):
        with open(self.path, "wb", buffering=0) as file:
            os.pwrite(file.fileno(), b"x" * 65536, 3 * OBJECT + MIB)
            os.truncate(file.fileno(), 20 * OBJECT)
            self.assertEqual(os.lseek(file.fileno(), 0, SEEK_DATA), 3 * OBJECT + MIB)
            self.assertEqual(os.lseek(file.fileno(), 0, SEEK_HOLE), 0)
            self.assertEqual(os.lseek(file.fileno(), 3 * OBJECT + MIB, SEEK_HOLE), 3 * OBJECT + MIB + 65536)
            self.assert_errno(errno.ENXIO, os.lseek, file.fileno(), 5 * OBJECT, SEEK_DATA)
            self.assert_errno(errno.ENXIO, os.lseek, file.fileno(), 20 * OBJECT, SEEK_HOLE)

    def test_sparse_copies_stay_sparse_both_ways(self):
        self.path.touch()
        os.truncate(self.path, 256 * MIB)
        with open(self.path, "r+b", buffering=0) as file:
            for offset in [0, 100 * MIB + 4096, 250 * MIB]:
                os.pwrite(file.fileno(), self.random.randbytes(MIB), offset)
        wanted = digest(self.path)
        for how in ["auto", "always", "never"]:
            copy = self.mount / how
            run("cp", f"--sparse={how}", self.path, copy)
            self.assertEqual(digest(copy), wanted, how)
        for how in ["auto", "always"]:
            self.assertLessEqual(self.usage(self.mount / how), 24 * MIB, how)
        outside = self.scratch("outside")
        run("cp", self.path, outside)
        self.assertLessEqual(self.usage(outside), 16 * MIB)
        self.assertEqual(digest(outside), wanted)


class CopyTest(RangesTest):
    def copy(self, source, target, offset_in, offset_out, length):
        copied = 0
        with open(source, "rb") as one, open(target, "r+b") as two:
            while copied < length:
                count = os.copy_file_range(one.fileno(), two.fileno(), length - copied, offset_in + copied,
                                           offset_out + copied)
                if count == 0:
                    break
                copied += count
        return copied

    def test_ranges_are_copied_wherever_they_lie(self):
        source, target = self.mount / "source", self.mount / "target"
        content = self.write(4 * OBJECT + 12_345, source)
        for offset_in, offset_out, length in [(0, 0, 1 << 30), (OBJECT, 0, 2 * OBJECT), (5, OBJECT + 5, 3 * OBJECT),
                                              (1, 0, 1 << 30), (100, 3 * OBJECT - 7, OBJECT), (OBJECT, 20_000, 1)]:
            with self.subTest(offset_in=offset_in, offset_out=offset_out, length=length):
                wanted = self.write(2 * OBJECT + 77, target)
                target.read_bytes()
                part = content[offset_in:offset_in + length]
                self.assertEqual(self.copy(source, target, offset_in, offset_out, length), len(part))
                wanted.extend(bytes(max(0, offset_out - len(wanted))))
                wanted[offset_out:offset_out + len(part)] = part
                self.check(wanted, target)
                self.assertGreaterEqual(self.usage(target), len(wanted) - OBJECT)

    def test_what_is_dirty_in_pages_and_mappings_is_copied(self):
        source, target = self.mount / "source", self.mount / "target"
        content = self.write(OBJECT + 100, source)
        target.touch()
        with open(source, "r+b", buffering=0) as file:
            with mmap.mmap(file.fileno(), len(content)) as mapped:
                mapped[5000:5003] = b"new"
                content[5000:5003] = b"new"
                self.copy(source, target, 0, 0, len(content))
        self.check(content, target)

    def test_a_copy_within_a_file_onto_itself_is_refused(self):
        content = self.write(2 * OBJECT)
        self.assert_errno(errno.EINVAL, self.copy, self.path, self.path, 0, OBJECT, 2 * OBJECT)
        self.assertEqual(self.copy(self.path, self.path, 0, 2 * OBJECT, 2 * OBJECT), 2 * OBJECT)
        self.check(content + content)

    def test_cp_copies_within_the_store(self):
        """Far fewer bytes pass between kernel and client than the file has. (A local store's own copies count there.)"""
        content = self.write(16 * OBJECT)
        client = self.mount.process.pid
        before = bytes_moved_by(client)
        run("cp", self.path, self.mount / "copy")
        moved = bytes_moved_by(client) - before
        if self.volume.address[0] != "--local":
            self.assertLess(moved, len(content) // 4)
        self.check(content, self.mount / "copy")


def bytes_moved_by(pid):
    with open(f"/proc/{pid}/io", encoding="ascii") as file:
        counts = dict(line.split(": ") for line in file.read().splitlines())
    return int(counts["rchar"]) + int(counts["wchar"])


class ImageRangesTest(RangesTest):
    def test_an_image_is_made_at_once(self):
        qemu_img("create", "-f", "raw", "-o", "preallocation=falloc", self.path, "10G")
        self.assertEqual(os.stat(self.path).st_size, 10 << 30)
        self.assertLessEqual(self.usage(), OBJECT)

    def test_a_sparse_image_is_converted_and_stays_so(self):
        qemu_img("create", "-f", "raw", self.path, "4G")
        qemu_io(self.path, "raw", "write -P 1 0 3M", "write -P 2 2G 5M", "write -P 3 4095M 1M")
        for options in [(), ("-C",), ("-S", "4k")]:
            copy = self.mount / "copy"
            qemu_img("convert", *options, "-f", "raw", "-O", "raw", self.path, copy)
            qemu_img("compare", "-f", "raw", "-F", "raw", self.path, copy)
            self.assertLessEqual(self.usage(copy), 6 * OBJECT)
            copy.unlink()

    def test_a_discard_by_the_guest_frees_objects(self):
        qemu_img("create", "-f", "raw", self.path, "256M")
        for cache in ["none", "writeback"]:
            qemu_io(self.path, "raw", "write -P 1 0 64M", cache=cache)
            self.assertEqual(len(self.data_objects()), 16)
            output("qemu-io", "-f", "raw", "-t", cache, "-d", "unmap", "-c", f"discard {OBJECT - 4096} 32M", self.path)
            self.assertEqual(len(self.data_objects()), 9)
            self.assertEqual(self.usage(), 8 * OBJECT + OBJECT // 64)
            qemu_io(self.path, "raw", f"read -P 0 {OBJECT - 4096} 32M", f"read -P 1 0 {OBJECT - 4096}", cache=cache)
            output("qemu-io", "-f", "raw", "-t", cache, "-d", "unmap", "-c", "write -z -u 0 256M", self.path)
            self.assertEqual(len(self.data_objects()), 0)
            self.assertEqual(self.usage(), 0)


class ErasureCodedTest(RangesTest):
    """Such a pool knows no extents, and zeros and copies its objects all the same."""

    stores = ("rados",)
    own_cluster = {"osds": 3}

    def set_up_volume(self):
        self.cluster.create_pool("coded", erasure=(2, 1))
        self.volume = self.new_volume("--data-pool", "coded")
        self.mount = self.volume.mount()

    def test_holes_zeros_copies_and_searches_work(self):
        content = self.write(4 * OBJECT + 1000)
        run("fallocate", "-p", "-o", 100, "-l", 2 * OBJECT, self.path)
        content[100:2 * OBJECT + 100] = bytes(2 * OBJECT)
        run("fallocate", "-z", "-o", 3 * OBJECT, "-l", OBJECT, self.path)
        content[3 * OBJECT:4 * OBJECT] = bytes(OBJECT)
        with open(self.path, "rb") as file:
            self.assertEqual(os.lseek(file.fileno(), 0, SEEK_DATA), 0)
            self.assertLessEqual(os.lseek(file.fileno(), 0, SEEK_HOLE), OBJECT)
            self.assertEqual(os.lseek(file.fileno(), OBJECT, SEEK_DATA), 2 * OBJECT)
            self.assertEqual(os.lseek(file.fileno(), 3 * OBJECT, SEEK_DATA), 4 * OBJECT)
        run("cp", "--sparse=never", self.path, self.mount / "copy")
        self.check(content, self.mount / "copy")
        self.check(content)
