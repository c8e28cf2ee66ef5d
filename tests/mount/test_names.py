# SPDX-License-Identifier: LGPL-2.1-or-later
"""Names: rename and its flags, limits, symbolic links, special files."""

import concurrent.futures
import contextlib
import ctypes
import errno
import mmap
import os
import socket
import stat
import struct

from harness import MountTest, NOBODY, as_user, context, libc, run, wait_until

RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT = 1, 2, 4
AT_FDCWD = -100


def renameat2(old, new, flags):
    if libc.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def move_unless_it_is_moved(source, target):
    """Of a directory that the other mount moves meanwhile: the kernel answers ESTALE if it finds it under both names."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ESTALE):
            raise


class RenameTest(MountTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.mount / "a", self.mount / "b"

    def test_a_rename_replaces_a_file(self):
        self.a.write_text("a", encoding="utf-8")
        self.b.write_text("b", encoding="utf-8")
        with open(self.b, encoding="utf-8") as replaced:
            os.rename(self.a, self.b)
            self.assertEqual(replaced.read(), "b")
        self.assertEqual(self.b.read_text(encoding="utf-8"), "a")
        self.assertEqual(os.listdir(self.mount.path), ["b"])

    def test_a_rename_replaces_an_empty_directory_and_no_other(self):
        self.a.mkdir()
        (self.a / "in a").touch()
        self.b.mkdir()
        os.rename(self.a, self.b)
        self.assertEqual(os.listdir(self.b), ["in a"])
        self.a.mkdir()
        self.assert_errno(errno.ENOTEMPTY, os.rename, self.a, self.b)
        self.assertEqual(os.stat(self.mount.path).st_nlink, 4)

    def test_a_file_replaces_no_directory_and_a_directory_no_file(self):
        self.a.touch()
        self.b.mkdir()
        self.assert_errno(errno.EISDIR, os.rename, self.a, self.b)
        self.assert_errno(errno.ENOTDIR, os.rename, self.b, self.a)
        self.assertEqual(sorted(os.listdir(self.mount.path)), ["a", "b"])

    def test_noreplace_refuses_an_existing_name(self):
        self.a.write_text("a", encoding="utf-8")
        self.b.write_text("b", encoding="utf-8")
        self.assert_errno(errno.EEXIST, renameat2, self.a, self.b, RENAME_NOREPLACE)
        self.assertEqual(self.b.read_text(encoding="utf-8"), "b")
        renameat2(self.a, self.mount / "c", RENAME_NOREPLACE)
        self.assertEqual(sorted(os.listdir(self.mount.path)), ["b", "c"])

    def test_exchange_swaps_two_names_of_any_kind(self):
        self.a.write_text("a", encoding="utf-8")
        self.b.mkdir()
        renameat2(self.a, self.b, RENAME_EXCHANGE)
        self.assertTrue(self.a.is_dir())
        self.assertEqual(self.b.read_text(encoding="utf-8"), "a")
        self.assert_errno(errno.ENOENT, renameat2, self.a, self.mount / "none", RENAME_EXCHANGE)
        self.mount.remount()
        self.assertTrue(self.a.is_dir())

    def test_unknown_flags_are_refused(self):
        self.a.touch()
        self.assert_errno(errno.EINVAL, renameat2, self.a, self.b, RENAME_WHITEOUT)
        self.assertEqual(os.listdir(self.mount.path), ["a"])

    def test_a_missing_name_cannot_be_renamed(self):
        self.assert_errno(errno.ENOENT, os.rename, self.a, self.b)

    def test_a_rename_changes_ctime_and_not_mtime(self):
        self.a.write_text("a", encoding="utf-8")
        os.utime(self.a, ns=(1, 2))
        before = os.stat(self.a).st_ctime_ns
        os.rename(self.a, self.b)
        self.mount.remount()
        after = os.stat(self.b)
        self.assertGreater(after.st_ctime_ns, before)
        self.assertEqual(after.st_mtime_ns, 2)

    def test_a_sticky_directory_protects_others_files(self):
        folder = self.mount / "tmp"
        folder.mkdir()
        os.chmod(folder, 0o1777)
        (folder / "root's").touch()
        self.assert_errno(errno.EPERM, as_user, NOBODY, lambda: os.rename(folder / "root's", folder / "mine"))
        self.assert_errno(errno.EPERM, as_user, NOBODY, lambda: os.unlink(folder / "root's"))
        as_user(NOBODY, lambda: (folder / "mine").touch())
        as_user(NOBODY, lambda: os.rename(folder / "mine", folder / "still mine"))


class HardLinkTest(MountTest):
    """Several names of one file, on two mounts."""

    stores = ("local", "rados")

    def test_names_in_two_directories_are_one_file(self):
        other = self.volume.mount()
        (self.mount / "d").mkdir()
        (self.mount / "file").write_text("one", encoding="utf-8")
        os.link(self.mount / "file", self.mount / "d" / "second")
        self.assertEqual(os.stat(other / "file").st_nlink, 2)
        self.assertTrue(os.path.samefile(other / "file", other / "d" / "second"))
        (other / "d" / "second").write_text("two", encoding="utf-8")
        self.assertEqual((self.mount / "file").read_text(encoding="utf-8"), "two")
        os.unlink(self.mount / "file")
        self.assertEqual(os.stat(self.mount / "d" / "second").st_nlink, 1)
        self.assertEqual((other / "d" / "second").read_text(encoding="utf-8"), "two")

    def test_a_link_is_refused_where_it_cannot_be(self):
        (self.mount / "d").mkdir()
        (self.mount / "file").touch()
        self.assert_errno(errno.EPERM, os.link, self.mount / "d", self.mount / "e")
        self.assert_errno(errno.EEXIST, os.link, self.mount / "file", self.mount / "d")
        self.assert_errno(errno.ENOENT, os.link, self.mount / "missing", self.mount / "e")
        self.assert_errno(errno.ENAMETOOLONG, os.link, self.mount / "file", self.mount / ("x" * 256))
        self.assertEqual(sorted(os.listdir(self.mount.path)), ["d", "file"])
        self.assertEqual(os.stat(self.mount / "file").st_nlink, 1)

    def test_an_open_file_without_a_name_gets_none_back(self):
        with open(self.mount / "file", "w", encoding="utf-8") as file:
            os.unlink(self.mount / "file")
            top = os.open(self.mount.path, os.O_RDONLY)  # with it os.link follows the link in /proc
            open_file = f"/proc/self/fd/{file.fileno()}"
            self.assert_errno(errno.ENOENT, os.link, open_file, "back", dst_dir_fd=top)
            os.close(top)
        self.assertEqual(os.listdir(self.mount.path), [])

    def test_nor_does_one_that_another_client_removed_once_a_collector_has_seen_it(self):
        other = self.volume.mount()
        with open(self.mount / "file", "w", encoding="utf-8") as file:
            os.unlink(other / "file")
            run(context.bin / "lccfs-gc", *self.volume.address, "--once", "--grace", "0")
            top = os.open(self.mount.path, os.O_RDONLY)
            open_file = f"/proc/self/fd/{file.fileno()}"
            self.assert_errno(errno.ENOENT, os.link, open_file, "back", dst_dir_fd=top)
            os.close(top)
            wait_until(lambda: os.fstat(file.fileno()).st_nlink == 0, 30, "the end of the old count in the kernel")
        self.assertEqual(os.listdir(self.mount.path), [])

    def test_a_link_of_a_file_that_is_mapped_and_written_loses_no_byte(self):
        size = 1 << 20
        (self.mount / "file").touch()
        self.mount.remount()
        os.stat(self.mount / "file")  # it is empty then, and nobody writes it
        with open(self.mount / "file", "r+b") as file:
            os.pwrite(file.fileno(), b"w" * size, 0)
            with mmap.mmap(file.fileno(), size) as mapped:
                mapped[size - 4096 :] = b"m" * 4096
                top = os.open(self.mount.path, os.O_RDONLY)  # with it os.link follows the link in /proc
                os.link(f"/proc/self/fd/{file.fileno()}", "second", dst_dir_fd=top)
                os.close(top)
                self.assertEqual(os.fstat(file.fileno()).st_size, size)
                self.assertEqual(mapped[size - 4096 :], b"m" * 4096)
                mapped.flush()
        self.mount.remount()
        self.assertEqual((self.mount / "second").read_bytes(), b"w" * (size - 4096) + b"m" * 4096)

    def test_cp_and_tar_keep_links(self):
        (self.mount / "a").mkdir()
        (self.mount / "a" / "file").write_text("x", encoding="utf-8")
        os.link(self.mount / "a" / "file", self.mount / "a" / "second")
        run("cp", "-a", self.mount / "a", self.mount / "b")
        run("cp", "-al", self.mount / "a", self.mount / "c")
        run("tar", "-C", self.mount.path, "-cf", self.mount / "d.tar", "a")
        (self.mount / "d").mkdir()
        run("tar", "-C", self.mount / "d", "-xf", self.mount / "d.tar")
        for copy in ("b", "d/a"):
            self.assertEqual(os.stat(self.mount / copy / "file").st_nlink, 2)
            self.assertTrue(os.path.samefile(self.mount / copy / "file", self.mount / copy / "second"))
        self.assertEqual(os.stat(self.mount / "c" / "second").st_nlink, 4)
        run("rm", "-r", self.mount / "a")
        self.assertEqual(os.stat(self.mount / "c" / "file").st_nlink, 2)

    def test_two_clients_that_link_and_unlink_one_file_agree_on_its_count(self):
        other = self.volume.mount()
        (self.mount / "file").touch()

        def link_and_unlink(mount, own, rounds):
            for number in range(rounds):
                os.link(mount / "file", mount / f"{own} {number}")
                if number % 3:
                    os.unlink(mount / f"{own} {number}")

        rounds = 300 if context.full else 60
        with concurrent.futures.ThreadPoolExecutor() as pool:
            work = [pool.submit(link_and_unlink, mount, own, rounds) for mount, own in ((self.mount, "a"), (other, "b"))]
            for one in work:
                one.result()
        names = len(os.listdir(other.path))
        self.assertEqual(names, 1 + 2 * (rounds // 3))
        self.assertEqual(os.stat(other / "file").st_nlink, names)


class MoveTest(MountTest):
    """A file moves from one directory to another, at once and whole."""

    stores = ("local", "rados")

    def test_a_file_that_is_moved_is_at_once_elsewhere(self):
        other = self.volume.mount()
        for name in "ab":
            (self.mount / name).mkdir()
            (self.mount / name / "file").write_text(f"from {name}", encoding="utf-8")
        inode = os.stat(self.mount / "a" / "file").st_ino
        with open(self.mount / "a" / "file", "a", encoding="utf-8") as file:
            run("mv", self.mount / "a" / "file", self.mount / "b" / "file")
            file.write(", and more")
        self.assertEqual(os.stat(other / "b" / "file").st_ino, inode)
        self.assertEqual((other / "b" / "file").read_text(encoding="utf-8"), "from a, and more")
        self.assertEqual(os.listdir(other / "a"), [])
        os.rmdir(other / "a")

    def test_a_move_is_refused_where_it_cannot_be(self):
        (self.mount / "d").mkdir()
        (self.mount / "d" / "taken").mkdir()
        (self.mount / "file").touch()
        self.assert_errno(errno.EISDIR, os.rename, self.mount / "file", self.mount / "d" / "taken")
        self.assert_errno(errno.ENOENT, os.rename, self.mount / "missing", self.mount / "d" / "file")
        self.assert_errno(errno.ENAMETOOLONG, os.rename, self.mount / "file", self.mount / "d" / ("x" * 256))
        self.assertEqual(sorted(os.listdir(self.mount.path)), ["d", "file"])
        self.assertEqual(os.listdir(self.mount / "d"), ["taken"])

    def test_whoever_looks_while_files_move_misses_none(self):
        other = self.volume.mount()
        for name in "ab":
            (self.mount / name).mkdir()
        names = [f"file{i}" for i in range(300 if context.full else 60)]
        for name in names:
            (self.mount / "a" / name).touch()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            work = pool.submit(lambda: [os.rename(self.mount / "a" / name, self.mount / "b" / name) for name in names])
            while not work.done():
                for name in names:
                    if not os.path.exists(other / "a" / name):
                        self.assertTrue(os.path.exists(other / "b" / name), name)
            work.result()
        self.assertEqual(os.listdir(other / "a"), [])
        self.assertEqual(sorted(os.listdir(other / "b")), sorted(names))

    def test_two_clients_that_move_the_same_files_to_and_fro_lose_none(self):
        other = self.volume.mount()
        names = [f"file{i}" for i in range(10)]
        for name in "ab":
            (self.mount / name).mkdir()
        for name in names:
            (self.mount / "a" / name).write_text(name, encoding="utf-8")

        def move_all(mount, rounds):
            for _ in range(rounds):
                for name in names:
                    for source, target in (("a", "b"), ("b", "a")):
                        with contextlib.suppress(FileNotFoundError):
                            os.rename(mount / source / name, mount / target / name)

        rounds = 50 if context.full else 10
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for one in [pool.submit(move_all, mount, rounds) for mount in (self.mount, other)]:
                one.result()
        self.assertEqual(sorted(os.listdir(other / "a") + os.listdir(other / "b")), sorted(names))
        for name in names:
            place = "a" if os.path.exists(self.mount / "a" / name) else "b"
            self.assertEqual((self.mount / place / name).read_text(encoding="utf-8"), name)
            self.assertEqual(os.stat(self.mount / place / name).st_nlink, 1)


class MoveDirectoryTest(MountTest):
    """A directory moves from one directory to another, with all that is below it, and no directory ends below itself."""

    stores = ("local", "rados")

    def setUp(self):
        super().setUp()
        self.other = self.volume.mount()
        for name in "ab":
            (self.mount / name).mkdir()

    def test_a_directory_that_is_moved_is_at_once_elsewhere_with_all_that_is_in_it(self):
        (self.mount / "a" / "x" / "y").mkdir(parents=True)
        (self.mount / "a" / "x" / "y" / "file").write_text("kept", encoding="utf-8")
        inode = os.stat(self.mount / "a" / "x").st_ino
        run("mv", self.mount / "a" / "x", self.mount / "b" / "z")
        self.assertEqual([os.stat(self.mount / name).st_nlink for name in ("a", "b", "b/z")], [2, 3, 3])
        for mount in (self.other, self.mount):
            self.assertEqual(os.listdir(mount / "a"), [])
            self.assertEqual(os.stat(mount / "b" / "z").st_ino, inode)
            self.assertEqual(os.stat(mount / "b" / "z" / "..").st_ino, os.stat(mount / "b").st_ino)
            self.assertEqual((mount / "b" / "z" / "y" / "file").read_text(encoding="utf-8"), "kept")
        os.rmdir(self.other / "a")
        self.assertTrue(self.volume.is_valid())

    def test_a_process_that_works_in_a_directory_that_another_client_moves_works_on_there(self):
        (self.mount / "a" / "x").mkdir()
        here = os.open(self.other / "a" / "x", os.O_DIRECTORY)
        self.addCleanup(os.close, here)
        os.rename(self.mount / "a" / "x", self.mount / "b" / "x")
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        self.assertEqual(os.listdir(self.mount / "b" / "x"), ["file"])
        self.assertEqual(os.listdir(self.other / "b" / "x"), ["file"])
        self.assertEqual(os.stat("..", dir_fd=here).st_ino, os.stat(self.mount / "b").st_ino)

    def test_a_directory_that_another_client_moved_above_what_it_was_in_is_found_by_its_new_path(self):
        (self.mount / "a" / "x" / "y").mkdir(parents=True)
        here = os.open(self.other / "a" / "x" / "y", os.O_DIRECTORY)
        self.addCleanup(os.close, here)
        os.rename(self.mount / "a" / "x" / "y", self.mount / "b" / "y")
        os.rename(self.mount / "a" / "x", self.mount / "b" / "y" / "x")
        # Until then the kernel has it below x, and answers ELOOP where x is looked for in it.
        inode = os.stat(self.other / "b" / "y" / "x").st_ino
        self.assertEqual(os.stat("x", dir_fd=here).st_ino, inode)
        self.assertEqual(os.stat("..", dir_fd=here).st_ino, os.stat(self.other / "b").st_ino)
        self.assertEqual(os.listdir(self.other / "a"), [])

    def test_a_directory_replaces_an_empty_directory_elsewhere_and_no_other(self):
        for name in ("a/x", "b/empty", "b/full", "b/full/y"):
            (self.mount / name).mkdir()
        (self.mount / "b" / "file").touch()
        self.assert_errno(errno.ENOTEMPTY, os.rename, self.mount / "a" / "x", self.mount / "b" / "full")
        self.assert_errno(errno.ENOTDIR, os.rename, self.mount / "a" / "x", self.mount / "b" / "file")
        self.assert_errno(errno.EEXIST, renameat2, self.mount / "a" / "x", self.mount / "b" / "empty", RENAME_NOREPLACE)
        self.assert_errno(errno.EINVAL, renameat2, self.mount / "a" / "x", self.mount / "b" / "empty", RENAME_EXCHANGE)
        os.rename(self.mount / "a" / "x", self.mount / "b" / "empty")
        self.assertEqual(os.listdir(self.other / "a"), [])
        self.assertEqual(sorted(os.listdir(self.other / "b")), ["empty", "file", "full"])
        self.assertEqual([os.stat(self.other / name).st_nlink for name in ("a", "b")], [2, 4])

    def test_a_directory_does_not_move_into_itself(self):
        (self.mount / "a" / "x").mkdir()
        self.assert_errno(errno.EINVAL, os.rename, self.mount / "a", self.mount / "a" / "b")
        self.assert_errno(errno.EINVAL, os.rename, self.mount / "a", self.mount / "a" / "x" / "b")
        self.assert_errno(errno.ENOTEMPTY, os.rename, self.mount / "a" / "x", self.mount / "a")

    def test_two_clients_that_move_two_directories_into_each_other_make_no_loop(self):
        moved = 0
        for number in range(100 if context.full else 20):
            one, two = f"one {number}", f"two {number}"
            for name in (one, two):
                (self.mount / name).mkdir()
            with concurrent.futures.ThreadPoolExecutor() as pool:
                tries = [pool.submit(os.rename, self.mount / one, self.mount / two / "in"),
                         pool.submit(os.rename, self.other / two, self.other / one / "in")]
            errors = [work.exception() for work in tries]
            self.assertEqual(sum(error is None for error in errors), 1, errors)
            self.assertIn(next(error for error in errors if error).errno, (errno.EINVAL, errno.ENOENT))
            moved += errors[0] is None
            stays = two if errors[0] is None else one
            for mount in (self.mount, self.other):
                self.assertEqual(os.listdir(mount / stays), ["in"])
                self.assertFalse((mount / (one if stays == two else two)).exists())
        self.assertTrue(self.volume.is_valid())

    def test_two_clients_that_move_the_same_directories_to_and_fro_lose_none(self):
        names = [f"directory{i}" for i in range(5)]
        for name in names:
            (self.mount / "a" / name).mkdir()
            (self.mount / "a" / name / "file").write_text(name, encoding="utf-8")

        def move_all(mount, rounds):
            for _ in range(rounds):
                for name in names:
                    for source, target in (("a", "b"), ("b", "a")):
                        move_unless_it_is_moved(mount / source / name, mount / target / name)

        rounds = 50 if context.full else 5
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for one in [pool.submit(move_all, mount, rounds) for mount in (self.mount, self.other)]:
                one.result()
        self.assertEqual(sorted(os.listdir(self.other / "a") + os.listdir(self.other / "b")), sorted(names))
        for name in names:
            place = "a" if os.path.exists(self.other / "a" / name) else "b"
            self.assertEqual((self.other / place / name / "file").read_text(encoding="utf-8"), name)
        for place in "ab":
            self.assertEqual(os.stat(self.other / place).st_nlink, 2 + len(os.listdir(self.other / place)))
        self.assertTrue(self.volume.is_valid())

    def test_a_client_that_is_killed_while_it_moves_directories_keeps_no_other_from_moving_them(self):
        for number in range(3):
            (self.mount / "a" / f"x{number}").mkdir()

        def to_and_fro():
            with contextlib.suppress(OSError):
                while True:
                    for source, target in (("a", "b"), ("b", "a")):
                        for number in range(3):
                            os.rename(self.mount / source / f"x{number}", self.mount / target / f"x{number}")

        with concurrent.futures.ThreadPoolExecutor() as pool:
            mover = pool.submit(to_and_fro)
            wait_until(lambda: os.listdir(self.other / "b"), 20, "something has moved")
            self.mount.kill()
            mover.result()
        for number in range(3):
            name = f"x{number}"
            source, target = ("a", "b") if (self.other / "a" / name).exists() else ("b", "a")
            os.rename(self.other / source / name, self.other / target / name)
            self.assertFalse((self.other / source / name).exists())
            self.assertTrue((self.other / target / name).is_dir())
        self.assertTrue(self.volume.is_valid())


class LimitsTest(MountTest):
    def test_names_of_255_bytes_and_any_byte_are_taken(self):
        names = ["x" * 255, "ä" * 127, "line\nbreak", "quote'\"\\", " ", "-rf"]
        raw = [os.fsencode(name) for name in names] + [bytes(range(1, 47)), bytes(range(48, 256))]
        top = os.fsencode(self.mount.path)
        for number, name in enumerate(raw):
            with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                file.write(str(number))
        self.mount.remount()
        self.assertEqual(sorted(os.listdir(top)), sorted(raw))
        for number, name in enumerate(raw):
            with open(os.path.join(top, name), encoding="utf-8") as file:
                self.assertEqual(file.read(), str(number))
            os.unlink(os.path.join(top, name))
        self.assertEqual(os.listdir(top), [])

    def test_a_name_of_256_bytes_is_refused(self):
        self.assert_errno(errno.ENAMETOOLONG, (self.mount / ("x" * 256)).touch)
        self.assert_errno(errno.ENAMETOOLONG, (self.mount / ("x" * 256)).mkdir)

    def test_directories_are_nested_deeply(self):
        path = self.mount.path
        for depth in range(40):
            path = path / f"level {depth}"
            path.mkdir()
        (path / "deep").write_text("deep", encoding="utf-8")
        self.mount.remount()
        self.assertEqual((path / "deep").read_text(encoding="utf-8"), "deep")
        self.assertEqual(os.path.realpath(path / ".." / "level 39"), str(path))


class LinksAndSpecialFilesTest(MountTest):
    def test_symbolic_links_of_any_length_point_where_they_did(self):
        targets = ["x", "../up", "/absolute", "dangling/none", "y" * 4095]
        for number, target in enumerate(targets):
            os.symlink(target, self.mount / f"link{number}")
        self.mount.remount()
        for number, target in enumerate(targets):
            link = self.mount / f"link{number}"
            self.assertEqual(os.readlink(link), target)
            self.assertEqual(os.lstat(link).st_size, len(target))
            self.assertTrue(stat.S_ISLNK(os.lstat(link).st_mode))
        (self.mount / "x").write_text("through a link", encoding="utf-8")
        self.assertEqual((self.mount / "link0").read_text(encoding="utf-8"), "through a link")
        os.chown(self.mount / "link0", NOBODY, NOBODY, follow_symlinks=False)
        self.assertEqual(os.lstat(self.mount / "link0").st_uid, NOBODY)
        self.assertEqual(os.stat(self.mount / "link0").st_uid, 0)

    def test_fifos_sockets_and_devices_keep_their_kind_and_number(self):
        os.mkfifo(self.mount / "fifo", 0o640)
        os.mknod(self.mount / "char", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.mknod(self.mount / "block", stat.S_IFBLK | 0o600, os.makedev(7, 200))
        os.mknod(self.mount / "regular", stat.S_IFREG | 0o600)
        server = socket.socket(socket.AF_UNIX)
        os.chdir(self.mount.path)  # paths of sockets are short
        server.bind("socket")
        os.chdir("/")
        server.close()
        self.mount.remount()
        kinds = {name: stat.S_IFMT(os.lstat(self.mount / name).st_mode) for name in os.listdir(self.mount.path)}
        self.assertEqual(kinds, {"fifo": stat.S_IFIFO, "char": stat.S_IFCHR, "block": stat.S_IFBLK,
                                 "regular": stat.S_IFREG, "socket": stat.S_IFSOCK})
        self.assertEqual(os.lstat(self.mount / "char").st_rdev, os.makedev(1, 3))
        self.assertEqual(os.lstat(self.mount / "block").st_rdev, os.makedev(7, 200))
        with open(self.mount / "char", "wb") as null:
            null.write(b"gone")

    def test_a_fifo_carries_bytes(self):
        os.mkfifo(self.mount / "fifo")
        reader = os.open(self.mount / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        (self.mount / "fifo").write_bytes(b"through")
        self.assertEqual(os.read(reader, 100), b"through")
        os.close(reader)


class DirectoryRulesTest(MountTest):
    def test_only_an_empty_directory_is_removed(self):
        folder = self.mount / "d"
        folder.mkdir()
        (folder / "file").touch()
        self.assert_errno(errno.ENOTEMPTY, folder.rmdir)
        self.assert_errno(errno.EISDIR, os.unlink, folder)
        self.assert_errno(errno.ENOTDIR, os.rmdir, folder / "file")
        (folder / "file").unlink()
        folder.rmdir()
        self.assert_errno(errno.ENOENT, folder.rmdir)

    def test_link_counts_of_directories_are_exact(self):
        top = self.mount.path
        for name in "abc":
            (top / name).mkdir()
        (top / "file").touch()
        self.assertEqual(os.stat(top).st_nlink, 5)
        (top / "a").rmdir()
        self.mount.remount()
        self.assertEqual(os.stat(top).st_nlink, 4)
        self.assertEqual(os.stat(top / "b").st_nlink, 2)

    def test_making_what_exists_is_refused(self):
        (self.mount / "d").mkdir()
        (self.mount / "f").touch()
        self.assert_errno(errno.EEXIST, os.mkdir, self.mount / "d")
        self.assert_errno(errno.EEXIST, os.mkdir, self.mount / "f")
        self.assert_errno(errno.EEXIST, os.symlink, "x", self.mount / "f")
        self.assert_errno(errno.EEXIST, os.open, self.mount / "f", os.O_CREAT | os.O_EXCL | os.O_WRONLY)

    def test_making_and_removing_names_changes_the_times_of_the_directory(self):
        folder = self.mount / "d"
        folder.mkdir()
        for change in [(folder / "x").touch, (folder / "x").unlink, (folder / "s").mkdir, (folder / "s").rmdir]:
            os.utime(folder, ns=(1, 1))
            change()
            self.assertGreater(os.stat(folder).st_mtime_ns, 1)
            self.assertGreater(os.stat(folder).st_ctime_ns, 1)


class HandleTest(MountTest):
    """Files by their handles, as NFS servers and backup programs hold them."""

    stores = ("local", "rados")

    def handle_of(self, path):
        handle = (ctypes.c_char * 136)()
        struct.pack_into("<I", handle, 0, 128)
        mount_id = ctypes.c_int()
        if libc.name_to_handle_at(AT_FDCWD, os.fsencode(path), handle, ctypes.byref(mount_id), 0) != 0:
            raise OSError(ctypes.get_errno(), "name_to_handle_at")
        return handle

    def open(self, handle, flags=os.O_RDONLY):
        mount = os.open(self.mount.path, os.O_RDONLY)
        try:
            file = libc.open_by_handle_at(mount, handle, flags)
        finally:
            os.close(mount)
        if file < 0:
            raise OSError(ctypes.get_errno(), "open_by_handle_at")
        return file

    def test_a_handle_outlives_a_remount_and_dies_with_the_last_name(self):
        folder = self.mount / "folder" / "in it"
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"content")
        (folder / "gone").touch()
        handles = {name: self.handle_of(folder / name) for name in [".", "file", "gone"]}
        self.mount.remount()
        (folder / "file").rename(folder / "renamed")
        (folder / "gone").unlink()
        self.mount.remount()
        file = self.open(handles["file"])
        self.assertEqual(os.read(file, 100), b"content")
        os.close(file)
        directory = self.open(handles["."])
        self.assertEqual(os.listdir(directory), ["renamed"])
        self.assertEqual(os.stat("../..", dir_fd=directory).st_ino, os.stat(self.mount.path).st_ino)
        os.close(directory)
        self.assert_errno(errno.ESTALE, self.open, handles["gone"])
