# SPDX-License-Identifier: LGPL-2.1-or-later
"""What those meet who run the programs: exit statuses, logs, remounts, folders that are not theirs or damaged."""

import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess

from harness import MountTest, NOBODY, ROOT, as_user, context, in_mount_namespace, mounted_below, output, run, wait_until

HELPER = ROOT / "packaging" / "mount.lccfs"


class AdministrationTest(MountTest):
    stores = ("local",)

    def set_up_volume(self):
        self.volume = self.new_volume()

    def ended(self, *command, **options):
        """(status, standard error) of a command."""
        done = run(*command, check=False, timeout_s=60, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE, **options)
        print(done.stderr)
        return done.returncode, done.stderr

    def assert_refused(self, *command, says):
        status, errors = self.ended(*command)
        self.assertGreater(status, 0)
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn(says, errors)


class StatusTest(AdministrationTest):
    def test_wrong_usage_has_the_status_that_the_manuals_say(self):
        for status, *command in [(2, "lccfs", "explode"), (2, "lccfs", "mkfs", "--nonsense"), (2, "lccfs", "info"),
                                 (2, "lccfs-gc", "--nonsense"), (1, "lccfs-fuse", "--nonsense"),
                                 (16, "lccfs-fsck", "--nonsense")]:
            self.assertEqual(self.ended(context.bin / command[0], *command[1:])[0], status)
        self.assertEqual(self.ended(HELPER, "vms")[0], 1)

    def test_an_empty_value_is_wrong_usage_and_nothing_is_done(self):
        """It is a script's variable that was not set."""
        address = self.volume.address
        nowhere, point = self.scratch("nowhere"), self.scratch("mountpoint")
        point.mkdir()
        for status, name, *command in [
                (2, "--data-pool", "lccfs", "mkfs", "-p", "vms", "--data-pool", ""),
                (2, "--label", "lccfs", "mkfs", "--local", nowhere, "--label", ""),
                (2, "--local", "lccfs", "info", "--local", ""),
                (2, "--make", "lccfs", "auth", "tenant", *address, "--make", ""),
                (2, "--peer", "lccfs", "doctor", *address, "--peer", ""),
                (2, "PATH", "lccfs", "stat", *address, ""), (2, "PATH", "lccfs", "du", *address, ""),
                (2, "MOUNT", "lccfs", "log", "debug", ""),
                (2, "--log-file", "lccfs-gc", *address, "--once", "--log-file", ""),
                (1, "--log-file", "lccfs-fuse", *address, "-m", point, "--log-file", ""),
                (16, "--id", "lccfs-fsck", "-p", "vms", "--id", "")]:
            ended, errors = self.ended(context.bin / command[0], *command[1:])
            self.assertEqual((ended, len(errors.splitlines())), (status, 1), errors)
            self.assertIn(f"{name} needs a value", errors)
        self.assertFalse(os.path.ismount(point))
        self.assertFalse(nowhere.exists())

    def test_a_file_of_defaults_names_files_by_absolute_paths_alone(self):
        defaults = self.scratch("lccfs.conf")
        defaults.write_text("[lccfs-gc]\nlog-file = collector.log\n", encoding="utf-8")
        status, errors = self.ended(context.bin / "lccfs-gc", *self.volume.address, "--once",
                                    env=os.environ | {"LCCFS_CONFIG": str(defaults)})
        self.assertEqual((status, len(errors.splitlines())), (2, 1), errors)
        self.assertIn(f"{defaults}:2: log-file: not an absolute path", errors)


