# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stores that go away and come back, clients that are stopped, killed, fenced."""

import errno
import os
import signal
import subprocess
import time

from harness import MountTest, context, digest, pattern_bytes, run, wait_until

OSD_AWAY_S = 40
CLIENT_STOPPED_S = 60
AT_WORK_LIMIT_S = 120
BLOCK = 1 << 20


def fence(volume, instance):
    run(context.bin / "fence_tool", *volume.address, "--instance", instance)


def wait_for(mount, number, operation):
    """Until it has done so many."""
    done = f'lccfs_operation_duration_seconds_count{{operation="{operation}"}}'
    wait_until(lambda: mount.metric(done) >= number, AT_WORK_LIMIT_S, f"{number} of {operation}")


class OsdTest(MountTest):
    stores = ("rados",)
    waits = True
    limit_s = 300
    own_cluster = {"osds": 1}

    def set_up_volume(self):
        with open(self.cluster.conf, "a", encoding="utf-8") as conf:
            conf.write("[client]\nrados_osd_op_timeout = 5\n")  # an outage is no error, whatever is set there
        super().set_up_volume()

    def test_fio_continues_when_an_osd_was_away_for_forty_seconds(self):
        fio = self.spawn(
            "fio", "--name=job", f"--filename={self.mount / 'image'}", "--size=16M", "--rw=randrw", "--bs=4k",
            "--direct=1", "--ioengine=libaio", "--iodepth=16", "--time_based", f"--runtime={OSD_AWAY_S + 25}",
            "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", "--verify_backlog=256")
        wait_for(self.mount, 500, "write")
        self.cluster.kill_osd(0)
        time.sleep(OSD_AWAY_S)
        self.assertIsNone(fio.poll(), "fio ended while the OSD was away")
        self.cluster.start_osd(0)
        self.assertEqual(fio.wait(), 0)
        (self.mount / "afterwards").write_text("x", encoding="utf-8")
        self.mount.remount()
        self.assertEqual((self.mount / "afterwards").read_text(encoding="utf-8"), "x")


class StoppedClientTest(MountTest):
    """The other client must not need what the stopped one holds, unless it has fenced it."""

    stores = ("rados",)
    waits = True
    limit_s = 300

    def test_a_client_stopped_for_a_minute_that_nobody_fenced_continues(self):
        with open(self.mount / "file", "wb", buffering=0) as file:
            file.write(b"before")
            self.mount.signal(signal.SIGSTOP)
            time.sleep(CLIENT_STOPPED_S)
            self.mount.signal(signal.SIGCONT)
            file.write(b" and after")
        (self.mount / "new").write_text("x", encoding="utf-8")
        other = self.volume.mount()
        self.assertEqual((other / "file").read_bytes(), b"before and after")
        self.assertEqual((other / "new").read_text(encoding="utf-8"), "x")

    def test_a_client_fenced_while_it_was_stopped_changes_nothing_and_says_why(self):
        self.make_files()
        written = self.digests(self.mount)
        writer = self.write_for_ever()
        wait_until(lambda: not set(self.digests(self.mount)) & set(written), AT_WORK_LIMIT_S, "writes to each file")
        instance = self.mount.instance()
        self.mount.may_die = True
        self.mount.signal(signal.SIGSTOP)
        began = time.monotonic()
        fence(self.volume, instance)
        other = self.volume.mount()
        before = self.digests(other)
        time.sleep(max(0, CLIENT_STOPPED_S - (time.monotonic() - began)))
        self.mount.signal(signal.SIGCONT)

        self.assertNotEqual(writer.wait(60), 0)
        self.assert_errno(errno.EIO, os.listdir, self.mount.path)
        self.assert_errno(errno.EIO, (self.mount / "new").touch)
        self.assert_errno(errno.EIO, os.open, self.mount / "file 0", os.O_RDWR)
        self.mount.wait_for_line("fenced")
        self.assertEqual(self.digests(other), before)
        (other / "file 0").write_bytes(b"somebody else's now")
        self.assertEqual((other / "file 0").read_bytes(), b"somebody else's now")

    def make_files(self):
        for number in range(4):
            (self.mount / f"file {number}").write_bytes(pattern_bytes(8 * BLOCK, number))

    def write_for_ever(self):
        return self.spawn(
            "fio", "--rw=randwrite", "--bs=64k", "--direct=1", "--ioengine=libaio", "--iodepth=16", "--size=8M",
            "--time_based", "--runtime=600",
            *[word for number in range(4)
              for word in (f"--name=job{number}", f"--filename={self.mount / f'file {number}'}")],
            stdout=subprocess.DEVNULL)

    def digests(self, mount):
        return [digest(mount / f"file {number}") for number in range(4)]


class FencedClientTest(MountTest):
    """On the local store a fence is the end of the process."""

    stores = ("local",)

    def test_a_fenced_client_is_gone_and_its_files_are_free(self):
        (self.mount / "file").write_bytes(b"x" * BLOCK)
        with open(self.mount / "file", "r+b") as file:
            self.spawn("sleep", "600", stdin=file)  # not this process: fork and exec close their copies
        instance = self.mount.instance()
        self.mount.may_die = True
        self.mount.signal(signal.SIGSTOP)
        fence(self.volume, instance)
        self.assertEqual(self.mount.process.wait(30), -signal.SIGKILL)
        self.assert_errno(errno.ENOTCONN, os.listdir, self.mount.path)
        other = self.volume.mount()
        (other / "file").write_bytes(b"y" * BLOCK)
        self.assertEqual((other / "file").read_bytes(), b"y" * BLOCK)


class KilledClientTest(MountTest):
    stores = ("local", "rados")
    limit_s = 300
    waits = True

    def test_what_was_synced_survives_and_another_client_takes_over(self):
        content = pattern_bytes(500_000, 3)
        file = os.open(self.mount / "file", os.O_CREAT | os.O_WRONLY)
        os.write(file, content)
        os.fsync(file)
        self.mount.may_die = True
        self.mount.process.kill()
        self.mount.process.wait()
        self.assert_errno(errno.ENOTCONN, os.close, file)
        self.mount.clean_up()
        other = self.volume.mount()
        self.assertEqual((other / "file").read_bytes(), content)
        (other / "file").write_bytes(b"a new writer")
        other.remount()
        self.assertEqual((other / "file").read_bytes(), b"a new writer")

    def test_a_client_killed_under_load_leaves_a_usable_volume(self):
        load = self.spawn("bash", "-c", 'cd "$0" && while true; do mkdir d && cp -r /usr/include/linux/netfilter '
                          'd/ && mv d e && rm -r e || exit 0; done', str(self.mount.path), stderr=subprocess.DEVNULL)
        wait_for(self.mount, 2, "rename")
        time.sleep(self.random.uniform(0, 3))
        self.assertIsNone(load.poll(), "the load has ended")
        self.mount.may_die = True
        self.mount.process.kill()
        self.mount.process.wait()
        load.wait(60)
        self.mount.clean_up()
        other = self.volume.mount()
        for name in os.listdir(other.path):
            run("rm", "-r", other / name)
        self.assertEqual(os.listdir(other.path), [])
        run("cp", "-r", "/usr/include/linux/netfilter", other / "again")
        run("diff", "-r", "/usr/include/linux/netfilter", other / "again")
