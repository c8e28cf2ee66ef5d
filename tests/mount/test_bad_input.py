# SPDX-License-Identifier: LGPL-2.1-or-later
"""What cannot work is refused with one clear line, an exit status, and nothing changed."""

import errno
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import (MountTest, NOBODY, POOL, Volume, as_user, context, in_mount_namespace, mounted_below, output, run,
                     wait_until)

MAPPED_WORDS = 16 << 20 >> 2
CONNECT_LIMIT_S = 120  # the programs give up after 30 s


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class BadInputTest(MountTest):
    leaves_valid_volumes = False  # some are damaged on purpose
    stores = ("local", "rados")

    def set_up_volume(self):
        self.mountpoint = context.workdir / "mountpoint"
        self.mountpoint.mkdir()

    def assert_refused(self, program, *words, says=()):
        """One line on standard error, with all words of `says`; not mounted after it."""
        done = run(context.bin / program, *words, check=False, timeout_s=CONNECT_LIMIT_S, stdin=subprocess.DEVNULL,
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        print(done.stdout, done.stderr, sep="")
        self.assertGreater(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith(f"{program}: ") or lines[0].startswith(f"{program} "), lines[0])
        for word in says:
            self.assertIn(word, lines[0])
        self.assertFalse(os.path.ismount(self.mountpoint))

    def assert_mount_refused(self, volume, *options, says=()):
        self.assert_refused("lccfs-fuse", *volume.address, "-m", self.mountpoint, *options, says=says)

    def assert_refused_by_all(self, volume, says=()):
        self.assert_mount_refused(volume, says=says)
        self.assert_mount_refused(volume, "-f", says=says)
        self.assert_refused("lccfs", "info", *volume.address, says=says)


class CommandLineTest(BadInputTest):
    stores = ("local",)

    def test_wrong_words_are_named(self):
        address = self.new_address().address
        self.assert_refused("lccfs", "explode", says=["explode"])
        self.assert_refused("lccfs", "mkfs")
        self.assert_refused("lccfs", "mkfs", *address, "--object-size", "5M")
        self.assert_refused("lccfs", "mkfs", *address, "--object-size", "1K")
        self.assert_refused("lccfs", "mkfs", *address, "--object-size", "much", says=["much"])
        self.assert_refused("lccfs", "mkfs", *address, "--nonsense", says=["nonsense"])
        self.assert_refused("lccfs", "info", *address, "-p", "pool")
        self.assert_refused("lccfs-fuse", *address)
        self.assert_refused("lccfs-fuse", "-m", self.mountpoint)
        self.assert_refused("lccfs-fuse", *address, "-m", self.mountpoint, "-o", "nonsense", says=["nonsense"])
        self.assertFalse(os.path.exists(address[1]))

    def test_help_and_version_are_given(self):
        for program in ["lccfs", "lccfs-fuse"]:
            self.assertIn("mkfs" if program == "lccfs" else "--create", output(context.bin / program, "--help"))
            self.assertIn("0.5.0", output(context.bin / program, "--version"))

    def test_output_that_cannot_be_written_is_no_success(self):
        volume = self.new_volume()
        for status, *command in [(1, "lccfs", "--help"), (1, "lccfs", "--version"), (1, "lccfs", "info", "--help"),
                                 (1, "lccfs", "info", *volume.address), (1, "lccfs", "info", *volume.address, "--json"),
                                 (2, "lccfs-fuse", "--help"), (2, "lccfs-fuse", "--version"), (1, "lccfs-gc", "--help"),
                                 (1, "lccfs-gc", *volume.address, "--once", "--json"), (8, "lccfs-fsck", "--help"),
                                 (8, "lccfs-fsck", *volume.address)]:
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = run(context.bin / command[0], *command[1:], check=False, stdout=full, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (status, 1), done.stderr)
            self.assertIn("cannot write to standard output", done.stderr)

    def test_programs_in_the_background_return_whatever_descriptors_they_get(self):
        volume = self.new_volume()
        before = self.contents_of(volume)
        for closed in [">&- 2>&-", "<&- >&- 2>&-", "<&-"]:
            mount = f"{context.bin}/lccfs-fuse {' '.join(volume.address)} -m {self.mountpoint}"
            log = context.workdir / "closed.log"
            run("bash", "-c", f"exec {mount} --log-file {log} {closed}", timeout_s=60)
            self.assertTrue(os.path.ismount(self.mountpoint))
            run("umount", self.mountpoint)
            wait_until(lambda: "unmounted" in log.read_text(encoding="utf-8"), 30, "the mount's end")
            log.unlink()
        self.assertEqual(self.contents_of(volume), before)

    def test_a_collector_in_the_background_returns_whatever_descriptors_it_gets(self):
        volume = self.new_volume()
        log = context.workdir / "closed.log"
        collector = f"{context.bin}/lccfs-gc {' '.join(volume.address)} --log-file {log}"
        run("bash", "-c", f"exec {collector} <&- >&- 2>&-", timeout_s=60)
        collectors = [entry["pid"] for entry in volume.info()["instances"] if entry["state"] == "live"]
        self.assertEqual(len(collectors), 1)
        os.kill(collectors[0], signal.SIGTERM)
        wait_until(lambda: log.read_text(encoding="utf-8").endswith("ended\n"), 30, "the collector's end")

    def contents_of(self, volume):
        """What mounting leaves alone: the marker."""
        with open(os.path.join(volume.address[1], "lccfs-local"), "rb") as marker:
            return marker.read()

    def test_a_local_directory_that_is_missing_or_is_none_is_named(self):
        missing = self.new_address()
        self.assert_refused_by_all(missing, says=[missing.address[1]])
        self.assertFalse(os.path.exists(missing.address[1]))
        file = self.new_address()
        with open(file.address[1], "w", encoding="utf-8") as content:
            content.write("mine")
        self.assert_refused_by_all(file, says=[file.address[1]])
        self.assert_refused("lccfs", "mkfs", *file.address)
        with open(file.address[1], encoding="utf-8") as content:
            self.assertEqual(content.read(), "mine")

    def test_a_directory_of_somebody_elses_files_is_not_taken(self):
        address = self.new_address()
        os.mkdir(address.address[1])
        with open(os.path.join(address.address[1], "precious"), "w", encoding="utf-8") as file:
            file.write("mine")
        self.assert_refused("lccfs", "mkfs", *address.address)
        self.assertEqual(os.listdir(address.address[1]), ["precious"])

    def test_a_local_volume_of_broken_files_is_refused(self):
        volume = self.new_volume()
        broken = 0
        for folder, _, names in os.walk(volume.address[1]):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.getsize(path) > 0 and "lock" not in name:
                    with open(path, "r+b") as file:
                        file.write(b"garbage!" * (os.path.getsize(path) // 8))
                    broken += 1
        self.assertGreater(broken, 0)
        self.assert_refused_by_all(volume)


class VolumeTest(BadInputTest):
    def test_an_address_without_a_volume_is_refused(self):
        empty = self.new_address()
        self.assert_mount_refused(empty)
        self.assert_refused("lccfs", "info", *empty.address)
        empty.make()

    def test_a_volume_is_not_made_twice(self):
        volume = self.new_volume("--label", "first")
        before = self.lasting(volume)
        self.assert_refused("lccfs", "mkfs", *volume.address, "--label", "second")
        self.assertEqual(self.lasting(volume), before)

    def lasting(self, volume):
        """What others' work in the same pool or disk does not change."""
        return {name: value for name, value in volume.info().items()
                if name not in ["objects", "total_bytes", "available_bytes"]}

    def test_create_makes_a_volume_once_and_then_uses_it(self):
        volume = self.new_address()
        mount = volume.mount("--create")
        (mount / "file").write_text("x", encoding="utf-8")
        made = volume.info()["uuid"]
        mount.unmount()
        mount = volume.mount("--create")
        self.assertEqual((mount / "file").read_text(encoding="utf-8"), "x")
        self.assertEqual(volume.info()["uuid"], made)

    def test_two_mounts_that_would_make_the_volume_at_once_share_it(self):
        volume = self.new_address()
        with ThreadPoolExecutor() as threads:
            one, two = threads.map(lambda _: volume.mount("--create"), range(2))
        (one / "file").write_text("x", encoding="utf-8")
        self.assertEqual((two / "file").read_text(encoding="utf-8"), "x")

    def test_mkfs_keeps_what_it_is_told(self):
        volume = self.new_volume("--object-size", "1M", "--label", "my label", "--grace", "90")
        info = volume.info()
        self.assertEqual((info["object_size_bytes"], info["label"], info["grace_seconds"]), (1 << 20, "my label", 90))

    def test_a_mountpoint_that_is_missing_or_no_directory_or_busy_is_named(self):
        volume = self.new_volume()
        missing = context.workdir / "missing"
        self.assert_refused("lccfs-fuse", *volume.address, "-m", missing, says=[str(missing)])
        file = context.workdir / "a-file"
        file.touch()
        self.assert_refused("lccfs-fuse", *volume.address, "-m", file, says=[str(file)])
        busy = volume.mount()
        before = volume.info()["instances"]
        self.assert_refused("lccfs-fuse", *volume.address, "-m", busy.path, says=["busy", str(busy.path)])
        self.assertEqual(volume.info()["instances"], before)
        (busy / "still mounted").touch()

    def test_of_two_that_are_mounted_at_one_place_at_once_the_second_is_refused(self):
        volume = self.new_volume()
        command = [context.bin / "lccfs-fuse", *volume.address, "-m", self.mountpoint, "-f"]
        both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        try:
            wait_until(lambda: [one for one in both if one.poll() is not None] and os.path.ismount(self.mountpoint), 60,
                       "one that is refused")
            refused, mounted = sorted(both, key=lambda one: one.poll() is None)
            self.assertEqual(refused.returncode, 32)
            self.assertIn("is busy", refused.communicate()[1])
            self.assertEqual(len(mounted_below(self.mountpoint)), 1)
            run("fusermount3", "-u", self.mountpoint)
            self.assertEqual(mounted.wait(60), 0, mounted.stderr.read())
        finally:
            for one in both:
                one.kill()
                one.wait()
                one.stderr.close()

    def test_mounting_in_the_background_returns_when_the_mount_is_ready(self):
        volume = self.new_volume()
        for end in [["fusermount3", "-u", self.mountpoint], ["umount", self.mountpoint]]:
            log = context.workdir / "background.log"
            run(context.bin / "lccfs-fuse", *volume.address, "-m", self.mountpoint, "--log-file", log, timeout_s=60)
            try:
                self.assertTrue(os.path.ismount(self.mountpoint))
                (self.mountpoint / "file").write_text("x", encoding="utf-8")
                self.assertEqual([entry["state"] for entry in volume.info()["instances"]], ["live"])
            finally:
                run(*end)
            self.wait_for_clean_end(volume)

    def wait_for_clean_end(self, volume):
        wait_until(lambda: "live" not in [entry["state"] for entry in volume.info()["instances"]], 30,
                   "the client's clean end")

    def test_sigterm_unmounts_cleanly(self):
        mount = self.new_volume().mount()
        (mount / "file").write_text("x", encoding="utf-8")
        mount.process.terminate()
        mount.wait_for_end()
        self.assertFalse(mount.is_mounted())
        mount.start()
        self.assertEqual((mount / "file").read_text(encoding="utf-8"), "x")

    def test_signals_that_are_not_for_it_end_no_mount(self):
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what runs in the background
        self.addCleanup(signal.signal, signal.SIGINT, before)
        mount = self.new_volume().mount()
        for number in [signal.SIGUSR1, signal.SIGINT, signal.SIGUSR1]:
            mount.process.send_signal(number)
            (mount / f"after-{number}").write_text("x", encoding="utf-8")
        mount.process.terminate()
        mount.wait_for_end()

    def test_sigterm_stores_what_a_container_has_changed_in_a_mapping(self):
        mount = self.new_volume().mount()
        file = mount / "file"
        file.write_bytes(b"old " * MAPPED_WORDS)
        # An unmount here does not reach that namespace.
        self.change_in_mapping(file, *in_mount_namespace(kept=mount.path))
        mount.process.terminate()
        mount.wait_for_end()
        mount.start()
        self.assertEqual(file.read_bytes(), b"new " * MAPPED_WORDS)

    def change_in_mapping(self, file, *how):
        """All of it, by a program that stays until the test has ended."""
        code = """if True:
            import mmap, sys
            with open(sys.argv[1], "r+b") as file:
                mapped = mmap.mmap(file.fileno(), 0)
                mapped[:] = b"new " * (len(mapped) // 4)
                print("changed", flush=True)
                sys.stdin.read()
        """
        program = subprocess.Popen([*how, sys.executable, "-c", code, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(program.communicate)
        self.assertEqual(program.stdout.readline(), b"changed\n")

    def test_sigterm_ends_the_mount_of_a_user_and_stores_what_was_changed_in_a_mapping(self):
        if context.store != "local":
            self.skipTest("a user has a volume of its own in a directory")
        if os.stat("/dev/fuse").st_mode & 0o006 != 0o006:
            self.skipTest("users may not use /dev/fuse here")
        volume = self.new_volume()
        as_root = volume.mount()
        os.chown(as_root.path, NOBODY, NOBODY)
        as_root.unmount()
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        store = Path(volume.address[1]).rename(folder / "store")
        (folder / "mnt").mkdir()
        for path in [folder, folder / "mnt", store, *store.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)

        for expected in [b"old ", b"new "]:
            served = subprocess.Popen([context.bin / "lccfs-fuse", "--local", store, "-m", folder / "mnt", "-f"], user=NOBODY,
                                      group=NOBODY, extra_groups=[])
            self.addCleanup(served.kill)
            wait_until(lambda: mounted_below(folder), 30, "the mount of a user")
            if expected == b"old ":
                as_user(NOBODY, lambda: (folder / "mnt" / "file").write_bytes(b"old " * MAPPED_WORDS))
                self.change_in_mapping(folder / "mnt" / "file", "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                                       "--clear-groups")
            else:
                self.assertEqual(as_user(NOBODY, (folder / "mnt" / "file").read_bytes), b"new " * MAPPED_WORDS)
            served.terminate()
            self.assertEqual(served.wait(60), 0)
            self.assertFalse(mounted_below(folder))


class UnreachableClusterTest(BadInputTest):
    stores = ("rados",)
    waits = True

    def test_it_is_given_up(self):
        conf = self.scratch("unreachable.conf")
        conf.write_text("[global]\nmon host = v2:127.0.0.1:9\nkeyring = /dev/null\nauth client required = none\n",
                        encoding="utf-8")
        address = ["-c", conf, "-p", POOL, "-n", "nothing-here"]
        self.assert_refused("lccfs", "info", *address)
        self.assert_refused("lccfs-fuse", *address, "-m", self.mountpoint)


class PoolTest(BadInputTest):
    stores = ("rados",)

    def address(self, conf=None, pool=POOL, *more):
        return ["-c", str(conf or self.cluster.conf), "-p", pool, "-n", "nothing-here", *more]

    def assert_all_refused(self, address, says=()):
        self.assert_refused("lccfs-fuse", *address, "-m", self.mountpoint, says=says)
        self.assert_refused("lccfs", "mkfs", *address, says=says)
        self.assert_refused("lccfs", "info", *address, says=says)

    def test_a_missing_configuration_file_is_named(self):
        self.assert_all_refused(self.address("/nonexistent/ceph.conf"), says=["/nonexistent/ceph.conf"])

    def test_a_missing_pool_is_named(self):
        self.assert_all_refused(self.address(None, "no-such-pool"), says=["no-such-pool"])
        self.assert_all_refused(self.address(None, "4711"), says=["4711"])

    def test_a_pool_goes_by_its_number_too(self):
        volume = self.new_volume()
        number = next(line.split()[0] for line in self.cluster.ceph("osd", "lspools").splitlines()
                      if line.split()[1] == POOL)
        by_number = [number if word == POOL else word for word in volume.address]
        self.assertIn(volume.info()["uuid"], output(context.bin / "lccfs", "info", *by_number))

    def test_a_client_without_a_key_or_without_permission_is_told_so(self):
        self.assert_all_refused(self.address(None, POOL, "--id", "nobody-knows-me"), says=["nobody-knows-me"])
        self.cluster.add_client("onlooker", mon="allow r", osd="allow r pool=other")
        self.assert_all_refused(self.address(None, POOL, "--id", "onlooker"))

    def test_a_key_that_may_only_read_looks_and_mounts_read_only(self):
        volume = self.new_volume()
        writer = volume.mount()
        (writer / "file").write_text("hello", encoding="utf-8")
        self.cluster.add_client("reader", mon="allow r", osd=f"allow r pool={POOL}")
        by_reader = volume.as_client("reader")
        self._volumes.append(by_reader)
        self.assertEqual(by_reader.info()["uuid"], volume.info()["uuid"])
        self.assert_refused("lccfs-fuse", *by_reader.address, "-m", self.mountpoint)
        reader = by_reader.mount("-o", "ro")
        reader.wait_for_line("ESTALE")
        self.assertEqual((reader / "file").read_text(encoding="utf-8"), "hello")
        self.assertEqual(len(volume.info()["instances"]), 1)  # the writer
        file = os.open(reader / "file", os.O_RDONLY | os.O_DIRECT)  # past what the kernel has of it
        self.addCleanup(os.close, file)
        os.unlink(writer / "file")
        run(context.bin / "lccfs-gc", *volume.address, "--once", "--grace", "0")
        self.assert_errno(errno.ESTALE, os.preadv, file, [mmap.mmap(-1, 4096)], 0)

    def test_a_pool_of_somebody_elses_objects_is_not_taken(self):
        volume = self.new_address()
        self.rados(volume, "put", "their-object", "/etc/hostname")
        self.assert_refused("lccfs", "mkfs", *volume.address, says=["their-object"])
        self.assertEqual(self.rados(volume, "ls").split(), ["their-object"])

    def test_a_data_pool_of_somebody_elses_objects_is_not_taken_and_named(self):
        volume = self.new_address()
        self.cluster.create_pool("used", pg_num=1)
        self.rados(volume, "put", "their-object", "/etc/hostname", pool="used")
        self.assert_refused("lccfs", "mkfs", *volume.address, "--data-pool", "used",
                            says=["their-object", "data pool used"])
        self.assertEqual(self.rados(volume, "ls"), "")

    def test_a_data_pool_that_takes_no_overwrites_is_not_taken(self):
        volume = self.new_address()
        self.cluster.ceph("osd", "pool", "create", "stripes", "1", "1", "erasure")
        self.assert_refused("lccfs", "mkfs", *volume.address, "--data-pool", "stripes",
                            says=["stripes", "allow_ec_overwrites true"])
        self.assertEqual(self.rados(volume, "ls"), "")

    def test_a_volume_whose_data_pool_was_renamed_is_not_taken_for_none(self):
        self.cluster.create_pool("before", pg_num=1)
        volume = self.new_address()
        volume.make("--data-pool", "before")
        self.cluster.ceph("osd", "pool", "rename", "before", "after")
        for create in ([], ["--create"]):
            self.assert_refused("lccfs-fuse", *volume.address, *create, "-m", self.mountpoint, says=["pool before"])
        for program, *words in [("lccfs", "info"), ("lccfs", "du", "/"), ("lccfs-gc", "--once"), ("lccfs-gc", "--dry-run")]:
            self.assert_refused(program, *words, *volume.address, says=["pool before", "give it its name back"])
        self.cluster.ceph("osd", "pool", "rename", "after", "before")
        volume.mount().unmount()

    def test_a_newer_format_is_refused(self):
        volume = self.new_volume()
        record = bytearray(self.read_super(volume))
        struct.pack_into("<I", record, 9, 2)
        self.write_super(volume, record)
        self.assert_refused_by_all(volume, says=["format"])
        self.assert_refused("lccfs", "mkfs", *volume.address)

    def test_a_corrupt_super_record_is_refused(self):
        volume = self.new_volume()
        record = bytearray(self.read_super(volume))
        record[20] ^= 1
        self.rados(volume, "setxattr", "Super", "super", input=bytes(record).decode("latin-1"), encoding="latin-1")
        self.assert_refused_by_all(volume, says=["Super", "run lccfs-fsck"])
        self.assert_refused("lccfs", "mkfs", *volume.address, says=["volume here already"])
        self.assertEqual(self.read_super(volume), bytes(record))

    def test_a_corrupt_root_is_refused(self):
        volume = self.new_volume()
        self.rados(volume, "setxattr", "Inode.1", "attr", "garbage")
        self.assert_mount_refused(volume)

    def read_super(self, volume):
        return self.rados(volume, "getxattr", "Super", "super", encoding="latin-1").encode("latin-1")

    def write_super(self, volume, record):
        struct.pack_into("<I", record, len(record) - 4, crc32c(record[:-4]))
        self.rados(volume, "setxattr", "Super", "super", input=bytes(record).decode("latin-1"), encoding="latin-1")

    def rados(self, volume, *words, pool=POOL, **options):
        return output("rados", "-c", self.cluster.conf, "-p", pool, "-N", volume.namespace, *words, **options)


class PermissionTest(BadInputTest):
    stores = ("local",)

    def test_a_directory_that_may_not_be_read_is_named(self):
        volume = self.new_volume()
        os.chmod(volume.address[1], 0o700)
        os.chmod(context.workdir, 0o755)
        as_user(NOBODY, lambda: self.assert_refused("lccfs", "info", *volume.address, says=[volume.address[1]]))

