# SPDX-License-Identifier: LGPL-2.1-or-later
"""What qemu-img, cp and dd do with whole images of virtual machines."""

import re

from comparison.row import LIBRBD, WITH_IMAGES, Row, Work, in_order, remounted, run, stored
from comparison.rows.direct import filled

CONVERT = ("qemu-img", "convert", "-f", "raw", "-O", "raw", "-t", "none")
BENCH = ("qemu-img", "bench", "-f", "raw", "-t", "none", "-d", 16, "-s", 4096)


def removed(name):
    return lambda system: system.remove(name)


def placed(name, source):
    """Copied in from the local disk, once; `source()` is its path there."""
    done = set()

    def prepare(system):
        if system.name not in done:
            run(*CONVERT, source(), system.image(name))
            done.add(system.name)
    return prepare


def copied_by(program, operations, source="original", target="copy"):
    """`program` are the words before those of the files. Counts until the copy is stored."""
    def work(system):
        from_path, to_path = system.path / source, system.path / target
        run(*program, *((f"if={from_path}", f"of={to_path}") if program[0] == "dd" else (from_path, to_path)))
        stored(to_path)
        return Work(operations)
    return work


def converted(operations, *words, source="original", target="copy"):
    """By qemu-img with its cache off, which flushes at the end."""
    def work(system):
        run(*CONVERT, "-T", "none", *words, system.image(source), system.image(target))
        return Work(operations)
    return work


def copy_rows(workspace):
    size_mib = workspace.sizes.copied_image_mib
    cold = in_order(placed("original", lambda: workspace.image), removed("copy"), remounted)
    yield Row("cp of an image", "images", "MiB/s", copied_by(("cp",), size_mib), cold)
    yield Row("dd bs=4M oflag=direct of an image", "images", "MiB/s",
              copied_by(("dd", "bs=4M", "iflag=direct", "oflag=direct"), size_mib), cold)
    yield Row("qemu-img convert within", "images", "MiB/s", converted(size_mib), cold, WITH_IMAGES)
    yield Row("qemu-img convert -C within", "images", "MiB/s", converted(size_mib, "-C"), cold)

    def convert_in(system):
        run(*CONVERT, workspace.image, system.image("converted"))
        return Work(size_mib)
    yield Row("qemu-img convert from a local disk", "images", "MiB/s", convert_in,
              in_order(lambda _: workspace.image, removed("converted")), WITH_IMAGES)


def sparse_rows(workspace):
    size_gib = workspace.sizes.sparse_gib
    cold = in_order(placed("sparse", lambda: workspace.sparse_image), removed("sparse copy"), remounted)
    yield Row(f"cp --sparse=auto, {size_gib} GiB, 1 % data", "sparse", "s",
              copied_by(("cp", "--sparse=auto"), 1, "sparse", "sparse copy"), cold)
    yield Row(f"qemu-img convert, {size_gib} GiB, 1 % data", "sparse", "s",
              converted(1, source="sparse", target="sparse copy"), cold, WITH_IMAGES)


def reserve_row(workspace):
    size_gib = workspace.sizes.falloc_gib

    def reserve(system):
        run("qemu-img", "create", "-q", "-f", "raw", "-o", "preallocation=falloc", system.image("reserved"),
            f"{size_gib}G")
        return Work(1)
    return Row(f"qemu-img create, falloc, {size_gib} GiB", "images", "s", reserve, removed("reserved"))


def bench_row(workspace, side, *words):
    def bench(system, ios):
        answer = run(*BENCH, *words, "-c", ios, *(() if system.name == LIBRBD else ("-i", "native")),
                     system.image("image0"))
        return float(re.search(r"completed in ([\d.]+) seconds", answer).group(1))

    def start_cpu_s(system):
        return system.start_cpu_s(f"qemu-img bench {side}", lambda: bench(system, 1))

    def work(system):
        ios = workspace.sizes.qemu_bench_ios
        return Work(ios, bench(system, ios), start_cpu_s(system))
    return Row(f"qemu-img bench, {side} 4k, 16 deep", "images", "IOPS", work, in_order(filled((0,)), start_cpu_s),
               WITH_IMAGES)


def rows(workspace):
    yield from copy_rows(workspace)
    yield bench_row(workspace, "write", "-w")
    yield bench_row(workspace, "read")
    yield reserve_row(workspace)
    yield from sparse_rows(workspace)
