# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names that one mount has looked up, and another one removes, replaces or makes anew."""

import os
import shutil
import time

from harness import MountTest


class NamesElsewhereTest(MountTest):
    """With the options that everybody has."""

    def setUp(self):
        super().setUp()
        self.other = self.volume.mount()

    def test_what_is_written_to_a_name_that_was_removed_elsewhere_is_there(self):
        here, there = self.mount / "z", self.other / "z"
        here.write_text("old\n")
        self.assertEqual(there.read_text(), "old\n")
        here.unlink()
        with open(there, "w", encoding="utf-8") as file:
            file.write("hello\n")
        self.assertEqual(there.read_text(), "hello\n")
        self.assertEqual(here.read_text(), "hello\n")

    def test_what_is_appended_to_a_name_that_was_replaced_elsewhere_is_there(self):
        here, there = self.mount / "w", self.other / "w"
        here.write_text("first\n")
        self.assertEqual(there.read_text(), "first\n")
        (self.mount / "new").write_text("second\n")
        (self.mount / "new").rename(here)
        with open(there, "a", encoding="utf-8") as file:
            file.write("appended\n")
        self.assertEqual(here.read_text(), "second\nappended\n")

    def test_a_name_that_is_replaced_elsewhere_shows_the_new_file_at_once(self):
        here, there, new = self.mount / "x", self.other / "x", self.mount / "x.new"
        for turn in range(50):
            new.write_text(f"{turn}\n")
            new.rename(here)
            self.assertEqual(there.read_text(), f"{turn}\n")
            self.assertEqual(os.stat(there).st_ino, os.stat(here).st_ino)

    def test_a_directory_that_is_made_anew_elsewhere_is_used_at_once(self):
        here, there = self.mount / "d", self.other / "d"
        for turn in range(20):
            here.mkdir()
            (there / f"f{turn}").write_text("by the other\n")
            self.assertEqual(os.listdir(here), [f"f{turn}"])
            (here / f"f{turn}").unlink()
            here.rmdir()


class TrustingNamesElsewhereTest(MountTest):
    """A mount whose kernel trusts names for long: what it knows is gone, and stands anew."""

    def setUp(self):
        super().setUp()
        self.other = self.volume.mount("-o", "entry_timeout=600")
        self.here, self.there = self.mount / "d", self.other / "d"

    def make_anew(self):
        self.here.mkdir()
        (self.here / "f").touch()
        self.assertEqual(os.listdir(self.there), ["f"])
        (self.here / "f").unlink()
        self.here.rmdir()
        self.here.mkdir()

    def test_whatever_is_done_in_a_directory_that_was_made_anew_elsewhere_is_done_in_the_new_one(self):
        made = {
            "file": lambda path: path.write_text("x"),
            "folder": lambda path: path.mkdir(),
            "link": lambda path: path.symlink_to("x"),
            "listed": lambda path: os.listdir(path.parent),
        }
        for name, make in made.items():
            with self.subTest(name):
                self.make_anew()
                make(self.there / name)
                expected = [] if name == "listed" else [name]
                self.assertEqual(os.listdir(self.here), expected)
                shutil.rmtree(self.here)

    def test_who_works_in_a_directory_that_it_removed_itself_hears_that_names_are_missing(self):
        self.there.mkdir()
        folder = os.open(self.there, os.O_RDONLY)
        self.there.rmdir()
        with self.assertRaises(FileNotFoundError):
            os.stat("x", dir_fd=folder)
        with self.assertRaises(FileNotFoundError):
            os.mkdir("x", dir_fd=folder)
        self.assertEqual(os.fstat(folder).st_nlink, 0)
        time.sleep(1.1)  # the kernel asks again
        self.assertEqual(os.fstat(folder).st_nlink, 0)
        os.close(folder)
