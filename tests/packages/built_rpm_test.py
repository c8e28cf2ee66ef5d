# SPDX-License-Identifier: LGPL-2.1-or-later
"""packaging/lccfs.spec makes a package: built by Debian's rpm, which has no packages that it could ask for."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from places import MACROS_OF_FEDORA, PAGES, ROOT, SPEC, context

FOLDER = context.work / "rpm"


def output(*command):
    done = subprocess.run([*map(str, command)], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}: {done.stderr}")
    return done.stdout


def pack_sources(version):
    """Source0: this tree as it is, as git would have it."""
    sources = FOLDER / "SOURCES"
    sources.mkdir(parents=True)
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"],
                           cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    there = b"\0".join(name for name in files if name and (pathlib.Path(ROOT) / name.decode()).exists())
    subprocess.run(["tar", "--create", "--gzip", "--file", sources / f"lccfs-{version}.tar.gz", "--null", "--files-from",
                    "-", "--transform", f"s,^,lccfs-{version}/,"], cwd=ROOT, check=True, input=there)


def setUpModule():
    global package  # what the tests share
    shutil.rmtree(FOLDER, ignore_errors=True)
    pack_sources(output("rpmspec", "--load", MACROS_OF_FEDORA, "-q", "--srpm", "--qf", "%{VERSION}", SPEC))
    subprocess.run(["rpmbuild", "-bb", "--nodeps", "--load", MACROS_OF_FEDORA, "--define", f"_topdir {FOLDER}", SPEC],
                   check=True)
    package = next(FOLDER.glob("RPMS/*/lccfs-*.rpm"))


class RpmTest(unittest.TestCase):
    def test_it_has_what_is_installed_and_asks_for_what_mounting_needs(self):
        files = set(output("rpm", "-qp", "-l", package).split())
        for name in ["lccfs", "lccfs-fuse", "lccfs-gc", "lccfs-fsck", "mount.lccfs", "umount.fuse.lccfs"]:
            self.assertIn(f"/usr/sbin/{name}", files)
        pages = {pathlib.Path(name).name.removesuffix(".gz") for name in files if name.startswith("/usr/share/man/")}
        self.assertLessEqual({path.name for path in PAGES}, pages)
        self.assertLessEqual({"fuse3", "util-linux"}, set(output("rpm", "-qp", "--requires", package).split()))
        self.assertEqual(output("rpm", "-qp", "-c", package).split(), ["/etc/lccfs/lccfs.conf"])
        self.assertIn("lccfs@.service", output("rpm", "-qp", "--scripts", package))

    def test_it_is_installed_its_programs_run_and_nothing_is_left_when_it_is_removed(self):
        root = pathlib.Path(tempfile.mkdtemp(prefix="lccfs-rpm-"))
        self.addCleanup(shutil.rmtree, root)
        rpm = ["rpm", "--root", root, "--nodeps", "--noscripts"]
        output(*rpm, "--install", package)
        version = output("rpm", "-qp", "--qf", "%{VERSION}", package)
        for program in ["lccfs", "lccfs-fuse", "lccfs-gc", "lccfs-fsck"]:
            self.assertEqual(output(root / "usr/sbin" / program, "--version").split(), [program, version])
        output(*rpm, "--erase", "lccfs")
        self.assertEqual([path for path in root.rglob("*lccfs*") if "/var/lib/rpm" not in str(path)], [])
