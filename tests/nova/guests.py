# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nova's own stand-in for libvirt (nova.tests.fixtures.libvirt), with a real QEMU behind each domain that runs.

So the guests of a compute node open, lock, write, copy and hand over their disks as they do under libvirtd.
"""

import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import types

from lxml import etree
import nova.tests

# The package's own __init__ wants all that Nova's tests need.
_package = types.ModuleType("nova.tests.fixtures")
_package.__path__ = [str(pathlib.Path(nova.tests.__file__).parent / "fixtures")]
sys.modules.setdefault("nova.tests.fixtures", _package)
from nova.tests.fixtures import libvirt as fakelibvirt  # noqa: E402

START_LIMIT_S = 60
JOB_LIMIT_S = 120
PR_SET_PDEATHSIG = 1

sockets = pathlib.Path()  # set by the node: a folder that all nodes see, not on the volume
_libc = ctypes.CDLL(None)


def internal_error(text):
    return fakelibvirt.make_libvirtError(fakelibvirt.libvirtError, text, error_message=text,
                                         error_code=fakelibvirt.VIR_ERR_INTERNAL_ERROR,
                                         error_domain=fakelibvirt.VIR_FROM_QEMU)


class Qemu:
    """One QEMU, with the disks of a domain's XML, and its monitor (QMP)."""

    def __init__(self, xml, incoming=None):
        tree = etree.fromstring(xml)
        self.path = sockets / f"{os.getpid()}-{time.monotonic_ns()}.qmp"
        command = ["qemu-system-x86_64", "-accel", "tcg", "-m", "64", "-display", "none", "-nodefaults",
                   "-no-user-config", "-qmp", f"unix:{self.path},server=on,wait=off", *self._disks(tree),
                   *self._console(tree)]
        if incoming:
            command += ["-incoming", f"unix:{incoming}"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, preexec_fn=self._end_with_the_node)
        self._connect()

    @staticmethod
    def _end_with_the_node():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    @staticmethod
    def _disks(tree):
        words = []
        for disk in tree.findall("./devices/disk"):
            file, target = disk.find("source").get("file"), disk.find("target").get("dev")
            driver = disk.find("driver")
            words += ["-drive", f"file={file},format={driver.get('type')},cache={driver.get('cache', 'none')},if=none,"
                      f"id={target}", "-device", f"virtio-blk-pci,drive={target}"]
        return words

    @staticmethod
    def _console(tree):
        log = tree.find("./devices//log[@file]")
        if log is None:
            return []
        return ["-chardev", f"null,id=console,logfile={log.get('file')},logappend=on", "-serial", "chardev:console"]

    def _connect(self):
        deadline = time.monotonic() + START_LIMIT_S
        while not self._is_connected():
            if self.process.poll() is not None:
                raise internal_error(f"QEMU did not start: {self.process.stderr.read()}")
            if time.monotonic() > deadline:
                self.end()
                raise internal_error("QEMU is not ready in time")
            time.sleep(0.05)

    def _is_connected(self):
        """It listens before it opens its disks, and answers after."""
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self.path))
            self._stream = connection.makefile("rw", encoding="utf-8")
            if self._stream.readline():  # its greeting
                self.execute("qmp_capabilities")
                return True
        except OSError:
            pass
        connection.close()
        return False

    def execute(self, command, **arguments):
        self._stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._stream.flush()
        for line in self._stream:
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise internal_error(f"{command}: {answer['error']['desc']}")
        raise internal_error(f"{command}: QEMU is gone")

    def say(self, line):
        """A line for people, to the monitor; its answer."""
        return self.execute("human-monitor-command", **{"command-line": line})

    def wait(self, what, condition):
        deadline = time.monotonic() + JOB_LIMIT_S
        while not condition():
            if time.monotonic() > deadline:
                raise internal_error(f"{what}: not in time")
            time.sleep(0.1)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        self.path.unlink(missing_ok=True)


class Connection(fakelibvirt.Connection):
    def defineXML(self, xml):
        """A domain that runs stays the same one."""
        known = self._vms.get(etree.fromstring(xml).findtext("./name"))
        return known if known and known.qemu else super().defineXML(xml)


class Domain(fakelibvirt.Domain):
    """A domain of the stand-in that has a QEMU while it runs."""

    def __init__(self, connection, xml, running=False, transient=False):
        self.qemu = None
        self.xml = xml
        self._mirrored = None
        super().__init__(connection, xml, running, transient)

    def createWithFlags(self, flags):
        self.qemu = Qemu(self.xml)
        super().createWithFlags(flags)

    def destroy(self):
        self._end()
        super().destroy()

    def shutdown(self):
        self._end()
        super().shutdown()

    def undefine(self):
        if not self.qemu:  # else it runs on, and is known as long
            super().undefine()

    def suspend(self):
        self.qemu.execute("stop")
        super().suspend()

    def resume(self):
        self.qemu.execute("cont")
        super().resume()

    def _end(self):
        if self.qemu:
            self.qemu.end()
            self.qemu = None

    def XMLDesc(self, flags):
        if self._mirrored is None:
            return self.xml
        tree = etree.fromstring(self.xml)
        for disk in tree.findall("./devices/disk"):
            if disk.find("source").get("file") == self._mirrored:
                jobs = self.qemu.execute("query-block-jobs")
                etree.SubElement(disk, "mirror", ready="yes" if all(job["ready"] for job in jobs) else "no")
        return etree.tostring(tree, encoding="unicode")

    # A copy of a disk that runs, as a live snapshot makes it: what libvirt asks QEMU for.

    def blockRebase(self, disk, base, bandwidth=0, flags=0):
        target = next(entry.find("target").get("dev") for entry in etree.fromstring(self.xml).findall("./devices/disk")
                      if entry.find("source").get("file") == disk)
        self.qemu.execute("drive-mirror", device=target, target=base, format="qcow2", sync="top", mode="existing",
                          **{"job-id": "copy"})
        self._mirrored = disk
        return 0

    def blockJobInfo(self, disk, flags):
        for job in self.qemu.execute("query-block-jobs"):
            return {"type": 2, "bandwidth": 0, "cur": job["offset"], "end": job["len"]}
        return {}

    def blockJobAbort(self, disk, flags):
        if self.qemu.execute("query-block-jobs"):
            self.qemu.execute("block-job-cancel", device="copy")
            self.qemu.wait("end of the copy", lambda: not self.qemu.execute("query-block-jobs"))
        self._mirrored = None

    # Live migration: the destination's QEMU waits at a socket.

    def _migration_socket(self):
        return sockets / f"{self.UUIDString()}.migration"

    def receive(self):
        self._migration_socket().unlink(missing_ok=True)
        self.qemu = Qemu(self.xml, incoming=self._migration_socket())
        super().createWithFlags(0)

    def migrateToURI3(self, dconnuri, params, flags):
        self.qemu.execute("migrate", uri=f"unix:{self._migration_socket()}")
        self.qemu.wait("migration", lambda: self.qemu.execute("query-migrate")["status"] in ["completed", "failed"])
        if self.qemu.execute("query-migrate")["status"] == "failed":
            raise internal_error("migration failed")
        self.complete_job()
        self.destroy()
        self.undefine()


def install():
    """For the whole of Nova, before its driver is made."""
    fakelibvirt.Connection = Connection
    fakelibvirt.Domain = fakelibvirt.virDomain = Domain
    fixture = fakelibvirt.LibvirtFixture()
    from nova.virt.libvirt import utils
    real = utils.get_fs_info
    fixture.setUp()
    utils.get_fs_info = real  # what statvfs(2) says of the mount is looked at
    return fixture