class UpgradeTest(AdministrationTest):
    def set_features(self, bits):
        run(context.bin / "damage_tool", *self.volume.address, "--object", "Super", "--features", str(bits))

    def upgrade(self, *options):
        return self.volume.said("upgrade", *options)

    def features(self):
        return self.volume.info()["features"]

    def test_a_volume_of_an_older_version_is_upgraded_while_it_is_mounted(self):
        self.assertEqual(self.features()["names"],
                         ["space_units", "moves", "acls", "locks", "openers", "directory_leases", "names_behind"])
        self.assertIn("nothing to do", self.upgrade())
        self.set_features(0)
        mount = self.volume.mount()
        (mount / "before").write_text("x", encoding="utf-8")
        all_names = "space_units, moves, acls, locks, openers, directory_leases, names_behind"
        local_locks = f"; then unmount and mount these again, they keep their locks to themselves: {mount.path} on "
        self.assertRegex(self.upgrade("--dry-run"), f"^would upgrade .*: {all_names}{local_locks}.*\n?$")
        told = json.loads(self.upgrade("--dry-run", "--json"))
        self.assertEqual((told["upgraded"], told["features"]), (False, all_names.split(", ")))
        self.assertEqual([client["mount_id"] for client in told["local_locks"]], [str(mount.path)])
        self.assertEqual(self.features()["names"], [])
        self.assertRegex(self.upgrade(), f"^upgraded .*: {all_names}{local_locks}.*\n?$")
        self.assertEqual(self.features()["incompat"], 127)
        self.assertIn("nothing to do", self.upgrade())
        self.assertEqual(json.loads(self.upgrade("--json")), {"upgraded": False, "features": [], "local_locks": []})
        (mount / "after").write_text("y", encoding="utf-8")
        mount.remount()
        self.assertEqual(sorted(os.listdir(mount.path)), ["after", "before"])

    def test_a_volume_of_a_newer_version_is_refused_by_all_programs(self):
        mountpoint = self.scratch("mountpoint")
        mountpoint.mkdir()
        self.set_features(1 << 40)
        for command in [("lccfs", "info"), ("lccfs", "upgrade"), ("lccfs-gc", "--once"), ("lccfs-gc", "--dry-run"),
                        ("lccfs-fsck",), ("lccfs-fsck", "--repair"), ("lccfs-fuse", "-m", mountpoint),
                        ("lccfs-fuse", "-m", mountpoint, "-o", "ro")]:
            self.assert_refused(context.bin / command[0], *command[1:], *self.volume.address,
                                says="(incompat 0x10000000000): use a newer one")
        self.set_features(1)  # what is left is a volume again


class ClientsTest(MountTest):
    stores = ("local", "rados")

    def clients(self):
        return json.loads(self.volume.said("clients", "--json"))

    def test_each_mount_is_listed_and_one_is_evicted(self):
        other = self.volume.mount()
        listed = {client["mount_id"]: client for client in self.clients()}
        self.assertEqual(set(listed), {str(self.mount.path), str(other.path)})
        self.assertEqual({client["presence"] for client in listed.values()}, {"watching"})
        if context.store == "local":
            return  # there a fence ends the process
        self.mount.may_die = True
        evicted = listed[str(self.mount.path)]
        said = self.volume.said("evict", "--client", str(evicted["number"]))
        self.assertIn(f"evicted {evicted['number']} live: pid {evicted['pid']} on ", said)
        self.assert_errno(errno.EIO, os.listdir, self.mount.path)
        self.mount.wait_for_line("fenced")
        (other / "file").write_text("x", encoding="utf-8")
        said = self.volume.said("evict", "--client", str(evicted["number"]))
        self.assertIn("nothing to do: ", said)
        said = json.loads(self.volume.said("evict", "--client", str(evicted["number"]), "--json"))
        self.assertEqual((said["evicted"], said["client"]["pid"]), (False, evicted["pid"]))
        self.mount.remount()
        self.assertEqual(os.listdir(self.mount.path), ["file"])

    def test_a_client_that_is_not_there_is_no_client(self):
        for wrong, says in ((["--client", "4711"], "no client 4711"), ([], "--client is missing")):
            done = self.volume.lccfs("evict", *wrong, check=False, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 1 if wrong else 2)
            self.assertIn(says, done.stderr)
        self.assertEqual(len(self.clients()), 1)


