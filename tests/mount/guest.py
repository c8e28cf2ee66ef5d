# SPDX-License-Identifier: LGPL-2.1-or-later
"""Small guests of Debian's kernel and an initramfs of busybox, made from the packages of this machine.

One is on a disk image from which it boots; it formats and fills a second disk, and powers off. The other is started by
QEMU without a boot disk, and runs guest_writer.cpp until it is ended. Kernel and boot disk are kept between runs.
"""

import fcntl
import os
import pathlib
import re
import shutil

from harness import ROOT, context, output, run

KERNEL_PACKAGE = "linux-image-cloud-amd64"
MODULES = ["virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_blk"]
BOOT_DISK_MIB = 48
FILES = 40

BEGIN = """\
#!/bin/busybox sh
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
for module in {modules}; do busybox insmod /modules/$module.ko; done
export PATH=/bin
busybox --install -s /bin
"""
FILL_A_DISK = """\
set -e
trap 'test $? = 0 || {{ echo GUEST FAILED; poweroff -f; }}' EXIT
/bin/mke2fs -q -t ext4 /dev/vdb
mkdir /data
mount -t ext4 /dev/vdb /data
mkdir /data/d
for i in $(seq {files}); do
  dd if=/dev/urandom of=/data/d/file$i bs=4k count=$((i * 3)) 2>/dev/null
done
sync
rm /data/d/file1
mv /data/d/file2 /data/d/renamed
cd /data && sha256sum d/* > sums && cd /
umount /data
dd if=/dev/zero of=/dev/vda bs=512 seek={mark_sector} count=1 conv=notrunc 2>/dev/null
echo guest was here | dd of=/dev/vda bs=512 seek={mark_sector} conv=notrunc,fsync 2>/dev/null
echo GUEST DONE
poweroff -f
"""
WRITE_RECORDS = """\
guest_writer {disks} >/dev/ttyS1
echo FAILED: all writers ended >/dev/ttyS1
poweroff -f
"""

SYSLINUX = """\
SERIAL 0 115200
DEFAULT linux
LABEL linux
  KERNEL /vmlinuz
  APPEND initrd=/initrd console=ttyS0 quiet panic=1
"""
MARK_SECTOR = BOOT_DISK_MIB * 2048  # after the file system
MARK = b"guest was here\n"


def boot_disk():
    """The path of the raw boot disk."""
    return _cached("boot.raw", _make_boot_disk)


def writer(disks):
    """QEMU's arguments for a guest that writes records to these disks, and tells of them on its second serial port."""
    program = context.workdir / "guest_writer"
    run("g++", "-std=c++20", "-O1", "-static", "-o", program, ROOT / "tests" / "mount" / "guest_writer.cpp")
    kernel = _cached("kernel", _unpack_kernel)
    initrd = _make_initrd(context.workdir, kernel, WRITE_RECORDS.format(disks=" ".join(disks)), [program])
    return ["-kernel", kernel / "vmlinuz", "-initrd", initrd, "-append", "console=ttyS0 quiet panic=1"]


def _cached(name, make):
    """The path of what `make` makes in a folder of its own, if it is not there from an earlier test or another run."""
    path = context.cache / name
    with open(context.cache / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            work = context.cache / f"{name}.new"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            os.rename(make(work), path)
            shutil.rmtree(work)
    return path


def _make_boot_disk(work):
    kernel = _cached("kernel", _unpack_kernel)
    initrd = _make_initrd(work, kernel, FILL_A_DISK.format(files=FILES, mark_sector=MARK_SECTOR),
                          [pathlib.Path("/sbin/mke2fs")])
    disk = work / "boot.raw"
    (work / "syslinux.cfg").write_text(SYSLINUX, encoding="utf-8")
    run("mkfs.fat", "-C", disk, BOOT_DISK_MIB * 1024)
    for source, name in [(kernel / "vmlinuz", "vmlinuz"), (initrd, "initrd"),
                         (work / "syslinux.cfg", "syslinux.cfg")]:
        run("mcopy", "-i", disk, source, f"::{name}")
    run("syslinux", "--install", disk)
    os.truncate(disk, (BOOT_DISK_MIB + 1) << 20)
    return disk


def _unpack_kernel(work):
    """A folder with vmlinuz and the modules of virtio."""
    depends = output("apt-cache", "depends", KERNEL_PACKAGE)
    package = re.search(r"Depends: (linux-image-\S+)", depends).group(1)
    run("apt-get", "-q", "download", package, cwd=work)
    run("dpkg", "-x", next(work.glob("*.deb")), work / "package")
    kernel = work / "kernel"
    kernel.mkdir()
    shutil.copy(next((work / "package" / "boot").glob("vmlinuz-*")), kernel / "vmlinuz")
    for module in (work / "package" / "lib" / "modules").rglob("virtio*.ko"):
        shutil.copy(module, kernel)
    return kernel


def _make_initrd(work, kernel, script, programs):
    modules = [name for name in MODULES if (kernel / f"{name}.ko").exists()]
    root = work / "root"
    for folder in ["bin", "modules", "proc", "sys", "dev", "etc"]:
        (root / folder).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    for program in programs:
        _copy_with_libraries(root, program)
    shutil.copy("/etc/mke2fs.conf", root / "etc")
    for module in modules:
        shutil.copy(kernel / f"{module}.ko", root / "modules")
    (root / "init").write_text(BEGIN.format(modules=" ".join(modules)) + script, encoding="utf-8")
    os.chmod(root / "init", 0o755)
    initrd = work / "initrd"
    run("bash", "-c", f"find . | cpio -o -H newc --quiet | gzip -1 > {initrd}", cwd=root)
    return initrd


def _copy_with_libraries(root, program):
    shutil.copy(program, root / "bin" / program.name)
    libraries = output("ldd", program, check=False)  # which fails for a static one
    for library in re.findall(r"(/\S+) \(0x", libraries):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
