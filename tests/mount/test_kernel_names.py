# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names that the kernel keeps (docs/NAMES.md section 4): what they save, and that nobody sees an old one."""

import os
import re
import subprocess
import threading
import urllib.request

from harness import NOBODY, MountTest, free_port, run
from test_metrics import Page

FILES = 50
ROUNDS = 100


class KernelNamesTest(MountTest):
    stores = ("local", "rados")

    def set_up_volume(self):
        self.volume = self.new_volume()
        self.port = free_port()
        self.mount = self.volume.mount("--metrics-port", str(self.port))
        self.other = self.volume.mount()

    def skip_where_no_names_are_kept(self):
        if tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2]) < (6, 16):
            self.skipTest("this kernel keeps no names")

    def lookups(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            return Page(answer.read().decode("utf-8")).value(
                "lccfs_operation_duration_seconds_count", operation="lookup")

    def test_a_walk_asks_for_no_directory_that_was_made_here(self):
        for name in "efghi":
            (self.mount / name).mkdir()  # from some on, the directory on top is held
        top = self.mount / "a" / "b" / "c"
        top.mkdir(parents=True)
        for number in range(FILES):
            (top / f"{number}").touch()
        self.skip_where_no_names_are_kept()
        before = self.lookups()
        for number in range(FILES):
            os.stat(top / f"{number}")
        self.assertEqual(self.lookups() - before, FILES)  # of 200 parts of paths

    def test_a_listing_brings_the_names_of_directories_that_were_known_before(self):
        self.skip_where_no_names_are_kept()
        there = self.other / "a" / "b"
        there.mkdir(parents=True)
        folder = os.open(there, os.O_RDONLY)  # without walks: the other mount would hold the directory on top
        for number in range(FILES):
            os.close(os.open(f"{number}", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        os.close(folder)
        here = self.mount / "a" / "b"

        def walk():
            before = self.lookups()
            for number in range(FILES):
                os.stat(here / f"{number}")
            return self.lookups() - before

        walk()
        walk()  # by now all three directories are held
        for directory, _, _ in os.walk(self.mount / "."):
            os.listdir(directory)
        self.assertEqual(walk(), FILES)
        os.rename(there, self.other / "a" / "renamed")
        self.assertFalse(here.exists())
        os.rename(self.other / "a", self.other / "elsewhere")
        self.assertFalse((self.mount / "a").exists())
        self.assertEqual(len(os.listdir(self.mount / "elsewhere" / "renamed")), FILES)

    def test_what_another_mount_changes_is_seen_by_the_very_next_walk(self):
        top = self.mount / "top" / "sub"
        there = self.other / "top" / "sub"
        top.mkdir(parents=True)
        for number in range(ROUNDS):
            (top / "file").write_text(f"{number}", encoding="utf-8")
            self.assertFalse((top / "made there").exists())
            self.assertEqual((top / "file").stat().st_size, len(f"{number}"))
            os.rename(there / "file", there / "moved")
            self.assertFalse((top / "file").exists())
            self.assertEqual((top / "moved").read_text(encoding="utf-8"), f"{number}")
            (there / "made there").touch()
            self.assertTrue((top / "made there").exists())
            (there / "made there").unlink()
            (there / "moved").unlink()
            self.assertEqual(os.listdir(top), [])
            os.rename(self.other / "top", self.other / "top again")
            self.assertFalse(top.exists())
            os.rename(self.other / "top again", self.other / "top")
            os.chmod(there, 0o700 + number % 8)
            self.assertEqual(top.stat().st_mode & 0o777, 0o700 + number % 8)

    def test_two_mounts_that_change_names_in_two_directories_both_come_to_an_end(self):
        """Each holds one of them, and moves files into the other's: none waits for the other for ever."""
        for name in ("mine", "theirs"):
            (self.mount / name).mkdir()

        def move(mount, source, target):
            for number in range(ROUNDS):
                (mount / source / f"{source} {number}").touch()
                os.rename(mount / source / f"{source} {number}", mount / target / f"{source} {number}")

        workers = [threading.Thread(target=move, args=arguments)
                   for arguments in ((self.mount, "mine", "theirs"), (self.other, "theirs", "mine"))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for name, source in (("mine", "theirs"), ("theirs", "mine")):
            expected = sorted(f"{source} {number}" for number in range(ROUNDS))
            self.assertEqual(sorted(os.listdir(self.mount / name)), expected)
            self.assertEqual(sorted(os.listdir(self.other / name)), expected)

    def test_a_directory_whose_name_the_kernel_keeps_moves_at_once(self):
        for number in range(ROUNDS):
            for name in ("from", "to"):
                (self.mount / name / f"{number}").mkdir(parents=True)
            (self.mount / "from" / f"{number}" / "sub").mkdir()
            os.rename(self.mount / "from" / f"{number}" / "sub", self.mount / "to" / f"{number}" / "sub")
            self.assertEqual(os.listdir(self.mount / "to" / f"{number}"), ["sub"])
            self.assertEqual(os.listdir(self.mount / "from" / f"{number}"), [])

    def test_what_is_mounted_below_stays_though_others_change_names(self):
        for number in range(FILES):
            (self.mount / "d" / f"{number}" / "on").mkdir(parents=True)
        run("mount", "--bind", "/etc", self.mount / "d" / "0" / "on")
        try:
            for number in range(FILES):
                self.assertEqual(os.listdir(self.other / "d" / f"{number}"), ["on"])
                if number:
                    (self.other / "d" / f"{number}" / "on").rmdir()
                self.assertEqual(os.listdir(self.mount / "d" / f"{number}"), [] if number else ["on"])
            self.assertTrue((self.mount / "d" / "0" / "on" / "passwd").exists())
        finally:
            run("umount", self.mount / "d" / "0" / "on")

    def test_a_program_that_runs_while_others_look_is_not_taken_for_removed(self):
        (self.mount / "d").mkdir()
        run("cp", "/bin/sleep", self.mount / "d" / "sleep")
        with subprocess.Popen([self.mount / "d" / "sleep", "60"]) as process:
            try:
                for _ in range(3):
                    self.assertTrue((self.other / "d" / "sleep").exists())
                    (self.mount / "d" / "sleep").stat()
                    (self.mount / "made").touch()
                    (self.mount / "made").unlink()
                self.assertEqual(os.readlink(f"/proc/{process.pid}/exe"), str(self.mount / "d" / "sleep"))
            finally:
                process.kill()

    def test_an_acl_that_another_mount_takes_away_counts_no_more(self):
        (self.mount / "d" / "sub").mkdir(parents=True)
        (self.mount / "d" / "sub" / "file").touch()
        os.chmod(self.mount / "d" / "sub", 0o700)
        run("setfacl", "-m", f"u:{NOBODY}:rwx", self.mount / "d" / "sub")
        looks = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "stat", self.mount / "d" / "sub" / "file"]
        holds_it = os.open(self.mount / "d" / "sub", os.O_RDONLY)
        try:
            run(*looks)
            run("setfacl", "-b", self.other / "d" / "sub")
            os.stat(self.mount / "d" / "sub")
            self.assertNotEqual(subprocess.run(looks, check=False, stdout=subprocess.DEVNULL).returncode, 0)
        finally:
            os.close(holds_it)
