# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/guide/ten-minutes.md as it is written, on fresh hosts and a cluster with cephx; and what then is to hold."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from ceph_cluster import Cluster
from fresh_host import FreshHost, wait_until
from places import ROOT, context

GUIDE = ROOT / "docs" / "guide" / "ten-minutes.md"
RECOVERY_LIMIT_S = 180
# What a cluster that nobody has told otherwise does with a new pool; the tests' own clusters are smaller.
AS_CEPH_HAS_IT = {"osd pool default size": 3, "osd pool default min size": 2, "osd pool default pg autoscale mode": "on"}


def blocks():
    """The shell blocks of the guide, by their headings."""
    parts = re.split(r"^## (.*)$", GUIDE.read_text(encoding="utf-8"), flags=re.M)
    return {heading: re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)
            for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


def setUpModule():
    """The guide."""
    context.work.mkdir(parents=True, exist_ok=True)
    guide = blocks()
    for script in guide.pop("On a host that builds"):
        subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, check=True)
    global package, cluster, admin, node  # what a module's tests share
    package = next((ROOT / "build-deb").glob("lccfs_*.deb"))
    folder = tempfile.mkdtemp(prefix="lccfs-packages-")
    cluster = Cluster(folder, conf=AS_CEPH_HAS_IT)
    unittest.addModuleCleanup(shutil.rmtree, folder)
    unittest.addModuleCleanup(cluster.stop)
    cluster.start(osds=3)
    admin, node = FreshHost("lccfs-admin"), FreshHost("lccfs-node")
    for host in [admin, node]:
        unittest.addModuleCleanup(host.stop)
        host.start()
        host.put(package, f"/root/{package.name}")
        host.write("/etc/ceph/ceph.conf", "[global]\n" + "".join(
            re.findall(r"^(?:fsid|mon host) = .*\n", cluster.conf.read_text(encoding="utf-8"), re.M)))
    admin.write("/etc/ceph/ceph.client.admin.keyring", cluster.ceph("auth", "get", "client.admin"))
    for script in guide.pop("On a host that administers the cluster"):
        admin.run(script)
    keyring = "/etc/ceph/ceph.client.lccfs.keyring"
    node.put(f"{admin.root}{keyring}", keyring)
    for heading in ["On each host that mounts", "A collector", "A mount that comes back by itself", "Is all right?"]:
        for script in guide.pop(heading):
            node.run(script)
        if heading == "On each host that mounts":
            assert "fuse.lccfs" in node.output("findmnt -n -o FSTYPE /mnt/lccfs"), "mounted by mount -a"
    assert not any(guide.values()), f"blocks that nobody runs: {guide}"


def clients(host=None):
    return json.loads((host or node).output("lccfs clients -p vms --json"))


class GuideTest(unittest.TestCase):
    def test_the_mount_and_the_collector_run_with_nothing_but_the_narrow_key(self):
        self.assertEqual(node.output("ls /etc/ceph/*.keyring"), "/etc/ceph/ceph.client.lccfs.keyring")
        self.assertEqual(node.output("findmnt -n -o FSTYPE,SOURCE /mnt/lccfs").split(), ["fuse.lccfs", "vms"])
        for unit in ["lccfs@vms", "lccfs-gc@vms"]:
            self.assertEqual(node.output(f"systemctl is-active {unit}"), "active")
            self.assertEqual(node.output(f"systemctl show -P StatusErrno {unit}"), "0")
        caps = json.loads(cluster.ceph("auth", "get", "client.lccfs", "-f", "json"))[0]["caps"]
        self.assertEqual(caps["osd"], "allow rw pool=vms")
        self.assertTrue(caps["mon"].startswith('allow r, allow command "osd blocklist" with blocklistop=add'))
        node.run("cp /usr/bin/bash /mnt/lccfs/copy && sync /mnt/lccfs/copy && cmp /usr/bin/bash /mnt/lccfs/copy && rm /mnt/lccfs/copy")

    def test_all_that_mount_can_do_works(self):
        node.run("mkdir -p /mnt/lccfs/guests/one /mnt/part && echo disk >/mnt/lccfs/guests/one/disk")
        for source, options in [("vms:/guests/one", "ro"), ("vms", "ro,subdir=/guests/one")]:
            node.run(f"mount -t fuse.lccfs {source} /mnt/part -o {options}")
            self.assertEqual(node.output("cat /mnt/part/disk"), "disk")
            self.assertEqual(node.output("findmnt -n -o SOURCE /mnt/part"), "vms:/guests/one")
            self.assertIn("Read-only", node.run("touch /mnt/part/new", check=False).stderr)
            node.run("umount /mnt/part")
        refused = node.run("mount -t lccfs vms:/guests/.. /mnt/part", check=False)
        self.assertEqual((refused.returncode, len(refused.stderr.splitlines())), (1, 1))


    def test_the_mount_comes_before_nova_and_libvirt_by_the_names_that_their_packages_have(self):
        listed = node.output("cd $(mktemp -d) && apt-get download -qq nova-compute libvirt-daemon-system && "
                             "for package in *.deb; do dpkg-deb -c $package; done")
        packaged = set(re.findall(r"/([\w-]+\.service)$", listed, re.M))
        before = set(node.output("systemctl show -P Before lccfs@vms").split())
        self.assertLessEqual({"nova-compute.service", "libvirtd.service", "libvirt-guests.service"}, packaged & before)

    def test_the_doctor_finds_nothing_to_change(self):
        for peer in ["", "--peer /mnt/lccfs"]:
            said = json.loads(node.output(f"lccfs doctor -p vms --json {peer}"))
            self.assertEqual([one for one in said["checks"] if one["verdict"] != "ok"], [])
            self.assertLessEqual({"store", "fence", "pool vms, copies", "clock", "migration"},
                                 {one["name"] for one in said["checks"]})


