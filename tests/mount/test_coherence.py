# SPDX-License-Identifier: LGPL-2.1-or-later
"""Direct and buffered I/O agree on one mount at once, and on another after close and open."""

import collections
import contextlib
import fcntl
import itertools
import mmap
import os
import signal
import time

import aio
from fsx import KEEP_SIZE, PUNCH_HOLE, fallocate
from harness import Child, MountTest, wait_until

BLOCK = 4096
MIB = 1 << 20
APPENDED_PAGES = 256  # what the kernel sends as one request


def write_direct(path, offset, fill, length=BLOCK, flags=0):
    file = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_CREAT | flags, 0o644)
    try:
        with mmap.mmap(-1, length) as aligned:
            aligned.write(bytes([fill]) * length)
            assert os.pwritev(file, [aligned], offset) == length
    finally:
        os.close(file)


def read_direct(path, offset, length=BLOCK):
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, length) as aligned:
            count = os.preadv(file, [aligned], offset)
            return aligned[:count]
    finally:
        os.close(file)


def read_mapped(file, length):
    with mmap.mmap(file, length, prot=mmap.PROT_READ) as mapped:
        return mapped[:]


class OneMountTest(MountTest):
    def setUp(self):
        super().setUp()
        self.path = self.mount / "file"
        self.path.write_bytes(b"a" * (4 * BLOCK))

    def test_a_buffered_read_sees_a_direct_write(self):
        file = os.open(self.path, os.O_RDWR)
        self.assertEqual(os.pread(file, BLOCK, 0), b"a" * BLOCK)
        write_direct(self.path, 0, ord("b"))
        self.assertEqual(os.pread(file, BLOCK, 0), b"b" * BLOCK)
        self.assertEqual(self.path.read_bytes(), b"b" * BLOCK + b"a" * (3 * BLOCK))
        os.close(file)

    def test_a_mapped_read_sees_a_direct_write(self):
        file = os.open(self.path, os.O_RDWR)
        with mmap.mmap(file, 4 * BLOCK, prot=mmap.PROT_READ) as mapped:
            self.assertEqual(mapped[BLOCK], ord("a"))
            write_direct(self.path, BLOCK, ord("b"))
            self.assertEqual(mapped[BLOCK:2 * BLOCK], b"b" * BLOCK)
        self.assertEqual(read_mapped(file, 4 * BLOCK)[BLOCK:2 * BLOCK], b"b" * BLOCK)
        os.close(file)

    def test_a_direct_read_sees_a_buffered_write(self):
        file = os.open(self.path, os.O_RDWR)
        os.pwrite(file, b"c" * 100, BLOCK + 50)
        self.assertEqual(read_direct(self.path, BLOCK), b"a" * 50 + b"c" * 100 + b"a" * (BLOCK - 150))
        os.close(file)

    def test_a_direct_read_sees_a_mapped_write(self):
        file = os.open(self.path, os.O_RDWR)
        with mmap.mmap(file, 4 * BLOCK) as mapped:
            mapped[10:20] = b"d" * 10
            self.assertEqual(read_direct(self.path, 0)[:30], b"a" * 10 + b"d" * 10 + b"a" * 10)
        os.close(file)

    def test_a_shared_mapping_of_a_direct_descriptor_is_coherent(self):
        file = os.open(self.path, os.O_RDWR | os.O_DIRECT)
        with mmap.mmap(file, 4 * BLOCK) as mapped:
            self.assertEqual(mapped[:], b"a" * (4 * BLOCK))
            write_direct(self.path, BLOCK, ord("b"))
            self.assertEqual(mapped[BLOCK:2 * BLOCK], b"b" * BLOCK)
            mapped[0:4] = b"here"
            self.assertEqual(read_direct(self.path, 0)[:8], b"hereaaaa")
            self.assertEqual(self.path.read_bytes()[:8], b"hereaaaa")
            with open(self.path, "r+b") as buffered:
                buffered.seek(3 * BLOCK)
                buffered.write(b"c" * BLOCK)
            self.assertEqual(mapped[3 * BLOCK:], b"c" * BLOCK)
            mapped.flush()
        os.close(file)
        self.mount.remount()
        self.assertEqual(self.path.read_bytes(),
                         b"here" + b"a" * (BLOCK - 4) + b"b" * BLOCK + b"a" * BLOCK + b"c" * BLOCK)

    def test_an_image_whose_first_block_is_written_buffered_and_the_rest_directly_is_whole(self):
        path = self.mount / "image"
        path.write_bytes(b"1" * BLOCK)
        self.assertEqual(path.read_bytes(), b"1" * BLOCK)
        for block in range(1, 8):
            write_direct(path, block * BLOCK, ord("2"))
        write_direct(path, 0, ord("3"))
        self.assertEqual(path.read_bytes(), b"3" * BLOCK + b"2" * (7 * BLOCK))
        self.mount.remount()
        self.assertEqual(path.read_bytes(), b"3" * BLOCK + b"2" * (7 * BLOCK))

    def test_a_buffered_read_sees_a_direct_write_that_grew_the_file(self):
        file = os.open(self.path, os.O_RDONLY)
        self.assertEqual(len(os.pread(file, 100_000, 0)), 4 * BLOCK)
        write_direct(self.path, 6 * BLOCK, ord("e"))
        self.assertEqual(os.fstat(file).st_size, 7 * BLOCK)
        self.assertEqual(os.pread(file, 100_000, 3 * BLOCK), b"a" * BLOCK + bytes(2 * BLOCK) + b"e" * BLOCK)
        os.close(file)


