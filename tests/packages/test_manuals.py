# SPDX-License-Identifier: LGPL-2.1-or-later
"""The manuals have what the programs' --help has, and no more; and they can be read."""

import os
import re
import subprocess
import tempfile
import unittest

from places import PAGES, ROOT, context

COMMON = {"-h", "--help", "--version"}


def page(name):
    return (ROOT / "docs" / "man" / name).read_text(encoding="utf-8")


def help_of(*command):
    return subprocess.run([context.bin / command[0], *command[1:], "--help"], check=True, capture_output=True,
                          text=True).stdout


def options_in_help(text):
    """-c and --conf of "  -c,--conf FILE ..."."""
    return {name for line in re.findall(r"^  (-\S+)", text, re.M) for name in line.split(",")}


def options_in_page(text):
    """Of ".It Fl c , Fl -conf Ar file"."""
    return {"-" + name for line in re.findall(r"^\.It (Fl .*)", text, re.M) for name in re.findall(r"\bFl (\S+)", line)}


def sections_of(text, macro):
    parts = re.split(rf"^\.{macro} (.*)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def plain(text):
    """The words of an entry, without its macros."""
    return " ".join(re.sub(r"^\.\w+ ", "", line) for line in text.splitlines())


def commands_in_help():
    listed = re.search(r"^Commands.*?:\n(.*?)\n\n", help_of("lccfs"), re.M | re.S).group(1)
    return set(re.findall(r"^  (\w+)", listed, re.M))


class HelpTest(unittest.TestCase):
    def test_every_option_of_a_program_is_in_its_manual_and_no_other(self):
        for program in ["lccfs-fuse", "lccfs-gc", "lccfs-fsck"]:
            with self.subTest(program):
                self.assertEqual(options_in_page(page(f"{program}.8")), options_in_help(help_of(program)))

    def test_every_command_of_lccfs_and_its_options_are_in_the_manual_and_no_others(self):
        sections = sections_of(page("lccfs.8"), "Ss")
        volume = options_in_page(sections.pop("The volume"))
        self.assertEqual(set(sections), commands_in_help())
        self.assertEqual(set(re.findall(r"^\.Cm (\w+)$", page("lccfs.8").split(".Sh DESCRIPTION")[0], re.M)), set(sections))
        for command, text in sections.items():
            with self.subTest(command):
                own = text.split("\n.Sh ")[0]
                text_of_help = help_of("lccfs", command)
                common = COMMON if "-h,--help" in text_of_help else COMMON - {"-h"}  # of du it is another one
                offered = options_in_help(text_of_help) - common
                self.assertEqual(options_in_page(own) | (volume & offered), offered)

    def test_every_mount_option_of_the_help_is_in_the_manual_and_no_other(self):
        listed = re.search(r"Options of -o: (.*)\.\n", help_of("lccfs-fuse"), re.S).group(1)
        offered = {word.split("=")[0] for word in re.split(r",\s+", listed)}
        described = sections_of(page("lccfs-fuse.8"), "Sh")["MOUNT OPTIONS"]
        entries = re.findall(r"^\.It Cm ([^=\n]*?)(?: Ns =.*)?$", described, re.M)
        self.assertEqual({word for entry in entries for word in entry.split(" , ")} - {"rw", "gc", "suid", "dev", "exec"}, offered)


class ConfigurationTest(unittest.TestCase):
    """lccfs.conf(5)."""

    commands = {"lccfs": ["lccfs", "info"], "lccfs-fuse": ["lccfs-fuse", "-m", "/nowhere"], "lccfs-gc": ["lccfs-gc"],
                "lccfs-fsck": ["lccfs-fsck"]}

    def setUp(self):
        sections = sections_of(page("lccfs.conf.5"), "Ss")
        self.for_all = self.entries(sections.pop("For all programs"))
        self.sections = {name.strip("[]"): self.entries(text.split("\n.Sh ")[0]) for name, text in sections.items()}

    @staticmethod
    def entries(text):
        """Each key with what is said of it."""
        parts = re.split(r"^\.It Cm (.*)$", text, flags=re.M)
        return {key: plain(said) for keys, said in zip(parts[1::2], parts[2::2], strict=True) for key in keys.split(" , ")}

    def answer(self, program, text):
        """What the program says, that reads these defaults; it does nothing, because its volume is nowhere."""
        return self.said_by([*self.commands[program], "-p", "x", "-c", "/nowhere/ceph.conf"], text)

    @staticmethod
    def said_by(command, text):
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([context.bin / command[0], *command[1:]], check=False, cwd=folder,
                                  capture_output=True, text=True, env=os.environ | {"LCCFS_CONFIG": file.name})
            return done.stderr.replace(file.name, "FILE")

    def test_the_manual_has_all_keys_and_no_others(self):
        self.assertEqual(set(self.sections), set(self.commands))
        for program, command in self.commands.items():
            known = set(self.sections[program]) | set(self.for_all)
            for option in options_in_help(help_of(*command[:1 if program != "lccfs" else 2])):
                if not option.startswith("--"):
                    continue
                key = option.removeprefix("--")
                said = self.answer(program, f"[{program}]\n{key} = 1\n")
                with self.subTest(program, key=key):
                    self.assertEqual("there is no key" in said, key not in known, said)
                said = self.answer(program, f"{key} = 1\n")
                with self.subTest("all programs", key=key):
                    self.assertEqual("there is no key" in said, key not in self.for_all, said)

    def test_every_command_reads_the_defaults_for_the_others(self):
        keep_from_working = {"top": ["--interval", "0"]}  # the others miss a word that they need
        for command in commands_in_help():
            words = ["lccfs", command, *keep_from_working.get(command, [])]
            for section in ["", "[lccfs]\n"]:
                with self.subTest(command, section=section):
                    known = "".join(f"{key} = /x\n" for key in self.for_all)
                    said = self.said_by(words, section + known)
                    self.assertIn(f"(lccfs {command} --help)", said)
                    self.assertNotIn("FILE", said)
                    self.assertIn("there is no key 'nonsense'", self.said_by(words, section + "nonsense = 1\n"))

    def test_the_limits_and_defaults_are_those_that_the_manual_says(self):
        tried = 0
        for program, keys in self.sections.items():
            shown = help_of(*self.commands[program][:1])
            for key, said in keys.items():
                limits = re.search(r"(\d+) to (\d+)", said)
                if limits:
                    tried += 1
                    beyond = int(limits[2]) + 1
                    with self.subTest(program, key=key):
                        self.assertIn(f"FILE:2: {key}: {beyond} is not from {limits[1]} to {limits[2]}",
                                      self.answer(program, f"[{program}]\n{key} = {beyond}\n"))
                        self.assertNotIn("FILE", self.answer(program, f"[{program}]\n{key} = {limits[2]}\n"))
                default = re.search(r"default (\d+)", said)
                helped = re.search(rf"--{key} [^-]*?\(default: (\d+)\)", shown, re.S)
                if default and helped:
                    self.assertEqual(default[1], helped[1], f"{program} {key}")
        self.assertGreaterEqual(tried, 3)

    def test_the_example_is_read_by_all_programs_with_its_lines_in_force(self):
        example = (ROOT / "packaging" / "lccfs.conf").read_text(encoding="utf-8")
        in_force = re.sub(r"^#(?=[a-z[])", "", example, flags=re.M)
        self.assertNotEqual(example, in_force)
        for program in self.commands:
            for text in [example, in_force]:
                self.assertNotIn("FILE", self.answer(program, text))


class ServiceTest(unittest.TestCase):
    def test_a_service_without_its_settings_fails(self):
        for unit in (ROOT / "packaging" / "systemd").iterdir():
            with self.subTest(unit.name):
                text = unit.read_text(encoding="utf-8")
                settings = re.search(r"^EnvironmentFile=(/.*)$", text, re.M).group(1)
                self.assertIn(f"\nAssertPathExists={settings}\n", text)
                self.assertNotIn("\nCondition", text)  # a misspelt name would be a success


class PageTest(unittest.TestCase):
    def test_the_pages_render_without_a_warning(self):
        for path in PAGES:
            with self.subTest(path.name):
                linted = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], check=False, capture_output=True,
                                        text=True)
                self.assertEqual((linted.returncode, linted.stdout + linted.stderr), (0, ""))
                rendered = subprocess.run(["groff", "-ww", "-mandoc", "-Tutf8", path], check=True, capture_output=True,
                                          text=True)
                self.assertEqual(rendered.stderr, "")

    def test_pages_that_are_named_exist(self):
        ours = {path.name for path in PAGES}
        for path in PAGES:
            for name, section in re.findall(r"^\.Xr (\S*lccfs\S*) (\d)", path.read_text(encoding="utf-8"), re.M):
                self.assertIn(f"{name}.{section}", ours, path.name)
