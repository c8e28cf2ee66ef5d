# SPDX-License-Identifier: LGPL-2.1-or-later
"""How large everything is, and what is copied into the systems: on a local disk, made when first used."""

import dataclasses
import functools
import os
import random
import shutil

from comparison.row import GIB, MIB, run


@dataclasses.dataclass(frozen=True)
class Sizes:
    image_mib: int = 512
    small_image_mib: int = 32
    copied_image_mib: int = 256
    buffered_mib: int = 512
    buffered_small_mib: int = 32  # in blocks of 4 KiB
    largest_file_mib: int = 1024
    many_files: int = 200  # of one size
    falloc_gib: int = 10
    sparse_gib: int = 4  # a hundredth of it is data
    qemu_bench_ios: int = 5000
    tree_files: int = 783
    listed_files: int = 10_000
    sources: int = 60
    names: int = 4800  # of one row, by all processes
    many_names: int = 20_000  # small files, in a tree
    transactions: int = 1000


# To try the comparison itself: its figures say nothing.
TINY = Sizes(image_mib=16, small_image_mib=8, copied_image_mib=8, buffered_mib=16, buffered_small_mib=1,
             largest_file_mib=16, many_files=4, falloc_gib=1, sparse_gib=1, qemu_bench_ios=50, tree_files=20,
             listed_files=50, sources=3, transactions=10, names=48,
             many_names=40)

SPARSE_EXTENTS = 64
BLOCK = 4096
FUNCTIONS_IN_A_SOURCE = 30

CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(bench LANGUAGES C)
include(CheckIncludeFile)
include(CheckFunctionExists)
foreach(header unistd.h sys/mman.h)
  string(MAKE_C_IDENTIFIER HAVE_${header} variable)
  check_include_file(${header} ${variable})
endforeach()
foreach(function fdatasync statx)
  check_function_exists(${function} HAVE_${function})
endforeach()
file(GLOB sources CONFIGURE_DEPENDS src/*.c)
add_executable(program ${sources})
target_include_directories(program PRIVATE include)
"""


def commit(root):
    """All that is there, into a new repository."""
    run("git", "-C", root, "init", "-q", "-b", "main")
    run("git", "-C", root, "add", ".")
    run("git", "-C", root, "-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", "sources")


class Workspace:
    def __init__(self, folder, sizes, seconds):
        self.sizes = sizes
        self.seconds = seconds
        self._folder = folder

    @functools.cached_property
    def tree(self):
        """Small files, of sizes as in a tree of sources."""
        draw = random.Random(1)
        root = self._folder / "tree"
        for number in range(self.sizes.tree_files):
            folder = root / f"d{number % 60}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"f{number}").write_bytes(draw.randbytes(int(min(100_000, draw.lognormvariate(8.5, 1.2)))))
        return root

    @functools.cached_property
    def archive(self):
        return self._archive_of(self.tree)

    def _archive_of(self, tree):
        path = self._folder / f"{tree.name}.tar"
        run("tar", "-cf", path, "-C", tree, ".")
        return path

    @functools.cached_property
    def many(self):
        """A tree of files of 1 KiB, a hundred in each folder."""
        root = self._folder / "many"
        for number in range(self.sizes.many_names):
            folder = root / f"d{number // 10_000}" / f"d{number // 100 % 100}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"f{number}").write_bytes(f"{number:1024}".encode())
        return root

    @functools.cached_property
    def many_archive(self):
        return self._archive_of(self.many)

    @functools.cached_property
    def many_repository(self):
        root = self._folder / "many_repository"
        shutil.copytree(self.many, root)
        commit(root)
        return root

    @functools.cached_property
    def image(self):
        path = self._folder / "image"
        with open(path, "wb") as file:
            for _ in range(self.sizes.copied_image_mib):
                file.write(os.urandom(MIB))
        return path

    @functools.cached_property
    def sparse_image(self):
        path = self._folder / "sparse"
        size = self.sizes.sparse_gib * GIB
        step = size // SPARSE_EXTENTS
        extent = step // 100 // BLOCK * BLOCK
        with open(path, "wb") as file:
            file.truncate(size)
            for number in range(SPARSE_EXTENTS):
                file.seek(number * step)
                file.write(os.urandom(extent))
        return path

    @functools.cached_property
    def repository(self):
        """A small project in C, in a git repository."""
        root = self._folder / "repository"
        for folder in ("src", "include"):
            (root / folder).mkdir(parents=True)
        (root / "CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
        for number in range(self.sizes.sources):
            names = [f"unit{number}_{function}" for function in range(FUNCTIONS_IN_A_SOURCE)]
            (root / "include" / f"unit{number}.h").write_text(
                "#pragma once\n" + "".join(f"int {name}(int x);\n" for name in names), encoding="utf-8")
            (root / "src" / f"unit{number}.c").write_text(
                f'#include "unit{number}.h"\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n'
                + "".join(f"int {name}(int x) {{ return x * {number} + (int)strlen(\"{name}\"); }}\n"
                          for name in names), encoding="utf-8")
        (root / "src" / "main.c").write_text('#include "unit0.h"\nint main(void) { return unit0_0(0) == 0; }\n',
                                             encoding="utf-8")
        commit(root)
        return root
