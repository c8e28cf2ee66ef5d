# SPDX-License-Identifier: LGPL-2.1-or-later
"""Direct I/O by fio on images: one image, several at once, and a mix as desktops in virtual machines make it."""

from comparison.row import ALL, MIB, WITH_IMAGES, Row, Work

# 80 % of the I/Os have 4 to 16 KiB, 80 % go elsewhere than behind the last one.
DESKTOP = ["--rw=randrw", "--rwmixread=30", "--percentage_random=80", "--iodepth=4", "--fsync=32",
           "--bssplit=4k/50:8k/20:16k/10:64k/15:256k/5"]
DESKTOPS = 4


def start_cpu_s(system, images):
    """fio's, which connects to the cluster once for each image where it is a client itself."""
    return system.start_cpu_s(f"fio {len(images)}", lambda: system.fio("--rw=read", "--bs=4k", "--number_ios=1",
                                                                       images=images))


def filled(images):
    def prepare(system):
        system.fill(images)
        start_cpu_s(system, images)
    return prepare


def fio_work(workspace, words, images, in_mib=False):
    def work(system):
        job = system.fio(*words, *system.time_words(workspace.seconds), images=images)
        sides = [job["read"], job["write"]]
        operations = sum(side["io_bytes"] / MIB if in_mib else side["total_ios"] for side in sides)
        return Work(operations, max(side["runtime"] for side in sides) / 1000, start_cpu_s(system, images))
    return work


def fio_row(workspace, name, group, words, images=(0,), on=WITH_IMAGES):
    in_mib = "--bs=4M" in words
    return Row(name, group, "MiB/s" if in_mib else "IOPS", fio_work(workspace, words, images, in_mib), filled(images),
               on)


def direct_words(side, block, depth):
    pattern = side if block == "4M" else f"rand{side}"
    return [f"--rw={pattern}", f"--bs={block}", f"--iodepth={depth}"]


def rows(workspace):
    for block, depth in (("4k", 16), ("4k", 1), ("64k", 16), ("4M", 4)):
        for side in ("write", "read"):
            words = direct_words(side, block, depth)
            yield fio_row(workspace, f"{side} {block}, {depth} deep", "direct", words, on=ALL)
    for images in (1, 4, 16):
        for side in ("write", "read"):
            yield fio_row(workspace, f"{side} 4k, {images} file" + "s" * (images > 1), "files",
                          direct_words(side, "4k", 1), range(1, images + 1))
    yield fio_row(workspace, f"{DESKTOPS} desktops: mixed sizes, fsync", "desktops", DESKTOP,
                  range(1, DESKTOPS + 1))
