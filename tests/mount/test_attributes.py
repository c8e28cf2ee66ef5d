# SPDX-License-Identifier: LGPL-2.1-or-later
"""Owners, modes, times, extended attributes, and what of them FUSE leaves to the file system."""

import ctypes
import errno
import mmap
import os
import socket
import stat
import struct
import time
from concurrent.futures import ThreadPoolExecutor

from harness import MountTest, NOBODY, as_user, output, run, wait_until

GROUP = 4242
CLONE_NEWUSER = 0x10000000
PR_SET_DUMPABLE = 4


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


class ModesTest(MountTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.mount.path, 0o777)
        self.file = self.mount / "file"

    def test_owner_mode_and_times_survive_a_remount(self):
        self.file.write_text("x", encoding="utf-8")
        os.chown(self.file, 1000, 2000)
        os.chmod(self.file, 0o7421)
        os.utime(self.file, ns=(-1_500_000_001, 4_102_444_800_123_456_789))
        wanted = os.stat(self.file)
        self.assertEqual((wanted.st_uid, wanted.st_gid), (1000, 2000))
        self.assertEqual(mode_of(self.file), 0o7421)
        self.assertEqual(wanted.st_mtime_ns, 4_102_444_800_123_456_789)
        self.assertEqual(wanted.st_atime_ns, -1_500_000_001)
        self.mount.remount()
        found = os.stat(self.file)
        for name in ["st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_atime_ns", "st_ctime_ns", "st_ino"]:
            self.assertEqual(getattr(found, name), getattr(wanted, name), name)

    def test_the_umask_is_taken_off_once(self):
        old = os.umask(0o027)
        try:
            os.close(os.open(self.file, os.O_CREAT | os.O_WRONLY, 0o666))
            os.mkdir(self.mount / "d", 0o777)
            os.mkfifo(self.mount / "fifo", 0o666)
        finally:
            os.umask(old)
        self.assertEqual(mode_of(self.file), 0o640)
        self.assertEqual(mode_of(self.mount / "d"), 0o750)
        self.assertEqual(mode_of(self.mount / "fifo"), 0o640)

    def test_new_files_belong_to_who_makes_them(self):
        as_user(NOBODY, self.file.touch, gid=GROUP)
        self.assertEqual((os.stat(self.file).st_uid, os.stat(self.file).st_gid), (NOBODY, GROUP))

    def test_a_setgid_directory_hands_down_its_group_and_to_directories_the_bit(self):
        folder = self.mount / "shared"
        folder.mkdir()
        os.chown(folder, 0, GROUP)
        os.chmod(folder, 0o2777)
        as_user(NOBODY, (folder / "file").touch)
        as_user(NOBODY, (folder / "sub").mkdir)
        as_user(NOBODY, lambda: os.symlink("x", folder / "link"))
        for name in ["file", "sub", "link"]:
            self.assertEqual(os.lstat(folder / name).st_gid, GROUP, name)
            self.assertEqual(os.lstat(folder / name).st_uid, NOBODY, name)
        self.assertTrue(mode_of(folder / "sub") & stat.S_ISGID)
        self.assertFalse(mode_of(folder / "file") & stat.S_ISGID)

    def test_permissions_are_enforced_for_others(self):
        self.file.write_text("secret", encoding="utf-8")
        os.chmod(self.file, 0o600)
        self.assert_errno(errno.EACCES, as_user, NOBODY, lambda: self.file.read_text(encoding="utf-8"))
        self.assert_errno(errno.EPERM, as_user, NOBODY, lambda: os.chmod(self.file, 0o666))
        self.assert_errno(errno.EPERM, as_user, NOBODY, lambda: os.chown(self.file, NOBODY, -1))
        folder = self.mount / "closed"
        folder.mkdir(0o755)
        self.assert_errno(errno.EACCES, as_user, NOBODY, (folder / "x").touch)
        os.chmod(folder, 0o700)
        self.assert_errno(errno.EACCES, as_user, NOBODY, lambda: os.listdir(folder))

    def test_a_changed_mode_counts_on_the_other_client_too(self):
        self.file.write_text("x", encoding="utf-8")
        other = self.volume.mount("-o", "attr_timeout=0")
        os.chmod(self.file, 0o600)
        self.assert_errno(errno.EACCES, as_user, NOBODY, lambda: (other / "file").read_text(encoding="utf-8"))
        os.chmod(self.file, 0o644)
        self.assertEqual(as_user(NOBODY, lambda: (other / "file").read_text(encoding="utf-8")), "x")

    def test_a_write_of_another_user_clears_setuid_and_setgid(self):
        for direct in [False, True]:
            with self.subTest(direct=direct):
                self.file.write_bytes(b"x" * 4096)
                os.chmod(self.file, 0o6777)
                as_user(NOBODY, lambda: self.write_block(direct))
                self.assertEqual(mode_of(self.file), 0o777)
                self.mount.remount()
                self.assertEqual(mode_of(self.file), 0o777)

    def test_a_setuid_bit_set_on_another_mount_is_cleared_by_a_write_after_a_second(self):
        other = self.volume.mount()
        self.file.write_bytes(b"x" * 4096)
        os.chmod(self.file, 0o777)
        file = os.open(self.file, os.O_WRONLY | os.O_DIRECT)
        self.addCleanup(os.close, file)
        os.chmod(other / "file", 0o6777)
        time.sleep(1.1)
        with mmap.mmap(-1, 4096) as block:
            as_user(NOBODY, lambda: os.pwritev(file, [block], 0))
        self.assertEqual(mode_of(self.file), 0o777)
        self.assertEqual(mode_of(other / "file"), 0o777)

    def test_stat_shows_at_once_that_a_direct_write_has_cleared_setuid(self):
        self.file.write_bytes(b"x" * 4096)
        os.chmod(self.file, 0o6777)
        self.assertEqual(output("stat", "-c", "%a", self.file).strip(), "6777")
        as_user(NOBODY, lambda: self.write_block(direct=True))
        self.assertEqual(output("stat", "-c", "%a", self.file).strip(), "777")

    def test_emptying_at_open_clears_setuid_and_setgid(self):
        for flags in [os.O_WRONLY, os.O_RDONLY, os.O_CREAT | os.O_RDWR]:
            self.file.write_bytes(b"x" * 4096)
            os.chmod(self.file, 0o6777)
            as_user(NOBODY, lambda: os.close(os.open(self.file, flags | os.O_TRUNC, 0o600)))
            self.assertEqual(output("stat", "-c", "%a", self.file).strip(), "777")
            self.assertEqual(mode_of(self.file), 0o777)

    def test_truncating_and_chown_clear_setuid_and_setgid(self):
        self.file.write_bytes(b"x" * 4096)
        os.chmod(self.file, 0o6777)
        as_user(NOBODY, lambda: os.truncate(self.file, 10))
        self.assertEqual(mode_of(self.file), 0o777)
        os.chmod(self.file, 0o6777)
        os.chown(self.file, NOBODY, GROUP)
        self.assertEqual(mode_of(self.file), 0o777)
        os.chmod(self.file, 0o6777)
        as_user(NOBODY + 1, lambda: os.chown(self.file, -1, -1))
        self.assertEqual(mode_of(self.file), 0o6777)
        os.chmod(self.file, 0o6755)
        os.truncate(self.file, 5)
        self.assertEqual(mode_of(self.file), 0o6755)

    def test_a_write_of_root_keeps_setuid(self):
        self.file.write_bytes(b"x" * 4096)
        os.chmod(self.file, 0o4755)
        self.write_block(direct=True)
        self.assertEqual(mode_of(self.file), 0o4755)

    def write_block(self, direct):
        file = os.open(self.file, os.O_WRONLY | (os.O_DIRECT if direct else 0))
        with mmap.mmap(-1, 4096) as block:
            os.pwritev(file, [block], 0)
        os.close(file)

    def test_writing_changes_mtime_and_ctime(self):
        self.file.write_text("x", encoding="utf-8")
        os.utime(self.file, ns=(1, 1))
        before = os.stat(self.file)
        with open(self.file, "a", encoding="utf-8") as file:
            file.write("more")
        self.mount.remount()
        after = os.stat(self.file)
        self.assertGreater(after.st_mtime_ns, before.st_mtime_ns)
        self.assertGreater(after.st_ctime_ns, before.st_ctime_ns)

    def test_mtime_that_was_set_stays_after_earlier_writes(self):
        with open(self.file, "wb") as file:
            file.write(b"x" * 100_000)
            file.flush()
            os.utime(file.fileno(), ns=(5, 6))
        self.assertEqual(os.stat(self.file).st_mtime_ns, 6)
        self.mount.remount()
        self.assertEqual(os.stat(self.file).st_mtime_ns, 6)


