# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operations on names: the seven that mdtest measures, and programs that make, look at and remove trees. LCCFS beside
ceph-fuse, and its local store beside the file system below that."""

import shutil

from comparison.row import NAMED, Row, Work, in_order, names_stored, remounted, run, stored
from comparison.rows.trees import BUILD_JOBS, gone
import harness

CHANGES = ("mkdir", "create", "rename", "unlink", "rmdir")
LOOKS = ("stat", "readdir")
PROCESSES = (1, 4, 16)
NEEDS = {"stat": "create", "readdir": "create", "rename": "create", "unlink": "create", "rmdir": "mkdir"}
FOLDER = "names"


def operate(workspace, system, operation, processes, where, *options):
    """Seconds."""
    names = max(1, workspace.sizes.names // processes)
    return float(run(harness.context.bin / "name_operations", operation, system.path / FOLDER, processes, names, where,
                     *options))


def operation_row(workspace, operation, processes, where, with_fsync):
    options = ("fsync",) if with_fsync else ()

    def prepare(system):
        gone(FOLDER)(system)
        (system.path / FOLDER).mkdir()
        if operation in NEEDS:
            operate(workspace, system, NEEDS[operation], processes, where, "fsync")

    def work(system):
        seconds = operate(workspace, system, operation, processes, where, *options)
        names = max(1, workspace.sizes.names // processes) * processes
        listed_by_each = operation == "readdir" and where == "shared"
        return Work(names * processes if listed_by_each else names, seconds)

    by = "1 process" if processes == 1 else f"{processes} processes, {where}"
    return Row(f"{operation}, {by}{', fsync' if with_fsync else ''}", "names", "names/s", work, prepare, NAMED)


def operation_rows(workspace):
    for operation in (*CHANGES, *LOOKS):
        for processes in PROCESSES:
            for where in ("own", "shared") if processes > 1 else ("own",):
                yield operation_row(workspace, operation, processes, where, False)
                if operation in CHANGES:
                    yield operation_row(workspace, operation, processes, where, True)


# ---- programs

def program_rows(workspace):
    files = workspace.sizes.many_names

    def unpack(system):
        run("tar", "-xf", workspace.many_archive, "-C", system.path / "many")
        names_stored(system.path / "many")
        return Work(files)

    def room(system):
        gone("many")(system)
        (system.path / "many").mkdir()

    def copy(system):
        run("cp", "-a", workspace.many, system.path / "many")
        names_stored(system.path / "many")
        return Work(files)

    def copied(system):
        gone("many")(system)
        copy(system)

    def remove(system):
        run("rm", "-r", system.path / "many")
        stored(system.path)
        return Work(files)

    made = (lambda _: workspace.many)
    archived = (lambda _: workspace.many_archive)
    yield Row(f"tar x of {files:,} files", "names", "files/s", unpack, in_order(archived, room), NAMED)
    yield Row(f"cp -a of {files:,} files", "names", "files/s", copy, in_order(made, gone("many")), NAMED)
    yield Row(f"rm -r of {files:,} files", "names", "files/s", remove, in_order(made, copied), NAMED)
    yield Row(f"rm -r of {files:,} files, cold", "names", "files/s", remove, in_order(made, copied, remounted), NAMED)


def git_rows(workspace):
    def clone_of(system):
        return system.path / "clone"

    def clone(system):
        run("git", "clone", "-q", f"file://{workspace.many_repository}", clone_of(system))
        names_stored(clone_of(system))
        return Work(1)

    def cloned(system):
        if not (clone_of(system) / ".git" / "index").exists():
            gone("clone")(system)
            clone(system)

    def status(system):
        run("git", "-C", clone_of(system), "status", "--short")
        return Work(1)

    repository = (lambda _: workspace.many_repository)
    yield Row("git clone", "names", "s", clone, in_order(repository, gone("clone")), NAMED)
    yield Row("git status, cold", "names", "s", status, in_order(repository, cloned, remounted), NAMED)
    yield Row("git status, warm", "names", "s", status, in_order(repository, cloned, status), NAMED)


def build_row(workspace):
    def copied(system):
        gone("project")(system)
        shutil.copytree(workspace.repository, system.path / "project")

    def build(system):
        project = system.path / "project"
        run("cmake", "-G", "Ninja", "-S", project, "-B", project / "build")
        run("cmake", "--build", project / "build", "-j", BUILD_JOBS)
        names_stored(project)
        return Work(1)

    return Row("a build with CMake", "names", "s", build, in_order(lambda _: workspace.repository, copied), NAMED)


def rows(workspace):
    yield from operation_rows(workspace)
    yield from program_rows(workspace)
    yield from git_rows(workspace)
    yield build_row(workspace)