class RecoveryTest(unittest.TestCase):
    def own(self):
        """The mount's process and its number as a client."""
        process = int(node.output("systemctl show -P MainPID lccfs@vms"))  # in the host's own numbers
        return process, next((one["number"] for one in clients() if one["pid"] == process), None)

    def assert_back(self, before):
        def is_back():
            process = int(node.output("systemctl show -P MainPID lccfs@vms"))
            return process not in (0, before) and node.output("systemctl is-active lccfs@vms || true") == "active"
        wait_until(is_back, RECOVERY_LIMIT_S, "the mount is back")
        self.assertEqual(node.output("cat /mnt/lccfs/kept"), "kept")
        node.run("echo more >/mnt/lccfs/more && rm /mnt/lccfs/more")
        self.assertEqual(node.output("findmnt -n -o FSTYPE /mnt/lccfs"), "fuse.lccfs")  # once

    def test_a_mount_whose_program_was_killed_is_back_by_itself_though_it_was_in_use(self):
        node.run("echo kept >/mnt/lccfs/kept && sync /mnt/lccfs/kept")
        node.run("systemd-run --quiet --unit user --working-directory=/mnt/lccfs sleep infinity")
        self.addCleanup(node.run, "systemctl stop user")
        before, _ = self.own()
        node.run(f"kill -9 {before}")
        self.assert_back(before)

    def test_a_mount_that_was_fenced_is_back_as_a_new_client(self):
        node.run("echo kept >/mnt/lccfs/kept && sync /mnt/lccfs/kept")
        before, number = self.own()
        self.assertIsNotNone(number)
        admin.run(f"lccfs evict -p vms --id lccfs --client {number}")
        self.assert_back(before)
        self.assertNotEqual(self.own()[1], number)


class RefusalTest(unittest.TestCase):
    def test_who_may_not_is_refused_with_one_line_and_no_log_has_a_key(self):
        cluster.create_pool("forbidden", 1)
        key = re.search(r"key = (\S+)", node.output("cat /etc/ceph/ceph.client.lccfs.keyring"))[1]
        node.write("/etc/ceph/ceph.client.wrong.keyring", f"[client.wrong]\n\tkey = {key}\n")
        self.addCleanup(os.unlink, f"{node.root}/etc/ceph/ceph.client.wrong.keyring")
        node.run("mkdir -p /mnt/refused")
        for words, says in [("-p forbidden", "does not permit this to our key"),
                            ("-p vms --id wrong", "the key of client.wrong cannot be read, or the cluster refuses it"),
                            ("-p vms --id none", "client.none: check")]:
            for program in ["lccfs info", "lccfs-gc --once", "lccfs-fsck", "lccfs-fuse -m /mnt/refused"]:
                done = node.run(f"{program} {words}", check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertIn(says, done.stderr)
                self.assertNotIn(key, done.stderr)
        self.assertNotIn(key, node.output("journalctl --no-pager"))


class PackageTest(unittest.TestCase):
    def test_lintian_finds_no_error(self):
        changes = next((ROOT / "build-deb").glob("lccfs_*.changes"))
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0", changes], check=False,
                              capture_output=True, text=True)
        print(done.stdout, done.stderr)
        self.assertEqual(done.returncode, 0)

    def newer(self):
        """The same package under a higher version."""
        folder = tempfile.mkdtemp(prefix="lccfs-newer-")
        self.addCleanup(shutil.rmtree, folder)
        subprocess.run(["dpkg-deb", "-R", package, f"{folder}/files"], check=True)
        subprocess.run(["sed", "-i", "s/^Version: .*/&+1/", f"{folder}/files/DEBIAN/control"], check=True)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", f"{folder}/files", f"{folder}/newer.deb"], check=True)
        return f"{folder}/newer.deb"

    def test_an_upgrade_keeps_settings_and_running_mounts(self):
        node.put(self.newer(), "/root/newer.deb")
        before = node.output("systemctl show -P MainPID lccfs@vms")
        node.run("apt-get install -y ./newer.deb")
        self.assertIn("+1", node.output("dpkg-query -W -f '${Version}' lccfs"))
        self.assertEqual(node.output("systemctl show -P MainPID lccfs@vms"), before)
        self.assertIn("id = lccfs", node.output("cat /etc/lccfs/lccfs.conf"))
        node.run("ls /mnt/lccfs")

    def test_a_purge_leaves_nothing(self):
        files = admin.output("dpkg -L lccfs").split()
        self.assertIn("/etc/lccfs/lccfs.conf", files)
        self.addCleanup(admin.run, "apt-get install -y ./lccfs_*.deb && lccfs info -p vms --id lccfs")
        admin.run("apt-get purge -y lccfs")
        left = admin.output("ls -d " + " ".join(path for path in files if "lccfs" in path) + " 2>/dev/null || true")
        self.assertEqual(left, "")
        self.assertEqual(admin.output("systemctl list-unit-files 'lccfs*' --no-legend || true"), "")