class DirectWritesUnderReadersTest(MountTest):
    """After asynchronous direct writes no page is older than they are, whoever reads meanwhile (generic/451)."""

    SIZE = 640 << 10
    SECONDS = 6

    def test_no_page_is_older_than_the_direct_writes(self):
        path = self.mount / "file"
        path.write_bytes(bytes(self.SIZE))
        deadline = time.monotonic() + self.SECONDS
        readers = [Child(self.read, path, deadline) for _ in range(4)]
        writer, cycles = aio.Writer(self.SIZE, 10), itertools.count(1)
        while time.monotonic() < deadline:
            writer.memory[:] = next(cycles).to_bytes(8, "little") * (self.SIZE // 8)
            file = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_TRUNC)
            writer.write(file)
            found = path.read_bytes()
            os.close(file)
            old = [block for block in range(0, self.SIZE, BLOCK) if found[block:block + 8] != writer.memory[:8]]
            self.assertEqual(old, [], "blocks that are old")
        writer.close()
        self.assertEqual([reader.wait() for reader in readers], [0] * len(readers))
        print("cycles:", next(cycles))

    @staticmethod
    def read(path, deadline):
        while time.monotonic() < deadline:
            path.read_bytes()


class AppendDescriptorTest(MountTest):
    """What goes through a descriptor opened with O_APPEND and is no append."""

    def setUp(self):
        super().setUp()
        self.path = self.mount / "file"
        self.path.write_bytes(b"a" * 100)
        self.file = os.open(self.path, os.O_RDWR | os.O_APPEND)
        self.addCleanup(os.close, self.file)

    def assert_bytes(self, wanted):
        self.assertEqual(self.path.read_bytes(), wanted)
        self.assertEqual(read_direct(self.path, 0), wanted)

    def test_the_parts_of_one_large_asynchronous_append_stay_in_their_order(self):
        wanted = b"".join(bytes([letter]) * MIB for letter in b"abcdefgh")
        writer = aio.Writer(len(wanted), 1)
        self.addCleanup(writer.close)
        writer.memory[:] = wanted
        for number in range(10):
            path = self.mount / f"appended-{number}"
            file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_DIRECT, 0o600)
            writer.write(file)
            os.close(file)
            self.assertEqual([block for block in range(8) if path.read_bytes()[block * MIB] != wanted[block * MIB]], [])

    def test_what_is_changed_in_a_shared_mapping_stays_where_it_is(self):
        with mmap.mmap(self.file, 100) as mapped:
            mapped[10:14] = b"here"
            mapped.flush()
        self.assert_bytes(b"a" * 10 + b"here" + b"a" * 86)

    def test_pwrite_keeps_its_offset_once_o_append_is_cleared(self):
        fcntl.fcntl(self.file, fcntl.F_SETFL, 0)
        self.assertEqual(os.pwrite(self.file, b"here", 10), 4)
        self.assert_bytes(b"a" * 10 + b"here" + b"a" * 86)

    def test_a_descriptor_that_was_given_o_append_appends(self):
        file = os.open(self.path, os.O_WRONLY)
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
        os.write(file, b"end")
        os.close(file)
        self.assert_bytes(b"a" * 100 + b"end")


