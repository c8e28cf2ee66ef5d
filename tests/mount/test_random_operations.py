# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random operations against a model, over many object boundaries, with remounts in between."""

from fsx import RandomOperations
from harness import MountTest


class RandomOperationsTest(MountTest):
    limit_s = 300
    mkfs_options = ("--object-size", "64K")

    def test_random_operations_on_a_small_file(self):
        self.check(size_limit=300_000, operations=1_200, remounts=4)

    def test_random_operations_on_a_file_of_many_objects(self):
        self.check(size_limit=6 << 20, operations=600, remounts=3)

    def test_random_direct_operations(self):
        self.check(size_limit=3 << 20, operations=600, remounts=3, direct_only=True)

    def check(self, size_limit, operations, remounts, direct_only=False):
        file = RandomOperations(self.mount / "file", self.random, size_limit, direct_only)
        for _ in range(remounts):
            for _ in range(operations // remounts):
                file.step()
            file.check_all()
            file.close()
            self.mount.remount()
            file.open()
            file.check_all()
        file.close()


class RandomOperationsOfTwoClientsTest(MountTest):
    limit_s = 300
    mkfs_options = ("--object-size", "64K")

    def test_random_operations_taking_turns_on_two_mounts(self):
        other = self.volume.mount()
        places = [self.mount / "file", other / "file"]
        file = RandomOperations(places[0], self.random, 500_000)
        for turn in range(60):
            for _ in range(8):
                file.step()
            file.close()
            file.path = places[turn % 2]
            file.open()
            file.check_all()
        file.close()
