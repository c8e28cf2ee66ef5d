# SPDX-License-Identifier: LGPL-2.1-or-later
"""What was removed goes, and nothing else: lccfs-gc beside real mounts, and the collector inside them."""

import json
import os
import signal
import subprocess
import time

from harness import MountTest, context, output, pattern_bytes, run, scaled, wait_until
from test_outages import fence
from test_tree import collect_tree, copy_in

MIB = 1 << 20
GIB = 1 << 30
FILES = 20_000
RECLAIM_LIMIT_S = 120
GONE_AFTER_S = 60  # a client must be unseen for so long before it is taken for dead


def objects_of(volume):
    return set(output(context.bin / "objects_tool", *volume.address).splitlines())


def keys_of(volume, name):
    return set(output(context.bin / "objects_tool", *volume.address, "--keys", name).splitlines())


def gc_command(volume, *options):
    return [str(context.bin / "lccfs-gc"), *volume.address, *options]


def collect(volume, *options):
    """The report of a collector that does all that it can do now."""
    return json.loads(output(*gc_command(volume, "--once", "--grace", "0", "--json", *options)))


def what_is_left(volume, mounts):
    """All that an empty volume with these mounts would not hold."""
    live = [str(mount.instance()) for mount in mounts]
    objects = {"Super", "Alloc", "Inode.1", *(f"Session.{number}" for number in live)}
    return {
        "objects": objects_of(volume) ^ objects,
        "keys of the root": keys_of(volume, "Inode.1") - {f"l/{number}" for number in live},
        "instances": keys_of(volume, "Super") ^ {f"s/{number}" for number in live},
    }


class GcTest(MountTest):
    """Mounts do not collect by themselves here."""

    stores = ("local", "rados")
    mount_options = ("-o", "nogc")

    def assert_nothing_is_left(self, *mounts):
        self.assertEqual({what: sorted(left)[:20] for what, left in what_is_left(self.volume, mounts).items() if left},
                         {})

    def show_to_another_client(self):
        """Files that only one client can have seen it removes by itself."""
        other = self.volume.mount("-o", "nogc")
        for _ in os.walk(other.path):
            pass
        other.unmount()

    def collect_everything(self, *mounts):
        """A file that was just closed may count as open for a moment, and a busy client may not answer in time."""
        wait_until(lambda: self.is_clean_after_a_pass(mounts), RECLAIM_LIMIT_S, "that nothing is left")
        self.assert_nothing_is_left(*mounts)

    def is_clean_after_a_pass(self, mounts):
        collect(self.volume)
        return not any(what_is_left(self.volume, mounts).values())


