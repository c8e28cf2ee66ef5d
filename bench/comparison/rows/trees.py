# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many small files: copied, unpacked, looked at, listed; and a project in C that is cloned and built."""

import shutil

from comparison.row import Row, Work, in_order, names_stored, remounted, run

BUILD_JOBS = 2


def gone(name):
    return lambda system: shutil.rmtree(system.path / name, ignore_errors=True)


def file_rows(workspace):
    files = workspace.sizes.tree_files

    def copy(system):
        run("cp", "-r", workspace.tree, system.path / "copied")
        names_stored(system.path / "copied")
        return Work(files)

    def copied(system):
        if not (system.path / "copied").exists():
            copy(system)

    def unpack(system):
        run("tar", "-xf", workspace.archive, "-C", system.path / "unpacked")
        names_stored(system.path / "unpacked")
        return Work(files)

    def room_to_unpack(system):
        gone("unpacked")(system)
        (system.path / "unpacked").mkdir()

    def look(*words):
        def work(system):
            run(*words, system.path / "copied")
            return Work(files)
        return work

    yield Row("cp -r", "trees", "files/s", copy, in_order(lambda _: workspace.tree, gone("copied")))
    yield Row("tar x", "trees", "files/s", unpack, in_order(lambda _: workspace.archive, room_to_unpack))
    cold = in_order(lambda _: workspace.tree, copied, remounted)
    yield Row("du -a, cold", "trees", "files/s", look("du", "-a"), cold)
    yield Row("grep -r, cold", "trees", "files/s", look("grep", "-rc", ""), cold)


def listing_row(workspace):
    files = workspace.sizes.listed_files

    def made(system):
        folder = system.path / "listed"
        if not folder.exists():
            folder.mkdir()
            for number in range(files):
                (folder / f"file {number}").touch()

    def work(system):
        lines = run("ls", "-l", system.path / "listed").splitlines()
        return Work(len(lines) - 1)
    return Row(f"ls -l of {files:,} files, cold, entry_timeout=1", "listing", "files/s", work,
               in_order(made, remounted), mount_options=("-o", "entry_timeout=1"))


# ---- a build: each step leaves what the next one starts from

def build_rows(workspace):
    def project(system):
        return system.path / "project"

    def clone(system):
        run("git", "clone", "-q", f"file://{workspace.repository}", project(system))
        names_stored(project(system))
        return Work(1)

    def cloned(system):
        if not (project(system) / "CMakeLists.txt").exists():
            gone("project")(system)
            clone(system)

    def configure(system):
        run("cmake", "-G", "Ninja", "-S", project(system), "-B", project(system) / "build")
        names_stored(project(system))
        return Work(1)

    def configured(system):
        cloned(system)
        if not (project(system) / "build" / "build.ninja").exists():
            configure(system)

    def compile_all(system):
        run("cmake", "--build", project(system) / "build", "-j", BUILD_JOBS)
        names_stored(project(system))
        return Work(1)

    def compiled(system):
        configured(system)
        compile_all(system)

    def clean(system):
        run("git", "-C", project(system), "clean", "-dfxq")
        names_stored(project(system))
        return Work(1)

    def objects_gone(system):
        configured(system)
        run("cmake", "--build", project(system) / "build", "--target", "clean")

    steps = (("clone", clone, in_order(lambda _: workspace.repository, gone("project"))),
             ("configure", configure, in_order(cloned, clean)),
             ("compile", compile_all, objects_gone),
             ("clean", clean, compiled))
    for name, work, prepare in steps:
        yield Row(f"build: {name}", "build", "s", work, prepare)


def rows(workspace):
    yield from file_rows(workspace)
    yield listing_row(workspace)
    yield from build_rows(workspace)
