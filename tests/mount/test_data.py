# SPDX-License-Identifier: LGPL-2.1-or-later
"""Bytes: appends, holes, truncation, mmap, open flags, files that are unlinked while open."""

import errno
import mmap
import os
import signal
import subprocess

from harness import MountTest, context, pattern_bytes

OBJECT = 4 << 20


class DataTest(MountTest):
    def setUp(self):
        super().setUp()
        self.file = self.mount / "file"

    def test_appends_of_many_processes_are_all_there(self):
        writers = [subprocess.Popen(["bash", "-c", 'for i in $(seq 50); do echo "$1 $i" >> "$0"; done',
                                     str(self.file), name]) for name in "abcd"]
        self.assertEqual([writer.wait() for writer in writers], [0] * 4)
        self.mount.remount()
        lines = self.file.read_text(encoding="utf-8").splitlines()
        self.assertEqual(sorted(lines), sorted(f"{name} {i}" for name in "abcd" for i in range(1, 51)))

    def test_an_append_ignores_the_offset(self):
        self.file.write_bytes(b"0123456789")
        file = os.open(self.file, os.O_RDWR | os.O_APPEND)
        os.lseek(file, 3, os.SEEK_SET)
        os.write(file, b"end")
        os.close(file)
        self.assertEqual(self.file.read_bytes(), b"0123456789end")

    def test_o_trunc_empties_a_file_that_is_opened_for_reading(self):
        self.file.write_bytes(b"content")
        file = os.open(self.file, os.O_RDONLY | os.O_TRUNC)
        self.assertEqual(os.fstat(file).st_size, 0)
        os.close(file)
        self.mount.remount()
        self.assertEqual(self.file.read_bytes(), b"")

    def test_holes_read_as_zeros_over_object_boundaries(self):
        with open(self.file, "wb") as file:
            file.seek(3 * OBJECT - 5)
            file.write(b"0123456789")
        self.mount.remount()
        self.assertEqual(os.stat(self.file).st_size, 3 * OBJECT + 5)
        with open(self.file, "rb") as file:
            self.assertEqual(file.read(3 * OBJECT - 5), bytes(3 * OBJECT - 5))
            self.assertEqual(file.read(), b"0123456789")

    def test_what_was_cut_off_does_not_come_back(self):
        content = pattern_bytes(2 * OBJECT + 1_000, 1)
        self.file.write_bytes(content)
        for size in [2 * OBJECT, OBJECT + 1, OBJECT, 777, 0]:
            os.truncate(self.file, size)
            os.truncate(self.file, len(content))
            self.assertEqual(self.file.read_bytes(), content[:size] + bytes(len(content) - size))
        self.mount.remount()
        self.assertEqual(self.file.read_bytes(), bytes(len(content)))

    def test_opening_with_truncation_empties(self):
        self.file.write_bytes(b"x" * 100_000)
        os.close(os.open(self.file, os.O_WRONLY | os.O_TRUNC))
        self.assertEqual(os.stat(self.file).st_size, 0)
        self.mount.remount()
        self.assertEqual(self.file.read_bytes(), b"")

    def test_opening_with_truncation_empties_a_file_whose_mapping_was_changed(self):
        for _ in range(20):
            self.file.write_bytes(b"x" * 100_000)
            with open(self.file, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
                mapped[20_000:90_000] = b"m" * 70_000
                os.close(os.open(self.file, os.O_WRONLY | os.O_TRUNC))
                self.assertEqual(os.stat(self.file).st_size, 0)
            self.assertEqual(os.stat(self.file).st_size, 0)
        self.mount.remount()
        self.assertEqual(self.file.read_bytes(), b"")

    def test_a_large_file_has_the_same_bytes_after_a_remount(self):
        content = pattern_bytes(9 * OBJECT + 12_345, 2)
        self.file.write_bytes(content)
        self.mount.remount()
        self.assertTrue(self.file.read_bytes() == content)

    def test_a_huge_offset_works(self):
        with open(self.file, "wb") as file:
            file.seek((1 << 40) + 7)
            file.write(b"far")
        self.mount.remount()
        self.assertEqual(os.stat(self.file).st_size, (1 << 40) + 10)
        with open(self.file, "rb") as file:
            file.seek((1 << 40) + 7)
            self.assertEqual(file.read(), b"far")
            self.assertEqual(os.pread(file.fileno(), 10, 1 << 39), bytes(10))

    def test_shared_mappings_are_written_back(self):
        self.file.write_bytes(b"." * 100_000)
        with open(self.file, "r+b") as file, mmap.mmap(file.fileno(), 100_000) as mapped:
            mapped[0:5] = b"first"
            mapped[99_996:100_000] = b"last"
        self.mount.remount()
        content = self.file.read_bytes()
        self.assertEqual((content[:5], content[-4:], len(content)), (b"first", b"last", 100_000))

    def test_an_unlinked_open_file_stays_usable(self):
        with open(self.file, "w+b", buffering=0) as file:
            file.write(b"before")
            os.unlink(self.file)
            self.assertFalse(self.file.exists())
            file.write(b" and after")
            os.ftruncate(file.fileno(), 1_000_000)
            file.seek(0)
            self.assertEqual(file.read(16), b"before and after")
            self.assertEqual(os.fstat(file.fileno()).st_nlink, 0)
            self.assertEqual(os.fstat(file.fileno()).st_size, 1_000_000)

    def test_an_open_file_is_the_same_after_a_rename(self):
        with open(self.file, "w+b", buffering=0) as file:
            file.write(b"one")
            os.rename(self.file, self.mount / "renamed")
            file.write(b" two")
        self.assertEqual((self.mount / "renamed").read_bytes(), b"one two")

    def test_fsync_of_files_and_directories_succeeds(self):
        with open(self.file, "wb", buffering=0) as file:
            file.write(b"x")
            os.fdatasync(file.fileno())
            os.fsync(file.fileno())
        folder = os.open(self.mount.path, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)

    def test_handles_obey_how_they_were_opened(self):
        self.file.write_bytes(b"x")
        reader, writer = os.open(self.file, os.O_RDONLY), os.open(self.file, os.O_WRONLY)
        self.assert_errno(errno.EBADF, os.write, reader, b"y")
        self.assert_errno(errno.EBADF, os.read, writer, 1)
        os.close(reader)
        os.close(writer)
        self.assert_errno(errno.ENOENT, os.open, self.mount / "none", os.O_RDONLY)
        self.assert_errno(errno.EISDIR, os.open, self.mount.path, os.O_WRONLY)

    def test_a_read_only_mount_changes_nothing(self):
        self.file.write_bytes(b"x")
        if context.store == "plain":
            self.skipTest("bind mounts take no options")
        other = self.volume.mount("-o", "ro")
        self.assertEqual((other / "file").read_bytes(), b"x")
        self.assert_errno(errno.EROFS, (other / "new").touch)
        self.assert_errno(errno.EROFS, os.open, other / "file", os.O_WRONLY)
        self.assert_errno(errno.EROFS, os.unlink, other / "file")


class SyncedWriteTest(MountTest):
    """Direct writes that are to be durable once they are answered: the kernel sends no fsync after them."""

    stores = ("local", "rados")
    waits = True  # for what the killed client held
    leaves_valid_volumes = False  # it does not end

    def test_growth_survives_the_client(self):
        writes = {"dsync": (os.O_DSYNC, 0), "sync": (os.O_SYNC, 0), "rwf_dsync": (0, os.RWF_DSYNC)}
        with mmap.mmap(-1, 8192) as aligned:
            aligned.write(b"s" * 8192)
            for name, (open_flags, write_flags) in writes.items():
                file = os.open(self.mount / name, os.O_CREAT | os.O_WRONLY | os.O_DIRECT | open_flags, 0o644)
                self.assertEqual(os.pwritev(file, [aligned], 0, write_flags), 8192)
        self.mount.may_die = True
        self.mount.signal(signal.SIGKILL)
        self.mount.process.wait()
        other = self.volume.mount()
        for name in writes:
            self.assertEqual((other / name).read_bytes(), b"s" * 8192, name)
