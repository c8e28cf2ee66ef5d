# SPDX-License-Identifier: LGPL-2.1-or-later
"""A fresh Debian 12 that runs its own systemd, in namespaces of its own; the network is this machine's."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

from places import context

BOOT_LIMIT_S = 120
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def wait_until(condition, limit_s, what):
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not after {limit_s} s")
        time.sleep(0.2)


def pristine():
    """What debootstrap makes, as an archive; once."""
    archive = context.work / "debian12.tar"
    if not archive.exists():
        made, unfinished = context.work / "debian12", archive.with_suffix(".part")
        shutil.rmtree(made, ignore_errors=True)
        subprocess.run(["debootstrap", "bookworm", made], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["tar", "-C", made, "-cf", unfinished, "."], check=True)
        shutil.rmtree(made)
        unfinished.rename(archive)
    return archive


class FreshHost:
    def __init__(self, name):
        self.name = name
        self.root = context.work / name
        self._log = context.work / f"{name}.log"
        self._process = None
        self._init = None

    def start(self):
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        subprocess.run(["tar", "-C", self.root, "-xf", pristine()], check=True)
        packages = context.work / "archives"
        packages.mkdir(exist_ok=True)
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--directory", self.root, "--machine", self.name, "--hostname", self.name,
                 "--boot", "--register=no", "--keep-unit", "--capability=all", "--bind=/dev/fuse",
                 f"--bind={packages}:/var/cache/apt/archives", "--console=pipe"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        wait_until(self._has_booted, BOOT_LIMIT_S, f"{self.name} is up")
        self.run("apt-get update -qq")
        return self

    def stop(self):
        if self._process is None:
            return
        if self._init is not None and self._process.poll() is None:
            os.kill(self._init, signal.SIGRTMIN + 4)  # to systemd: power off
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, script, check=True):
        """A shell script, as root there; what it prints."""
        done = self._run(script)
        lines = [*script.splitlines(), *done.stdout.splitlines(), *done.stderr.splitlines()]
        said = "".join(f"{self.name}| {line}\n" for line in lines if not line.startswith("(Reading database"))
        print(said, end="", flush=True)
        if check and done.returncode != 0:
            raise AssertionError(f"status {done.returncode}:\n{said}")
        return done

    def _run(self, script):
        return subprocess.run(
            ["nsenter", "--target", str(self._init), "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--root", "--wdns=/root",
             "env", "-i", f"PATH={PATH}", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
             "bash", "-euo", "pipefail", "-c", script],
            check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900)

    def output(self, script):
        return self.run(script).stdout.strip()

    def put(self, source, target):
        path = pathlib.Path(f"{self.root}{target}")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, path)

    def write(self, target, text):
        path = pathlib.Path(f"{self.root}{target}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _has_booted(self):
        if self._process.poll() is not None:
            raise AssertionError(f"{self.name} ended with status {self._process.returncode}, see {self._log}")
        children = pathlib.Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text(encoding="utf-8")
        if not children:
            return False
        self._init = int(children.split()[0])
        state = self._run("systemctl is-system-running || true").stdout.strip()
        return state in ("running", "degraded")
