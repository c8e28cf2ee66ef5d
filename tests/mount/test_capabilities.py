# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a key must permit, what it must not, and what the programs say to one that permits too little."""

import errno
import os
import re
import shlex
import stat
import struct
import subprocess

from ceph_cluster import capability
from harness import MountTest, POOL, ROOT, context, output, run
from test_bad_input import crc32c

ADDRESS = "192.0.2.7:0"  # for documentation: nobody's
EXIT_MOUNT_FAILURE = 32


class KeyTest(MountTest):
    """With a key of exactly the permissions that lccfs auth prints."""

    stores = ("rados",)

    def set_up_volume(self):
        self.volume = self.address_of_narrow_user()
        self.volume.make()
        self.mount = self.volume.mount()

    def address_of_narrow_user(self, pool=POOL):
        address = self.new_address(pool)
        volume = address.as_client(f"narrow-{address.namespace}")
        self._volumes.append(volume)
        self.add_client(volume)
        return volume

    def auth(self, volume, *options, **settings):
        """`lccfs auth` for the volume's client, run by the administrator."""
        address = volume.as_client("admin").address
        return run(context.bin / "lccfs", "auth", volume.address[-1], *address, *options, stdout=subprocess.PIPE, **settings)

    def add_client(self, volume, *options):
        """By the command that it prints, word for word."""
        words = shlex.split(self.auth(volume, *options).stdout)
        name = f"client.{volume.address[-1]}"
        self.assertEqual(words[:6], ["ceph", "-c", str(self.cluster.conf), "auth", "get-or-create", name])
        self.cluster.add_client(volume.address[-1], **dict(zip(words[6::2], words[7::2], strict=True)))

    def address_of_admin(self, pool):
        volume = self.new_address(pool).as_client("admin")
        self._volumes.append(volume)
        return volume

    def with_other_monitors(self, mon):
        """The same key with less."""
        osd = capability("osd").replace("POOL", POOL).replace("NAMESPACE", self.volume.namespace)
        self.cluster.ceph("auth", "caps", f"client.{self.volume.address[-1]}", "mon", mon, "osd", osd)

    def blocklist(self, *words, user=None):
        name = "client." + (user or self.volume.address[-1])
        return subprocess.run(["ceph", "-c", self.cluster.conf, "-n", name, "osd", "blocklist", *words],
                              check=False, capture_output=True, text=True, timeout=60)

    def test_the_documents_have_the_text_of_the_one_place(self):
        for path in ["README.md", "docs/man/lccfs-fuse.8"]:
            text = (ROOT / path).read_text(encoding="utf-8").replace("\\-", "-").replace("\\(ha", "^")
            for service in ["mon", "osd"]:
                self.assertIn(f"{service} '{capability(service)}'", " ".join(text.split()), path)

    def test_auth_prints_what_the_documents_say(self):
        osd = capability("osd").replace("POOL", POOL).replace("NAMESPACE", self.volume.namespace)
        words = shlex.split(self.auth(self.volume).stdout)[6:]
        self.assertEqual(words, ["mon", capability("mon"), "osd", osd])

    def refusal(self, program, volume, *options):
        """Its one line, of a command that fails."""
        done = run(context.bin / program[0], *program[1:], *volume.address, *options, check=False, capture_output=True,
                   timeout_s=60)
        print(done.stderr)
        self.assertNotEqual(done.returncode, 0, program)
        self.assertEqual((len(done.stderr.splitlines()), done.stdout), (1, ""), program)
        return done.stderr

    def test_a_key_to_read_reads_and_changes_nothing(self):
        (self.mount / "file").write_bytes(b"bytes")
        self.mount.unmount()
        reader = self.volume.as_client(f"reader-{self.volume.namespace}")
        self._volumes.append(reader)
        self.add_client(reader, "--read-only")
        self.assertEqual(reader.info()["instances"], [])
        run(context.bin / "lccfs-fsck", *reader.address)
        mount = reader.mount("-o", "ro")
        self.assertEqual((mount / "file").read_bytes(), b"bytes")
        self.assert_errno(errno.EROFS, (mount / "new").touch)
        mount.unmount()
        point = self.scratch("mountpoint")
        point.mkdir()
        self.refusal(["lccfs-fuse"], reader, "-m", point)
        self.refusal(["lccfs-gc"], reader, "--once")
        rados = ["rados", "-c", self.cluster.conf, "-n", f"client.{reader.address[-1]}", "-p", POOL, "-N", reader.namespace]
        self.assertNotEqual(run(*rados, "rm", "Super", check=False).returncode, 0)
        self.assertEqual(self.volume.info()["instances"], [])

    def test_auth_knows_the_data_pool_and_asks_for_the_one_of_a_volume_to_be_made(self):
        data = self.cluster.create_pool("auth-data", 1)
        volume = self.new_address(POOL)
        volume = volume.as_client(f"narrow-{volume.namespace}")
        self._volumes.append(volume)
        self.add_client(volume, "--data-pool", data)
        volume.make("--data-pool", data)
        mount = volume.mount()
        (mount / "file").write_bytes(b"x" * 100_000)
        self.assertIn(f"osd 'allow rw pool={POOL} namespace={volume.namespace}, allow rw pool={data} "
                      f"namespace={volume.namespace}'", self.auth(volume).stdout)
        self.assertEqual(self.auth(volume).stdout, self.auth(volume, "--data-pool", data).stdout)

    def test_auth_makes_the_key_and_shows_it_to_nobody(self):
        volume = self.new_address(POOL)
        volume = volume.as_client(f"made-{volume.namespace}")
        keyring = self.scratch("keyring")
        done = self.auth(volume, "--make", keyring)
        key = re.search(r"key = (\S+)", keyring.read_text(encoding="utf-8")).group(1)
        self.assertEqual(stat.S_IMODE(keyring.stat().st_mode), 0o600)
        self.assertNotIn(key, done.stdout)
        with open(self.cluster.dir / "keyring", "a", encoding="utf-8") as all_keys:
            all_keys.write(keyring.read_text(encoding="utf-8"))
        volume.make()

        def refused(*options, by="admin"):
            done = run(context.bin / "lccfs", "auth", volume.address[-1], *volume.as_client(by).address, *options,
                       check=False, capture_output=True)
            print(done.stderr)
            self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (1, "", 1))
            self.assertNotIn(key, done.stderr)
            return done.stderr

        self.assertIn("File exists", refused("--make", keyring))
        again = self.scratch("again")
        run(context.bin / "lccfs", "auth", "nobody", *volume.as_client("admin").address, "--make", keyring, check=False)
        self.assertNotIn("client.nobody", self.cluster.ceph("auth", "ls"))
        self.assertIn("with other capabilities", refused("--read-only", "--make", again))
        self.assertIn("may make no keys", refused("--make", again, by=volume.address[-1]))
        self.assertFalse(again.exists())
        self.auth(volume, "--make", again)
        self.assertEqual(again.read_text(encoding="utf-8"), keyring.read_text(encoding="utf-8"))

    def test_a_client_with_a_wrong_key_or_none_or_for_another_pool_is_refused_with_one_line(self):
        other = self.cluster.create_pool("forbidden", 1)
        key = re.search(rf"\[client\.{self.volume.address[-1]}\]\s+key = (\S+)",
                        (self.cluster.dir / "keyring").read_text(encoding="utf-8")).group(1)
        wrong = key[:24] + ("A" if key[24] != "A" else "B") + key[25:]
        keyring, conf = self.scratch("keyring"), self.scratch("ceph.conf")
        keyring.write_text(f"[client.{self.volume.address[-1]}]\n\tkey = {wrong}\n", encoding="utf-8")
        conf.write_text(re.sub(r"keyring = .*", f"keyring = {keyring}",
                               self.cluster.conf.read_text(encoding="utf-8"), count=1), encoding="utf-8")
        address = self.volume.address
        with_wrong_key = type(self.volume)([*("-c", conf), *address[2:]])
        no_keyring = self.scratch("other.conf")
        no_keyring.write_text(conf.read_text(encoding="utf-8").replace(str(keyring), "/nowhere"), encoding="utf-8")
        without_key = type(self.volume)(["-c", no_keyring, *address[2:]])
        elsewhere = type(self.volume)(["-c", address[1], "-p", other, *address[4:]])
        point, log = self.scratch("mountpoint"), self.scratch("log")
        point.mkdir()
        programs = [["lccfs", "info"], ["lccfs", "mkfs"], ["lccfs-fuse", "-m", point, "--log-file", log, "--log-level", "debug"],
                    ["lccfs-gc", "-f", "--log-file", log, "--log-level", "debug"], ["lccfs-fsck"]]
        for volume, says in [(with_wrong_key, "or the cluster refuses it"), (without_key, "or the cluster refuses it"),
                             (elsewhere, "does not permit this to our key")]:
            for program in programs:
                line = self.refusal(program, volume)
                self.assertIn(says, line, program)
                self.assertFalse(any(secret in line for secret in [key, wrong]))
        written = log.read_text(encoding="utf-8")
        self.assertFalse(any(secret in written for secret in [key, wrong]))

    def test_holes_and_copies_within_the_cluster_need_no_more(self):
        content = self.random.randbytes(9 << 20)
        (self.mount / "a").write_bytes(content)
        run("fallocate", "-p", "-o", "0", "-l", "4M", self.mount / "a")
        with open(self.mount / "a", "rb") as source, open(self.mount / "b", "wb") as target:
            self.assertEqual(os.copy_file_range(source.fileno(), target.fileno(), 9 << 20), 9 << 20)
            self.assertEqual(os.lseek(source.fileno(), 0, os.SEEK_DATA), 4 << 20)
        self.assertEqual((self.mount / "b").read_bytes() == bytes(4 << 20) + content[4 << 20:], True)

    def test_one_client_may_be_barred_but_no_host_no_range_and_nobody_freed(self):
        for wrong in ["0", "4294967296", "8589934592", "01234", "999"]:
            done = self.blocklist("add", f"{ADDRESS}/{wrong}")
            self.assertEqual(done.returncode, errno.EACCES, f"{wrong}: {done.stderr}")
        for wrong in [["add", "192.0.2.7"], ["add", "192.0.2.0/24"], ["range", "add", "192.0.2.0/24"]]:
            self.assertNotEqual(self.blocklist(*wrong).returncode, 0, wrong)
        self.assertNotIn("192.0.2.", self.cluster.ceph("osd", "blocklist", "ls"))
        right = [f"{ADDRESS}/{nonce}" for nonce in ["1000", "4294967295"]]
        try:
            for address in right:
                self.assertEqual(self.blocklist("add", address).returncode, 0, address)
            self.assertEqual(self.blocklist("rm", right[0]).returncode, errno.EACCES)
            self.assertEqual(self.blocklist("clear").returncode, errno.EACCES)
            self.assertIn(right[0], self.cluster.ceph("osd", "blocklist", "ls"))
        finally:
            for address in right:
                self.blocklist("rm", address, user="admin")

    def test_a_client_of_these_permissions_works_and_fences(self):
        (self.mount / "file").write_bytes(b"x" * 100_000)
        self.mount.may_die = True
        run(context.bin / "fence_tool", *self.volume.address, "--instance", self.mount.instance())
        other = self.volume.mount()
        self.assertEqual(os.listdir(other.path), ["file"])  # the fence bars from an object once it was read
        self.assert_errno(errno.EIO, (self.mount / "new").touch)
        (other / "file").write_bytes(b"y")
        self.assertEqual((other / "file").read_bytes(), b"y")

    def test_a_client_of_these_permissions_asks_a_holder_and_takes_over_from_a_dead_one(self):
        held = os.open(self.mount / "file", os.O_CREAT | os.O_WRONLY)
        os.write(held, b"held")
        other = self.volume.mount()
        with open(other / "file", "ab", buffering=0) as file:
            file.write(b" and more")
        os.write(held, b"HELD")
        self.mount.may_die = True
        self.mount.process.kill()
        self.mount.process.wait()
        (other / "file").write_bytes(b"others")
        self.assertEqual((other / "file").read_bytes(), b"others")
        self.assert_errno(errno.ENOTCONN, os.close, held)

    def test_an_address_that_somebody_wrote_into_a_record_is_barred_by_no_mightier_key(self):
        self.mount.may_die = True
        self.mount.process.kill()
        self.mount.process.wait()
        forged = self.forge_addresses()
        done = self.collect(self.volume.as_client("admin"))
        self.assertIn(f"ceph osd blocklist add '{forged}'", done.stderr)
        self.assertNotIn(forged, self.cluster.ceph("osd", "blocklist", "ls"))
        self.assertEqual([entry["state"] for entry in self.volume.info()["instances"]], ["live"])
        self.collect(self.volume)  # it could do the same with its own hands
        self.assertIn(forged, self.cluster.ceph("osd", "blocklist", "ls"))
        self.assertEqual(self.volume.info()["instances"], [])

    def forge_addresses(self):
        """In the only record: another nonce. Whoever has a key of the volume can do that."""
        rados = ["rados", "-c", self.cluster.conf, "-p", POOL, "-N", self.volume.namespace]
        key = next(key for key in output(*rados, "listomapkeys", "Super").split() if key.startswith("s/"))
        path = self.scratch("record")
        run(*rados, "getomapval", "Super", key, path)
        record = bytearray(path.read_bytes())
        for address in re.finditer(rb"127\.0\.0\.1:0/([0-9]{4,})", bytes(record)):
            nonce = address.group(1)
            record[address.start(1):address.end(1)] = b"1" * len(nonce) if nonce[0] != b"1"[0] else b"2" * len(nonce)
            forged = bytes(record[address.start():address.end()]).decode()
        struct.pack_into("<I", record, len(record) - 4, crc32c(record[:-4]))
        path.write_bytes(record)
        with open(path, "rb") as value:
            run(*rados, "setomapval", "Super", key, stdin=value)
        return forged

    def collect(self, volume):
        done = run(context.bin / "lccfs-gc", *volume.address, "--once", "--grace", "0", capture_output=True)
        print(done.stdout, done.stderr)
        return done

    def test_who_may_not_fence_is_told_so_and_may_mount_read_only(self):
        (self.mount / "file").write_bytes(b"bytes")
        self.mount.unmount()
        self.with_other_monitors("allow r")
        point = self.scratch("mountpoint")
        point.mkdir()
        for program, *options in [["lccfs-fuse", "-m", point], ["lccfs-gc", "--once"], ["lccfs-fsck", "--repair"]]:
            done = run(context.bin / program, *self.volume.address, *options, check=False, capture_output=True,
                       timeout_s=60)
            print(done.stdout, done.stderr)
            self.assertIn(f"mon '{capability('mon')}'", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, program)
            self.assertNotEqual(done.returncode, 0, program)
            if program == "lccfs-fuse":
                self.assertEqual(done.returncode, EXIT_MOUNT_FAILURE)
        self.assertEqual(self.volume.info()["instances"], [])
        reader = self.volume.mount("-o", "ro")
        self.assertEqual((reader / "file").read_bytes(), b"bytes")

    def test_mkfs_enables_the_application_or_says_how(self):
        pool = self.cluster.create_pool("plain", 1)
        command = "ceph osd pool application enable plain lccfs"
        volume = self.address_of_narrow_user(pool)
        self.assertIn(command, volume.lccfs("mkfs", stderr=subprocess.PIPE).stderr)
        self.assertEqual(self.address_of_admin(pool).lccfs("mkfs", stderr=subprocess.PIPE).stderr, "")
        self.assertIn("lccfs", self.cluster.ceph("osd", "pool", "application", "get", pool))
        volume = self.address_of_narrow_user(pool)
        self.assertEqual(volume.lccfs("mkfs", stderr=subprocess.PIPE).stderr, "")

    def test_a_mount_that_makes_the_volume_enables_the_application_too_or_says_how(self):
        pool = self.cluster.create_pool("made-by-mount", 1)
        narrow = self.address_of_narrow_user(pool).mount("--create")
        (narrow / "file").touch()
        narrow.wait_for_line(f"ceph osd pool application enable {pool} lccfs")
        self.assertNotIn("application enable", self.address_of_admin(pool).mount("--create").log_text())
        self.assertIn("lccfs", self.cluster.ceph("osd", "pool", "application", "get", pool))
        self.assertNotIn("application enable", self.address_of_narrow_user(pool).mount("--create").log_text())