class TwoMountsTest(MountTest):
    def setUp(self):
        super().setUp()
        self.other = self.volume.mount()
        self.here, self.there = self.mount / "file", self.other / "file"
        self.here.write_bytes(b"a" * (4 * BLOCK))

    def test_a_buffered_write_is_read_elsewhere_after_close_and_open(self):
        for turn in range(20):
            writer, reader = [(self.here, self.there), (self.there, self.here)][turn % 2]
            content = bytes([65 + turn]) * (turn * 1_000 + 1)
            writer.write_bytes(content)
            self.assertEqual(reader.read_bytes(), content)
            self.assertEqual(os.stat(reader).st_size, len(content))

    def test_a_direct_write_is_read_elsewhere_through_the_cache_after_open(self):
        self.assertEqual(self.there.read_bytes(), b"a" * (4 * BLOCK))
        for fill in b"bcd":
            write_direct(self.here, BLOCK, fill)
            self.assertEqual(self.there.read_bytes()[BLOCK:2 * BLOCK], bytes([fill]) * BLOCK)
            file = os.open(self.there, os.O_RDONLY)
            self.assertEqual(read_mapped(file, 4 * BLOCK)[BLOCK:2 * BLOCK], bytes([fill]) * BLOCK)
            os.close(file)

    def test_a_buffered_write_is_read_directly_elsewhere(self):
        for fill in b"bcd":
            with open(self.there, "r+b") as file:
                file.write(bytes([fill]) * BLOCK)
            self.assertEqual(read_direct(self.here, 0), bytes([fill]) * BLOCK)

    def test_a_rewrite_that_puts_the_times_back_is_read_elsewhere_after_open(self):
        for turn, fill in enumerate(b"bcdefg"):
            writer, reader = [(self.here, self.there), (self.there, self.here)][turn % 2]
            self.assertEqual(reader.read_bytes(), writer.read_bytes())
            times = os.stat(writer)
            with open(writer, "r+b") as file:
                file.write(bytes([fill]) * (4 * BLOCK))
            os.utime(writer, ns=(times.st_atime_ns, times.st_mtime_ns))
            os.stat(reader)
            self.assertEqual(reader.read_bytes(), bytes([fill]) * (4 * BLOCK))

    def test_a_rewrite_is_read_elsewhere_after_open_whatever_is_done_to_an_open_descriptor_in_between(self):
        between = [lambda file: os.fchmod(file, 0o600), lambda file: os.utime(file, ns=(7, 8)), os.fstat, os.fsync]
        file = os.open(self.there, os.O_RDONLY)
        self.addCleanup(os.close, file)
        for fill, act in enumerate(between):
            self.assertEqual(self.there.read_bytes(), self.here.read_bytes())
            with open(self.here, "r+b") as writer:
                writer.write(bytes([fill]) * (4 * BLOCK))
            act(file)
            self.assertEqual(self.there.read_bytes(), bytes([fill]) * (4 * BLOCK))

    def test_growth_and_truncation_are_seen_elsewhere_after_open(self):
        self.assertEqual(self.there.read_bytes(), b"a" * (4 * BLOCK))
        os.truncate(self.here, BLOCK)
        self.assertEqual(self.there.read_bytes(), b"a" * BLOCK)
        os.truncate(self.here, 3 * BLOCK)
        self.assertEqual(self.there.read_bytes(), b"a" * BLOCK + bytes(2 * BLOCK))
        with open(self.there, "ab") as file:
            file.write(b"tail")
        self.assertEqual(self.here.read_bytes()[-4:], b"tail")
        self.assertEqual(os.stat(self.here).st_size, 3 * BLOCK + 4)

    def test_an_open_writer_gives_way_to_a_reader_elsewhere(self):
        with open(self.here, "r+b", buffering=0) as writer:
            for fill in b"xyz":
                writer.seek(0)
                writer.write(bytes([fill]) * BLOCK)
                os.fsync(writer.fileno())
                self.assertEqual(self.there.read_bytes()[:BLOCK], bytes([fill]) * BLOCK)

    def test_what_is_changed_through_a_mapping_undoes_nothing_that_is_written_elsewhere_after_it(self):
        here = os.open(self.here, os.O_RDWR)
        there = os.open(self.there, os.O_RDWR)
        with mmap.mmap(here, BLOCK) as mapped:
            for offset in range(0, 1000, 20):
                os.pwrite(here, b"h", 2 * BLOCK)  # the lease is this mount's
                mapped[offset] = ord("m")
                os.pwrite(there, b"t", offset + 10)
                os.fsync(there)
            mapped.flush()
        os.close(here)
        os.close(there)
        for path in [self.here, self.there]:
            self.assertEqual(path.read_bytes()[:1000], (b"m" + b"a" * 9 + b"t" + b"a" * 9) * 50)

    def test_two_open_writers_on_two_mounts_lose_nothing(self):
        files = [os.open(path, os.O_RDWR | os.O_DIRECT) for path in [self.here, self.there]]
        for turn in range(10):
            with mmap.mmap(-1, BLOCK) as aligned:
                aligned.write(bytes([100 + turn]) * BLOCK)
                os.pwritev(files[turn % 2], [aligned], turn * BLOCK)
        for file in files:
            os.close(file)
        wanted = b"".join(bytes([100 + turn]) * BLOCK for turn in range(10))
        self.assertEqual(self.here.read_bytes(), wanted)
        self.assertEqual(self.there.read_bytes(), wanted)

    def test_names_are_seen_elsewhere_at_once_where_none_was_before(self):
        for number in range(20):
            path = f"name-{number}"
            self.assertFalse((self.other / path).exists())
            (self.mount / path).write_text(str(number), encoding="utf-8")
            self.assertEqual((self.other / path).read_text(encoding="utf-8"), str(number))

    def test_a_file_removed_elsewhere_stays_whole_for_those_who_have_it_open(self):
        with open(self.there, "rb") as reader:
            os.unlink(self.here)
            self.assertEqual(reader.read(), b"a" * (4 * BLOCK))

    def test_appends_on_two_mounts_are_all_there(self):
        log_here, log_there = self.mount / "log", self.other / "log"
        log_here.touch()
        for number in range(20):
            with open([log_here, log_there][number % 2], "a", encoding="utf-8") as file:
                file.write(f"line {number}\n")
        wanted = "".join(f"line {number}\n" for number in range(20))
        self.assertEqual(log_here.read_text(encoding="utf-8"), wanted)
        self.assertEqual(log_there.read_text(encoding="utf-8"), wanted)

    def test_appended_records_of_two_mounts_are_whole(self):
        self.append_from_both(1_000, [(0, 100)])

    def test_appended_records_are_whole_up_to_a_megabyte_less_a_page_wherever_their_buffer_lies(self):
        self.append_from_both(20, [(BLOCK - 1, APPENDED_PAGES * BLOCK - BLOCK)])

    def test_appended_records_in_pieces_are_whole_while_these_touch_no_more_pages_than_a_request_has(self):
        self.append_from_both(100, [(BLOCK - 50 + at * BLOCK, 100) for at in range(0, APPENDED_PAGES, 2)])

    def append_from_both(self, each, pieces):
        """Records of these pieces of memory: (offset after a page's begin, length)."""
        log_here, log_there = self.mount / "log", self.other / "log"
        log_here.touch()
        size = sum(length for _, length in pieces)

        def append(path, fill):
            memory = mmap.mmap(-1, (APPENDED_PAGES + 1) * BLOCK)
            memory.write(fill * len(memory))
            record = [memoryview(memory)[at:at + length] for at, length in pieces]
            file = os.open(path, os.O_WRONLY | os.O_APPEND)
            for _ in range(each):
                assert os.writev(file, record) == size
            os.close(file)

        writers = [Child(append, log_here, b"a"), Child(append, log_there, b"b")]
        self.assertEqual([writer.wait() for writer in writers], [0, 0])
        found = log_here.read_bytes()
        records = collections.Counter(found[at:at + size] for at in range(0, len(found), size))
        self.assertTrue(records == {b"a" * size: each, b"b" * size: each}, "records are torn, missing or twice there")
        self.assertTrue(log_there.read_bytes() == found)


