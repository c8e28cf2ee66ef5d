# SPDX-License-Identifier: LGPL-2.1-or-later
"""lccfs-fsck on real volumes: what was damaged is found, repaired, and readable again by a real mount."""

import errno
import json
import os
import signal
import subprocess

from harness import MountTest, POOL, context, output, pattern_bytes, run, wait_until
from test_gc import keys_of, objects_of

CLEAN, CORRECTED, LEFT, OPERATIONAL, USAGE = 0, 1, 4, 8, 16
WATCHED_LIMIT_S = 120  # RADOS keeps the watches of a client that was killed for half a minute
PIPE_BYTES = 4096  # a repair whose lines nobody reads waits long before its end


class FsckTest(MountTest):
    stores = ("local", "rados")
    leaves_valid_volumes = False  # damaged on purpose; each test says itself what is left
    mkfs_options = ("--object-size", "64K")

    def fsck(self, *options, status, limit_s=600):
        """Its standard output; standard error is in self.errors."""
        done = run(context.bin / "lccfs-fsck", *self.volume.address, *options, check=False, timeout_s=limit_s,
                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        print(done.stdout, done.stderr, sep="", flush=True)
        self.assertEqual(done.returncode, status)
        self.errors = done.stderr
        return done.stdout

    def assert_repaired(self, *options):
        """Found, repaired, and gone."""
        self.fsck(status=LEFT)
        text = self.fsck("--repair", *options, status=CORRECTED)
        self.fsck(status=CLEAN)
        self.fsck("--repair", status=CLEAN)
        self.assertEqual(self.volume.info()["instances"], [])
        return text

    def damage(self, name, *how):
        run(context.bin / "damage_tool", *self.volume.address, "--object", name, *how)

    def entry_key(self, directory, name):
        return next(key for key in keys_of(self.volume, directory) if key.startswith("n/") and key.endswith("/" + name))

    def inode_object(self, path):
        return f"Inode.{os.stat(path).st_ino}"

    def fill(self):
        """Some files; returns their bytes by name, and the object of their directory."""
        folder = self.mount / "folder"
        folder.mkdir()
        content = {}
        for number in range(10):
            content[f"file-{number}"] = pattern_bytes(1 + 30_000 * number, number)
            with open(folder / f"file-{number}", "wb") as file:
                file.write(content[f"file-{number}"])
                file.flush()
                os.fsync(file.fileno())
        return content, self.inode_object(folder)

    def read_back(self, folder):
        return {name: (folder / name).read_bytes() for name in os.listdir(folder)}


class FsckCommandTest(FsckTest):
    def test_a_clean_volume_is_said_to_be_clean(self):
        content, _ = self.fill()
        self.mount.unmount()
        text = self.fsck(status=CLEAN)
        self.assertEqual(len(text.splitlines()), 1)
        self.assertIn("0 findings", text)
        report = json.loads(self.fsck("--json", status=CLEAN))
        self.assertEqual(report["findings"], [])
        self.assertEqual(report["summary"]["directories"], 2)
        self.assertEqual(report["summary"]["other_inodes"], len(content))
        self.assertTrue(report["summary"]["complete"])

    def test_a_mounted_volume_is_refused(self):
        text = self.fsck(status=OPERATIONAL) + self.fsck("--repair", status=OPERATIONAL)
        self.assertEqual(text, "")
        self.assertEqual(len(self.errors.splitlines()), 1)
        for word in [str(self.mount.process.pid), str(self.mount.path), "--force"]:
            self.assertIn(word, self.errors)
        self.fsck("--force", status=CLEAN)

    def test_all_who_have_the_volume_mounted_are_named(self):
        other = self.volume.mount()
        self.fsck(status=OPERATIONAL)
        self.assertEqual(len(self.errors.splitlines()), 1)
        for mount in [self.mount, other]:
            self.assertIn(f"pid {mount.process.pid} on ", self.errors)
            self.assertIn(f"mounted at {mount.path}", self.errors)

    def test_wrong_words_and_missing_volumes_are_named(self):
        self.mount.unmount()
        self.fsck("--orphans", "delete", status=USAGE)
        self.assertIn("--repair", self.errors)
        self.fsck("--nonsense", status=USAGE)
        self.volume = self.new_address()
        self.fsck(status=OPERATIONAL)
        self.assertIn(str(self.volume.address[1]), self.errors)
        self.fsck("--repair", status=OPERATIONAL)


class FsckRepairTest(FsckTest):
    def test_damaged_records_and_names_are_repaired(self):
        content, folder = self.fill()
        inode = self.inode_object(self.mount / "folder" / "file-3")
        self.mount.unmount()
        self.damage(folder, "--flip", self.entry_key(folder, "file-1"))
        self.damage(folder, "--noise", self.entry_key(folder, "file-2"))
        self.damage(folder, "--remove-key", self.entry_key(folder, "file-3"))
        self.damage(folder, "--noise", "nsub")
        self.damage(inode, "--flip", "attr")
        self.damage(inode, "--noise", "mtime")
        self.damage("Alloc", "--remove")
        self.damage("Super", "--flip", "super")
        self.assert_repaired()
        self.mount.start()
        self.assertEqual(self.read_back(self.mount / "folder"), content)
        self.assertEqual(os.listdir(self.mount.path), ["folder"])

    def test_what_lost_its_directory_is_in_lost_and_found(self):
        content, folder = self.fill()
        numbers = {name: os.stat(self.mount / "folder" / name).st_ino for name in content}
        self.mount.unmount()
        self.damage(folder, "--remove")
        self.assert_repaired()
        self.mount.start()
        self.assertEqual(os.listdir(self.mount.path), ["lost+found"])
        self.assertEqual(os.stat(self.mount / "lost+found").st_mode & 0o7777, 0o700)
        self.assertEqual(self.read_back(self.mount / "lost+found"),
                         {f"inode-{numbers[name]}": bytes_ for name, bytes_ in content.items()})

    def test_orphans_that_nobody_wants_go(self):
        _, folder = self.fill()
        self.mount.unmount()
        self.damage(folder, "--remove")
        self.assert_repaired("--orphans", "delete")
        self.assertEqual(objects_of(self.volume), {"Super", "Alloc", "Inode.1"})

    def test_a_file_whose_inode_is_lost_keeps_its_name_and_bytes(self):
        content, _ = self.fill()
        inode = self.inode_object(self.mount / "folder" / "file-9")
        self.mount.unmount()
        self.damage(inode, "--remove")
        self.assert_repaired()
        self.mount.start()
        self.assertEqual(self.read_back(self.mount / "folder"), content)

    def test_what_cannot_be_repaired_is_left_and_said(self):
        _, folder = self.fill()
        inode = self.inode_object(self.mount / "folder" / "file-9")
        self.mount.unmount()
        self.damage(inode, "--noise", "attr")
        self.damage(folder, "--noise", "nsub")
        text = self.fsck("--repair", status=CORRECTED + LEFT)
        self.assertIn(f"{inode}: ", next(line for line in text.splitlines() if ": left: " in line))
        self.fsck("--repair", status=LEFT)
        report = json.loads(self.fsck("--json", status=LEFT))
        self.assertEqual([finding["object"] for finding in report["findings"]], [inode])


class FsckPoolTest(FsckTest):
    stores = ("rados",)

    def rados(self, *words, **options):
        return output("rados", "-c", self.cluster.conf, "-p", POOL, "-N", self.volume.namespace, *words, **options)

    def test_objects_of_others_become_files(self):
        content, folder = self.fill()
        self.mount.unmount()
        theirs = self.scratch("theirs")
        theirs.write_bytes(pattern_bytes(150_000, 7))
        self.rados("put", "their/object", theirs)
        self.rados("setxattr", folder, "colour", "red")
        self.assert_repaired()
        self.mount.start()
        self.assertEqual((self.mount / "lost+found" / "their\\x2fobject").read_bytes(), theirs.read_bytes())
        self.assertEqual(self.read_back(self.mount / "folder"), content)


class FsckKilledTest(FsckTest):
    waits = True
    limit_s = 300

    def wait_until_nobody_is_seen(self):
        wait_until(lambda: "watching" not in [one["presence"] for one in self.volume.info()["instances"]], WATCHED_LIMIT_S,
                   "the watches lapse")

    def test_a_client_that_was_killed_is_fenced_and_cleaned_up_after(self):
        content, _ = self.fill()
        self.mount.may_die = True
        self.mount.signal(signal.SIGKILL)
        self.mount.process.wait()
        self.mount.clean_up()
        self.wait_until_nobody_is_seen()
        self.fsck(status=CLEAN)
        self.assertIn("without a clean end", self.errors)
        self.fsck("--repair", status=CLEAN)
        self.assertEqual(self.volume.info()["instances"], [])
        self.mount.start()
        self.assertEqual(self.read_back(self.mount / "folder"), content)

    def test_a_repair_that_was_killed_is_done_again(self):
        folder = self.mount / "folder"
        folder.mkdir()
        for number in range(500):
            (folder / f"file-{number}").write_bytes(b"content")
        inode = self.inode_object(folder)
        self.mount.unmount()
        self.damage(inode, "--remove")
        repair = subprocess.Popen([str(context.bin / "lccfs-fsck"), *self.volume.address, "--repair"],
                                  stdout=subprocess.PIPE, pipesize=PIPE_BYTES, text=True)
        for _ in range(self.random.randrange(1, 60)):
            repair.stdout.readline()
        repair.kill()
        repair.communicate()
        self.wait_until_nobody_is_seen()
        self.fsck("--repair", status=CORRECTED)
        self.fsck(status=CLEAN)
        self.mount.start()
        found = self.mount / "lost+found"
        self.assertEqual({(found / name).read_bytes() for name in os.listdir(found)}, {b"content"})
        self.assertEqual(len(os.listdir(found)), 500)


class UnreadableObjectTest(FsckTest):
    """An OSD answers EIO for the inode of one file, as over a damaged disk. One test: the switch is the OSD's."""

    stores = ("rados",)

    def inject_errors(self, whether):
        self.cluster.ceph("tell", "osd.*", "config", "set", "bluestore_debug_inject_read_err", whether)

    def make_unreadable(self, name):
        osd = self.cluster.osd_of(POOL, name, self.volume.namespace)
        for command in ["injectmdataerr", "injectdataerr"]:
            self.cluster.ceph("tell", f"osd.{osd}", command, POOL, f"{self.volume.namespace}/{name}")
        self.addCleanup(self.inject_errors, "false")
        self.inject_errors("true")

    def test_it_is_told_nothing_is_repaired_and_a_mount_serves_all_else(self):
        content, _ = self.fill()
        folder = self.mount / "folder"
        unreadable = self.inode_object(folder / "file-3")
        self.mount.unmount()
        self.make_unreadable(unreadable)
        before = objects_of(self.volume)
        for options in [[], ["--repair"]]:
            text = self.fsck(*options, status=LEFT | OPERATIONAL)
            self.assertIn(f"unreadable: {unreadable}: ", text)
            self.assertIn("ceph health detail", self.errors)
        self.assertEqual(objects_of(self.volume), before)
        self.mount.start()
        self.use_all_else(folder, content)
        self.mount.unmount()
        self.inject_errors("false")
        self.fsck(status=CLEAN)
        content["file-0"] = content.pop("file-1")
        self.assertEqual(self.read_back(self.mount.start() / "folder"), content)

    def use_all_else(self, folder, content):
        with self.assertRaises(OSError) as raised:
            os.stat(folder / "file-3")
        self.assertEqual(raised.exception.errno, errno.EIO)
        self.assertEqual(set(os.listdir(folder)), set(content))
        (folder / "file-0").unlink()
        (folder / "file-1").rename(folder / "file-0")
        (self.mount / "new").write_bytes(b"new")
        self.assertEqual((folder / "file-2").read_bytes(), content["file-2"])
        self.assertIn("backlog", self.volume.info())
