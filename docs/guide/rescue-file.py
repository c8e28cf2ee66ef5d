#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads one file, or lists one directory, of an LCCFS volume with nothing but `rados` and Python.

For the day when all else is gone: no program of LCCFS is needed. It changes nothing. The format is that of
docs/FORMAT.md; checksums are not looked at, so damaged parts are read as far as they can be.

    rescue-file.py -p vms -n nova /instances/disk > disk
    rescue-file.py -p vms --conf ceph.conf --id admin --list /instances

A volume should not be mounted meanwhile: what a client has not stored yet is not seen. Zeros are written as holes where
standard output is a file.
"""

import argparse
import os
import struct
import subprocess
import sys
import tempfile

REGULAR, DIRECTORY, SYMLINK = 1, 2, 3
TYPES = {REGULAR: "file", DIRECTORY: "directory", SYMLINK: "symlink", 4: "fifo", 5: "socket", 6: "character device",
         7: "block device"}
MOST_LINKS = 40


class Volume:
    """Objects of one volume, by `rados`."""

    def __init__(self, arguments):
        self.command = ["rados", "-p", arguments.pool]
        for option, value in [("-c", arguments.conf), ("--id", arguments.id), ("-N", arguments.namespace)]:
            if value:
                self.command += [option, value]
        self.data_command = self.command
        record = self.xattr("Super", "super")
        if record[1:9] != b"LCCFSvol":
            raise SystemExit("rescue-file: Super does not say that this is a volume")
        label_bytes, = struct.unpack_from("<I", record, 53)
        self.object_bytes, pool_bytes = struct.unpack_from("<II", record, 57 + label_bytes)
        data_pool = record[65 + label_bytes:][:pool_bytes].decode()
        if data_pool:
            self.data_command = ["rados", "-p", data_pool, *self.command[3:]]

    def run(self, *words, command=None, may_be_missing=False):
        """Its output; None: there is no such object."""
        done = subprocess.run([*(command or self.command), *words], capture_output=True, check=False)
        if done.returncode == 0:
            return done.stdout
        if may_be_missing and b"No such file" in done.stderr:
            return None
        raise SystemExit(f"rescue-file: rados {' '.join(map(str, words))}: {done.stderr.decode(errors='replace').strip()}")

    def xattr(self, name, xattr):
        return self.run("getxattr", name, xattr)

    def number(self, name, xattr):
        return struct.unpack_from("<Q", self.xattr(name, xattr), 1)[0]

    def type_of(self, ino):
        return self.xattr(f"Inode.{ino}", "attr")[1]

    def payload(self, name, **options):
        """`rados get` writes into a file alone. What is not there is empty."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "object")
            if self.run("get", name, path, **options) is None:
                return b""
            with open(path, "rb") as file:
                return file.read()

    def keys(self, ino, prefix):
        """`rados` prints keys as they are, a line each, so a name with a line break is put together again: the next key
        begins like a key, which no part of a name can, because it has no slash."""
        keys, lines = [], self.run("listomapkeys", f"Inode.{ino}").split(b"\n")
        for line in lines[:-1]:
            if line[:2] in (b"n/", b"i/", b"d/", b"x/", b"p/", b"l/", b"u/", b"m/", b"k/") or not keys:
                keys.append(line)
            else:
                keys[-1] += b"\n" + line
        return [key for key in keys if key.startswith(prefix)]

    def names(self, ino, wanted=None):
        """(name, inode, type) of each entry of a directory, or of that one."""
        for key in self.keys(ino, b"n/"):
            name = key[2 + 16 + 1:]
            if wanted in (None, name):
                value = self.value(ino, key)
                yield name, struct.unpack_from("<Q", value, 2)[0], value[10]

    def mapped(self, ino):
        """Which data objects may exist, by the file's allocation map."""
        for key in self.keys(ino, b"m/"):
            block = int.from_bytes(self.value(ino, key)[1:129], "little")
            yield from (int(key[2:], 16) * 1024 + bit for bit in range(1024) if block >> bit & 1)

    def value(self, ino, key):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "value")
            self.run("getomapval", f"Inode.{ino}", key, path)
            with open(path, "rb") as file:
                return file.read()

    def find(self, path):
        """The inode of a path; symlinks on the way are followed."""
        ino, left, links = [1], [part for part in path.split(b"/") if part], 0
        while left:
            name = left.pop(0)
            if name in (b".", b".."):
                ino = ino[:-1] if name == b".." and len(ino) > 1 else ino
                continue
            found = next((number for _, number, _ in self.names(ino[-1], name)), None)
            if found is None:
                raise SystemExit(f"rescue-file: there is no {os.fsdecode(name)!r} in inode {ino[-1]}")
            if self.type_of(found) == SYMLINK:
                target, links = self.payload(f"Inode.{found}"), links + 1
                if links > MOST_LINKS:
                    raise SystemExit("rescue-file: too many symlinks")
                ino = [1] if target.startswith(b"/") else ino
                left[:0] = [part for part in target.split(b"/") if part]
            else:
                ino.append(found)
        return ino[-1]

    def copy(self, ino, out, all_objects):
        """The bytes of a file. What has no object, or ends before its object does, is zeros."""
        size = self.number(f"Inode.{ino}", "size")
        can_seek = out.seekable()
        mapped = None if all_objects else set(self.mapped(ino))
        for index in range((size + self.object_bytes - 1) // self.object_bytes):
            expected = min(self.object_bytes, size - index * self.object_bytes)
            found = b""
            if mapped is None or index in mapped:
                found = self.payload(f"Data.{ino}.{index}", command=self.data_command, may_be_missing=True)[:expected]
            out.write(found)
            if can_seek:
                out.seek(expected - len(found), os.SEEK_CUR)
            else:
                out.write(bytes(expected - len(found)))
        if can_seek:
            out.truncate()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="from the root of the volume")
    parser.add_argument("-p", "--pool", required=True)
    parser.add_argument("-n", "--namespace", default="")
    parser.add_argument("-c", "--conf", default="")
    parser.add_argument("--id", default="")
    parser.add_argument("--list", action="store_true", help="the names in a directory")
    parser.add_argument("--all-objects", action="store_true", help="do not believe the file's map: try every object")
    arguments = parser.parse_args()
    volume = Volume(arguments)
    ino = volume.find(os.fsencode(arguments.path))
    if arguments.list:
        for name, number, kind in volume.names(ino):
            print(f"{number}\t{TYPES.get(kind, '?')}\t{os.fsdecode(name)!r}")
    elif volume.type_of(ino) == REGULAR:
        volume.copy(ino, sys.stdout.buffer, arguments.all_objects)
    else:
        raise SystemExit(f"rescue-file: it is a {TYPES.get(volume.type_of(ino), '?')}, not a file")


if __name__ == "__main__":
    main()