class ReturnTest(MountTest):
    """What a service needs to bring a mount back."""

    stores = ("local", "rados")

    def test_what_a_killed_program_has_left_mounted_is_taken_away_by_the_next_one(self):
        held = os.open(self.mount / "file", os.O_CREAT | os.O_WRONLY)
        os.write(held, b"x")
        os.fsync(held)
        self.mount.may_die = True
        self.mount.process.kill()
        self.mount.process.wait()
        self.assert_errno(errno.ENOTCONN, os.statvfs, self.mount.path)
        run(context.bin / "lccfs-fuse", *self.volume.address, "-m", self.mount.path)
        self.addCleanup(run, "fusermount3", "-u", "-z", self.mount.path, check=False)
        self.assertEqual(mounted_below(self.mount.path), [str(self.mount.path)])
        self.assertEqual((self.mount / "file").read_text(encoding="utf-8"), "x")
        self.assert_errno(errno.ENOTCONN, os.close, held)
        done = run(context.bin / "lccfs-fuse", *self.volume.address, "-m", self.mount.path, check=False,
                   stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (32, 1))
        self.assertIn("is busy", done.stderr)  # that one lives
        run("fusermount3", "-u", self.mount.path)

    def test_a_mount_in_the_background_keeps_nothing_open_that_its_caller_had(self):
        mountpoint = self.scratch("in-the-background")
        mountpoint.mkdir()
        lock = os.open(self.scratch("lock"), os.O_CREAT | os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        run(context.bin / "lccfs-fuse", *self.volume.address, "-m", mountpoint, pass_fds=(lock,))
        self.addCleanup(run, "fusermount3", "-u", mountpoint, check=False)
        os.close(lock)
        again = os.open(self.scratch("lock"), os.O_RDWR)
        self.addCleanup(os.close, again)
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (mountpoint / "file").write_text("served", encoding="utf-8")

    def test_a_mount_that_is_to_end_when_it_is_fenced_does_so(self):
        if context.store == "local":
            return  # there a fence ends the process
        mount = self.volume.mount("-o", "end_when_fenced")
        mount.may_die = True
        held = os.open(mount / "file", os.O_CREAT | os.O_WRONLY)
        self.volume.said("evict", "--client", str(mount.instance()))
        self.assertEqual(mount.process.wait(60), 32)
        self.assertFalse(mount.is_mounted())
        self.assertNotEqual(self.errno_of(os.close, held), 0)

    @staticmethod
    def errno_of(function, *arguments):
        try:
            function(*arguments)
        except OSError as error:
            return error.errno
        return 0

    def test_systemd_is_told_when_it_is_ready(self):
        waiting = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(waiting.close)
        waiting.bind("\0lccfs-" + self.id())
        waiting.settimeout(60)
        point = self.scratch("mountpoint")
        point.mkdir()
        for program in [["lccfs-fuse", "-m", point], ["lccfs-gc"]]:
            process = subprocess.Popen([context.bin / program[0], *self.volume.address, *program[1:], "-f"],
                                       env=os.environ | {"NOTIFY_SOCKET": "@lccfs-" + self.id()})
            try:
                self.assertEqual(waiting.recv(100), b"READY=1")
                if program[0] == "lccfs-fuse":
                    self.assertTrue(os.path.ismount(point))
            finally:
                process.terminate()
                self.assertEqual(process.wait(60), 0)


class LogTest(AdministrationTest):
    def test_sighup_reopens_the_log_and_ends_nothing(self):
        log = context.workdir / "client.log"
        mount = self.volume.mount("--log-file", str(log))
        self.rotate(mount.process, log)
        (mount / "file").write_text("x", encoding="utf-8")
        collector = subprocess.Popen([context.bin / "lccfs-gc", *self.volume.address, "-f", "--log-file",
                                      context.workdir / "collector.log"])
        try:
            self.rotate(collector, context.workdir / "collector.log")
        finally:
            collector.terminate()
        self.assertEqual(collector.wait(60), 0)

    def rotate(self, process, log):
        wait_until(lambda: log.exists() and log.stat().st_size > 0, 30, f"lines in {log}")
        old = log.rename(f"{log}.1")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: log.exists() and "reopened" in log.read_text(encoding="utf-8"), 30, f"{log} made anew")
        self.assertNotIn("reopened", old.read_text(encoding="utf-8"))
        self.assertIsNone(process.poll())

    def test_a_log_makes_no_folder_and_follows_no_link(self):
        mountpoint = self.scratch("mountpoint")
        mountpoint.mkdir()
        mount = [context.bin / "lccfs-fuse", *self.volume.address, "-m", mountpoint, "--log-file"]
        self.assert_refused(*mount, context.workdir / "mistyped" / "log", says="No such file")
        self.assertFalse((context.workdir / "mistyped").exists())
        precious, link = self.scratch("precious"), self.scratch("link")
        precious.write_text("mine", encoding="utf-8")
        link.symlink_to(precious)
        self.assert_refused(*mount, link, says="symbolic link")
        self.assertEqual(precious.read_text(encoding="utf-8"), "mine")


