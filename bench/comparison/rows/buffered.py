# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files through the kernel's cache: streams, synced writes, and whole files of all sizes."""

import os
import subprocess

from comparison.row import KIB, MIB, Failed, Row, Work, in_order, remounted
from comparison.rows.direct import filled, start_cpu_s

PIECE = memoryview(os.urandom(MIB))
SIZES = {"4 KiB": 4 * KIB, "64 KiB": 64 * KIB, "1 MiB": MIB, "16 MiB": 16 * MIB, "256 MiB": 256 * MIB,
         "1 GiB": 1024 * MIB}
SWEEP_BYTES = 64 * MIB  # of one size, as far as its number of files goes


# ---- streams

def stream_paths(system, streams):
    return [system.path / f"stream{number}" for number in range(streams)]


def streams_removed(streams):
    def prepare(system):
        for path in stream_paths(system, streams):
            path.unlink(missing_ok=True)
    return prepare


def streams_written(block_kib, size_mib, streams=1):
    """By dd, one for each stream; all of them together write size_mib."""
    count = size_mib * KIB // block_kib // streams

    def work(system):
        writers = [subprocess.Popen(["dd", "if=/dev/zero", f"of={path}", f"bs={block_kib}k", f"count={count}",
                                     "conv=fsync", "status=none"]) for path in stream_paths(system, streams)]
        if any([writer.wait() for writer in writers]):
            raise Failed("dd failed")
        return Work(size_mib)
    return work


def write_row(name, block_kib, size_mib, streams=1):
    return Row(name, "buffered", "MiB/s", streams_written(block_kib, size_mib, streams), streams_removed(streams))


def synced_writes(workspace):
    def work(system):
        job = system.fio("--rw=randwrite", "--bs=4k", "--fsync=1", *system.time_words(workspace.seconds), "--direct=0",
                         "--ioengine=psync", images=[0])["write"]
        return Work(job["total_ios"], job["runtime"] / 1000, start_cpu_s(system, (0,)))
    return work


# ---- whole files

def file_paths(system, name, files):
    return [system.path / f"whole {name}" / str(number) for number in range(files)]


def write_whole(path, size):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        while size > 0:
            size -= os.write(descriptor, PIECE[:size])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_whole(path, size):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        while piece := os.read(descriptor, MIB):
            size -= len(piece)
    finally:
        os.close(descriptor)
    if size != 0:
        raise Failed(f"{path} has {-size:+} bytes")


def sweep_rows(name, size, files):
    def removed(system):
        for path in file_paths(system, name, files):
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)

    def write(system):
        for path in file_paths(system, name, files):
            write_whole(path, size)
        return Work(files * size / MIB)

    def written(system):
        if not all(path.exists() for path in file_paths(system, name, files)):
            removed(system)
            write(system)

    def read(system):
        for path in file_paths(system, name, files):
            read_whole(path, size)
        return Work(files * size / MIB)

    yield Row(f"files of {name}, written", "sizes", "MiB/s", write, removed)
    yield Row(f"files of {name}, read cold", "sizes", "MiB/s", read, in_order(written, remounted))


# ----

def rows(workspace):
    sizes = workspace.sizes
    yield write_row("buffered write 128k, fsync at the end", 128, sizes.buffered_mib)
    yield write_row("buffered write 4k, fsync at the end", 4, sizes.buffered_small_mib)
    for streams in (4, 16):
        yield write_row(f"buffered write 128k, {streams} files", 128, sizes.buffered_mib, streams)
    yield Row("write 4k and fsync each", "buffered", "IOPS", synced_writes(workspace), filled((0,)))

    def read(system):
        read_whole(stream_paths(system, 1)[0], sizes.buffered_mib * MIB)
        return Work(sizes.buffered_mib)
    yield Row("buffered read, cold", "buffered", "MiB/s", read,
              in_order(streams_removed(1), streams_written(1024, sizes.buffered_mib), remounted))

    for name, size in SIZES.items():
        if size <= sizes.largest_file_mib * MIB:
            yield from sweep_rows(name, size, max(1, min(sizes.many_files, SWEEP_BYTES // size)))
