# SPDX-License-Identifier: LGPL-2.1-or-later
"""Everyday programs at work on a mount: git, CMake, SQLite."""

import os
import sqlite3

from harness import MountTest, context, output, run

GIT = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "safe.directory=*",
       "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]

CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.25)
project(small C)
include(CheckIncludeFile)
check_include_file(unistd.h HAVE_UNISTD)
configure_file(config.h.in config.h)
add_library(part STATIC part1.c part2.c part3.c)
target_include_directories(part PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
add_executable(small main.c)
target_link_libraries(small part)
"""


class GitTest(MountTest):
    limit_s = 240

    def test_a_repository_is_cloned_changed_and_found_whole(self):
        origin = self.scratch("origin")
        self.make_repository(origin)
        clone = self.mount / "clone"
        run(*GIT, "clone", f"file://{origin}", clone)
        run(*GIT, "-C", clone, "fsck", "--full", "--strict")
        self.assertEqual(output(*GIT, "-C", clone, "status", "--porcelain"), "")

        (clone / "new file").write_text("new\n", encoding="utf-8")
        run(*GIT, "-C", clone, "checkout", "-b", "work")
        run(*GIT, "-C", clone, "add", ".")
        run(*GIT, "-C", clone, "commit", "-q", "-m", "on the mount")
        run(*GIT, "-C", clone, "gc", "-q")
        self.mount.remount()
        run(*GIT, "-C", clone, "fsck", "--full", "--strict")
        self.assertEqual(output(*GIT, "-C", clone, "status", "--porcelain"), "")
        run(*GIT, "-C", clone, "push", "-q", "origin", "work")
        run(*GIT, "-C", origin, "fsck", "--full", "--strict")

    def make_repository(self, path):
        run(*GIT, "init", "-q", path)
        for commit in range(5):
            for number in range(60):
                file = path / f"folder{number % 7}" / f"file{number}"
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(self.random.randbytes(self.random.randrange(20_000)))
            run(*GIT, "-C", path, "add", ".")
            run(*GIT, "-C", path, "commit", "-q", "-m", f"commit {commit}")


class BuildTest(MountTest):
    limit_s = 240

    def test_a_cmake_project_builds_and_builds_nothing_twice(self):
        source, build = self.mount / "source", self.mount / "build"
        self.write_project(source)
        run("cmake", "-G", "Ninja", "-S", source, "-B", build)
        run("ninja", "-C", build)
        self.assertEqual(output(build / "small"), "6\n")
        self.assertIn("no work to do", output("ninja", "-C", build))
        self.mount.remount()
        self.assertIn("no work to do", output("ninja", "-C", build))
        (source / "part2.c").write_text("int part2(void) { return 20; }\n", encoding="utf-8")
        run("ninja", "-C", build)
        self.assertEqual(output(build / "small"), "24\n")

    def write_project(self, source):
        source.mkdir()
        (source / "CMakeLists.txt").write_text(CMAKE_LISTS, encoding="utf-8")
        (source / "config.h.in").write_text("#cmakedefine HAVE_UNISTD\n", encoding="utf-8")
        for number in [1, 2, 3]:
            (source / f"part{number}.c").write_text(f"int part{number}(void) {{ return {number}; }}\n",
                                                    encoding="utf-8")
        (source / "main.c").write_text(
            '#include <stdio.h>\n#include "config.h"\nint part1(void), part2(void), part3(void);\n'
            'int main(void) { printf("%d\\n", part1() + part2() + part3()); }\n', encoding="utf-8")


class SqliteTest(MountTest):
    limit_s = 300

    def test_many_transactions_with_a_rollback_journal(self):
        self.check_many_transactions("DELETE")

    def test_many_transactions_with_a_truncated_journal(self):
        self.check_many_transactions("TRUNCATE")

    def test_many_transactions_with_a_write_ahead_log(self):
        self.check_many_transactions("WAL")

    def check_many_transactions(self, journal_mode):
        path = self.mount / "db.sqlite"
        wanted = {}
        database = self.open(path, journal_mode)
        database.execute("CREATE TABLE t (key INTEGER PRIMARY KEY, value BLOB)")
        for transaction in range(200 if context.full else 60):
            with database:
                for _ in range(5):
                    key, value = self.random.randrange(500), self.random.randbytes(self.random.randrange(6_000))
                    database.execute("REPLACE INTO t VALUES (?, ?)", (key, value))
                    wanted[key] = value
            if transaction % 20 == 0:
                database.execute("INSERT INTO t VALUES (100000, 'never committed')")
                database.rollback()
        database.close()
        self.mount.remount()
        for mount in [self.mount, self.volume.mount()]:
            database = self.open(mount / "db.sqlite", journal_mode)
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            self.assertEqual(dict(database.execute("SELECT key, value FROM t")), wanted)
            database.close()

    def open(self, path, journal_mode):
        database = sqlite3.connect(os.fspath(path))
        database.execute(f"PRAGMA journal_mode={journal_mode}")
        database.execute("PRAGMA synchronous=FULL")
        return database
