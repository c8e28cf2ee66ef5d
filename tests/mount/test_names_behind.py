# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names that are stored after the answer (names=behind): what a kill leaves of them, and what another mount sees."""

import os
import random
import threading
import time

from harness import MountTest, context

TURNS = 4
PREPARED = 3000
SYNCED_EVERY = 40


def sync_directory(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class NamesBehindTest(MountTest):
    stores = ("local", "rados")
    limit_s = 300
    def make_until_it_dies(self, directory):
        """Files in their order; answers after which the directory, or one of them, was synced."""
        number = synced = 0
        try:
            while True:
                descriptor = os.open(directory / f"{number}", os.O_RDWR | os.O_CREAT | os.O_EXCL)
                if number % SYNCED_EVERY == 0:
                    os.fsync(descriptor)
                    synced = number + 1
                os.close(descriptor)
                number += 1
        except OSError:
            return number, synced

    def move_until_it_dies(self, old, new):
        """As mv does between file systems: a copy, and then the old one goes."""
        try:
            for number in range(PREPARED):
                os.close(os.open(new / f"{number}", os.O_RDWR | os.O_CREAT | os.O_EXCL))
                os.unlink(old / f"{number}")
        except OSError:
            return

    def rename_until_it_dies(self, directory):
        """Over and over the same name."""
        try:
            while True:
                descriptor = os.open(directory / "new", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
                os.write(descriptor, b"whole")
                os.close(descriptor)
                os.rename(directory / "new", directory / "file")
        except OSError:
            return

    def test_a_killed_client_leaves_a_first_part_of_what_each_directory_was_and_all_that_was_synced(self):
        chance = random.Random(context.seed)
        for turn in range(TURNS):
            mount = self.volume.mount()
            top = mount / f"turn {turn}"
            for name in ("made", "old", "new", "renamed"):
                (top / name).mkdir(parents=True)
            for number in range(PREPARED):
                os.close(os.open(top / "old" / f"{number}", os.O_RDWR | os.O_CREAT))
            with open(top / "renamed" / "file", "wb") as file:
                file.write(b"whole")
                file.flush()
                os.fsync(file.fileno())  # not synced, it may be empty where no rename over it is stored
            sync_directory(top / "old")
            sync_directory(top / "renamed")
            made = []
            workers = [threading.Thread(target=lambda at=top: made.append(self.make_until_it_dies(at / "made"))),
                       threading.Thread(target=self.move_until_it_dies, args=(top / "old", top / "new")),
                       threading.Thread(target=self.rename_until_it_dies, args=(top / "renamed",))]
            for worker in workers:
                worker.start()
            time.sleep(0.3 + chance.random())
            mount.may_die = True
            mount.process.kill()
            mount.process.wait()
            mount.clean_up()
            for worker in workers:
                worker.join()
            self.judge(self.mount / f"turn {turn}", *made[0])

    def judge(self, top, answered, synced):
        numbers = sorted(int(path.name) for path in (top / "made").iterdir())
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertGreaterEqual(len(numbers), synced)
        self.assertLessEqual(len(numbers), answered + 1)  # one whose answer did not come
        old, new = ({path.name for path in (top / name).iterdir()} for name in ("old", "new"))
        self.assertEqual({f"{number}" for number in range(PREPARED)} - old - new, set())
        self.assertEqual((top / "renamed" / "file").read_bytes(), b"whole")

    def test_another_mount_finds_at_once_what_was_answered(self):
        other = self.volume.mount()
        (self.mount / "d").mkdir()
        for number in range(100):
            here, there = (self.mount, other) if number % 20 < 10 else (other, self.mount)
            (here / "d" / f"{number}").touch()
            self.assertTrue((there / "d" / f"{number}").exists())
            os.rename(here / "d" / f"{number}", here / "d" / f"{number} renamed")
            self.assertEqual(sorted(os.listdir(there / "d")), [f"{number} renamed"])
            (here / "d" / f"{number} renamed").unlink()
            self.assertEqual(os.listdir(there / "d"), [])

    def test_an_exclusive_file_is_made_by_one_of_two(self):
        other = self.volume.mount()
        (self.mount / "d").mkdir()
        made = []

        def make(mount):
            for number in range(200):
                try:
                    os.close(os.open(mount / "d" / f"{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
                    made.append(number)
                except FileExistsError:
                    pass

        workers = [threading.Thread(target=make, args=(mount,)) for mount in (self.mount, other)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(sorted(made), list(range(200)))