class ExtendedAttributesTest(MountTest):
    def setUp(self):
        super().setUp()
        self.file = self.mount / "file"
        self.file.touch()

    def test_attributes_survive_a_remount(self):
        wanted = {"user.a": b"1", "user.empty": b"", "user." + "n" * 200: b"long name",
                  "user.big": b"v" * 60_000, "trusted.t": b"\0binary\xff", "security.other": b"s"}
        for name, value in wanted.items():
            os.setxattr(self.file, name, value)
        self.mount.remount()
        self.assertEqual(set(os.listxattr(self.file)), set(wanted))
        for name, value in wanted.items():
            self.assertEqual(os.getxattr(self.file, name), value)
        for name in wanted:
            os.removexattr(self.file, name)
        self.assertEqual(os.listxattr(self.file), [])

    def test_create_and_replace_do_what_they_say(self):
        self.assert_errno(errno.ENODATA, os.getxattr, self.file, "user.a")
        self.assert_errno(errno.ENODATA, os.removexattr, self.file, "user.a")
        self.assert_errno(errno.ENODATA, os.setxattr, self.file, "user.a", b"1", os.XATTR_REPLACE)
        os.setxattr(self.file, "user.a", b"1", os.XATTR_CREATE)
        self.assert_errno(errno.EEXIST, os.setxattr, self.file, "user.a", b"2", os.XATTR_CREATE)
        os.setxattr(self.file, "user.a", b"3", os.XATTR_REPLACE)
        self.assertEqual(os.getxattr(self.file, "user.a"), b"3")

    def test_directories_have_attributes_too(self):
        os.setxattr(self.mount.path, "user.on-the-root", b"x")
        self.mount.remount()
        self.assertEqual(os.getxattr(self.mount.path, "user.on-the-root"), b"x")

    def test_trusted_attributes_are_for_root(self):
        os.setxattr(self.file, "trusted.t", b"1")
        os.chmod(self.file, 0o666)
        self.assert_errno(errno.ENODATA, as_user, NOBODY, lambda: os.getxattr(self.file, "trusted.t"))
        self.assert_errno(errno.EPERM, as_user, NOBODY, lambda: os.setxattr(self.file, "trusted.t", b"2"))

    def test_names_of_trusted_attributes_are_listed_to_root_of_the_host_alone(self):
        def list_as_root_of_his_own_namespace():
            libc = ctypes.CDLL(None)
            self.assertEqual(libc.prctl(PR_SET_DUMPABLE, 1), 0)  # else his own files in /proc are root's
            self.assertEqual(libc.unshare(CLONE_NEWUSER), 0)
            for name, text in [("setgroups", "deny"), ("uid_map", f"0 {NOBODY} 1"), ("gid_map", f"0 {NOBODY} 1")]:
                with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
                    file.write(text)
            self.assertEqual(os.getuid(), 0)
            return os.listxattr(self.file)

        for name in ["trusted.t", "user.u"]:
            os.setxattr(self.file, name, b"1")
        os.chmod(self.file, 0o666)
        self.assertEqual(sorted(os.listxattr(self.file)), ["trusted.t", "user.u"])
        self.assertEqual(as_user(NOBODY, lambda: os.listxattr(self.file)), ["user.u"])
        self.assertEqual(as_user(NOBODY, list_as_root_of_his_own_namespace), ["user.u"])

    def test_a_capability_is_kept_and_a_write_takes_it_away(self):
        self.file.write_bytes(b"program")
        run("setcap", "cap_net_raw+ep", self.file)
        self.mount.remount()
        self.assertIn("cap_net_raw", output("getcap", self.file))
        with open(self.file, "ab") as file:
            file.write(b"changed")
        self.assertEqual(output("getcap", self.file), "")