class RemountTest(AdministrationTest):
    def test_a_mount_can_be_made_read_only_and_nothing_else(self):
        mount = self.volume.mount()
        (mount / "file").write_text("x", encoding="utf-8")
        status, errors = self.ended(HELPER, self.volume.address[1], mount.path, "-o", "remount,nosuid")
        self.assertEqual((status, len(errors.splitlines())), (32, 1))
        run(HELPER, self.volume.address[1], mount.path, "-o", "rw,nosuid,remount,ro")
        self.assert_errno(errno.EROFS, (mount / "file").write_text, "y", encoding="utf-8")
        self.assertEqual((mount / "file").read_text(encoding="utf-8"), "x")
        self.assertIn("nosuid", output("findmnt", "-n", "-o", "OPTIONS", mount.path))


class MountProgramTest(AdministrationTest):
    """mount(8) looks for its helpers in /sbin alone. They are there in a mount namespace of this test's own, as packaging
    installs them; mounts in it are reached through /proc."""

    def set_up_volume(self):
        self.volume = self.new_address()
        self.point, self.fstab = self.scratch("mountpoint"), self.scratch("fstab")
        self.point.mkdir()
        self.host = subprocess.Popen([*in_mount_namespace(), "sleep", "infinity"])
        self.addCleanup(self.host.wait)
        self.addCleanup(self.host.kill)
        self.addCleanup(self.on_host, "umount", "-l", self.point, check=False)
        comm = type(self.point)(f"/proc/{self.host.pid}/comm")
        wait_until(lambda: comm.read_text(encoding="utf-8") == "sleep\n", 30, "a mount namespace")
        self.install()
        self.inside = type(self.point)(f"/proc/{self.host.pid}/root{self.point}")

    def install(self):
        installed = self.scratch("installed")
        run("cmake", "-P", context.bin.parent / "packaging" / "cmake_install.cmake",
            env=os.environ | {"DESTDIR": str(installed)})
        self.on_host("sh", "-c", """
            cd "$0" && mkdir real all && mount --bind /sbin real && ln -s "$0"/real/* all/ &&
            ln -sf "$0"/sbin/* "$1" all/ && mount --bind all /sbin""", installed, context.bin / "lccfs-fuse")

    def on_host(self, *command, **options):
        return run("nsenter", f"--mount=/proc/{self.host.pid}/ns/mnt", *command, **options)

    def refusal(self, *command):
        """(status, standard error) of what is refused."""
        done = self.on_host(*command, check=False, stderr=subprocess.PIPE)
        return done.returncode, done.stderr

    def options(self):
        """Type and options, as mount(8) sees them."""
        shown = self.on_host("findmnt", "-n", "-o", "FSTYPE,OPTIONS", self.point, stdout=subprocess.PIPE).stdout
        return set(shown.replace(",", " ").split())

    def unmount(self):
        self.on_host("umount", self.point)
        self.assertEqual(self.volume.info()["instances"], [], "lccfs-fuse has stored everything, and is gone")

    def test_it_mounts_makes_read_only_and_unmounts(self):
        self.on_host("mount", "-t", "lccfs", "-o", "create,nosuid", self.volume.address[1], self.point)
        self.assertLessEqual({"fuse.lccfs", "rw", "nosuid"}, self.options())
        with open(self.inside / "file", "w", encoding="utf-8") as file:
            file.write("x")
            status, errors = self.refusal("mount", "-o", "remount,ro", self.point)
            self.assertEqual(status, 32)
            self.assertIn("busy", errors)
        self.on_host("mount", "-o", "remount,ro", self.point)
        self.assertLessEqual({"fuse.lccfs", "ro", "nosuid"}, self.options())
        self.assert_errno(errno.EROFS, (self.inside / "file").write_text, "y", encoding="utf-8")
        self.assertEqual((self.inside / "file").read_text(encoding="utf-8"), "x")
        status, errors = self.refusal("mount", "-o", "remount,rw", self.point)
        self.assertEqual((status, len(errors.splitlines())), (32, 1), errors)
        self.assertIn("only -o remount,ro is possible", errors)
        self.assertIn("ro", self.options())
        self.unmount()

    def test_it_does_so_by_a_line_of_fstab(self):
        self.fstab.write_text(f"{self.volume.address[1]} {self.point} lccfs create,nodev,nofail,_netdev 0 0\n",
                              encoding="utf-8")
        for command in [["mount", "-T", self.fstab, self.point], ["mount", "-T", self.fstab, "-a"]]:
            self.on_host(*command)
            self.assertLessEqual({"fuse.lccfs", "rw", "nodev"}, self.options())
            (self.inside / "file").write_text("x", encoding="utf-8")
            self.on_host("mount", "-T", self.fstab, "-o", "remount,ro", self.point)
            self.assertLessEqual({"fuse.lccfs", "ro", "nodev"}, self.options())
            self.assert_errno(errno.EROFS, (self.inside / "new").touch)
            self.unmount()

    def test_a_part_of_a_volume_is_mounted_by_the_kernels_name_of_the_type_too(self):
        self.on_host("mount", "-t", "lccfs", "-o", "create", self.volume.address[1], self.point)
        (self.inside / "part").mkdir()
        (self.inside / "part" / "file").write_text("x", encoding="utf-8")
        self.unmount()
        self.on_host("mount", "-t", "fuse.lccfs", "-o", "subdir=/part,ro", self.volume.address[1], self.point)
        self.assertEqual(os.listdir(self.inside), ["file"])
        self.assertLessEqual({"fuse.lccfs", "ro"}, self.options())
        shown = self.on_host("findmnt", "-n", "-o", "SOURCE", self.point, stdout=subprocess.PIPE).stdout
        self.assertEqual(shown, f"{self.volume.address[1]}:/part\n")
        self.unmount()
        status, errors = self.refusal("mount", "-t", "lccfs", "-o", "subdir=/none", self.volume.address[1], self.point)
        self.assertEqual((status, len(errors.splitlines())), (32, 1), errors)
        self.assertIn("no directory /none", errors)

    def test_mount_of_all_knows_the_part_that_a_line_names_again(self):
        volume = self.volume.address[1]
        self.on_host("mount", "-t", "lccfs", "-o", "create", volume, self.point)
        (self.inside / "part").mkdir()
        (self.inside / "part" / "file").write_text("x", encoding="utf-8")
        self.unmount()
        self.fstab.write_text(f"{volume}:/part {self.point} lccfs nofail 0 0\n", encoding="utf-8")
        for _ in range(2):
            self.on_host("mount", "-T", self.fstab, "-a")
            self.assertEqual(os.listdir(self.inside), ["file"])
        self.assertEqual(len(self.on_host("findmnt", "-n", "-o", "FSTYPE", self.point, stdout=subprocess.PIPE)
                             .stdout.split()), 1)
        self.unmount()

    def test_mount_of_all_knows_a_volume_that_a_line_names_by_a_link(self):
        volume, link = self.volume.address[1], self.scratch("link")
        link.symlink_to(volume)
        self.fstab.write_text(f"{link} {self.point} lccfs create,nofail 0 0\n", encoding="utf-8")
        run(context.bin / "lccfs", "mkfs", *self.volume.address)
        for _ in range(2):
            self.on_host("mount", "-T", self.fstab, "-a")
        self.unmount()

    def test_a_file_of_settings_makes_all_mounts_of_a_host_read_only(self):
        defaults = self.scratch("lccfs.conf")
        defaults.write_text("[lccfs-fuse]\noptions = ro,nodev\n", encoding="utf-8")
        run(context.bin / "lccfs", "mkfs", *self.volume.address)
        self.fstab.write_text(f"{self.volume.address[1]} {self.point} lccfs nofail 0 0\n", encoding="utf-8")
        self.on_host("mount", "-T", self.fstab, self.point, env=os.environ | {"LCCFS_CONFIG": str(defaults)})
        self.assertLessEqual({"fuse.lccfs", "ro", "nodev"}, self.options())
        self.unmount()

    def is_dead(self):
        try:
            os.stat(self.inside)
            return False
        except OSError as error:
            return error.errno == errno.ENOTCONN

    def test_what_a_dead_program_has_left_is_mounted_over_by_hand(self):
        mount = ["mount", "-t", "lccfs", "-o", "create", self.volume.address[1], self.point]
        self.on_host(*mount)
        os.kill(self.volume.info()["instances"][0]["pid"], signal.SIGKILL)
        wait_until(self.is_dead, 60, "the kernel has seen that the program is gone")
        self.on_host(*mount)
        (self.inside / "file").write_text("x", encoding="utf-8")
        self.assertEqual(len(self.on_host("findmnt", "-n", "-o", "FSTYPE", self.point, stdout=subprocess.PIPE)
                             .stdout.split()), 1)

    def test_umount_calls_the_helper_that_waits(self):
        """It does so only for mounts of which its own table has an entry."""
        calls = self.scratch("calls")
        sbin = context.workdir / "scratch" / "installed"
        helper = sbin / "all" / "umount.fuse.lccfs"
        helper.unlink()
        helper.write_text(f'#!/bin/sh\necho called >> "{calls}"\nexec "{sbin}/sbin/umount.lccfs" "$@"\n', encoding="utf-8")
        helper.chmod(0o755)
        for number in range(1, 4):
            if number == 1:
                self.on_host("mount", "-t", "lccfs", "-o", "create", self.volume.address[1], self.point)
            else:
                self.on_host("lccfs-fuse", *self.volume.address, "-m", self.point)
            if number == 3:
                self.on_host("mount", "-o", "remount,ro", self.point)
            self.unmount()
            self.assertEqual(calls.read_text(encoding="utf-8"), "called\n" * number)
        self.on_host("lccfs-fuse", *self.volume.address, "-m", self.point)
        self.on_host("fusermount3", "-u", self.point)
        wait_until(lambda: not self.volume.info()["instances"], 30, "the end of lccfs-fuse")
        with open("/run/mount/utab", encoding="utf-8") as table:
            self.assertNotIn(str(self.point), table.read())

    def test_umount_waits_until_everything_is_stored(self):
        self.on_host("mount", "-t", "lccfs", "-o", "create", self.volume.address[1], self.point)
        (self.inside / "file").write_text("x" * 5000, encoding="utf-8")
        process = self.volume.info()["instances"][0]["pid"]
        device = self.on_host("findmnt", "-n", "-o", "MAJ:MIN", self.point, stdout=subprocess.PIPE).stdout.strip()
        lock = open(f"/run/lccfs/{device}", encoding="utf-8")  # once the mount is gone, its number may be another's
        self.addCleanup(lock.close)
        self.assertEqual(lock.read(), f"{process}\n")
        os.kill(process, signal.SIGSTOP)
        try:
            # umount(8) itself asks the mount how it is before it calls this.
            unmounting = subprocess.Popen(["nsenter", f"--mount=/proc/{self.host.pid}/ns/mnt", "umount.fuse.lccfs",
                                           self.point], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            wait_until(lambda: self.is_waited_for(lock), 60, "umount waiting for lccfs-fuse")
            self.assertIsNone(unmounting.poll())
        finally:
            os.kill(process, signal.SIGCONT)
        self.assertEqual((unmounting.communicate(timeout=60)[1], unmounting.returncode), ("", 0))
        self.assertEqual(self.volume.info()["instances"], [])
        self.assertEqual(lock.read(), "stored\n")

    def is_waited_for(self, lock):
        """Whether somebody waits for it: the kernel's table of locks shows that by an arrow."""
        with open("/proc/locks", encoding="utf-8") as lines:
            return any("->" in line and f":{os.fstat(lock.fileno()).st_ino} " in line for line in lines)

    def test_umount_does_not_wait_where_the_mount_is_still_used_elsewhere_nor_for_who_is_dead(self):
        self.on_host("mount", "-t", "lccfs", "-o", "create", self.volume.address[1], self.point)
        other = self.scratch("other")
        other.mkdir()
        self.on_host("mount", "--bind", self.point, other)
        self.assertIn("not waiting", self.on_host("umount", self.point, stderr=subprocess.PIPE).stderr)
        os.kill(self.volume.info()["instances"][0]["pid"], signal.SIGKILL)
        done = self.on_host("umount", other, stderr=subprocess.PIPE)
        self.assertIn("not waiting", done.stderr)


class FolderTest(AdministrationTest):
    def assert_refused_by_all(self, volume, says):
        mountpoint = self.scratch("mountpoint")
        mountpoint.mkdir(exist_ok=True)
        for command in [["lccfs", "info"], ["lccfs-gc", "--once"], ["lccfs-fsck"], ["lccfs-fuse", "-m", mountpoint]]:
            self.assert_refused(context.bin / command[0], *command[1:], *volume.address, says=says)

    def test_a_folder_of_another_user_is_refused_by_root(self):
        run("chown", "-R", str(NOBODY), self.volume.address[1])
        self.assert_refused_by_all(self.volume, says=f"belongs to user {NOBODY}")
        as_user(NOBODY, lambda: self.assertTrue(self.volume.info()["uuid"]))

    def test_a_folder_that_is_mounted_read_only_can_be_read(self):
        writer = self.volume.mount()
        (writer / "file").write_text("hello", encoding="utf-8")
        shown = self.scratch("shown")
        shown.mkdir()
        run("mount", "--bind", self.volume.address[1], shown)
        self.addCleanup(run, "umount", "-l", shown)
        run("mount", "-o", "remount,bind,ro", shown)
        looked_at = type(self.volume)(["--local", shown])
        self.assert_refused_by_all(looked_at, says="in use")  # LMDB does not see who reads it so
        writer.unmount()
        uuid = self.volume.info()["uuid"]

        self.assertEqual(looked_at.info()["uuid"], uuid)
        run(context.bin / "lccfs-fsck", *looked_at.address)
        mountpoint = self.scratch("mountpoint")
        self.assert_refused(context.bin / "lccfs-fuse", *looked_at.address, "-m", mountpoint, says="can only be read")
        reader = looked_at.mount("-o", "ro")
        self.assertEqual((reader / "file").read_text(encoding="utf-8"), "hello")
        self.assert_errno(errno.EROFS, (reader / "file").write_text, "y", encoding="utf-8")
        reader.wait_for_line("ESTALE")
        self.assert_refused(context.bin / "lccfs-gc", "--once", *self.volume.address, says="may only read")
        reader.unmount()
        run(context.bin / "lccfs-gc", "--once", *self.volume.address)

    def test_a_folder_that_its_user_may_only_read_can_be_read(self):
        run("chown", "-R", str(NOBODY), self.volume.address[1])
        run("chmod", "-R", "a-w", self.volume.address[1])
        as_user(NOBODY, lambda: self.assertTrue(self.volume.info()["uuid"]))


class DamageTest(AdministrationTest):
    """LMDB trusts its pages: whatever is wrong with them, programs end with a line and a status, never by a signal."""
    limit_s = 240
    leaves_valid_volumes = False

    def set_up_volume(self):
        self.volume = self.new_volume()
        mount = self.volume.mount()
        for number in range(150):
            (mount / f"file {number} {'n' * (number % 90)}").write_bytes(bytes(number * 40))
        os.setxattr(mount / "file 7 nnnnnnn", "user.big", b"x" * 30000)
        for number in range(0, 150, 3):
            os.unlink(mount / f"file {number} {'n' * (number % 90)}")
        mount.unmount()
        self.whole = (self.metadata(self.volume.address[1])).read_bytes()

    def metadata(self, folder):
        return type(context.workdir)(folder) / "metadata" / "data.mdb"

    def damaged_copy(self, content):
        folder = self.scratch("damaged")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.volume.address[1], folder)
        self.metadata(folder).write_bytes(content)
        return folder

    def assert_contained(self, folder, *command, statuses):
        status, errors = self.ended(context.bin / command[0], *command[1:], "--local", folder)
        self.assertIn(status, statuses, f"{command}: {errors}")
        if status != 0 and command[0] != "lccfs-fsck":
            self.assertEqual(len(errors.splitlines()), 1, errors)
        return status, errors

    def run_all(self, folder, mounts):
        status, errors = self.assert_contained(folder, "lccfs", "info", statuses=(0, 1))
        self.assert_contained(folder, "lccfs-fsck", statuses=(0, 4, 8, 12))
        if mounts:
            self.use_mount(folder)
            self.assert_contained(folder, "lccfs-fsck", "--repair", statuses=(0, 1, 4, 5, 8, 9, 12, 13))
        return status, errors

    def use_mount(self, folder):
        """Mounts it, walks and changes it as far as it goes."""
        mountpoint = self.scratch("mountpoint")
        mountpoint.mkdir(exist_ok=True)
        command = [context.bin / "lccfs-fuse", "--local", folder, "-m", mountpoint, "-f"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                wait_until(lambda: os.path.ismount(mountpoint) or process.poll() is not None, 60, "a mount or its end")
                subprocess.run(["sh", "-c", f"ls -l {mountpoint}; cat {mountpoint}/*; echo x >{mountpoint}/new"],
                               check=False, timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            finally:
                subprocess.run(["umount", "-l", mountpoint], check=False, stderr=subprocess.DEVNULL)
                process.terminate()
            errors = process.communicate(timeout=60)[1]
        print(errors)
        self.assertIn(process.returncode, (0, 32), errors)

    def test_a_file_that_is_cut_is_named(self):
        size = len(self.whole)
        cuts = {0, 1, 100, 4095, 4096, 4100, 8191, 8192, 8193, size // 2, size - 4097, size - 1}
        cuts |= {self.random.randrange(size) for _ in range(3)}
        for number, cut in enumerate(sorted(cuts)):
            status, errors = self.run_all(self.damaged_copy(self.whole[:cut]), mounts=number % 4 == 0)
            if cut < size // 2:
                self.assertEqual(status, 1)
                self.assertIn("data.mdb", errors)

    def test_damaged_pages_kill_nothing(self):
        pages = len(self.whole) // 4096
        for number in range(16):
            content = bytearray(self.whole)
            page = self.random.choice([0, 1, self.random.randrange(pages)]) * 4096
            kind = number % 4
            if kind == 0:  # all of it
                content[page:page + 4096] = self.random.randbytes(4096)
            elif kind == 1:  # its head: number, kind, bounds, first entries
                content[page + self.random.randrange(32)] = self.random.randrange(256)
            elif kind == 2:  # some bytes
                for _ in range(8):
                    content[page + self.random.randrange(4096)] ^= 1 << self.random.randrange(8)
            else:  # another page
                other = self.random.randrange(pages) * 4096
                content[page:page + 4096] = self.whole[other:other + 4096]
            self.run_all(self.damaged_copy(bytes(content)), mounts=number % 5 == 0)
