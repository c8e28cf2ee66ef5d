# SPDX-License-Identifier: LGPL-2.1-or-later
"""A tree of everyday files goes in and comes out unchanged, in everybody's eyes."""

import os
import pathlib
import shutil
import subprocess

from harness import MountTest, context, output, run, scaled

FILES = 20_000
LARGEST_FILE_BYTES = 1 << 20
SOURCES = ["/usr/share", "/usr/include", "/usr/lib/python3", "/usr/lib/python3.11"]


def collect_tree(target, files_wanted):
    """Copies this machine's own files, whole folders at a time, until there are enough."""
    files = 0
    for source in SOURCES:
        for folder, folders, names in os.walk(source):
            folders.sort()
            place = target / folder.lstrip("/")
            place.mkdir(parents=True)
            shutil.copystat(folder, place)
            for name in names:
                path = pathlib.Path(folder, name)
                if not path.is_symlink() and (not path.is_file() or path.stat().st_size > LARGEST_FILE_BYTES):
                    continue
                shutil.copy2(path, place / name, follow_symlinks=False)
                files += 1
            if files >= files_wanted:
                return files
    return files


def copy_in(source, target):
    """cp -a, four at a time below the top two levels: one alone waits for the store at every step."""
    parts = sorted(str(path.relative_to(source)) for path in source.glob("*/*/*"))
    tops = [source, *source.glob("*"), *source.glob("*/*")]
    for folder in tops:
        (target / folder.relative_to(source)).mkdir()
    run("xargs", "-d", "\n", "-P", "4", "-n", "16", "bash", "-c",
        'to=$0; for part; do cp -a --no-preserve=links "$part" "$to/${part%/*}/" || exit 255; done', target,
        cwd=source, input="\n".join(parts))
    for folder in reversed(tops):
        status = folder.stat()
        os.chown(target / folder.relative_to(source), status.st_uid, status.st_gid)
        shutil.copystat(folder, target / folder.relative_to(source))


def metadata(top):
    """What lstat says of each file, directories' sizes and all ctimes and inode numbers aside."""
    found = {}
    for folder, folders, names in os.walk(top):
        for name in [*folders, *names, "."]:
            path = os.path.normpath(os.path.join(folder, name))
            status = os.lstat(path)
            is_directory = os.path.isdir(path) and not os.path.islink(path)
            found[os.path.relpath(path, top)] = (
                oct(status.st_mode), status.st_uid, status.st_gid, status.st_mtime_ns, status.st_rdev,
                None if is_directory else status.st_size,
                os.readlink(path) if os.path.islink(path) else None)
    return found


def differences(found, wanted):
    return [f"{name}: {found.get(name)}, not {wanted.get(name)}"
            for name in sorted(found.keys() | wanted.keys()) if found.get(name) != wanted.get(name)][:20]


class TreeTest(MountTest):
    limit_s = 600

    def test_a_large_tree_is_the_same_for_all_and_goes_again(self):
        source = self.scratch("tree")
        files = collect_tree(source, scaled(FILES))
        self.assertGreaterEqual(files, scaled(FILES))
        run("chown", "-R", "--no-dereference", "1234:4321", source / "usr")
        wanted = metadata(source)

        copy_in(source, self.mount / "tree")
        self.mount.remount()
        other = self.volume.mount()
        self.compare(source, wanted, other / "tree", contents=False)
        self.compare(source, wanted, self.mount / "tree")

        run("rm", "-r", self.mount / "tree")
        self.assertEqual(os.listdir(self.mount.path), [])
        self.assertEqual(os.listdir(other.path), [])
        self.assertEqual(os.stat(self.mount.path).st_nlink, 2)
        self.mount.remount()
        self.assertEqual(os.listdir(self.mount.path), [])
        (self.mount / "still works").write_text("yes", encoding="utf-8")

    def compare(self, source, wanted, copy, contents=True):
        self.assertEqual(differences(metadata(copy), wanted), [])
        if contents:
            run("diff", "-r", "--no-dereference", source, copy)


class TarTest(MountTest):
    limit_s = 180

    def test_tar_goes_in_and_out(self):
        source = self.scratch("tree")
        collect_tree(source, 1_500 if context.full else 300)
        os.link(next(path for path in source.rglob("*") if path.is_file()), source / "a second name")
        wanted = metadata(source)

        run("tar", "--format=posix", "--hard-dereference", "-C", source, "-cf", self.mount / "in.tar", ".")
        (self.mount / "tree").mkdir()
        run("tar", "-C", self.mount / "tree", "-xpf", self.mount / "in.tar")
        self.assertEqual(differences(metadata(self.mount / "tree"), wanted), [])

        self.mount.remount()
        out = self.scratch("out")
        out.mkdir()
        run("tar", "--format=posix", "--hard-dereference", "-C", self.mount / "tree", "-cf", self.scratch("out.tar"), ".")
        run("tar", "-C", out, "-xpf", self.scratch("out.tar"))
        self.assertEqual(differences(metadata(out), wanted), [])
        run("diff", "-r", "--no-dereference", source, out)


class DirectoryTest(MountTest):
    limit_s = 180

    def test_a_large_directory_lists_each_name_once(self):
        folder = self.mount / "large"
        folder.mkdir()
        names = {f"name {number} " + "x" * (number % 200) for number in range(3_000 if context.full else 1_200)}
        for name in names:
            os.close(os.open(folder / name, os.O_CREAT | os.O_WRONLY))
        listed = os.listdir(folder)
        self.assertEqual(len(listed), len(names))
        self.assertEqual(set(listed), names)
        self.assertEqual(set(os.listdir(self.volume.mount() / "large")), names)

    def test_removing_while_listing_leaves_nothing(self):
        folder = self.mount / "d"
        folder.mkdir()
        for number in range(1_000):
            (folder / str(number)).touch()
        with os.scandir(folder) as entries:
            for entry in entries:
                os.unlink(entry.path)
        self.assertEqual(os.listdir(folder), [])
        folder.rmdir()

    def test_two_clients_making_names_in_one_directory_both_succeed(self):
        other = self.volume.mount()
        script = 'for i in $(seq 300); do echo "$1 $i" > "$0/$1-$i" || exit 1; done'
        makers = [subprocess.Popen(["bash", "-c", script, str(mount.path), name])
                  for mount, name in [(self.mount, "a"), (other, "b")]]
        self.assertEqual([maker.wait() for maker in makers], [0, 0])
        wanted = {f"{name}-{i}" for name in "ab" for i in range(1, 301)}
        self.assertEqual(set(os.listdir(self.mount.path)), wanted)
        self.assertEqual(set(output("ls", other.path).split()), wanted)
        self.assertEqual((other / "a-300").read_text(encoding="utf-8"), "a 300\n")
