# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random operations on one file, each checked against the same operation on bytes in memory."""

import ctypes
import errno
import mmap
import os

BLOCK = 4096
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 0x10
LIBC = ctypes.CDLL(None, use_errno=True)


def fallocate(file, mode, offset, length):
    if LIBC.fallocate(file, mode, ctypes.c_int64(offset), ctypes.c_int64(length)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Mismatch(AssertionError):
    pass


class RandomOperations:
    """Works on `path`, as long as the file stays below `size_limit`. Everything follows from `rng`."""

    def __init__(self, path, rng, size_limit, direct_only=False):
        self.path = path
        self._rng = rng
        self._limit = size_limit
        self._direct_only = direct_only
        self._model = bytearray()
        self._done = []
        self._buffered = self._direct = None
        self.open()

    def open(self):
        """Also after a remount."""
        self._buffered = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        self._direct = os.open(self.path, os.O_RDWR | os.O_DIRECT)

    def close(self):
        os.close(self._buffered)
        os.close(self._direct)

    def step(self):
        operations = [self._write_direct, self._write_direct, self._read_direct, self._truncate, self._reopen,
                      self._check_size, self._check_holes, self._punch, self._zero, self._copy]
        if not self._direct_only:
            operations += [self._write, self._write, self._read, self._read, self._append, self._read_mapped,
                           self._write_mapped, self._fsync]
        self._rng.choice(operations)()

    def check_all(self):
        self._compare("whole file", 0, os.pread(self._buffered, self._limit + 1, 0), len(self._model) + 1)
        self._check_size()

    # -- the operations

    def _write(self):
        offset, length = self._range(self._limit)
        data = self._rng.randbytes(length)
        self._note("write", offset, length)
        self._expect_all(os.pwrite(self._buffered, data, offset), length)
        self._put(offset, data)

    def _append(self):
        length = min(self._rng.randrange(1, 40_000), self._limit - len(self._model))
        if length <= 0:
            return
        data = self._rng.randbytes(length)
        self._note("append", len(self._model), length)
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            self._expect_all(os.write(file, data), length)
        finally:
            os.close(file)
        self._put(len(self._model), data)

    def _read(self):
        offset, length = self._range(self._limit)
        self._note("read", offset, length)
        self._compare("read", offset, os.pread(self._buffered, length, offset), length)

    def _write_direct(self):
        offset, length = self._blocks(self._limit)
        data = self._rng.randbytes(length)
        self._note("direct write", offset, length)
        with mmap.mmap(-1, length) as aligned:
            aligned.write(data)
            self._expect_all(os.pwritev(self._direct, [aligned], offset), length)
        self._put(offset, data)

    def _read_direct(self):
        offset, length = self._blocks(self._limit)
        self._note("direct read", offset, length)
        with mmap.mmap(-1, length) as aligned:
            count = os.preadv(self._direct, [aligned], offset)
            self._compare("direct read", offset, aligned[:count], length)

    def _truncate(self):
        size = self._rng.randrange(self._limit)
        if self._rng.random() < 0.3:
            size = size // BLOCK * BLOCK
        self._note("truncate", size, 0)
        os.ftruncate(self._buffered, size)
        if size < len(self._model):
            del self._model[size:]
        else:
            self._model.extend(bytes(size - len(self._model)))
        self._check_size()

    def _punch(self):
        offset, length = self._range(self._limit)
        self._note("punch", offset, length)
        fallocate(self._rng.choice([self._buffered, self._direct]), PUNCH_HOLE | KEEP_SIZE, offset, length)
        self._zero_in_model(offset, length)

    def _zero(self):
        offset, length = self._range(self._limit)
        self._note("zero", offset, length)
        fallocate(self._rng.choice([self._buffered, self._direct]), ZERO_RANGE, offset, length)
        self._model.extend(bytes(max(0, offset + length - len(self._model))))
        self._zero_in_model(offset, length)
        self._check_size()

    def _copy(self):
        """Within the file: half of them with the same offset within blocks of 64 KiB."""
        if not self._model:
            return
        source, length = self._range(len(self._model))
        target = self._rng.randrange(self._limit)
        if self._rng.random() < 0.5:
            source, target, length = source // 65536 * 65536, target // 65536 * 65536, length + 65536
        length = min(length, len(self._model) - source, self._limit - target)
        if length <= 0 or source < target + length and target < source + length:
            return
        self._note(f"copy from {source:#x} to", target, length)
        self._expect_all(os.copy_file_range(self._buffered, self._direct, length, source, target), length)
        self._put(target, bytes(self._model[source:source + length]))
        self._check_size()

    def _check_holes(self):
        """What lseek says is a hole has nothing but zeros."""
        self._note("seek", 0, 0)
        at = 0
        while at < len(self._model):
            try:
                data = os.lseek(self._buffered, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                data = len(self._model)
            if any(self._model[at:data]):
                raise Mismatch(f"data in what is said to be a hole, {at} to {data}{self._history()}")
            if data >= len(self._model):
                return
            at = os.lseek(self._buffered, data, os.SEEK_HOLE)

    def _read_mapped(self):
        if not self._model:
            return
        self._note("mmap read", 0, len(self._model))
        file = self._rng.choice([self._buffered, self._direct])
        with mmap.mmap(file, len(self._model), prot=mmap.PROT_READ) as mapped:
            offset, length = self._range(len(self._model))
            self._compare("mmap read", offset, mapped[offset:offset + length], length)

    def _write_mapped(self):
        if not self._model:
            return
        offset, length = self._range(len(self._model))
        length = min(length, len(self._model) - offset)
        self._note("mmap write", offset, length)
        data = self._rng.randbytes(length)
        with mmap.mmap(self._rng.choice([self._buffered, self._direct]), len(self._model)) as mapped:
            mapped[offset:offset + length] = data
            mapped.flush()
        self._put(offset, data)

    def _fsync(self):
        self._note("fsync", 0, 0)
        self._rng.choice([os.fsync, os.fdatasync])(self._buffered)

    def _reopen(self):
        self._note("reopen", 0, 0)
        self.close()
        self.open()

    def _check_size(self):
        for size in [os.fstat(self._buffered).st_size, os.stat(self.path).st_size]:
            if size != len(self._model):
                raise Mismatch(f"size {size}, not {len(self._model)}{self._history()}")

    # -- the model

    def _range(self, limit):
        offset = self._rng.randrange(limit)
        return offset, self._rng.randrange(1, min(limit - offset, self._rng.choice([100, 5_000, 200_000])) + 1)

    def _blocks(self, limit):
        offset = self._rng.randrange(limit // BLOCK) * BLOCK
        count = self._rng.randrange(1, min((limit - offset) // BLOCK, self._rng.choice([1, 4, 64])) + 1)
        return offset, count * BLOCK

    def _zero_in_model(self, offset, length):
        end = min(offset + length, len(self._model))
        if offset < end:
            self._model[offset:end] = bytes(end - offset)

    def _put(self, offset, data):
        if offset > len(self._model):
            self._model.extend(bytes(offset - len(self._model)))
        self._model[offset:offset + len(data)] = data

    def _compare(self, what, offset, got, length):
        wanted = bytes(self._model[offset:offset + length])
        if got == wanted:
            return
        if len(got) != len(wanted):
            raise Mismatch(f"{what} at {offset}: {len(got)} bytes, not {len(wanted)}{self._history()}")
        first = next(index for index in range(len(wanted)) if got[index] != wanted[index])
        raise Mismatch(f"{what}: wrong byte at {offset + first}: {got[first]}, not {wanted[first]}{self._history()}")

    def _expect_all(self, count, length):
        if count != length:
            raise Mismatch(f"{count} bytes written, not {length}{self._history()}")

    def _note(self, what, offset, length):
        self._done.append(f"{what} {offset:#x} +{length:#x}")

    def _history(self):
        return "\nthe last operations:\n  " + "\n  ".join(self._done[-40:])
