# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random operations against a model, over many object boundaries, with remounts and kills in between."""

import hashlib
import os
import random
import signal

from fsx import Mismatch, RandomOperations, Witness
from harness import Child, MountTest, context, digest, wait_until

OBJECT_SIZE = 65536
KINDS = [(300_000, False), (6 << 20, False), (300_000, False), (3 << 20, True)]  # size limit, direct I/O alone
OPERATIONS = 1_000_000  # with --full
OPERATIONS_OF_TWO = 100_000
KILLS = 50


class RandomTest(MountTest):
    stores = ("local", "rados")
    limit_s = 600
    mkfs_options = ("--object-size", "64K")


class RandomOperationsTest(RandomTest):
    def test_random_operations_on_several_files_at_once(self):
        """Each by a process of its own, and what they leave is there after a remount. Two files each: the second is
        there to be copied from."""
        each, rounds = (10_000, OPERATIONS // 10_000 // len(KINDS)) if context.full else (300, 2)
        for turn in range(rounds):
            seeds = [f"{context.seed} {turn} {number}" for number in range(len(KINDS))]
            children = [Child(self.work, number, seeds[number], each) for number in range(len(KINDS))]
            self.assertEqual([child.wait() for child in children], [0] * len(KINDS), f"seeds {seeds}")
            self.mount.remount()
            for number in range(2 * len(KINDS)):
                wanted = self.scratch(f"digest-{number}").read_text(encoding="ascii")
                self.assertEqual(digest(self.mount / f"file-{number}"), wanted, f"seeds {seeds}, file {number}")
                os.unlink(self.mount / f"file-{number}")

    def work(self, number, seed, operations):
        rng = random.Random(seed)
        size_limit, direct_only = KINDS[number]
        pair = [RandomOperations(self.mount / f"file-{2 * number + which}", rng, size_limit, OBJECT_SIZE, direct_only)
                for which in range(2)]
        pair[0].partner, pair[1].partner = pair[1], pair[0]
        for _ in range(operations):
            rng.choice(pair).step()
        for which, file in enumerate(pair):
            file.check_all()
            file.close()
            self.scratch(f"digest-{2 * number + which}").write_text(hashlib.sha256(file.content()).hexdigest(), "ascii")


class RandomOperationsOfTwoClientsTest(RandomTest):
    def setUp(self):
        super().setUp()
        self.other = self.volume.mount()
        self.places = [self.mount / "file", self.other / "file"]
        self.operations = OPERATIONS_OF_TWO if context.full else 400

    def test_taking_turns_with_open_and_close(self):
        """Whoever opens the file sees all that was done before, whether the other has closed it or not."""
        file = RandomOperations(self.places[0], self.random, 400_000, OBJECT_SIZE)
        done = turn = 0
        while done < self.operations:
            steps = self.random.randrange(1, 8)
            for _ in range(steps):
                file.step()
            done, turn = done + steps, turn + 1
            self.random.choice([file.close_and_open, file.leave_and_open])(self.places[turn % 2])
            file.check_all()
        file.close()

    def test_direct_io_of_two_that_stay_open(self):
        file = RandomOperations(self.places[0], self.random, 400_000, OBJECT_SIZE, direct_only=True)
        for number in range(self.operations // 2):
            file.leave_and_resume(self.places[number % 2])
            file.step()
        file.close()
        for place in self.places:
            self.assertTrue(place.read_bytes() == file.content())


class KilledUnderRandomOperationsTest(RandomTest):
    waits = True  # for what the killed client held
    FILES = 3

    def test_what_fsync_covered_is_there_after_a_kill(self):
        """And the file as the kill left it is right for whatever is done to it then."""
        for turn in range(KILLS if context.full else 2):
            witnesses = [Witness(300_000) for _ in range(self.FILES)]
            children = [Child(self.work, number, witnesses[number], f"{context.seed} {turn} {number}")
                        for number in range(self.FILES)]
            enough = self.random.randrange(10, 300)
            wait_until(lambda: max(witness.changes() for witness in witnesses) >= enough, 120, "enough operations")
            killed, self.mount = self.mount, None
            killed.may_die = True
            killed.signal(signal.SIGKILL)
            killed.wait_for_end()
            statuses = [child.wait() for child in children]
            self.assertLessEqual(set(statuses), {0, -signal.SIGBUS})
            killed.clean_up()
            self.mount = self.volume.mount()
            for number, witness in enumerate(witnesses):
                witness.check((self.mount / f"file-{number}").read_bytes())

    def work(self, number, witness, seed):
        path = self.mount / f"file-{number}"
        try:
            file = RandomOperations(path, random.Random(seed), 300_000, OBJECT_SIZE, witness=witness)
            while True:
                file.step()
        except (Mismatch, OSError):
            if os.path.exists(path):
                raise
