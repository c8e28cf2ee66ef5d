# SPDX-License-Identifier: LGPL-2.1-or-later
"""What looks at a volume and carries its metadata: lccfs df, du, stat, dump, load and doctor."""

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess

from harness import MountTest, ROOT, context, digest, empty_address, mounted_below, pattern_bytes, run, wait_until

MIB = 1 << 20
ODD_NAME = b"new\nline \xff \"quoted\" \\"


class ToolsTest(MountTest):
    stores = ("local", "rados")
    mkfs_options = ("--object-size", "64K")

    def tool(self, *words, status=0, **options):
        """Its standard output; standard error is in self.errors."""
        done = run(context.bin / "lccfs", *words, check=False, timeout_s=100, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE, **{"stdin": subprocess.DEVNULL, **options})
        print(done.stdout[-3000:], done.stderr)
        self.errors = done.stderr
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def on_volume(self, command, *words, **options):
        return self.tool(command, *self.volume.address, *words, **options)

    def on_mount(self, command, *words, **options):
        """By a path alone; the cluster's configuration is no default here."""
        address = self.volume.address
        reach = [] if context.store == "local" else [*address[:2], *address[-2:]]
        return self.tool(command, *reach, *words, **options)

    def assert_sound(self):
        run(context.bin / "lccfs-fsck", *self.volume.address)

    def make_tree(self):
        """All kinds of inodes and names; nothing of it is in memory alone."""
        root = os.fsencode(self.mount.path)
        os.makedirs(self.mount / "deep" / "deeper")
        for number in range(5):
            (self.mount / "deep" / f"file-{number}").write_bytes(pattern_bytes(1 + 50_000 * number, number))
        os.link(self.mount / "deep" / "file-3", self.mount / "linked")
        os.link(self.mount / "deep" / "file-3", self.mount / "deep" / "linked too")
        os.symlink("deep/nowhere", self.mount / "symlink")
        os.symlink(ODD_NAME, root + b"/odd symlink")
        os.mkfifo(self.mount / "fifo")
        os.mknod(self.mount / "device", 0o600 | stat.S_IFBLK, os.makedev(5, 700))
        with socket.socket(socket.AF_UNIX) as one:
            os.chdir(self.mount.path)
            one.bind("socket")
            os.chdir("/")
        with open(root + b"/" + ODD_NAME, "wb") as file:
            os.truncate(file.fileno(), 10 * MIB)
            os.pwrite(file.fileno(), b"x" * 70_000, 5 * MIB)
        os.chown(self.mount / "deep" / "file-1", 1234, 4321)
        os.chmod(self.mount / "deep" / "file-1", 0o4751)
        os.utime(self.mount / "deep" / "file-2", ns=(1_234_567_890_123_456_789, -5_000_000_001))
        os.setxattr(self.mount / "deep" / "file-1", "user.bytes", bytes(range(256)))
        os.setxattr(self.mount / "deep", "user.large", pattern_bytes(60_000, 7))
        run("setfacl", "-m", "u:1000:rw,g:1001:r", self.mount / "deep" / "file-2")
        run("setfacl", "-d", "-m", "u:1000:rwx", self.mount / "deep")
        os.sync()

    def facts(self, root):
        """Of every inode: what lstat, readlink and listxattr say, but what reading itself changes."""
        facts = {}
        for folder, directories, files in os.walk(os.fsencode(root)):
            for name in [b"", *directories, *files]:
                path = os.path.join(folder, name)
                found = os.lstat(path)
                facts[os.path.relpath(path, os.fsencode(root))] = (
                    found.st_ino, found.st_mode, found.st_uid, found.st_gid, found.st_nlink, found.st_size,
                    found.st_blocks, found.st_rdev, found.st_mtime_ns, found.st_ctime_ns,
                    os.readlink(path) if stat.S_ISLNK(found.st_mode) else None,
                    {key: os.getxattr(path, key, follow_symlinks=False)
                     for key in os.listxattr(path, follow_symlinks=False)})
        return facts


