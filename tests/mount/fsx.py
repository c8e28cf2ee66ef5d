# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random operations on one file, each checked against the same operation on bytes in memory."""

import collections
import ctypes
import errno
import mmap
import os
import random

BLOCK = 4096
MOST_DIRECT_BLOCKS = 64
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 0x10
MS_SYNC = 4
HISTORY_LENGTH = 40
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
NOISE = random.Random("noise").randbytes(2 << 20)  # pieces of it are written: making as many bytes takes longer


def check_errno(answer):
    if answer != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def fallocate(file, mode, offset, length):
    check_errno(LIBC.fallocate(file, mode, ctypes.c_int64(offset), ctypes.c_int64(length)))


class Mapping:
    """A shared mapping that may reach past the end of the file: Python's own may not, and so cannot be kept."""

    def __init__(self, file, length):
        self._length = length
        self._address = LIBC.mmap(None, length, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file, 0)
        if self._address == ctypes.c_void_p(-1).value:
            check_errno(-1)

    def read(self, offset, length):
        return ctypes.string_at(self._address + offset, length)

    def write(self, offset, data):
        ctypes.memmove(self._address + offset, data, len(data))

    def flush(self):
        check_errno(LIBC.msync(self._address, self._length, MS_SYNC))

    def close(self):
        check_errno(LIBC.munmap(self._address, self._length))


class Mismatch(AssertionError):
    pass


class Descriptors:
    """One file as it is open on one mount."""

    def __init__(self, path):
        self.path = path
        self.buffered = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.direct = os.open(path, os.O_RDWR | os.O_DIRECT)
        self.mapping = None
        self.is_unflushed = False  # bytes were changed through the mapping, and not written back on our behalf

    def close(self, unmap_first=True):
        if unmap_first:
            self.unmap()
        os.close(self.buffered)
        os.close(self.direct)
        self.unmap()

    def unmap(self):
        if self.mapping:
            self.mapping.close()
            self.mapping = None

    def flush(self):
        if self.is_unflushed:
            self.is_unflushed = False
            if self.mapping:
                self.mapping.flush()
            else:
                os.fsync(self.buffered)