class UsageTest(MountTest):
    def test_statfs_answers_sensible_figures(self):
        usage = os.statvfs(self.mount.path)
        self.assertGreater(usage.f_blocks, 0)
        self.assertGreater(usage.f_bavail, 0)
        self.assertLessEqual(usage.f_bavail, usage.f_blocks)
        self.assertEqual(usage.f_namemax, 255)
        self.assertIn(str(self.mount.path), output("df", self.mount.path))

    def test_blocks_have_a_sensible_size(self):
        (self.mount / "file").write_bytes(b"x")
        self.assertEqual(os.stat(self.mount / "file").st_blksize, 4096)


class OwnerTest(MountTest):
    def set_up_volume(self):
        self.volume = self.new_volume()
        self.mount, self.other = self.volume.mount(), self.volume.mount()

    def test_a_former_owner_changes_nothing_by_a_descriptor_that_he_has_still_open(self):
        file = self.mount / "program"
        file.write_bytes(b"his own code")
        os.chown(file, NOBODY, NOBODY)

        def keep_open_and_change():
            with open(file, "rb") as opened:
                os.fchmod(opened.fileno(), 0o755)
                told.recv(1)
                self.assert_errno(errno.EPERM, os.fchmod, opened.fileno(), 0o4755)
                self.assert_errno(errno.EPERM, os.setxattr, opened.fileno(), "system.posix_acl_access", acl)
                self.assertEqual(ctypes.CDLL(None).unshare(CLONE_NEWUSER), 0)  # it has all capabilities there
                self.assert_errno(errno.EPERM, os.fchmod, opened.fileno(), 0o4755)

        acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in [
            (1, 7, 0xFFFFFFFF), (2, 7, NOBODY), (4, 5, 0xFFFFFFFF), (16, 7, 0xFFFFFFFF), (32, 5, 0xFFFFFFFF)])
        tell, told = socket.socketpair()
        with ThreadPoolExecutor() as threads:
            done = threads.submit(as_user, NOBODY, keep_open_and_change)
            try:
                wait_until(lambda: stat.S_IMODE(os.stat(self.other / "program").st_mode) == 0o755, 30, "the open")
                os.chown(self.other / "program", 0, 0)
            finally:
                tell.send(b"x")
            done.result()
        self.assertEqual(stat.S_IMODE(os.stat(self.other / "program").st_mode), 0o755)

    def test_who_may_act_for_owners_still_does(self):
        file = self.mount / "file"
        file.write_bytes(b"root's")
        run("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=+fowner",
            "--ambient-caps=+fowner", "chmod", "600", file)
        self.assertEqual(stat.S_IMODE(os.stat(self.other / "file").st_mode), 0o600)
        self.assertNotEqual(run("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "chmod", "644", file,
                                check=False).returncode, 0)