class MkfsTest(ToolsTest):
    def test_what_was_made_is_told_to_programs(self):
        address = empty_address()
        said = json.loads(self.tool("mkfs", *address.address, "--object-size", "64K", "--label", "VM disks", "--json"))
        info = address.info()
        self.assertEqual((said["uuid"], said["label"]), (info["uuid"], "VM disks"))
        self.assertEqual(said["object_size_bytes"], info["object_size_bytes"])


class SpaceTest(ToolsTest):
    def test_df_says_what_statfs_says(self):
        (self.mount / "file").write_bytes(b"x" * 100_000)
        found = os.statvfs(self.mount.path)
        link = self.scratch("link")
        link.symlink_to(self.mount.path)
        for said in (self.on_volume("df", "--json"), self.on_mount("df", self.mount.path, "--json"),
                     self.on_mount("df", link, "--json")):
            said = json.loads(said)
            for ours, theirs in [("total_bytes", found.f_blocks), ("available_bytes", found.f_bavail)]:
                self.assertAlmostEqual(said[ours] / (theirs * found.f_frsize), 1, 1)
        self.assertIn("available", self.on_volume("df"))

    def test_du_says_what_du_says_and_takes_no_lease(self):
        self.make_tree()
        self.mount.remount()
        wanted = int(run("du", "-s", self.mount.path, stdout=subprocess.PIPE).stdout.split()[0])
        with open(self.mount / "deep" / "file-4", "r+b") as writer:
            os.pwrite(writer.fileno(), b"y", 0)
            os.fsync(writer.fileno())
            holder = json.loads(self.on_mount("stat", self.mount / "deep" / "file-4", "--json"))["write_lease"]
            self.assertEqual(holder, self.mount.instance())
            for said in (self.on_volume("du", "-s", "/"), self.on_mount("du", "-s", self.mount.path)):
                self.assertEqual(int(said.split()[0]), wanted)
            self.assertEqual(holder, json.loads(self.on_volume("stat", "deep/file-4", "--json"))["write_lease"])
        said = json.loads(self.on_volume("du", "--json", "/deep"))
        self.assertEqual([one["path"] for one in said["directories"]], ["/deep/deeper", "/deep"])
        wanted = int(run("du", "-s", "--block-size=1", self.mount / "deep", stdout=subprocess.PIPE).stdout.split()[0])
        self.assertEqual(said["bytes"], wanted)
        self.assertRegex(self.on_mount("du", "-sh", self.mount / "deep" / "file-3"), r"^1\d\d KiB\t/")

    def test_a_path_on_a_mounted_part_is_a_place_in_the_whole_volume(self):
        self.make_tree()
        part = self.volume.mount("-o", "subdir=/deep")
        total = json.loads(self.on_volume("df", "--json"))["total_bytes"]  # of a cluster, an estimate that changes
        self.assertAlmostEqual(json.loads(self.on_mount("df", part.path, "--json"))["total_bytes"], total,
                               delta=total / 100)
        occupied = [json.loads(self.on_mount("du", "-s", path, "--json"))["bytes"]
                    for path in (part.path, self.mount / "deep")]
        self.assertEqual(occupied[0], occupied[1])
        for inside, whole in [("", "/deep"), ("file-3", "/deep/file-3")]:
            self.assertEqual(json.loads(self.on_mount("stat", part / inside, "--json"))["inode"],
                             json.loads(self.on_volume("stat", whole, "--json"))["inode"])
        said = self.on_volume("doctor", "--peer", part.path, status=1)
        self.assertIn("is not where the volume's root is mounted", said)
        if context.store == "local":  # by another name it is the same volume
            link = self.scratch("link")
            link.symlink_to(self.volume.address[1])
            said = self.tool("doctor", "--local", link, "--peer", part.path, status=1)
            self.assertIn("is not where the volume's root is mounted", said)

    def test_a_place_that_is_none_is_refused_in_one_line(self):
        for words, says, status in [((["/etc"]), "is on no mounted volume", 1), ([], "which volume?", 2),
                                    (["/no/such"], "No such file", 1)]:
            self.tool("du", *words, status=status)
            self.assertIn(says, self.errors)
            self.assertEqual(len(self.errors.splitlines()), 1)
        self.on_volume("df", self.mount.path, status=2)
        self.assertIn("give VOLUME or PATH, not both", self.errors)
        self.on_volume("du", "/no/such", status=1)
        self.assertIn("there is no /no in the volume", self.errors)

    def test_damaged_inodes_are_named_and_the_rest_is_counted(self):
        self.leaves_valid_volumes = False
        self.make_tree()
        number = os.stat(self.mount / "deep" / "file-4").st_ino
        self.mount.unmount()
        run(context.bin / "damage_tool", *self.volume.address, "--object", f"Inode.{number}", "--noise", "attr")
        before = int(self.on_volume("du", "-s", "/", status=1).split()[0])
        self.assertGreater(before, 100)
        self.assertIn(f"Inode.{number}: xattr attr", self.errors)
        self.on_volume("stat", str(number), status=1)
        self.assertIn(f"Inode.{number}: xattr attr", self.errors)
        self.on_volume("dump", status=1)
        self.assertIn("1 damaged parts are not in the dump", self.errors)
        self.mount.start()


