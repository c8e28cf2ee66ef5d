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

from places import MACROS_OF_FEDORA, ROOT, SPEC, context

MACROS = {"_sbindir": "/usr/sbin", "_mandir": "/usr/share/man", "_unitdir": "/usr/lib/systemd/system",
          "_datadir": "/usr/share", "_docdir": "/usr/share/doc", "_sysconfdir": "/etc"}


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
        first_line = self.zsh_completion().read_text(encoding="utf-8").splitlines()[0]
        self.assertEqual(set(first_line.split()), completed | {"#compdef"})

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

    def zsh_completion(self):
        return self.folder / "usr/share/zsh/site-functions/_lccfs"

    def complete(self, *words):
        """What bash offers for the last word."""
        script = """
            . /usr/share/bash-completion/bash_completion
            . "$1"; shift
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
            _lccfs "$1" && printf '%s\\n' "${COMPREPLY[@]}" """
        return self.said("bash", script, self.folder / "usr/share/bash-completion/completions/lccfs", *words)

    def complete_in_zsh(self, *words):
        """The same of zsh, which itself leaves what does not begin so."""
        script = """
            compadd() { shift; print -rl -- ${(M)@:#$PREFIX*} }
            compset() { PREFIX=${PREFIX#${~2}} }
            _files() { print -r -- "files$*" }
            completion=$1; shift
            words=("$@") CURRENT=$# PREFIX=${@[-1]}
            . $completion """
        return self.said("zsh", script, self.zsh_completion(), *words)

    def said(self, shell, script, *words):
        done = subprocess.run([shell, "-c", script, shell, *words], check=True, capture_output=True, text=True,
                              env=os.environ | {"PATH": f"{context.bin}:{os.environ['PATH']}"})
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_shells_complete_commands_and_options_of_each(self):
        for complete in (self.complete, self.complete_in_zsh):
            with self.subTest(complete.__name__):
                self.assertLessEqual({"mkfs", "info", "auth", "upgrade"}, complete("lccfs", ""))
                self.assertEqual(complete("lccfs", "mk"), {"mkfs"})
                self.assertLessEqual({"--json", "--pool", "--help"}, complete("lccfs", "info", "-"))
                for command in ("info", "mkfs", "evict", "upgrade", "load"):
                    self.assertEqual(complete("lccfs", command, "--js"), {"--json"})
                self.assertEqual(complete("lccfs", "mkfs", "--obj"), {"--object-size"})
                self.assertEqual(complete("lccfs-fuse", "--mountp"), {"--mountpoint"})
                self.assertEqual(complete("lccfs-gc", "-p", "x", "--dr"), {"--dry-run"})
                self.assertEqual(complete("lccfs-fsck", "--re"), {"--repair"})
                self.assertEqual(complete("lccfs-gc", "--log-level", "w"), {"warning"})
                self.assertEqual(complete("lccfs-gc", "-p", "x", "--local", "/no/such"),
                                 {"files-/"} if complete == self.complete_in_zsh else set())

    def test_zsh_takes_values_behind_an_equals_sign(self):
        self.assertEqual(self.complete_in_zsh("lccfs-gc", "--log-level=w"), {"warning"})
        self.assertEqual(self.complete_in_zsh("lccfs-fuse", "--conf=/e"), {"files"})

    def test_zsh_finds_its_completion_for_all_programs(self):
        script = """
            fpath=($1 $fpath)
            autoload -Uz compinit
            compinit -u -D
            print -rl -- $_comps[lccfs] $_comps[lccfs-fuse] $_comps[lccfs-gc] $_comps[lccfs-fsck] """
        done = subprocess.run(["zsh", "-fc", script, "zsh", self.zsh_completion().parent], check=True, capture_output=True,
                              text=True)
        self.assertEqual((done.stdout.split(), done.stderr), (["_lccfs"] * 4, ""))


class InStepTest(unittest.TestCase):
    def test_all_have_the_same_version(self):
        version = re.search(r"project\(lccfs VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
        changelog = (ROOT / "packaging/debian/changelog").read_text(encoding="utf-8")
        spec = SPEC.read_text(encoding="utf-8")
        self.assertEqual(re.match(r"lccfs \((\S+)-1\)", changelog)[1], version)
        self.assertEqual(re.search(r"^Version: +(\S+)", spec, re.M)[1], version)
        self.assertEqual(re.search(r"^\* .* - (\S+)-1$", spec, re.M)[1], version)

    def test_rpm_reads_the_spec(self):
        done = subprocess.run(["rpmspec", "--load", MACROS_OF_FEDORA, "-P", SPEC], check=False, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_what_the_packages_need_to_build_is_what_the_tree_installs(self):
        script = (ROOT / "packaging/install-dependencies").read_text(encoding="utf-8")
        needed = set(re.search(r"needed=\((.*?)\)", script, re.S).group(1).split())
        control = (ROOT / "packaging/debian/control").read_text(encoding="utf-8")
        wanted = re.search(r"Build-Depends: (.*?)\nStandards", control, re.S).group(1)
        wanted = {word.split()[0] for word in wanted.replace("\n", " ").split(",")}
        self.assertEqual(wanted - {"debhelper-compat"}, needed - {"fuse3"})

    def test_both_packages_ship_the_guides_and_what_these_link_to(self):
        shipped = (ROOT / "packaging/debian/lccfs.docs").read_text(encoding="utf-8").split()
        self.assertEqual(re.search(r"^%doc (.*)", SPEC.read_text(encoding="utf-8"), re.M)[1].split(), shipped)
        self.assertIn("docs/guide", shipped)
        for guide in (ROOT / "docs/guide").glob("*.md"):
            for link in re.findall(r"\]\(((?!https?:)[^)#]+)", guide.read_text(encoding="utf-8")):
                target = (guide.parent / link).resolve().relative_to(ROOT)
                ways = [str(path) for path in [target, *target.parents]]
                with self.subTest(guide=guide.name, link=link):
                    self.assertEqual(target.parts[0], "docs", "elsewhere in the package it has another place")
                    self.assertTrue(any(fnmatch.filter(ways, one) for one in shipped))

    def test_elsewhere_than_on_debian_12_nothing_is_installed_and_one_line_says_so(self):
        for system, programs in {"rocky": [], "debian": [], "ubuntu": ["apt-get"]}.items():
            with self.subTest(system), tempfile.TemporaryDirectory() as folder:
                done = self.install_on(pathlib.Path(folder), system, programs)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, rf"^install-dependencies: made for Debian 12, .* {system} 12.* cmake .*\n$")

    @staticmethod
    def install_on(folder, system, programs):
        """Where /etc/os-release is another, and no programs are found but these, which say what they do."""
        (folder / "os-release").write_text(f'ID={system}\nVERSION_ID="12"\n', encoding="utf-8")
        (folder / "bin").mkdir()
        for program in programs:
            (folder / "bin" / program).write_text('#!/bin/sh\necho "$0 $*"\n', encoding="utf-8")
            (folder / "bin" / program).chmod(0o755)
        script = 'mount --bind "$1/os-release" /etc/os-release && PATH=$1/bin exec /bin/bash "$2"'
        return subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", folder,
                               ROOT / "packaging/install-dependencies"], check=False, capture_output=True, text=True)
