# SPDX-License-Identifier: LGPL-2.1-or-later
"""Storms of system calls: records, direct writes, names."""

import mmap
import os

from storm import Storm, a_size, content_of, expect
from test_names import RENAME_EXCHANGE, RENAME_NOREPLACE, renameat2


def read_all(path):
    """Empty if there is none."""
    return path.read_bytes() if path.exists() else b""


class Records(Storm):
    """Numbered records at the end of one file, each with an fsync. Only the one after the last noted may be torn."""

    count = 0
    end = 0

    def is_trust(self, words):
        return True

    def record(self, number):
        return content_of(f"{self.name} {number}", 1 + a_size(f"{self.name} {number}", 9000))

    def heard(self, number):
        expect(int(number) == self.count, f"{self.name}: notes of {number} after {self.count}")
        self.end += len(self.record(self.count))
        self.count += 1

    def begin(self, folder):
        self._file = os.open(folder / self.name, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        os.ftruncate(self._file, self.end)

    def step(self, folder):
        record = self.record(self.count)
        while record:  # a write may be cut short by the client's end
            record = record[os.write(self._file, record):]
        os.fsync(self._file)
        self.note(self.count)
        self.count += 1

    def compare(self, folder):
        found = read_all(folder / self.name)
        expect(len(found) >= self.end, f"{len(found)} bytes, {self.end} were synced")
        torn = len(found) - self.end
        expect(torn <= len(self.record(self.count)), f"{torn} bytes after record {self.count - 1}")
        place = 0
        for number in range(self.count):
            record = self.record(number)
            expect(found[place:place + len(record)] == record, f"record {number} at {place} is not what was synced")
            place += len(record)


class Blocks(Storm):
    """Direct writes of single blocks all over a sparse file, some of them between two fsyncs.

    A block is one generation or another as a whole. What was read once stands from then on, synced or not: nothing of a
    fenced client lands later."""

    BLOCK_BYTES = 4096
    NUMBER = 1024

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.generation = 0
        self.may_be = {}  # block -> generations
        self._since_sync = []

    def is_trust(self, words):
        return words[0] == "synced"

    def block(self, number, generation):
        if generation == 0:
            return bytes(self.BLOCK_BYTES)
        head = f"{number} {generation} ".encode()
        return head + content_of(head, self.BLOCK_BYTES - len(head))

    def heard(self, what, number=0, generation=0):
        if what == "writing":
            self.generation = int(generation)
            self.may_be.setdefault(int(number), [0]).append(self.generation)
            self._since_sync.append(int(number))
        else:
            for written in self._since_sync:
                self.may_be[written] = self.may_be[written][-1:]
            self._since_sync = []

    def begin(self, folder):
        self._file = os.open(folder / self.name, os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o644)
        os.ftruncate(self._file, self.NUMBER * self.BLOCK_BYTES)
        self._buffer = mmap.mmap(-1, self.BLOCK_BYTES)

    def step(self, folder):
        for _ in range(self.random.randint(1, 8)):
            number = self.random.randrange(self.NUMBER)
            self.generation += 1
            self.note("writing", number, self.generation)
            self._buffer[:] = self.block(number, self.generation)
            os.pwrite(self._file, self._buffer, number * self.BLOCK_BYTES)
        os.fsync(self._file)
        self.note("synced")

    def compare(self, folder):
        found = read_all(folder / self.name).ljust(self.NUMBER * self.BLOCK_BYTES, b"\0")
        self._since_sync = []
        for number in range(self.NUMBER):
            block = found[number * self.BLOCK_BYTES:][:self.BLOCK_BYTES]
            generations = self.may_be.get(number, [0])
            stands = [one for one in generations if self.block(number, one) == block]
            expect(stands, f"block {number} is not one of {generations}: {block[:24]!r}")
            self.may_be[number] = stands


class Names(Storm):
    """New files, replacing renames, exchanges and removals of a few names in one directory, all of different content.

    Exactly what was noted stands, with or without the one operation that was under way."""

    NUMBER = 8
    TORN = "torn"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.stands = {}  # name -> identity
        self.under_way = None
        self.identity = 0

    def is_trust(self, words):
        return words[0] == "done"

    def content(self, identity):
        return f"{identity}\n".encode() + content_of(identity, a_size(identity, 20_000))

    def heard(self, what, *operation):
        if what == "begin":
            self.under_way = operation
            self.identity += operation[0] == "new"
        else:
            self.stands = self.after(self.under_way)
            self.under_way = None

    def after(self, operation):
        state = dict(self.stands)
        match operation:
            case ["new", name, identity]:
                state[name] = identity
            case ["move" | "noreplace", old, new]:
                state[new] = state.pop(old)
            case ["swap", old, new]:
                state[old], state[new] = state[new], state[old]
            case ["remove", name]:
                del state[name]
        return state

    def step(self, folder):
        operation = self.an_operation()
        self.note("begin", *operation)
        self.do(folder, *operation)
        self.note("done")
        self.stands = self.after(operation)

    def an_operation(self):
        names = [f"{self.name}-{number}" for number in range(self.NUMBER)]
        there = sorted(self.stands)
        free = sorted(set(names) - set(there))
        if free and (len(there) < 2 or self.random.random() < 0.3):
            self.identity += 1
            return "new", self.random.choice(free), f"{self.name}-file-{self.identity}"
        old = self.random.choice(there)
        kind = self.random.choice(["move", "move", "swap", "remove", "noreplace" if free else "move"])
        if kind == "remove":
            return kind, old
        if kind == "noreplace":
            return kind, old, self.random.choice(free)
        return kind, old, self.random.choice([name for name in (there if kind == "swap" else names) if name != old])

    def do(self, folder, kind, name, other=None):
        if kind == "new":
            with open(folder / name, "xb", buffering=0) as file:
                file.write(self.content(other))
                os.fsync(file.fileno())
        elif kind == "remove":
            os.unlink(folder / name)
        else:
            flags = {"move": 0, "noreplace": RENAME_NOREPLACE, "swap": RENAME_EXCHANGE}[kind]
            renameat2(folder / name, folder / other, flags)

    def found(self, folder):
        names = [name for name in os.listdir(folder) if name.startswith(self.name)]
        expect(len(names) == len(set(names)), f"a name twice: {sorted(names)}")
        state = {}
        for name in names:
            content = (folder / name).read_bytes()
            identity = content.split(b"\n")[0].decode(errors="replace")
            state[name] = identity if content == self.content(identity) else self.TORN
        return state

    def compare(self, folder):
        found = self.found(folder)
        allowed = [self.stands]
        if self.under_way:
            allowed.append(self.after(self.under_way))
            if self.under_way[0] == "new":
                allowed.append(self.stands | {self.under_way[1]: self.TORN})
        expect(found in allowed, f"{found}, and not {self.stands}; under way: {self.under_way}")
        self.stands, self.under_way = found, None