class RemovalTest(GcTest):
    limit_s = 600

    def test_a_removed_tree_leaves_nothing_behind(self):
        source = self.scratch("tree")
        files = collect_tree(source, scaled(FILES))
        copy_in(source, self.mount / "tree")
        (self.mount / "kept").write_text("kept", encoding="utf-8")
        self.show_to_another_client()
        run("rm", "-r", self.mount / "tree")
        self.assertGreaterEqual(self.volume.info()["backlog"]["inodes"], files)

        report = collect(self.volume)
        self.assertGreaterEqual(report["inodes_removed"], files)
        self.assertEqual((self.mount / "kept").read_text(encoding="utf-8"), "kept")
        (self.mount / "kept").unlink()
        self.collect_everything(self.mount)
        self.assertEqual(self.volume.info()["backlog"]["inodes"], 0)

        self.mount.unmount()
        collect(self.volume)
        self.assert_nothing_is_left()

    def test_files_that_no_other_client_has_seen_go_without_a_collector(self):
        source = self.scratch("tree")
        collect_tree(source, scaled(FILES))
        copy_in(source, self.mount / "tree")
        directories = sum(1 for _ in os.walk(self.mount / "tree"))
        run("rm", "-r", self.mount / "tree")
        wait_until(lambda: self.are_files_gone(directories), RECLAIM_LIMIT_S, "that the files are gone")
        self.collect_everything(self.mount)

    def inodes_and_data(self):
        objects = objects_of(self.volume)
        return sum(name.startswith("Inode.") for name in objects), sum(name.startswith("Data.") for name in objects)

    def are_files_gone(self, directories):
        """A directory that was removed before it was stored never was there."""
        inodes, data = self.inodes_and_data()
        return inodes <= 1 + directories and data == 0

    def backlog(self):
        backlog = self.volume.info()["backlog"]
        return backlog["inodes"], backlog["bytes"]

    def test_a_sparse_image_costs_as_many_removes_as_it_has_objects(self):
        pieces = 256 if context.full else 64
        with open(self.mount / "image", "wb", buffering=0) as image:
            image.truncate(100 * GIB)
            for piece in range(pieces):
                image.seek(piece * (100 * GIB // pieces))
                image.write(pattern_bytes(4 * MIB, piece))
        os.unlink(self.mount / "image")
        # The client stores what the file occupies as it releases the lease, behind the close.
        wait_until(lambda: self.backlog() == (1, pieces * 4 * MIB), RECLAIM_LIMIT_S, "all of it waits to be reclaimed")

        reports = [collect(self.volume)]
        wait_until(lambda: sum(report["inodes_removed"] for report in reports) or reports.append(collect(self.volume)),
                   RECLAIM_LIMIT_S, "its close")
        self.assertEqual(sum(report["data_objects_removed"] for report in reports), pieces)
        self.assertEqual(sum(report["bytes_freed"] for report in reports), pieces * 4 * MIB)
        self.assert_nothing_is_left(self.mount)


class OpenFileTest(GcTest):
    def test_a_file_open_in_another_client_stays_whole_until_it_is_closed(self):
        content = pattern_bytes(9 * MIB, 1)
        (self.mount / "file").write_bytes(content)
        other = self.volume.mount("-o", "nogc")
        with open(other / "file", "r+b", buffering=0) as file:
            os.unlink(self.mount / "file")
            self.assertEqual(os.listdir(other.path), [])
            report = collect(self.volume)
            self.assertEqual((report["open_elsewhere"], report["inodes_removed"]), (1, 0))

            self.assertEqual(file.read(len(content)), content)
            file.seek(20 * MIB)
            file.write(b"after the end")
            file.seek(5)
            file.write(b"in the middle")
            os.fsync(file.fileno())
            self.assertEqual(collect(self.volume)["open_elsewhere"], 1)
            self.assertEqual(os.pread(file.fileno(), 20, 0), content[:5] + b"in the middle" + content[18:20])
            self.assertEqual(os.pread(file.fileno(), 99, 20 * MIB), b"after the end")
            self.assertEqual(os.fstat(file.fileno()).st_size, 20 * MIB + 13)
        self.collect_everything(self.mount, other)


class SeveralCollectorsTest(GcTest):
    limit_s = 400

    def test_collectors_that_are_killed_lose_nothing_and_leave_nothing(self):
        source, small = self.scratch("tree"), self.scratch("small tree")
        collect_tree(source, 600)
        collect_tree(small, 100)
        copy_in(source, self.mount / "kept")
        removed = [self.mount / f"removed {number}" for number in range(4)]
        for tree in removed:
            copy_in(small, tree)
        self.show_to_another_client()
        killed_at_work = 0
        for tree in removed:
            run("rm", "-r", tree)
            collectors = [self.start_collector(), self.start_collector()]
            wait_until(lambda: self.instances_of(collectors[0]) or collectors[0].poll() is not None, 60, "it has begun")
            time.sleep(self.random.uniform(0, 1))
            killed_at_work += self.kill(collectors[0])
            self.assertEqual(collectors[1].wait(120), 0)
        self.assertGreater(killed_at_work, 0)

        collect(self.volume)
        run("diff", "-r", "--no-dereference", source, self.mount / "kept")
        run("rm", "-r", self.mount / "kept")
        self.collect_everything(self.mount)

    def start_collector(self):
        """Slow enough to be met at work."""
        return self.spawn(*gc_command(self.volume, "--once", "--grace", "0", "-j", "4", "--rate", "200"))

    def instances_of(self, collector):
        return [entry["number"] for entry in self.volume.info()["instances"] if entry["pid"] == collector.pid]

    def kill(self, collector):
        """Whether it was at work. It is fenced at once: nobody has to wait until it can be taken for dead."""
        collector.kill()
        collector.wait()
        left = self.instances_of(collector)
        for number in left:
            fence(self.volume, number)
        return bool(left)


class DaemonTest(GcTest):
    def test_a_daemon_cleans_up_until_it_is_told_to_end(self):
        log = self.scratch("gc.log")
        run(*gc_command(self.volume, "--interval", "0.5", "--grace", "0", "--log-file", log))
        daemon = next(entry["pid"] for entry in self.volume.info()["instances"] if entry["mount_id"] == "lccfs-gc")
        self.addCleanup(lambda: os.path.exists(f"/proc/{daemon}") and os.kill(daemon, signal.SIGKILL))
        for number in range(20):
            (self.mount / f"file {number}").write_bytes(b"x" * 100)
            os.unlink(self.mount / f"file {number}")
        run("sync", self.mount.path)
        wait_until(lambda: self.volume.info()["backlog"]["items"] == 0, RECLAIM_LIMIT_S, "the daemon's work")
        os.kill(daemon, signal.SIGTERM)
        wait_until(lambda: not os.path.exists(f"/proc/{daemon}"), RECLAIM_LIMIT_S, "the daemon's end")
        self.assert_nothing_is_left(self.mount)
        self.assertIn("items looked at", log.read_text(encoding="utf-8"))

    def test_a_volume_that_is_not_there_is_one_line(self):
        for options in [(), ("--once",), ("--dry-run",)]:
            answer = run(*gc_command(self.new_address(), *options), check=False, stderr=subprocess.PIPE)
            self.assertEqual(answer.returncode, 1, options)
            self.assertEqual(len(answer.stderr.splitlines()), 1, answer.stderr)


class GoneClientTest(GcTest):
    waits = True
    limit_s = 400

    def test_a_killed_client_is_named_then_fenced_and_what_it_left_goes(self):
        killed = self.volume.mount("-o", "nogc")
        (killed / "folder").mkdir()
        for number in range(50):
            (killed / "folder" / str(number)).write_bytes(pattern_bytes(100, number))
        with open(killed / "open", "wb", buffering=0) as file:
            file.write(b"x" * MIB)
            os.unlink(killed / "open")
            run("rm", "-r", killed / "folder")
            killed.may_die = True
            killed.process.kill()
            killed.process.wait()
            killed.clean_up()
            try:
                file.close()
            except OSError:
                pass  # its mount is gone
        before = self.everything()
        wait_until(lambda: self.not_there(), 60, "that the client's watches lapse")
        self.assertEqual([one["pid"] for one in self.not_there()], [killed.process.pid])
        self.assertIn(f"pid {killed.process.pid} on", output(*gc_command(self.volume, "--dry-run")))
        self.assertEqual(self.everything(), before)

        self.assertEqual([one["pid"] for one in collect(self.volume)["gone"]], [killed.process.pid])
        self.assert_nothing_is_left(self.mount)

    def not_there(self):
        report = self.dry_run()
        return report["gone"] + report["not_seen"]

    def dry_run(self):
        return json.loads(output(*gc_command(self.volume, "--dry-run", "--grace", "0", "--json")))

    def everything(self):
        return {name: keys_of(self.volume, name) for name in objects_of(self.volume) if not name.startswith("Data.")}


class MountCollectsTest(GcTest):
    mkfs_options = ("--grace", "1")

    def test_only_a_mount_without_nogc_cleans_up_by_itself(self):
        for number in range(20):
            (self.mount / f"file {number}").write_bytes(b"x" * 100)
        run("sync", self.mount.path)  # what is removed before the store has it leaves nothing
        self.show_to_another_client()
        run("rm", *self.mount.path.iterdir())
        run("sync", self.mount.path)
        wait_until(lambda: self.volume.info()["backlog"]["inodes"] == 20, RECLAIM_LIMIT_S, "the store knows of it")
        time.sleep(4)
        self.assertEqual(self.volume.info()["backlog"]["inodes"], 20)
        reader = self.volume.mount("-o", "ro")
        helper = self.volume.mount()
        wait_until(lambda: self.volume.info()["backlog"]["inodes"] == 0, RECLAIM_LIMIT_S, "the mount's help")
        wait_until(lambda: "reclaimed" in helper.log_text(), RECLAIM_LIMIT_S, "the line about it, which comes after it")
        self.assertNotIn("reclaimed", self.mount.log_text() + reader.log_text())

    def test_a_mount_that_collects_ends_at_once(self):
        helper = self.volume.mount()
        for number in range(200):
            (helper / f"file {number}").touch()
        run("rm", *helper.path.iterdir())
        wait_until(lambda: "reclaimed" in helper.log_text(), RECLAIM_LIMIT_S, "the mount's work")
        helper.unmount()
        self.collect_everything(self.mount)
