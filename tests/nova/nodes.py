# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compute nodes as the steps see them: a mount of the volume, and Nova in a process that has it at instances_path.

Each node has a mount namespace of its own, in which the folder `instances` is its mount: paths of disks are the same on
all nodes, as on real ones. The client of a node elsewhere runs in a PID namespace of its own: to the others it is on
another host. (Only one at a time: LMDB, below the local store, knows its readers by their process numbers.)
"""

import json
import os
import pathlib
import select
import signal
import subprocess
import time

from harness import Mount, context
from test_killed_clients import MountElsewhere

HERE = pathlib.Path(__file__).resolve().parent
ANSWER_LIMIT_S = 600

# What Nova calls to reach another node: the command runs there.
SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do [ "$1" = -o ] && shift; shift; done
node=$1; shift
exec nsenter --mount --target "$(cat "%s/$node.pid")" sh -c "$*"
"""
# cp fails as long as there is the file that it names.
CP = """#!/bin/sh
[ ! -e "%s" ] && exec /bin/cp "$@"
echo "cp: no" >&2; exit 1
"""
# What else is mounted here could not be unmounted elsewhere as long as this namespace had it, too.
IN_ITS_PLACE = """mount --bind "$1" "$2" || exit
findmnt -rno TARGET -t fuse.lccfs | grep -vxF "$2" | xargs -r umount -l
shift 2
exec "$@"
"""


class NodeError(Exception):
    """What Nova raised."""


class Site:
    """What all nodes have in common: the volume, Glance, and a folder that is not on the volume."""

    def __init__(self, volume, python):
        self.volume = volume
        self.python = python
        self.a = self.b = None
        self.instances = context.workdir / "instances"
        self.shared = context.workdir / "shared"
        self.glance = self.shared / "glance"
        for folder in [self.instances, self.glance, self.shared / "sockets", self.shared / "bin"]:
            folder.mkdir(parents=True)
        self.copies_fail = self.shared / "copies-fail"
        self._add_program("ssh", SSH % self.shared)
        self._add_program("cp", CP % self.copies_fail)

    def _add_program(self, name, text):
        """One that Nova finds before the system's."""
        program = self.shared / "bin" / name
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)

    def start_nodes(self):
        self.a = ComputeNode(self, "node-a", "192.0.2.1", elsewhere=True)
        self.b = ComputeNode(self, "node-b", "192.0.2.2")

    def end(self):
        """Nova, guests and mounts. True: all clients ended cleanly."""
        for node in [self.a, self.b]:
            if node and node.process.poll() is None:
                node.stop()
        return all([mount.clean_up() for mount in self.volume.mounts])

    def add_image(self, name, content, disk_format="raw", **about):
        about.update(id=name, name=name, disk_format=disk_format)
        (self.glance / f"{name}.json").write_text(json.dumps(about), encoding="utf-8")
        os.link(content, self.glance / name)

    def downloads(self, image):
        """The nodes that have downloaded it, in order."""
        lines = (self.glance / "downloads").read_text(encoding="utf-8").splitlines()
        return [line.split()[1] for line in lines if line.split()[0] == image]


class ComputeNode:
    """`node.method(argument...)` calls Node.method in compute_node.py; `node.begin("method", ...)` does not wait."""

    def __init__(self, site, host, address, elsewhere=False):
        self.site, self.host, self.address = site, host, address
        self.mount = (MountElsewhere if elsewhere else Mount)(site.volume)
        site.volume.mounts.append(self.mount)
        self.mount.start()
        self.path = self.mount.path  # the instances, as this node sees them
        (site.shared / host).mkdir(exist_ok=True)
        self.start()

    def start(self):
        """Nova's process."""
        environment = dict(os.environ, PATH=f"{self.site.shared / 'bin'}:{os.environ['PATH']}")
        with open(context.workdir / f"{self.host}.log", "ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", IN_ITS_PLACE, "sh", self.path, self.site.instances,
                 self.site.python, "-B", "-W", "ignore", HERE / "compute_node.py", self.host, self.address,
                 self.site.instances, self.site.shared],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment)
        (self.site.shared / f"{self.address}.pid").write_text(str(self.process.pid), encoding="utf-8")
        self.end()

    def begin(self, method, *arguments):
        self.process.stdin.write(json.dumps([method, *arguments]).encode() + b"\n")
        self.process.stdin.flush()

    def end(self):
        """The answer to what was begun."""
        line = b""
        deadline = time.monotonic() + ANSWER_LIMIT_S
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{self.host}: no answer within {ANSWER_LIMIT_S} s")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                raise AssertionError(f"{self.host}: its process has ended")
            line += piece
        answer = json.loads(line)
        if "error" in answer:
            raise NodeError(answer["error"])
        return answer["answer"]

    def __getattr__(self, method):
        def call(*arguments):
            self.begin(method, *arguments)
            return self.end()
        return call

    def output(self, *command):
        """Of a command that runs on the node."""
        words = ["nsenter", "--mount", "--target", str(self.process.pid), *map(str, command)]
        print("+", self.host, *words[4:], flush=True)
        with open(context.workdir / "steps.log", "ab") as log:
            return subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=log, text=True).stdout

    def stop(self):
        """Nova's process alone, and its guests; the mount stays."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def crash(self):
        """The whole host."""
        self.mount.may_die = True
        self.mount.process.kill()
        self.stop()
        self.mount.process.wait()
        self.mount.clean_up()


def at_once(*calls):
    """Each call is (node, method, argument...), on different nodes. Their answers, or errors, in order."""
    for node, *call in calls:
        node.begin(*call)
    answers = []
    for node, *_ in calls:
        try:
            answers.append(node.end())
        except NodeError as error:
            answers.append(error)
    return answers
