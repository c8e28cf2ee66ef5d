# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the packages are made of is in step, and taken by the tools that it is for."""

import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from places import ROOT, context

MACROS = {"_sbindir": "/usr/sbin", "_mandir": "/usr/share/man", "_unitdir": "/usr/lib/systemd/system",
          "_datadir": "/usr/share", "_docdir": "/usr/share/doc", "_sysconfdir": "/etc"}
SPEC = ROOT / "packaging" / "lccfs.spec"


class InstalledTest(unittest.TestCase):
    """On what `cmake --install` puts into an empty folder."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="lccfs-installed-"))
        subprocess.run(["cmake", "--install", context.build, "--prefix", "/usr"], check=True, capture_output=True,
                       env=os.environ | {"DESTDIR": str(cls.folder)})

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_the_rpm_spec_lists_what_is_installed_and_nothing_else(self):
        installed = {"/" + str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
        installed = {re.sub("^/sbin/", "/usr/sbin/", path) for path in installed} | {"/etc/lccfs/lccfs.conf"}
        listed = re.search(r"^%files\n(.*?)^%changelog", SPEC.read_text(encoding="utf-8"), re.M | re.S).group(1)
        lines = [re.sub(r"%\{(\w+)\}", lambda macro: MACROS[macro[1]], line.split()[-1])
                 for line in listed.splitlines() if line and not re.match("%(license|doc|dir)", line)]
        for path in installed:
            self.assertTrue(any(fnmatch.fnmatch(path, line) for line in lines), f"{path} is not listed")
        for line in lines:
            self.assertTrue(fnmatch.filter(installed, line), f"{line} is not installed")

    def test_every_program_has_a_manual_and_completion(self):
        pages = {path.stem for path in (self.folder / "usr/share/man").rglob("*.8")}
        programs = {path.name for path in [*(self.folder / "usr/sbin").iterdir(), *(self.folder / "sbin").iterdir()]}
        self.assertEqual(programs - pages, set())
        completed = {path.name for path in (self.folder / "usr/share/bash-completion/completions").iterdir()}
        self.assertEqual({name for name in programs if "mount" not in name}, completed)

    def test_systemd_finds_nothing_wrong_with_the_units(self):
        units = self.folder / "usr/lib/systemd/system"
        programs = self.folder / "usr/sbin"
        checked = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, checked)
        for unit in units.iterdir():
            self.assertTrue(unit.name.endswith("@.service"))
            text = re.sub(r"^(ExecStart=)lccfs", rf"\1{programs}/lccfs", unit.read_text(encoding="utf-8"), flags=re.M)
            instance = checked / unit.name.replace("@", "@vms")
            instance.write_text(text, encoding="utf-8")
            with self.subTest(unit.name):
                done = subprocess.run(["systemd-analyze", "verify", "--man=no", instance], check=False,
                                      capture_output=True, text=True)
                about_ours = [line for line in done.stderr.splitlines() if "lccfs" in line]
                self.assertEqual((done.returncode, about_ours), (0, []))

    def complete(self, *words):
        """What bash offers for the last word."""
        script = """
            . /usr/share/bash-completion/bash_completion
            . "$1"; shift
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
            _lccfs "$1" && printf '%s\\n' "${COMPREPLY[@]}" """
        completion = self.folder / "usr/share/bash-completion/completions/lccfs"
        done = subprocess.run(["bash", "-c", script, "bash", completion, *words], check=True, capture_output=True, text=True,
                              env=os.environ | {"PATH": f"{context.bin}:{os.environ['PATH']}"})
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_bash_completes_commands_and_options_of_each(self):
        self.assertLessEqual({"mkfs", "info", "auth", "upgrade"}, self.complete("lccfs", ""))
        self.assertEqual(self.complete("lccfs", "mk"), {"mkfs"})
        self.assertLessEqual({"--json", "--pool", "--help"}, self.complete("lccfs", "info", "-"))
        self.assertEqual(self.complete("lccfs", "info", "--js"), {"--json"})
        self.assertEqual(self.complete("lccfs", "mkfs", "--obj"), {"--object-size"})
        self.assertEqual(self.complete("lccfs-fuse", "--mountp"), {"--mountpoint"})
        self.assertEqual(self.complete("lccfs-gc", "-p", "x", "--dr"), {"--dry-run"})
        self.assertEqual(self.complete("lccfs-fsck", "--re"), {"--repair"})
        self.assertEqual(self.complete("lccfs-gc", "--log-level", "w"), {"warning"})


class InStepTest(unittest.TestCase):
    def test_all_have_the_same_version(self):
        version = re.search(r"project\(lccfs VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
        changelog = (ROOT / "packaging/debian/changelog").read_text(encoding="utf-8")
        spec = SPEC.read_text(encoding="utf-8")
        self.assertEqual(re.match(r"lccfs \((\S+)-1\)", changelog)[1], version)
        self.assertEqual(re.search(r"^Version: +(\S+)", spec, re.M)[1], version)
        self.assertEqual(re.search(r"^\* .* - (\S+)-1$", spec, re.M)[1], version)

    def test_rpm_reads_the_spec(self):
        done = subprocess.run(["rpmspec", "-P", "--define", "systemd_requires %{nil}", "--define", "cmake cmake",
                               "--define", "cmake_build true", "--define", "cmake_install true", "--define", "_unitdir /u",
                               "--define", "systemd_post() true", "--define", "systemd_preun() true",
                               "--define", "systemd_postun() true", SPEC], check=False, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_the_packages_need_to_build_is_what_the_tree_installs(self):
        script = (ROOT / "packaging/install-dependencies").read_text(encoding="utf-8")
        needed = set(re.search(r"needed=\((.*?)\)", script, re.S).group(1).split())
        control = (ROOT / "packaging/debian/control").read_text(encoding="utf-8")
        wanted = re.search(r"Build-Depends: (.*?)\nStandards", control, re.S).group(1)
        wanted = {word.split()[0] for word in wanted.replace("\n", " ").split(",")}
        self.assertEqual(wanted - {"debhelper-compat"}, needed - {"g++", "fuse3"})