class StatTest(ToolsTest):
    def test_stat_shows_names_lease_locks_and_who_has_it_open(self):
        self.make_tree()
        other = self.volume.mount()
        with open(other / "linked", "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX, 10, 5)
            said = json.loads(self.on_mount("stat", self.mount / "linked", "--json"))
            number = os.stat(self.mount / "linked").st_ino
            self.assertEqual(said, json.loads(self.on_volume("stat", str(number), "--json")))
            self.assertEqual([one["mount_id"] for one in said["open_at"]], [str(other.path)])
            self.assertEqual(said["locks"]["kept_by"], other.instance())
            self.assertEqual({one["path"] for one in said["names"]}, {"/linked", "/deep/file-3", "/deep/linked too"})
            self.assertEqual((said["links"], said["size_bytes"], said["data_objects"]["believed_there"]), (3, 150_001, 3))
            text = self.on_volume("stat", "/linked")
            self.assertIn(f"client {other.instance()} on ", text)
            self.assertIn(f", by step {said['birth_step']}\n", text)
            for pointer in said["points_back"]:
                self.assertIn(f"Inode.{pointer['directory']} by step {pointer['step']}", text)
            self.assertLessEqual({os.stat(self.mount / one).st_ino for one in ["", "deep"]},
                                 {pointer["directory"] for pointer in said["points_back"]})
        said = json.loads(self.on_volume("stat", "/deep", "--json"))
        self.assertEqual((said["entries"], said["subdirectories"]), (7, 1))
        text = self.on_mount("stat", self.mount / os.fsdecode(ODD_NAME))
        self.assertIn(r"/new\x0aline \xff", text)

    def test_what_is_not_there_is_no_inode(self):
        self.on_volume("stat", "4711", status=1)
        self.assertIn("there is no inode 4711", self.errors)
        for none in ["0", "99999999999999999999999"]:
            self.on_volume("stat", none, status=2)
            self.assertIn(none, self.errors)
            self.assertEqual(len(self.errors.splitlines()), 1)
        self.on_volume("stat", "/a/b", status=1)
        self.assertIn("there is no /a in the volume", self.errors)


class DumpTest(ToolsTest):
    def dump(self):
        path = self.scratch("volume.dump")
        with open(path, "wb") as file:
            run(context.bin / "lccfs", "dump", *self.volume.address, stdout=file)
        return path

    def load(self, volume, dump, *words, status=0):
        with open(dump, "rb") as file:
            return self.tool("load", *volume.address, *words, stdin=file, status=status)

    def test_a_loaded_volume_has_the_same_tree(self):
        self.make_tree()
        self.mount.remount()
        before = self.facts(self.mount.path)
        self.assertEqual(len(before), 16)
        self.mount.unmount()
        dump = self.dump()
        self.volume = self.new_volume(*self.mkfs_options)
        self.assertIn("loaded 14 inodes", self.load(self.volume, dump))
        self.assert_sound()
        self.mount = self.volume.mount()
        self.assertEqual(self.facts(self.mount.path), before)
        self.assertEqual((self.mount / "deep" / "file-1").read_bytes(), bytes(50_001))  # its data are elsewhere
        (self.mount / "new").write_text("x", encoding="utf-8")
        os.rename(self.mount / "deep", self.mount / "renamed")
        os.unlink(self.mount / "linked")
        self.load(self.volume, dump, status=1)
        self.assertIn("only a volume that lccfs mkfs has just made", self.errors)

    def test_data_objects_that_are_left_are_their_files_again(self):
        if context.store == "local":
            self.skipTest("metadata and data of a local volume are lost together")
        self.make_tree()
        wanted = digest(self.mount / "deep" / "file-4")
        self.mount.unmount()
        dump = self.dump()
        names = self.rados("ls").split()
        for name in names:
            if not name.startswith("Data."):
                self.rados("rm", name)
        self.volume.lccfs("mkfs", *self.mkfs_options, "--for-load")
        done = run(context.bin / "lccfs-fuse", *self.volume.address, "-m", self.mount.path, check=False,
                   stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 32)
        self.assertIn("run lccfs load", done.stderr)
        self.assertIn("data objects: run lccfs-fsck --repair before anything mounts", self.load(self.volume, dump))
        self.assert_sound()
        self.mount.start()
        self.assertEqual(digest(self.mount / "deep" / "file-4"), wanted)

    def rados(self, *words):
        return run("rados", "-c", self.cluster.conf, "-p", self.volume.address[3], "-N", self.volume.namespace, *words,
                   stdout=subprocess.PIPE).stdout

    def test_a_dump_that_is_damaged_or_cut_changes_nothing(self):
        self.make_tree()
        self.mount.unmount()
        whole = self.dump().read_bytes().splitlines(keepends=True)
        empty = self.new_volume(*self.mkfs_options)
        damaged = self.scratch("damaged.dump")

        def assert_refused(lines, says):
            damaged.write_bytes(b"".join(lines))
            self.load(empty, damaged, status=1)
            self.assertIn(says, self.errors)
            self.assertEqual(len(self.errors.splitlines()), 1)

        assert_refused(whole[:-1], f"line {len(whole)} of the dump: it is cut short")
        assert_refused(whole[:4] + whole[5:], "line 5 of the dump: damaged, or not in its place")
        assert_refused([whole[0].replace(b'"lccfs_dump":1', b'"lccfs_dump":2'), *whole[1:]], "line 1 of the dump")
        assert_refused([], "line 1 of the dump: it is cut short")
        number = self.random.randrange(len(whole))
        line = bytearray(whole[number])
        line[self.random.randrange(len(line) - 1)] ^= 1 << self.random.randrange(7)
        assert_refused([*whole[:number], bytes(line), *whole[number + 1:]], f"line {number + 1} of the dump: ")
        other_size = self.new_volume("--object-size", "1M")
        self.load(other_size, self.scratch("volume.dump"), status=1)
        self.assertIn("objects of 65536 bytes", self.errors)
        run(context.bin / "lccfs-fsck", *empty.address)
        said = json.loads(self.load(empty, self.scratch("volume.dump"), "--json"))
        self.assertEqual(said, {"inodes": 14, "left_out": 0, "names_left_out": 0, "without_name": 0,
                                "data_objects": 0})

    def test_a_load_that_is_killed_is_run_again(self):
        folder = self.mount / "many"
        folder.mkdir()
        for number in range(400):
            (folder / str(number)).touch()
        self.mount.unmount()
        dump = self.dump()
        self.volume = self.new_volume(*self.mkfs_options)
        with open(dump, "rb") as file:
            loading = subprocess.Popen([context.bin / "lccfs", "load", *self.volume.address], stdin=file)
        try:
            wait_until(lambda: self.is_being_loaded() or loading.poll() is not None, 60, "a load that has begun")
        finally:
            loading.kill()
            loading.wait()
        if self.is_being_loaded():
            done = run(context.bin / "lccfs-fsck", *self.volume.address, check=False, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 8)
            self.assertIn("run lccfs load", done.stderr)
            self.load(self.volume, dump)
        self.assert_sound()
        self.mount = self.volume.mount()
        self.assertEqual(len(os.listdir(self.mount / "many")), 400)

    def is_being_loaded(self):
        done = self.volume.lccfs("info", check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return "run lccfs load" in done.stderr


class RescueTest(ToolsTest):
    stores = ("rados",)

    def rescued(self, path, *words):
        with open(self.scratch("rescued"), "wb") as file:
            run(ROOT / "docs" / "guide" / "rescue-file.py", "-c", self.cluster.conf, "-p", self.volume.address[3], "-n",
                self.volume.namespace, *words, path, stdout=file)
        return self.scratch("rescued")

    def test_files_are_read_with_rados_alone(self):
        self.make_tree()
        os.symlink("../deep", self.mount / "deep" / "around")
        wanted = {path: (os.path.getsize(self.mount / path), digest(self.mount / path))
                  for path in ["deep/file-4", "linked", os.fsdecode(ODD_NAME)]}
        self.mount.unmount()
        for path, facts in wanted.items():
            found = self.rescued(f"/deep/around/../{path}")
            self.assertEqual((os.path.getsize(found), digest(found)), facts)
        self.assertLess(os.stat(found).st_blocks * 512, 9 * MIB)  # its holes are holes
        names = {line.split("\t")[2] for line in self.rescued("/", "--list").read_text(encoding="utf-8").splitlines()}
        self.assertEqual(names, {repr(name) for name in
                                 ["deep", "linked", "symlink", "odd symlink", "fifo", "device", "socket",
                                  os.fsdecode(ODD_NAME)]})
        self.assertEqual(digest(self.rescued("/linked", "--all-objects")), wanted["linked"][1])
        with self.assertRaises(subprocess.CalledProcessError):
            self.rescued("/deep/no")
        self.mount.start()


class DoctorTest(ToolsTest):
    WARNINGS = 3

    def verdicts(self, said):
        return {one["name"]: one["verdict"] for one in json.loads(said)["checks"]}

    def assert_nothing_left(self):
        self.assertEqual(os.listdir(self.mount.path), [])
        self.assertEqual(list(self.scratch("").iterdir()), [])
        self.assertEqual(mounted_below(self.scratch("")), [])
        live = [one["pid"] for one in self.volume.info()["instances"] if one["state"] == "live"]
        # A mount that was ended as it began leaves its record to the others.
        self.assertEqual([pid for pid in live if pathlib.Path(f"/proc/{pid}").exists()], [self.mount.process.pid])

    def environment(self):
        return os.environ | {"TMPDIR": str(self.scratch(""))}

    def test_a_sound_volume_passes(self):
        status = 0 if context.store == "local" else self.WARNINGS  # the tests' pool has one copy
        for words in ([], ["--peer", self.mount.path]):
            said = self.on_volume("doctor", "--json", *words, status=status, env=self.environment())
            verdicts = self.verdicts(said)
            self.assertNotIn("FAIL", verdicts.values())
            for name in ("direct I/O", "fsync", "rename over", "flock", "fcntl locks", "fallocate", "SEEK_HOLE",
                         "extended attributes", "migration", "visibility", "fence", "watch", "notify"):
                self.assertEqual(verdicts[name], "ok", said)
            if context.store == "rados":
                self.assertEqual((verdicts["clock"], verdicts["pool lccfs, copies"]), ("ok", "warn"))
        self.assert_nothing_left()

    def test_what_is_set_for_mounts_is_not_for_those_of_the_doctor(self):
        defaults = context.workdir / f"{self.id()}.conf"
        defaults.write_text("[lccfs-fuse]\noptions = ro,subdir=/nowhere\n", encoding="utf-8")
        said = self.on_volume("doctor", "--json", status=0 if context.store == "local" else self.WARNINGS,
                              env=self.environment() | {"LCCFS_CONFIG": str(defaults)})
        self.assertNotIn("FAIL", self.verdicts(said).values())
        self.assert_nothing_left()

    def test_what_is_wrong_fails(self):
        said = self.on_volume("doctor", "--json", "--peer", "/etc", status=1, env=self.environment())
        self.assertEqual(self.verdicts(said)["peer"], "FAIL")
        other = self.new_volume(*self.mkfs_options).mount()
        said = self.on_volume("doctor", "--peer", other.path, status=1, env=self.environment())
        self.assertRegex(said, "(?m)^FAIL  peer: .* is on a mount of another volume")
        self.assert_nothing_left()

    def test_a_key_that_may_too_little_fails(self):
        if context.store == "local":
            self.skipTest("a local volume has no keys")
        self.cluster.add_client("looker", mon="allow r", osd="allow r")
        looker = self.volume.as_client("looker")
        said = self.tool("doctor", *looker.address, "--json", "--peer", self.mount.path, status=1,
                         env=self.environment())
        verdicts = self.verdicts(said)
        self.assertEqual({name: verdicts[name] for name in ("read metadata", "read data", "write metadata", "write data",
                                                            "fence")},
                         {"read metadata": "ok", "read data": "ok", "write metadata": "FAIL", "write data": "FAIL",
                          "fence": "FAIL"})
        self.assert_nothing_left()

    def test_it_cleans_up_when_its_reader_goes_away(self):
        words = [context.bin / "lccfs", "doctor", *self.volume.address]
        doctor = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=self.environment(), start_new_session=True)
        self.assertTrue(any(": twice" in line or "mount: " in line for line in doctor.stdout))
        doctor.stdout.close()
        print(doctor.stderr.read())
        doctor.wait(100)
        self.assert_nothing_left()

    def started(self, *words):
        doctor = subprocess.Popen([context.bin / "lccfs", "doctor", *self.volume.address, *words],
                                  stdout=subprocess.PIPE, text=True, env=self.environment(), start_new_session=True)
        self.addCleanup(doctor.wait)
        self.addCleanup(doctor.kill)
        self.addCleanup(doctor.stdout.close)
        return doctor

    def end(self, handle):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)

    def stops_both_mounts_of(self, doctor):
        """As if they waited for the store. Not where it was done with them sooner."""
        self.assertTrue(any("mount: twice" in line for line in doctor.stdout))
        handles = []
        with contextlib.suppress(OSError):
            children = pathlib.Path(f"/proc/{doctor.pid}/task/{doctor.pid}/children").read_text(encoding="utf-8")
            for child in children.split():
                handles.append(os.pidfd_open(int(child)))
                self.addCleanup(self.end, handles[-1])
                signal.pidfd_send_signal(handles[-1], signal.SIGSTOP)
            if len(handles) == 2:
                return True
        for handle in handles:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGCONT)
        doctor.communicate(timeout=100)  # it takes away what it made
        return False

    def test_it_can_be_interrupted_beside_mounts_that_do_not_answer(self):
        for _ in range(10):
            doctor = self.started()
            if self.stops_both_mounts_of(doctor):
                break
        else:
            self.fail("each doctor was done with its mounts sooner")
        doctor.send_signal(signal.SIGTERM)
        print(doctor.communicate(timeout=50)[0])
        self.assertEqual(mounted_below(self.scratch("")), [])
        self.assertEqual(list(self.scratch("").iterdir()), [])

    def test_it_can_be_interrupted_beside_a_peer_that_does_not_answer(self):
        doctor = self.started("--peer", self.mount.path)
        self.assertTrue(any(" clients: " in line for line in doctor.stdout))
        self.mount.signal(signal.SIGSTOP)
        self.addCleanup(self.mount.signal, signal.SIGCONT)
        waits = pathlib.Path(f"/proc/{doctor.pid}/task")
        wait_until(lambda: mounted_below(self.scratch("")) and len(list(waits.iterdir())) > 1, 60, "a look at the peer")
        doctor.send_signal(signal.SIGINT)
        said = doctor.communicate(timeout=50)[0]
        self.assertRegex(said, r"(?m)^FAIL  [^:]+: no answer within 1\d s")
        self.mount.signal(signal.SIGCONT)
        for left in self.mount.path.glob(".lccfs-doctor-*"):
            self.assertIn(left.name, said)
            left.rmdir()
        self.assert_nothing_left()

    def test_it_cleans_up_when_it_is_interrupted(self):
        words = [context.bin / "lccfs", "doctor", *self.volume.address]
        doctor = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=self.environment(), start_new_session=True)
        wait_until(lambda: mounted_below(self.scratch("")) or doctor.poll() is not None, 60, "a mount")
        doctor.send_signal(signal.SIGINT)
        said, errors = doctor.communicate(timeout=100)
        print(said, errors)
        self.assert_nothing_left()
