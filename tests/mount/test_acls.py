# SPDX-License-Identifier: LGPL-2.1-or-later
"""POSIX ACLs, with the tools that users have: setfacl, getfacl, cp, tar."""

import errno
import os
import stat
import struct
import time

from harness import MountTest, NOBODY, as_user, output, run

OTHER, GROUP = 1337, 4242
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def acl_of(path, *options):
    """The lines of getfacl, without those that are empty."""
    text = output("getfacl", "-cnpE", *options, path)
    return [line for line in text.splitlines() if line]


def set_acl(path, *options):
    run("setfacl", *options, path)


class AclTest(MountTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.mount.path, 0o777)
        self.file = self.mount / "file"
        self.file.write_text("secret", encoding="utf-8")
        os.chmod(self.file, 0o600)
        self.folder = self.mount / "folder"
        self.folder.mkdir()
        self.addCleanup(os.umask, os.umask(0o022))

    def read(self):
        return self.file.read_text(encoding="utf-8")


class AccessAclTest(AclTest):
    def test_an_acl_survives_a_remount_and_shows_in_the_mode(self):
        set_acl(self.file, "-m", f"u:{OTHER}:rw,g:{GROUP}:r")
        wanted = ["user::rw-", f"user:{OTHER}:rw-", "group::---", f"group:{GROUP}:r--", "mask::rw-", "other::---"]
        self.assertEqual(acl_of(self.file), wanted)
        self.assertEqual(mode_of(self.file), 0o660)
        self.mount.remount()
        self.assertEqual(acl_of(self.file), wanted)
        self.assertEqual(mode_of(self.file), 0o660)
        self.assertEqual(os.listxattr(self.file), [ACCESS])

    def test_the_kernel_lets_in_who_is_named_and_keeps_out_who_is_not(self):
        self.assert_errno(errno.EACCES, as_user, OTHER, self.read)
        set_acl(self.file, "-m", f"u:{OTHER}:r")
        self.assertEqual(as_user(OTHER, self.read), "secret")
        self.assert_errno(errno.EACCES, as_user, NOBODY, self.read)
        self.assert_errno(errno.EACCES, as_user, OTHER, lambda: self.file.write_text("x", encoding="utf-8"))
        set_acl(self.file, "-m", f"g:{GROUP}:r")
        self.assertEqual(as_user(NOBODY, self.read, gid=GROUP), "secret")
        os.chmod(self.file, 0o644)
        set_acl(self.file, "-m", f"u:{OTHER}:-")
        self.assert_errno(errno.EACCES, as_user, OTHER, self.read)
        self.assertEqual(as_user(NOBODY, self.read), "secret")

    def test_an_acl_set_on_another_mount_counts_here(self):
        other = self.volume.mount("-o", "attr_timeout=0")
        self.assert_errno(errno.EACCES, as_user, OTHER, lambda: (other / "file").read_text(encoding="utf-8"))
        set_acl(self.file, "-m", f"u:{OTHER}:r")
        self.assertEqual(as_user(OTHER, lambda: (other / "file").read_text(encoding="utf-8")), "secret")
        set_acl(other / "file", "-x", f"u:{OTHER}")
        time.sleep(2.1)
        self.assert_errno(errno.EACCES, as_user, OTHER, self.read)

    def test_chmod_changes_the_mask_and_the_mask_bounds_who_is_named(self):
        set_acl(self.file, "-m", f"u:{OTHER}:rw")
        os.chmod(self.file, 0o715)
        self.assertEqual(acl_of(self.file)[:2], ["user::rwx", f"user:{OTHER}:rw-"])
        self.assertEqual(acl_of(self.file)[-2:], ["mask::--x", "other::r-x"])
        self.assert_errno(errno.EACCES, as_user, OTHER, self.read)
        os.chmod(self.file, 0o640)
        self.assertEqual(as_user(OTHER, self.read), "secret")
        self.assertEqual(mode_of(self.file), 0o640)

    def test_an_acl_that_a_mode_says_as_well_is_not_kept(self):
        set_acl(self.file, "-m", "u::rwx,g::r-x,o::r")
        self.assertEqual(mode_of(self.file), 0o754)
        self.assertEqual(os.listxattr(self.file), [])
        set_acl(self.file, "-m", f"u:{OTHER}:rwx")
        set_acl(self.file, "-b")
        self.assertEqual(os.listxattr(self.file), [])
        self.assertEqual(acl_of(self.file), ["user::rwx", "group::r-x", "other::r--"])
        self.assert_errno(errno.ENODATA, os.getxattr, self.file, ACCESS)
        os.removexattr(self.file, ACCESS)

    def test_only_the_owner_sets_one_and_setgid_goes_with_who_is_not_in_the_group(self):
        self.assert_errno(errno.EPERM, as_user, OTHER, lambda: self.set_raw(self.file))
        os.chown(self.file, OTHER, GROUP)
        os.chmod(self.file, 0o2770)
        as_user(OTHER, lambda: self.set_raw(self.file), gid=OTHER, groups=[GROUP])
        self.assertEqual(mode_of(self.file), 0o2770)
        as_user(OTHER, lambda: self.set_raw(self.file), gid=OTHER)
        self.assertEqual(mode_of(self.file), 0o770)
        os.chmod(self.file, 0o2770)
        self.set_raw(self.file)
        self.assertEqual(mode_of(self.file), 0o2770)
        self.mount.remount()
        self.assertEqual(mode_of(self.file), 0o2770)
        self.assertIn(f"user:{NOBODY}:r--", acl_of(self.file))

    def set_raw(self, path):
        nobody = 0xFFFFFFFF
        entries = [(1, 7, nobody), (2, 4, NOBODY), (4, 7, nobody), (16, 7, nobody), (32, 0, nobody)]
        value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
        os.setxattr(path, ACCESS, value)

    def test_what_is_no_acl_and_where_there_is_none(self):
        self.assert_errno(errno.EINVAL, os.setxattr, self.file, ACCESS, b"\2\0\0\0rubbish")
        value = struct.pack("<IHHI", 2, 1, 7, 0)
        self.assert_errno(errno.EINVAL, os.setxattr, self.file, ACCESS, value)
        set_acl(self.file, "-m", f"u:{OTHER}:r")
        value = os.getxattr(self.file, ACCESS)
        self.assert_errno(errno.EACCES, os.setxattr, self.file, DEFAULT, value)
        os.symlink("file", self.mount / "link")
        for name in [ACCESS, DEFAULT]:
            self.assert_errno(errno.EOPNOTSUPP, os.setxattr, self.mount / "link", name, value, follow_symlinks=False)

    def test_many_entries(self):
        set_acl(self.file, "-m", ",".join(f"u:{20_000 + i}:r" for i in range(400)))
        self.mount.remount()
        self.assertEqual(len([line for line in acl_of(self.file) if line.startswith("user:2")]), 400)


