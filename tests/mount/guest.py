# SPDX-License-Identifier: LGPL-2.1-or-later
"""A small guest: a disk image that boots Debian's kernel with an initramfs of busybox and mke2fs, runs one script
and powers off. Made from the packages of this machine; kept between runs."""

import os
import pathlib
import re
import shutil

from harness import context, output, run

KERNEL_PACKAGE = "linux-image-cloud-amd64"
MODULES = ["virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_blk"]
BOOT_DISK_MIB = 48
FILES = 40

INIT = """\
#!/bin/busybox sh
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
for module in {modules}; do busybox insmod /modules/$module.ko; done
export PATH=/bin
busybox --install -s /bin
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
    """The path of the raw boot disk, made if it is not in the cache."""
    disk = context.cache / "boot.raw"
    if not disk.exists():
        work = context.cache / f"guest-{os.getpid()}"
        work.mkdir()
        try:
            os.rename(_make_boot_disk(work), disk)
        finally:
            shutil.rmtree(work)
    return disk


def _make_boot_disk(work):
    kernel, modules = _unpack_kernel(work)
    initrd = _make_initrd(work, modules)
    disk = work / "boot.raw"
    (work / "syslinux.cfg").write_text(SYSLINUX, encoding="utf-8")
    run("mkfs.fat", "-C", disk, BOOT_DISK_MIB * 1024)
    for source, name in [(kernel, "vmlinuz"), (initrd, "initrd"), (work / "syslinux.cfg", "syslinux.cfg")]:
        run("mcopy", "-i", disk, source, f"::{name}")
    run("syslinux", "--install", disk)
    os.truncate(disk, (BOOT_DISK_MIB + 1) << 20)
    return disk


def _unpack_kernel(work):
    depends = output("apt-cache", "depends", KERNEL_PACKAGE)
    package = re.search(r"Depends: (linux-image-\S+)", depends).group(1)
    run("apt-get", "-q", "download", package, cwd=work)
    run("dpkg", "-x", next(work.glob("*.deb")), work / "kernel")
    modules = {path.stem: path for path in (work / "kernel" / "lib" / "modules").rglob("virtio*.ko")}
    return next((work / "kernel" / "boot").glob("vmlinuz-*")), [modules[name] for name in MODULES if name in modules]


def _make_initrd(work, modules):
    root = work / "root"
    for folder in ["bin", "modules", "proc", "sys", "dev", "etc"]:
        (root / folder).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    _copy_with_libraries(root, pathlib.Path("/sbin/mke2fs"))
    shutil.copy("/etc/mke2fs.conf", root / "etc")
    for module in modules:
        shutil.copy(module, root / "modules")
    (root / "init").write_text(INIT.format(modules=" ".join(module.stem for module in modules), files=FILES,
                                           mark_sector=MARK_SECTOR), encoding="utf-8")
    os.chmod(root / "init", 0o755)
    initrd = work / "initrd"
    run("bash", "-c", f"find . | cpio -o -H newc --quiet | gzip -1 > {initrd}", cwd=root)
    return initrd


def _copy_with_libraries(root, program):
    shutil.copy(program, root / "bin" / program.name)
    for library in re.findall(r"(/\S+) \(0x", output("ldd", program)):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