def close_dead(file):
    """Of a mount whose process is gone."""
    with contextlib.suppress(OSError):
        os.close(file)


class OpenOnTwoMountsTest(MountTest):
    """What one changes, the other sees without opening the file again, though its attributes are good for an hour."""

    stores = ("local", "rados")
    LIMIT_S = 30

    def setUp(self):
        super().setUp()
        self.other = self.volume.mount("-o", "attr_timeout=3600")
        self.here, self.there = self.mount / "file", self.other / "file"
        self.here.write_bytes(b"a" * (4 * BLOCK))
        self.reader = self.open(self.there, os.O_RDONLY)
        self.mapped = mmap.mmap(self.reader, 4 * BLOCK, prot=mmap.PROT_READ)
        self.addCleanup(self.mapped.close)
        self.assertEqual(self.mapped[:], b"a" * (4 * BLOCK))
        self.writer = self.open(self.here, os.O_RDWR)

    def open(self, path, flags):
        file = os.open(path, flags)
        self.addCleanup(os.close, file)
        return file

    def is_seen(self, offset, wanted):
        end = offset + len(wanted)
        wait_until(lambda: self.mapped[offset:end] == wanted, self.LIMIT_S, "the mapping shows it")
        wait_until(lambda: os.pread(self.reader, len(wanted), offset) == wanted, self.LIMIT_S, "read(2) shows it")

    def has_size(self, size):
        wait_until(lambda: os.fstat(self.reader).st_size == size, self.LIMIT_S, "fstat(2) shows it")

    def test_buffered_direct_and_mapped_writes_are_seen(self):
        for fill in b"bcdef":
            os.pwrite(self.writer, bytes([fill]) * BLOCK, 0)
            self.is_seen(0, bytes([fill]) * BLOCK)
            write_direct(self.here, BLOCK, fill)
            self.is_seen(BLOCK, bytes([fill]) * BLOCK)
            with mmap.mmap(self.writer, 4 * BLOCK) as mapped:
                mapped[2 * BLOCK:3 * BLOCK] = bytes([fill]) * BLOCK
                mapped.flush()
            self.is_seen(2 * BLOCK, bytes([fill]) * BLOCK)

    def test_a_file_that_is_cut_and_grows_is_seen(self):
        for fill in b"bcd":
            os.ftruncate(self.writer, BLOCK)
            self.has_size(BLOCK)
            os.ftruncate(self.writer, 3 * BLOCK)
            self.has_size(3 * BLOCK)
            self.is_seen(BLOCK, bytes(2 * BLOCK))
            os.pwrite(self.writer, bytes([fill]) * BLOCK, 3 * BLOCK)
            self.has_size(4 * BLOCK)
            self.is_seen(3 * BLOCK, bytes([fill]) * BLOCK)

    def test_a_hole_is_seen(self):
        for fill in b"bcd":
            os.pwrite(self.writer, bytes([fill]) * (2 * BLOCK), 0)
            self.is_seen(0, bytes([fill]) * (2 * BLOCK))
            fallocate(self.writer, PUNCH_HOLE | KEEP_SIZE, BLOCK, BLOCK)
            self.is_seen(BLOCK, bytes(BLOCK))

    def test_a_rewrite_by_a_program_that_opens_writes_and_closes_is_seen(self):
        for fill in b"bcdef":
            self.here.write_bytes(bytes([fill]) * (4 * BLOCK))
            self.is_seen(0, bytes([fill]) * (4 * BLOCK))

    def test_two_that_write_in_turn_see_each_other(self):
        back = self.open(self.there, os.O_RDWR)
        for turn in range(10):
            os.pwrite([self.writer, back][turn % 2], bytes([100 + turn]) * BLOCK, 0)
            self.is_seen(0, bytes([100 + turn]) * BLOCK)
            wait_until(lambda fill=bytes([100 + turn]): os.pread(self.writer, BLOCK, 0) == fill * BLOCK, self.LIMIT_S,
                       "the first mount shows it")

    def test_a_reader_that_is_stopped_or_killed_delays_no_writer(self):
        os.pwrite(self.writer, b"known", 0)
        self.is_seen(0, b"known")
        reader = self.volume.mount()
        reader.may_die = True
        file = os.open(reader / "file", os.O_RDONLY)
        try:
            mapped = mmap.mmap(file, BLOCK, prot=mmap.PROT_READ)
            os.pwrite(self.writer, b"there", 0)
            wait_until(lambda: mapped[:5] == b"there", self.LIMIT_S, "the third mount shows it")
            mapped.close()
            for end in (lambda: reader.stop(self.mount), reader.kill):
                end()
                for turn in range(100):
                    os.pwrite(self.writer, b"%05d" % turn, 0)
                self.is_seen(0, b"00099")
        finally:
            reader.signal(signal.SIGKILL)
            close_dead(file)

    def test_a_writer_that_is_killed_leaves_what_it_was_told_was_stored(self):
        doomed = self.volume.mount()
        doomed.may_die = True
        file = os.open(doomed / "file", os.O_RDWR)
        os.pwrite(file, b"before", 0)
        os.fsync(file)
        self.is_seen(0, b"before")
        doomed.signal(signal.SIGKILL)
        os.pwrite(self.writer, b"behind", 0)
        self.is_seen(0, b"behind")
        close_dead(file)
