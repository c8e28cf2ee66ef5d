# SPDX-License-Identifier: LGPL-2.1-or-later
"""Storms of programs: cp and rm, fio."""

import os
import subprocess

from storm import FOLDER, Storm, a_size, content_of, expect


def make_source(folder):
    """A small tree to copy."""
    for number in range(3):
        (folder / f"d{number}").mkdir(parents=True)
        for name in range(3):
            identity = f"source {number} {name}"
            (folder / f"d{number}" / f"f{name}").write_bytes(content_of(identity, a_size(identity, 150_000)))
    return folder


class Trees(Storm):
    """cp -r and rm -r. What is copied is trusted after an fsync of each file, what is removed when rm has ended."""

    KEPT = 2

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.source = make_source(self.scratch / f"{self.name}-source")
        self.contents = self.contents_of(self.source)
        self.copies = {}  # name -> part, whole, or less: it was whole, and is being removed
        self.number = 0

    def is_trust(self, words):
        return words[0] in ("copied", "removed")

    def heard(self, what, name):
        if what == "copying":
            self.number += 1
            self.copies[name] = "part"
        elif what == "copied":
            self.copies[name] = "whole"
        elif what == "removing":
            self.copies[name] = "less" if self.copies[name] == "whole" else self.copies[name]
        else:
            del self.copies[name]

    def begin(self, folder):
        for name in [name for name, state in self.copies.items() if state != "whole"]:
            self.remove(folder, name)

    def step(self, folder):
        name = f"{self.name}-{self.number}"
        self.tell("copying", name)
        self.call(folder, "cp", "-r", self.source, folder / name)
        for path in (folder / name).rglob("*"):
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.close(file)
        self.tell("copied", name)
        if len(self.copies) > self.KEPT:
            self.remove(folder, next(iter(self.copies)))

    def remove(self, folder, name):
        self.tell("removing", name)
        self.call(folder, "rm", "-r", folder / name)
        self.tell("removed", name)

    def tell(self, what, name):
        self.note(what, name)
        self.heard(what, name)

    def call(self, folder, *words):
        done = subprocess.run(words, check=False, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            os.stat(folder)  # ENOTCONN, if that is why
            raise AssertionError(f"{words}: {done.stderr}")

    def contents_of(self, top):
        return {str(path.relative_to(top)): path.read_bytes() if path.is_file() else None for path in top.rglob("*")}

    def compare(self, folder):
        names = {name for name in os.listdir(folder) if name.startswith(self.name)}
        expect(names <= set(self.copies), f"{sorted(names)}, and not {self.copies}")
        for name, state in self.copies.items():
            found = self.contents_of(folder / name) if name in names else {}
            expect(set(found) <= set(self.contents), f"{name} has names that were never copied")
            if state == "whole":
                expect(found == self.contents, f"{name} is not what was copied")
            if state == "less":
                expect(found.items() <= self.contents.items(), f"what is left of {name} is not what was copied")
        self.copies = {name: state for name, state in self.copies.items() if name in names}


class Fio(Storm):
    """fio's random direct writes over an image that it has filled before. Each block is wholly one of its writes."""

    has_notes = False

    def job(self, folder, *options):
        return ["fio", "--name=job", f"--filename={folder / self.name}", "--size=4M", "--bs=4k", "--direct=1",
                "--ioengine=libaio", "--iodepth=8", "--verify=crc32c", "--verify_state_save=0", *options]

    def prepare(self, mount):
        subprocess.run(self.job(mount / FOLDER, "--rw=write", "--do_verify=0", "--end_fsync=1"), check=True,
                       stdout=subprocess.DEVNULL)

    def step(self, folder):
        done = subprocess.run(
            self.job(folder, "--rw=randwrite", "--do_verify=0", "--fsync=64", "--norandommap", "--time_based",
                     f"--randseed={self.random.randrange(1 << 30)}", "--runtime=3600"),
            check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        os.stat(folder)  # ENOTCONN, if the client died
        raise AssertionError(f"fio ended with status {done.returncode}: {done.stderr}")

    def compare(self, folder):
        done = subprocess.run(self.job(folder, "--rw=read", "--verify_fatal=1"), check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        expect(done.returncode == 0, f"fio finds other blocks than its own: {done.stdout}")


class VerifyingFio(Fio):
    """Random reads and writes that fio itself verifies as it goes."""

    has_notes = True

    def is_trust(self, words):
        return True

    def step(self, folder):
        subprocess.run(
            self.job(folder, "--rw=randrw", "--verify_backlog=256", "--verify_fatal=1", "--time_based", "--runtime=4",
                     f"--randseed={self.random.randrange(1 << 30)}"), check=True, stdout=subprocess.DEVNULL)
        self.note("verified")