class DefaultAclTest(AclTest):
    def setUp(self):
        super().setUp()
        set_acl(self.folder, "-d", "-m", f"u::rwx,u:{OTHER}:rwx,g::r-x,o::-")

    def test_new_files_and_directories_inherit_and_the_umask_does_not_count(self):
        os.umask(0o077)
        (self.folder / "file").write_text("x", encoding="utf-8")
        (self.folder / "sub").mkdir()
        os.mkfifo(self.folder / "fifo", 0o666)
        os.symlink("x", self.folder / "link")
        file_acl = ["user::rw-", f"user:{OTHER}:rwx", "group::r-x", "mask::rw-", "other::---"]
        default = ["user::rwx", f"user:{OTHER}:rwx", "group::r-x", "mask::rwx", "other::---"]
        for remounted in [False, True]:
            if remounted:
                self.mount.remount()
            self.assertEqual(acl_of(self.folder / "file"), file_acl)
            self.assertEqual(mode_of(self.folder / "file"), 0o660)
            self.assertEqual(mode_of(self.folder / "fifo"), 0o660)
            self.assertEqual(mode_of(self.folder / "sub"), 0o770)
            self.assertEqual(acl_of(self.folder / "sub", "-a"), default)
            self.assertEqual(acl_of(self.folder / "sub", "-d"), default)
        (self.folder / "sub" / "deeper").mkdir(mode=0o700)
        self.assertEqual(acl_of(self.folder / "sub" / "deeper", "-d"), default)
        self.assertEqual(mode_of(self.folder / "sub" / "deeper"), 0o700)
        as_user(OTHER, (self.folder / "sub" / "of-another").touch)

    def test_without_it_the_umask_counts_again(self):
        set_acl(self.folder, "-k")
        os.umask(0o027)
        (self.folder / "file").touch()
        (self.folder / "sub").mkdir()
        self.assertEqual((mode_of(self.folder / "file"), mode_of(self.folder / "sub")), (0o640, 0o750))
        self.assertEqual(os.listxattr(self.folder / "sub"), [])


class ArchivedAclTest(AclTest):
    def setUp(self):
        super().setUp()
        set_acl(self.folder, "-m", f"u:{OTHER}:rx")
        set_acl(self.folder, "-d", "-m", f"g:{GROUP}:rwx")
        (self.folder / "one").write_text("1", encoding="utf-8")
        (self.folder / "two").write_text("2", encoding="utf-8")
        set_acl(self.folder / "two", "-b", "-m", f"u:{OTHER}:rw")
        os.chmod(self.folder / "two", 0o640)

    def assert_same(self, other):
        for name in ["", "one", "two"]:
            self.assertEqual(acl_of(other / name), acl_of(self.folder / name), name)
            self.assertEqual(mode_of(other / name), mode_of(self.folder / name), name)

    def test_cp_keeps_acls(self):
        run("cp", "-a", self.folder, self.mount / "copy")
        self.assert_same(self.mount / "copy")
        self.mount.remount()
        self.assert_same(self.mount / "copy")

    def test_tar_keeps_acls(self):
        archive = self.scratch("a.tar")
        run("tar", "--acls", "-C", self.folder, "-cf", archive, ".")
        (self.mount / "unpacked").mkdir()
        run("tar", "--acls", "-C", self.mount / "unpacked", "-xpf", archive)
        self.assert_same(self.mount / "unpacked")

    def test_getfacl_and_restore(self):
        saved = output("getfacl", "-pRn", self.folder)
        before = {name: acl_of(self.folder / name) for name in ["", "one", "two"]}
        run("setfacl", "-R", "-b", self.folder)
        self.assertEqual(os.listxattr(self.folder), [])
        run("setfacl", "--restore=-", input=saved)
        self.assertEqual({name: acl_of(self.folder / name) for name in before}, before)