class RandomOperations:
    """Works on `path`, as long as the file stays below `size_limit`. Everything follows from `rng`.

    `witness` is told what the file may be if the mount is killed. `partner`: copies come from that file, too."""

    def __init__(self, path, rng, size_limit, object_size=65536, direct_only=False, witness=None):
        self.partner = self
        self._rng = rng
        self._limit = size_limit
        self._object_size = object_size
        self._witness = witness
        self._model = bytearray()
        self._unit = max(self._object_size // 64, BLOCK)  # in which space is counted
        self._units = set()  # that may take space
        self._fine_unit = object_size // 64
        self._written = set()  # of those that were written here: what a killed client has not synced is not told
        self._count = 0
        self._done = collections.deque(maxlen=HISTORY_LENGTH)
        self._left = {}  # path: descriptors
        self._aligned = memoryview(mmap.mmap(-1, MOST_DIRECT_BLOCKS * BLOCK))
        self._resumes = False
        self._at = None
        self.open(path)
        self._adopt()
        operations = {self._write_direct: 2, self._read_direct: 2, self._truncate: 1, self._reopen: 1, self._empty: 0.1,
                      self._check_size: 1, self._check_holes: 1, self._check_blocks: 0.5, self._allocate: 0.5,
                      self._punch: 1, self._zero: 1, self._copy: 1.5, self._set_attributes: 0.5}
        if not direct_only:
            operations |= {self._write: 3, self._read: 3, self._append: 1, self._read_mapped: 1.5,
                           self._write_mapped: 1.5, self._flush_mapping: 0.3, self._unmap: 0.2, self._fsync: 1}
        self._operations, weights = list(operations), list(operations.values())
        self._cumulative = [sum(weights[:index + 1]) for index in range(len(weights))]

    def open(self, path):
        """Also after a remount."""
        self._at = Descriptors(path)

    def close(self):
        self._at.close()
        for descriptors in self._left.values():
            descriptors.close()
        self._left = {}

    def close_and_open(self, path):
        """Continues at another mount's path. What was left open there is closed, before or after it is opened anew."""
        self._note(f"closed, and open on {path}")
        self._at.close(unmap_first=self._rng.random() < 0.5)
        self._open_anew(path)

    def leave_and_open(self, path):
        """The same, and the file stays open here, with all that was written to it."""
        self._note(f"left open, and open on {path}")
        self._at.flush()
        self._left[self._at.path] = self._at
        self._open_anew(path)

    def leave_and_resume(self, path):
        """Continues with what was left open there: good for direct I/O, which needs no open to see the other's."""
        self._resumes = True  # what the kernel remembers of the size may be old
        self._left[self._at.path] = self._at
        self._at = self._left.pop(path, None) or Descriptors(path)

    def step(self):
        if self._witness and self._witness.is_full():
            self._fsync()
        self._count += 1
        self._rng.choices(self._operations, cum_weights=self._cumulative)[0]()

    def check_all(self):
        self._compare("whole file", 0, os.pread(self._at.buffered, self._limit + 1, 0), len(self._model) + 1)
        self._check_size()

    def content(self):
        return bytes(self._model)

    # -- the operations

    def _write(self):
        offset, length = self._range(self._limit)
        data = self._bytes(length)
        self._note("write", offset, length)
        self._put(offset, data)
        self._expect_all(os.pwritev(self._at.buffered, [data], offset, self._sync_flags()), length)

    def _append(self):
        length = min(self._rng.randrange(1, 40_000), self._limit - len(self._model))
        if length <= 0:
            return
        data = self._bytes(length)
        self._note("append", len(self._model), length)
        self._put(len(self._model), data)
        file = os.open(self._at.path, os.O_WRONLY | os.O_APPEND)
        try:
            self._expect_all(os.write(file, data), length)
        finally:
            os.close(file)

    def _read(self):
        offset, length = self._range(self._limit)
        self._note("read", offset, length)
        self._compare("read", offset, os.pread(self._at.buffered, length, offset), length)

    def _write_direct(self):
        offset, length = self._blocks(self._limit)
        data = self._bytes(length)
        self._note("direct write", offset, length)
        self._put(offset, data)
        self._aligned[:length] = data
        self._expect_all(os.pwritev(self._at.direct, [self._aligned[:length]], offset, self._sync_flags()), length)

    def _read_direct(self):
        offset, length = self._blocks(self._limit)
        self._note("direct read", offset, length)
        count = os.preadv(self._at.direct, [self._aligned[:length]], offset)
        self._compare("direct read", offset, bytes(self._aligned[:count]), length)

    def _truncate(self):
        size = self._rng.randrange(self._limit)
        if self._rng.random() < 0.3:
            size = size // BLOCK * BLOCK
        self._note("truncate", size)
        self._resize(size)
        os.ftruncate(self._at.buffered, size)
        self._check_size()

    def _empty(self):
        self._note("open with O_TRUNC")
        self._resize(0)
        os.close(os.open(self._at.path, os.O_WRONLY | os.O_TRUNC))
        self._check_size()

    def _allocate(self):
        offset, length = self._range(self._limit)
        mode = self._rng.choice([0, KEEP_SIZE])
        self._note(f"allocate, mode {mode}", offset, length)
        if mode == 0:
            self._resize(max(len(self._model), offset + length))
        fallocate(self._either(), mode, offset, length)
        self._check_size()

    def _punch(self):
        offset, length = self._range(self._limit)
        self._note("punch", offset, length)
        self._zero_in_model(offset, length)
        fallocate(self._either(), PUNCH_HOLE | KEEP_SIZE, offset, length)

    def _zero(self):
        offset, length = self._range(self._limit)
        mode = self._rng.choice([0, 0, KEEP_SIZE])
        self._note(f"zero, mode {mode}", offset, length)
        if mode == 0 and offset + length > len(self._model):
            self._model.extend(bytes(offset + length - len(self._model)))
        self._zero_in_model(offset, length)
        fallocate(self._either(), ZERO_RANGE | mode, offset, length)
        self._check_size()

    def _copy(self):
        """Within the file or from its partner: half of them with the same offset within objects."""
        source = self._rng.choice([self, self.partner])
        if self._resumes or not source._model:
            return
        offset, length = self._range(len(source._model))
        target = self._rng.randrange(self._limit)
        if self._rng.random() < 0.5:
            unit = self._object_size
            offset, target, length = offset // unit * unit, target // unit * unit, length + unit
        length = min(length, len(source._model) - offset, self._limit - target)
        if length <= 0 or (source is self and offset < target + length and target < offset + length):
            return
        self._note(f"copy from {'here' if source is self else 'partner'} {offset:#x} to", target, length)
        self._put(target, bytes(source._model[offset:offset + length]))
        self._forget_untold_units(source, offset, target, length)
        self._expect_all(os.copy_file_range(source._either(), self._either(), length, offset, target), length)
        self._check_size()

    def _forget_untold_units(self, source, offset, target, length):
        """A copy of a whole object has that object's units, told or not."""
        if (offset - target) % self._object_size == 0:
            unit = self._fine_unit
            first, end = -(-target // unit), -(-(target + length) // unit)
            self._written -= {number for number in range(first, end)
                              if number + (offset - target) // unit not in source._written}

    def _check_holes(self):
        """What lseek says is a hole has nothing but zeros. (Not so before a mapping's pages are written back.)"""
        self._at.flush()
        at = self._rng.choice([0, self._rng.randrange(len(self._model) + 1)])
        self._note("seek", at)
        while at < len(self._model):
            try:
                data = os.lseek(self._at.buffered, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                data = len(self._model)
            if not at <= data <= len(self._model):
                raise Mismatch(f"data from {at} said to begin at {data}, size {len(self._model)}{self._history()}")
            if self._model[at:data] != bytes(data - at):
                raise Mismatch(f"data in what is said to be a hole, {at} to {data}{self._history()}")
            if data == len(self._model):
                return
            at = os.lseek(self._at.buffered, data, os.SEEK_HOLE)
            if not data < at <= len(self._model):
                raise Mismatch(f"hole after {data} said to begin at {at}, size {len(self._model)}{self._history()}")

    def _check_blocks(self):
        """Not less than is not zero, not more than the units that were written since they were last freed."""
        if self._resumes:
            return
        self._fsync()
        size, used = len(self._model), os.fstat(self._at.buffered).st_blocks * 512
        unit = self._fine_unit
        least = sum(min(unit, size - number * unit) for number in self._written
                    if self._model[number * unit:(number + 1) * unit].strip(b"\0"))
        end = -(-size // BLOCK) * BLOCK
        most = sum(min(self._unit, end - number * self._unit) for number in self._units)
        if not least <= used <= most:
            raise Mismatch(f"{used} bytes used, not {least} to {most}{self._history()}")

    def _read_mapped(self):
        if not self._model:
            return
        offset, length = self._range(len(self._model))
        self._note("mapped read", offset, length)
        self._compare("mapped read", offset, self._mapping().read(offset, length), length)

    def _write_mapped(self):
        if not self._model:
            return
        offset, length = self._range(len(self._model))
        self._note("mapped write", offset, length)
        data = self._bytes(length)
        self._put(offset, data)
        self._mapping().write(offset, data)
        self._at.is_unflushed = True

    def _flush_mapping(self):
        self._note("msync")
        self._at.flush()

    def _unmap(self):
        self._note("unmap")
        self._at.unmap()

    def _fsync(self):
        self._note("fsync")
        self._rng.choice([os.fsync, os.fdatasync])(self._either())
        self._at.is_unflushed = False
        if self._witness:
            self._witness.synced(self._model)

    def _reopen(self):
        self._note("reopen")
        path = self._at.path
        self._at.close(unmap_first=self._rng.random() < 0.5)
        self.open(path)

    def _set_attributes(self):
        """Changes that are none of bytes, and must not be taken for some, nor hide some."""
        self._note("chmod, utimes")
        if self._rng.random() < 0.5:
            os.chmod(self._at.path, self._rng.choice([0o600, 0o644]))
        else:
            status = os.stat(self._at.path)
            os.utime(self._at.path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _check_size(self):
        if self._resumes:
            return
        for size in [os.fstat(self._at.buffered).st_size, os.stat(self._at.path).st_size]:
            if size != len(self._model):
                raise Mismatch(f"size {size}, not {len(self._model)}{self._history()}")

    # -- the model

    def _adopt(self):
        """Takes the file as it is."""
        self._model = bytearray(os.pread(self._at.buffered, self._limit + 1, 0))
        self._units = set(range(-(-len(self._model) // self._unit)))
        self._written = set()
        self._note("the file as it is", 0, len(self._model))
        if self._witness:
            os.fsync(self._at.buffered)
            self._witness.synced(self._model)

    def _open_anew(self, path):
        left = self._left.pop(path, None)
        if left and self._rng.random() < 0.5:
            left.close()
            left = None
        self.open(path)
        if left:
            left.close()

    def _mapping(self):
        if not self._at.mapping:
            self._at.mapping = Mapping(self._either(), self._limit)
        return self._at.mapping

    def _either(self):
        return self._rng.choice([self._at.buffered, self._at.direct])

    def _sync_flags(self):
        return os.RWF_DSYNC if self._rng.random() < 0.1 else 0

    def _bytes(self, length):
        begin = self._rng.randrange(len(NOISE) - length)
        return NOISE[begin:begin + length]

    def _range(self, limit):
        offset = self._rng.randrange(limit)
        most = self._rng.choice([100, 100, 5_000, 5_000, 5_000, 50_000, 200_000])
        return offset, self._rng.randrange(1, min(limit - offset, most) + 1)

    def _blocks(self, limit):
        offset = self._rng.randrange(limit // BLOCK) * BLOCK
        most = self._rng.choice([1, 1, 4, MOST_DIRECT_BLOCKS])
        return offset, self._rng.randrange(1, min((limit - offset) // BLOCK, most) + 1) * BLOCK

    def _resize(self, size):
        if size < len(self._model):
            del self._model[size:]
            self._units = {number for number in self._units if number * self._unit < size}
        else:
            self._model.extend(bytes(size - len(self._model)))
        self._changed()

    def _zero_in_model(self, offset, length):
        end = min(offset + length, len(self._model))
        if offset < end:
            self._model[offset:end] = bytes(end - offset)
            self._units -= set(range(-(-offset // self._unit), end // self._unit))
        self._changed()

    def _put(self, offset, data):
        """Before it is done to the file, which may not return from it."""
        if offset > len(self._model):
            self._model.extend(bytes(offset - len(self._model)))
        self._model[offset:offset + len(data)] = data
        last = offset + len(data) - 1
        self._units.update(range(offset // self._unit, last // self._unit + 1))
        self._written.update(range(offset // self._fine_unit, last // self._fine_unit + 1))
        self._changed()

    def _changed(self):
        if self._witness:
            self._witness.changed(self._model)

    def _compare(self, what, offset, got, length):
        wanted = self._model[offset:offset + length]
        if got == wanted:
            return
        if len(got) != len(wanted):
            raise Mismatch(f"{what} at {offset}: {len(got)} bytes, not {len(wanted)}{self._history()}")
        wrong = [offset + index for index in range(len(wanted)) if got[index] != wanted[index]]
        first = wrong[0] - offset
        raise Mismatch(f"{what}: {len(wrong)} wrong bytes from {wrong[0]:#x} to {wrong[-1]:#x}: "
                       f"{got[first:first + 8].hex()}, not {wanted[first:first + 8].hex()}{self._history()}")

    def _expect_all(self, count, length):
        if count != length:
            raise Mismatch(f"{count} bytes written, not {length}{self._history()}")

    def _note(self, *what):
        self._done.append((self._count, *what))

    def _history(self):
        lines = [f"{count}: {what} {' +'.join(f'{number:#x}' for number in numbers)}"
                 for count, what, *numbers in self._done]
        return "\nthe last operations:\n  " + "\n  ".join(lines)


class Witness:
    """What a file may be after a kill: the bytes of the last fsync, and of each moment since. In memory that is shared
    with the process at work, which the kill may end too (by SIGBUS, in a mapping)."""

    STATES = 64

    def __init__(self, size_limit):
        self._slot = size_limit + 8
        self._memory = mmap.mmap(-1, 16 + self.STATES * self._slot)

    def synced(self, content):
        self._count = 0
        self.changed(content)

    def changed(self, content):
        at = 16 + self._count * self._slot
        self._memory[at:at + 8] = len(content).to_bytes(8, "little")
        self._memory[at + 8:at + 8 + len(content)] = bytes(content)
        self._count += 1
        self._memory[8:16] = (self.changes() + 1).to_bytes(8, "little")

    def changes(self):
        """How many there were so far."""
        return int.from_bytes(self._memory[8:16], "little")

    def is_full(self):
        return self._count >= self.STATES - 1

    def check(self, found):
        """The file after the kill: each byte is that of some moment, and so is the size; or a part of a write is there,
        up to the end of a direct write that lay over some of it, or of a unit that was full."""
        states = [self._state(number) for number in range(self._count)]
        sizes = {len(state) for state in states}
        is_part = len(found) % BLOCK == 0 and min(sizes) < len(found) < max(sizes)
        if len(found) not in sizes and not is_part:
            raise Mismatch(f"size {len(found)}, not one of {sorted(sizes)}")
        for begin in range(0, len(found), BLOCK):
            block = found[begin:begin + BLOCK]
            if any(state[begin:begin + BLOCK] == block for state in states):
                continue
            for at in range(begin, begin + len(block)):
                if not any(at < len(state) and state[at] == found[at] for state in states):
                    raise Mismatch(f"byte {at:#x} is {found[at]}, as it was never since the last fsync")

    @property
    def _count(self):
        return int.from_bytes(self._memory[0:8], "little")

    @_count.setter
    def _count(self, count):
        self._memory[0:8] = count.to_bytes(8, "little")

    def _state(self, number):
        at = 16 + number * self._slot
        size = int.from_bytes(self._memory[at:at + 8], "little")
        return self._memory[at + 8:at + 8 + size]
