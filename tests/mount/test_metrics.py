# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who looks at mounts: the keys of the endpoint, lccfs top, lccfs log, and the lines about what is slow."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import urllib.request

from harness import NOBODY, ROOT, MountTest, context, free_port, output, run, wait_until

DOCUMENT = ROOT / "docs" / "METRICS.md"
MONITORING = ROOT / "packaging" / "monitoring"
SAMPLE = re.compile(r'^(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Page:
    """What an endpoint serves."""

    def __init__(self, text):
        self.text = text
        self.types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
        self.samples = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                name, labels, value = SAMPLE.match(line).groups()
                key = name, tuple(sorted(LABEL.findall(labels or "")))
                assert key not in self.samples, f"served twice: {line}"
                self.samples[key] = float(value)

    def value(self, name, **labels):
        return sum(value for (one, has), value in self.samples.items()
                   if one == name and set(labels.items()) <= set(has))

    def labels_of(self, family):
        """Names of labels, but those of the type itself."""
        return {label for (name, has), _ in self.samples.items() for label, _ in has
                if re.fullmatch(f"{family}(_bucket|_sum|_count)?", name)} - {"le"}

    def values_of(self, name, label):
        return {dict(has)[label] for one, has in self.samples if one == name}


def documented():
    """Keys, with type and labels."""
    rows = re.findall(r"^\| `(lccfs_\w+)` \| (\w+) \| ([\w, ]*) ?\|", DOCUMENT.read_text(encoding="utf-8"), re.M)
    return {name: (kind, set(re.findall(r"\w+", labels))) for name, kind, labels in rows}


class MetricsTest(MountTest):
    stores = ("local", "rados")

    def set_up_volume(self):
        self.volume = self.new_volume("--grace", "1")
        self.port = free_port()
        self.mount = self.volume.mount("--metrics-port", str(self.port), "-o", "nogc,slow_ms=1")

    def page(self, port=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{port or self.port}/metrics", timeout=10) as answer:
            return Page(answer.read().decode("utf-8"))

    def start_collector(self):
        port = free_port()
        with open(context.workdir / "gc.log", "wb") as log:
            gc = subprocess.Popen([context.bin / "lccfs-gc", *self.volume.address, "-f", "--interval", "0.2", "--grace",
                                   "0", "--metrics-port", str(port)], stdout=log, stderr=log)
        self.addCleanup(gc.wait)
        self.addCleanup(gc.terminate)
        wait_until(lambda: self.serves(port), 30, "the collector's endpoint")
        return gc, port

    def serves(self, port):
        try:
            return bool(self.page(port))
        except OSError:
            return False

    def assert_moves(self, action, *keys, port=None):
        """Each key, with its labels, is more after the action than before."""
        before = self.page(port)
        action()
        after = self.page(port)
        for name, labels in keys:
            self.assertGreater(after.value(name, **labels), before.value(name, **labels), f"{name} {labels}")

    # ---- the endpoint

    def test_the_document_has_every_key_that_is_served_and_no_other(self):
        _, port = self.start_collector()
        mount, gc = self.page(), self.page(port)
        served = {name: (kind, mount.labels_of(name) | gc.labels_of(name))
                  for name, kind in {**mount.types, **gc.types}.items()}
        self.assertEqual(served, documented())
        self.assertTrue(set(gc.types) < set(mount.types))

    def test_the_dashboard_and_the_rules_use_no_key_that_is_not_there(self):
        keys = set(documented())
        for file in MONITORING.iterdir():
            for name in re.findall(r"\blccfs_\w+", file.read_text(encoding="utf-8")):
                self.assertIn(re.sub("_(bucket|sum|count)$", "", name), keys, file)

    def test_prometheus_takes_the_keys_and_the_rules(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed")
        run("promtool", "check", "metrics", input=self.page().text)
        run("promtool", "check", "rules", MONITORING / "lccfs.rules.yml")
        run("promtool", "test", "rules", pathlib.Path(__file__).with_name("lccfs.rules.test.yml"))

    def test_operations_count_where_they_belong(self):
        took, store = "lccfs_operation_duration_seconds_count", "lccfs_store_operation_duration_seconds_count"
        directory = self.mount / "vm1"

        def use():
            directory.mkdir()
            (directory / "disk").write_bytes(bytes(100_000))
            (self.mount / "none").exists()
            descriptor = os.open(directory / "disk", os.O_RDWR | os.O_DSYNC)
            os.pwrite(descriptor, b"x" * 5000, 0)
            os.fsync(descriptor)
            os.close(descriptor)
            os.rename(directory / "disk", directory / "moved")

        def read():
            descriptor = os.open(directory / "moved", os.O_RDONLY | os.O_DIRECT)
            self.assertEqual(os.sendfile(os.open("/dev/null", os.O_WRONLY), descriptor, 0, 4096), 4096)
            os.close(descriptor)

        self.assert_moves(use, (took, {"operation": "mkdir"}), (took, {"operation": "create"}),
                          (took, {"operation": "write"}), (took, {"operation": "fsync"}),
                          (took, {"operation": "rename"}), ("lccfs_operation_errors_total", {"operation": "lookup"}),
                          ("lccfs_operation_duration_seconds_sum", {"operation": "write"}),
                          ("lccfs_operation_written_bytes_total", {}), (store, {"operation": "apply"}),
                          (store, {"operation": "query"}), (store, {"operation": "write_data"}),
                          ("lccfs_store_operation_written_bytes_total", {}),
                          ("lccfs_cache_hits_total", {"cache": "inodes"}),
                          ("lccfs_directory_duration_seconds_count", {"directory": "vm1", "work": "write"}),
                          ("lccfs_directory_duration_seconds_sum", {"directory": "vm1", "work": "write"}),
                          ("lccfs_directory_written_bytes_total", {"directory": "vm1"}))
        self.assertEqual(self.page().value("lccfs_directory_written_bytes_total", directory="vm1"), 105_000)
        self.mount.remount()
        self.assert_moves(read, (took, {"operation": "open"}), (took, {"operation": "read"}),
                          ("lccfs_operation_read_bytes_total", {}), (store, {"operation": "read_data"}),
                          ("lccfs_store_operation_read_bytes_total", {}),
                          ("lccfs_directory_read_bytes_total", {"directory": "vm1"}))
        self.assertEqual(self.page().value("lccfs_operation_failures_total"), 0)
        wait_until(lambda: self.page().value("lccfs_operation_in_flight") == 0, 30, "the release, which comes after close")

    def test_errors_that_no_program_has_caused_are_failures(self):
        (self.mount / "broken").write_text("x", encoding="utf-8")
        ino = os.stat(self.mount / "broken").st_ino
        self.mount.remount()
        run(context.bin / "damage_tool", *self.volume.address, "--object", f"Inode.{ino}", "--flip", "attr")
        self.assert_moves(lambda: run("stat", self.mount / "broken", check=False),
                          ("lccfs_operation_failures_total", {"operation": "lookup"}))
        self.leaves_valid_volumes = False

    def test_what_is_open_dirty_leased_and_locked_is_shown(self):
        path = self.mount / "file"
        with open(path, "w", encoding="utf-8") as file:
            file.write("dirty")
            file.flush()
            page = self.page()
            self.assertEqual(page.value("lccfs_open_files"), 1)
            self.assertEqual(page.value("lccfs_open_handles"), 1)
            self.assertEqual(page.value("lccfs_leases"), 1)
            self.assertEqual(page.value("lccfs_dirty_bytes"), 5)
            fcntl.flock(file, fcntl.LOCK_EX)
            with open(path, encoding="utf-8") as other:
                waiter = threading.Thread(target=fcntl.flock, args=(other, fcntl.LOCK_SH))
                waiter.start()
                wait_until(lambda: self.page().value("lccfs_locks_waiting") == 1, 30, "a lock that waits")
                page = self.page()
                self.assertEqual(page.value("lccfs_operation_in_flight"), 1)
                self.assertEqual(page.value("lccfs_operation_oldest_seconds"), 0, "a wait for a lock is no hang")
                fcntl.flock(file, fcntl.LOCK_UN)
                waiter.join()
            other = self.volume.mount("-o", "nogc")
            self.assert_moves((other / "file").read_text, ("lccfs_leases_recalled_total", {}))
        wait_until(lambda: self.page().value("lccfs_open_files") == 0, 30, "the release")

    def test_what_memory_does_not_have_is_a_miss(self):
        port = free_port()
        other = self.volume.mount("--metrics-port", str(port), "-o", "nogc,entry_timeout=60,names=sync")
        left = [other / str(number) for number in range(100)]
        for path in left:
            path.touch()

        def misses():
            # The kernel knows the name, and asks nobody before it removes it; to the mount it is a hint for a second.
            left.pop().unlink()
            return self.page(port).value("lccfs_cache_misses_total", cache="names")

        wait_until(misses, 20, "a name that is not in memory")

    def test_a_collector_shows_what_it_has_removed_and_what_it_leaves(self):
        _, port = self.start_collector()
        (self.mount / "gone").write_bytes(bytes(100_000))
        os.sync()
        self.assert_moves(lambda: wait_until(lambda: self.page(port).value("lccfs_collector_passes_total") > 2, 60,
                                             "two passes"),
                          ("lccfs_collector_passes_total", {}), port=port)
        self.assertGreater(self.page(port).value("lccfs_collector_last_pass_timestamp_seconds"), 1_500_000_000)
        with open(self.mount / "gone", "rb"):
            (self.mount / "gone").unlink()
            wait_until(lambda: self.page(port).value("lccfs_collector_backlog_items") > 0, 60, "a backlog")
        before = self.page(port)
        keys = [f"lccfs_collector_removed_{what}_total" for what in ("inodes", "objects", "bytes")]
        wait_until(lambda: all(self.page(port).value(key) > before.value(key) for key in keys), 60, "what was removed")

    # ---- directories on top

    def test_a_directory_has_the_name_that_it_was_found_by_last_and_none_when_it_is_forgotten(self):
        key = "lccfs_directory_written_bytes_total"
        awkward = os.fsencode(self.mount.path) + b'/\xff"\\\n'
        os.mkdir(awkward)
        (self.mount / "before").mkdir()
        (self.mount / "before" / "file").write_text("x", encoding="utf-8")
        self.assertIn(r'\\xff\"\\x5c\\x0a', self.page().values_of(key, "directory"))
        os.rename(self.mount / "before", self.mount / "after")
        (self.mount / "after" / "file").write_text("yy", encoding="utf-8")
        names = self.page().values_of(key, "directory")
        self.assertIn("after", names)
        self.assertNotIn("before", names)
        self.assertEqual(self.page().value(key, directory="after"), 3)
        shutil.rmtree(self.mount / "after")
        wait_until(lambda: "after" not in self.page().values_of(key, "directory"), 30, "a label that goes")

    def test_more_directories_than_labels_share_one(self):
        for number in range(205):
            (self.mount / str(number)).mkdir()
        (self.mount / "204" / "file").write_text("12345", encoding="utf-8")
        page = self.page()
        self.assertEqual(len(page.values_of("lccfs_directory_read_bytes_total", "directory")), 202)
        self.assertEqual(page.value("lccfs_directory_written_bytes_total", directory="other"), 5)

    # ---- what is slow, the log, and top

    def test_what_is_slow_is_logged_and_counted(self):
        def is_slow():
            with open(self.mount / "file", "wb") as file:
                for _ in range(50):
                    file.write(bytes(1 << 20))
                os.fsync(file.fileno())
            return self.page().value("lccfs_operation_slow_total") > 0

        wait_until(is_slow, 60, "something that takes a millisecond")
        self.assertGreater(self.page().value("lccfs_store_operation_slow_total"), 0)
        self.mount.wait_for_line(r"slow operation: \w+ of inode \d+ took \d+ ms")
        self.mount.wait_for_line(r"slow store operation: \w+ of \w+(\.\d+)* took \d+ ms")

    def test_the_log_level_of_a_running_mount_is_changed_by_its_owner_alone(self):
        run(context.bin / "lccfs", "log", "debug", self.mount.path)
        self.mount.wait_for_line("the log level is debug from now on")
        found = pathlib.Path(f"/run/lccfs/{self.mount.process.pid}.sock")
        self.assertEqual(found.stat().st_mode & 0o7777, 0o600)
        refused = run("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "curl", "-s",
                      "--unix-socket", found, "http://l/metrics", check=False)
        self.assertNotEqual(refused.returncode, 0)
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/log-level", b"error", method="PUT")
        with self.assertRaises(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=10)
        for words in (["loud", self.mount.path], [], ["info", "/nowhere"]):
            done = run(context.bin / "lccfs", "log", *words, check=False, stderr=subprocess.PIPE)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_top_shows_what_a_mount_is_doing(self):
        (self.mount / "vm1").mkdir()
        ending = threading.Event()

        def work():
            while not ending.is_set():
                (self.mount / "vm1" / "file").write_bytes(bytes(4096))

        link = self.scratch("link")
        link.symlink_to(self.mount.path)
        worker = threading.Thread(target=work)
        worker.start()
        try:
            wait_until(lambda: (self.mount / "vm1" / "file").exists(), 60, "a write")
            shown = json.loads(output(context.bin / "lccfs", "top", self.mount.path, "--once", "--interval", "3", "--json"))
            by_link = output(context.bin / "lccfs", "top", link, "--once", "--interval", "3")
            by_port = output(context.bin / "lccfs", "top", f"127.0.0.1:{self.port}", "--once",
                             "--interval", "3")
        finally:
            ending.set()
            worker.join()
        self.assertEqual([mount["name"] for mount in shown["mounts"]], [str(self.mount.path)])
        self.assertGreater(shown["mounts"][0]["writes_per_second"], 0)
        self.assertEqual(shown["directories"][0]["name"], "vm1")
        self.assertNotIn("\x1b", by_port)
        for said in (by_link, by_port):
            self.assertRegex(said, r"(?m)^vm1 ")

    def test_a_port_that_is_taken_is_said_before_anything_is_mounted(self):
        path = context.workdir / "second"
        path.mkdir()
        done = run(context.bin / "lccfs-fuse", *self.volume.address, "-m", path, "-f", "--metrics-port", self.port,
                   check=False, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 32)
        self.assertEqual(done.stderr.strip(), f"lccfs-fuse: cannot listen on 127.0.0.1 port {self.port}: another program "
                                              "does; choose another port")

    def test_an_address_without_a_port_serves_nothing_and_the_log_says_so(self):
        self.volume.mount("-o", "metrics_address=127.0.0.1").wait_for_line("no metrics are served: .*metrics-port")

    def test_a_mount_that_is_gone_leaves_no_socket(self):
        socket_path = pathlib.Path(f"/run/lccfs/{self.mount.process.pid}.sock")
        self.assertTrue(socket_path.exists())
        self.mount.unmount()
        self.assertFalse(socket_path.exists())

    def test_the_socket_of_a_mount_that_was_killed_goes_when_the_next_one_begins(self):
        mount = self.volume.mount()
        left, others = (pathlib.Path(f"/run/lccfs/{one.process.pid}.sock") for one in (mount, self.mount))
        self.assertTrue(left.exists())
        mount.kill()
        mount.process.wait()
        self.volume.mount()
        self.assertFalse(left.exists())
        self.assertTrue(others.exists())
