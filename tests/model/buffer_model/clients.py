# SPDX-License-Identifier: LGPL-2.1-or-later
"""What clients do. Each `yield` is one moment: a step or a read of the store, or something in the client's
memory (memory.py), which waits until it can be done. ("store", step, what memory notes with the answer).

Operations follow src/fs/data_write.cpp, file_handles.cpp, lease.cpp, recalls.cpp, write_buffer.cpp."""

from actors import runs_operations

from .rules import on
from .store import blocks_past


def again():
    yield ("again",)


# ---- in the background, for ever


def flusher(_me, block):
    """Buffered bytes go out: at once, or after any time."""
    value = yield ("take dirty", block)
    yield ("store", ("write data", block, value), ("written out", block, value))


def keeper(_me):
    """Answers questions, and releases the lease when the file is idle."""
    work, asker = yield ("wake",)
    if work == "release":
        size = yield ("all is out", asker)
        if size is not None:
            yield ("store", ("release", size), ("released", asker))
    elif work == "store":
        yield from write_out_and_store()
        yield ("answer", asker)


def write_out_and_store():
    size = yield ("bytes are out",)
    if size is not None:
        yield ("store", ("store size", size), ("size stored", size))


# ---- the lease


def acquire(me, who):
    began = yield ("begin acquiring",)
    if not began:
        return
    inode = yield ("read inode",)
    if not inode.exists:
        yield ("wrong", "a write to an open file is refused: it was removed")
    if inode.lease == 0:
        yield ("store", ("take lease", inode.size), ("lease taken", inode.size))
        return
    if inode.lease == me + 1:
        yield from clean()
        return
    yield ("ask", who, "recall", inode.lease - 1)
    answer = yield ("wait for answer", who, inode.lease - 1)
    if answer == "gone":
        yield from take_over(inode.lease - 1)
    else:
        yield ("stop acquiring",)


def take_over(holder):
    taken = yield ("store", ("take over", holder), ("taken over",))
    if taken:
        yield from clean()


def clean():
    inode = yield ("read inode",)
    if on("TAKE_OVER_CUTS"):
        for block in blocks_past(inode.size):
            yield ("store", ("remove data", block), None)
    yield ("adopt", inode.size)


# ---- operations


def write(me, who, block, value):
    held = yield ("buffer", block, value)
    if not held:
        yield from acquire(me, who)
        yield from again()


def direct(me, who, block, value):
    held = yield ("enter direct", block, value)
    if not held:
        yield from acquire(me, who)
        yield from again()
    yield ("store", ("write data", block, value), ("direct done", block))


def fsync(_me, _who):
    covered = yield ("begin fsync",)
    if covered is not None:
        yield from write_out_and_store()
        yield ("fsynced", covered)


def close(_me, _who):
    yield ("close",)


def close_reader(_me, _who):
    yield ("close reader",)


def open_and_read(me, who, block):
    yield from look(me, who, block, by_handle=False, stat=False)


def read_by_handle(me, who, block):
    yield from look(me, who, block, by_handle=True, stat=False)


def stat(me, who):
    yield from look(me, who, 0, by_handle=False, stat=True)


def fstat(me, who):
    yield from look(me, who, 0, by_handle=True, stat=True)


def look(me, who, block, by_handle, stat):
    yield ("begin look", who, stat)
    own = yield ("own view", block)
    if own is not None:
        yield from look_at_own(who, block, stat, own)
        return
    inode = yield ("read inode",)
    mine = inode.lease == me + 1
    if mine and not inode.dead:  # dead: it may be forgotten for good
        yield ("memory has settled",)
        yield from again()
    answer, holder = "", inode.lease - 1
    if inode.lease != 0 and not mine and on("OPEN_ASKS"):
        yield ("ask", who, "tell soon" if stat else "tell", holder)
        answer = yield ("wait for answer", who, holder)
        if on("REREAD_AFTER_DONE"):
            inode = yield ("read inode",)
    if not inode.exists or (inode.dead and not by_handle):
        yield ("stale", who, stat)
        return
    if stat:
        yield ("told size", who, inode.size, answer)
    else:
        value = 0
        if block < inode.size:
            value = yield ("read data", block)
        yield ("was read", who, block, value)
    if answer == "gone" and not stat:
        began = yield ("begin acquiring",)
        if began:
            yield from take_over(holder)


def look_at_own(who, block, stat, own):
    buffered, size = own
    if stat:
        yield ("told size", who, size, "")
        return
    value = 0
    if block < size and on("COPY_BEFORE_STORE"):
        value = buffered or (yield ("read data", block))
    elif block < size:
        value = yield ("read data", block)
        own = yield ("own view", block)
        value = value if own is None else own[0] or value
    yield ("was read", who, block, value)


def unlink(_me, _who):
    yield ("store", ("unlink",), ("unlinked",))


def collect(_me, who):
    """When the file has no name: it is marked dead, and removed when no instance needs it."""
    yield ("name is gone",)
    yield ("store", ("mark dead",), None)
    for client in (0, 1):
        answer = yield ("poll", client)
        if answer == "gone" and on("GONE_ARE_FENCED"):
            yield ("fence", client)
        if answer == "needed":
            yield ("not needed any more", client)
            yield from again()
    inode = yield ("read inode",)
    for block in blocks_past(0):
        yield ("store", ("remove data", block), None)
    removed = yield ("store", ("remove inode", inode), None)
    if not removed:
        inode = yield ("read inode",)
        if inode.exists:
            yield from again()


def rename(me, who):
    """Over x, which is another file."""
    yield ("begin rename", who)
    held = yield ("holds",)
    if held and on("RENAME_STORES"):
        yield from write_out_and_store()
    if not held and on("RENAME_ASKS"):
        inode = yield ("read inode",)
        if inode.lease == me + 1:
            yield ("memory has settled",)
            yield from again()
        if inode.lease != 0:
            yield ("ask", who, "tell", inode.lease - 1)
            answer = yield ("wait for answer", who, inode.lease - 1)
            if answer == "gone" and on("RENAME_REFUSES_LOST"):
                yield ("rename fails", who)
                return
    yield ("store", ("rename", who), None)


OPERATIONS = {
    operation.__name__: operation
    for operation in (
        write,
        direct,
        fsync,
        close,
        close_reader,
        open_and_read,
        read_by_handle,
        stat,
        fstat,
        unlink,
        collect,
        rename,
    )
}


@runs_operations
def program(me, who, operations):
    name, *arguments = operations[0]
    yield from OPERATIONS[name](me, f"{who}.{len(operations)}", *arguments)
