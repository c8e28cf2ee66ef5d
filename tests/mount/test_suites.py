# SPDX-License-Identifier: LGPL-2.1-or-later
"""Test suites of others on a mount: pjdfstest and fsx from crates.io, and stress-ng's file-system stressors.

What a suite wants and does not get stands in KNOWN, with the reason, and in docs/POSIX.md. Anything else that fails,
and anything there that passes by now, fails the test.
"""

import os
import pathlib
import re
import subprocess
import tempfile

from harness import MountTest, context, run, scaled

CRATES = pathlib.Path("/usr/local/lib/lccfs-tests/bin")  # packaging/install-dependencies --tests puts them there
KNOWN = {
    "pjdfstest": {
        "link::link_count_max": "it asks glibc for the limit, which knows none of a FUSE file system",
    },
    "stress-ng": {
        "fiemap": "the kernel passes FIEMAP to no FUSE file system",
        "verity": "fs-verity is not supported",
    },
}


class SuiteTest(MountTest):
    stores = ("local", "rados")

    def is_whole_run(self):
        """Else some of a suite is drawn: on RADOS each call takes longer."""
        return context.full or context.store == "local"

    def judge(self, suite, complaints):
        """`complaints`: what the suite says about each of its cases, None if that passed."""
        known = KNOWN[suite]
        self.assertTrue(complaints, f"{suite} says nothing")
        failed = {name: said for name, said in complaints.items() if said and name not in known}
        mended = [name for name in known if name in complaints and not complaints[name]]
        self.assertEqual(failed, {}, f"{suite}: not known to fail")
        self.assertEqual(mended, [], f"{suite}: passes by now, so it belongs neither into KNOWN nor into docs/POSIX.md")


# Two users that every Debian has.
PJDFSTEST_OPTIONS = """\
[features]
posix_fallocate = {{}}
rename_ctime = {{}}
stat_st_birthtime = {{}}
utime_now = {{}}
utimensat = {{}}
[settings]
naptime = 0.01
allow_remount = {remount}
[dummy_auth]
entries = [["nobody", "nogroup"], ["games", "games"]]
"""
# Ours permits no way back from ro to rw. A file that was closed and removed keeps the mount busy until the kernel's
# FUSE_RELEASE is answered.
REMOUNTER = """\
#!/bin/sh
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  /usr/bin/mount -i --options-source disable "$@" && exit
  sleep 0.1
done
exit 32
"""


class PjdfstestTest(SuiteTest):
    limit_s = 240
    cases = 398
    groups = ["chmod", "chown", "ftruncate", "link", "mkdir", "mkfifo", "mknod", "open", "posix_fallocate", "rename",
              "rmdir", "symlink", "truncate", "unlink", "utimensat"]

    def test_system_calls_answer_as_posix_says(self):
        whole = self.is_whole_run()
        complaints = {}
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            short = os.path.join(folder, "m")  # paths of sockets are short
            os.symlink(self.mount.path, short)
            for group in [""] if whole else self.random.sample(self.groups, 2):
                complaints |= self.complaints(short, group, may_remount=False)
        # In a run of their own: files that other cases leave open keep every mount from becoming read-only.
        if whole:
            complaints |= self.complaints(self.mount.path, "::erofs", may_remount=True)
            self.assertEqual(len(complaints), self.cases)
        self.judge("pjdfstest", complaints)

    def complaints(self, path, pattern, may_remount):
        options, elsewhere, programs = self.scratch("pjdfstest.toml"), self.scratch("elsewhere"), self.scratch("bin")
        options.write_text(PJDFSTEST_OPTIONS.format(remount=str(may_remount).lower()), encoding="utf-8")
        for folder in [elsewhere, programs]:
            folder.mkdir(exist_ok=True)
        (programs / "mount").write_text(REMOUNTER, encoding="utf-8")
        (programs / "mount").chmod(0o755)
        said = run(CRATES / "pjdfstest", "-c", options, "-p", path, "-s", elsewhere, pattern, check=False,
                   stdout=subprocess.PIPE,
                   env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "RUST_BACKTRACE": "0"}).stdout
        return {name: None if verdict == "ok" else f"{verdict}: {reason.strip()}"
                for name, verdict, reason in re.findall(r"^(\S+) +(ok|FAILED|skipped)\n((?:\t.*\n)*)", said, re.M)
                if may_remount or verdict != "skipped" or "allow_remount" not in reason}


FSX_OPTIONS = """\
flen = 9000000  # three objects
nomsyncafterwrite = {lazily}
[opsize]
min = 1  # fsx takes the EINVAL of a posix_fallocate of no bytes for a failure
max = 131072
[weights]
close_open = 1
read = 10
write = 10
mapread = 10
mapwrite = 10
invalidate = 1
truncate = 3
fsync = 1
fdatasync = 1
posix_fallocate = 2
punch_hole = 4
sendfile = 3
posix_fadvise = 1
copy_file_range = 4
"""


class FsxTest(SuiteTest):
    limit_s = 240

    def test_reads_see_what_was_written_last_whose_mapping_is_flushed(self):
        self.exercise(lazily="false")

    def test_reads_see_what_was_written_last_whose_mapping_is_not_flushed(self):
        self.exercise(lazily="true")

    def exercise(self, lazily):
        options = self.scratch("fsx.toml")
        options.write_text(FSX_OPTIONS.format(lazily=lazily), encoding="utf-8")
        run(CRATES / "fsx", "-f", options, "-N", scaled(20_000), "-S", context.seed, "-P", context.workdir,
            self.mount / "file")


# How often two processes do each in an ordinary run. Of the class filesystem are left out what does not look at the
# mount (binderfs, dup, eventfd, fstat, getdent, handle, ioprio, procfs), what reaches beyond it (bind-mount; fanotify
# marks all mounts, io calls sync(2)), and what does not end by a count on any file system (fpunch, inode-flags).
STRESSORS = {
    "access": 4, "chattr": 10, "chmod": 2, "chown": 20, "copy-file": 4, "dentry": 40, "dir": 40, "dirdeep": 40,
    "dirmany": 40, "dnotify": 4, "fallocate": 10, "fcntl": 20, "fiemap": 1, "file-ioctl": 20, "flock": 100,
    "fsize": 10, "hdd": 40, "inotify": 2, "iomix": 20, "lease": 20, "locka": 100, "lockf": 100, "lockofd": 100,
    "mknod": 20, "open": 100, "rename": 10, "sync-file": 10, "touch": 20, "utime": 20, "verity": 1,
    # Of other classes:
    "aio": 20, "aiol": 20, "fault": 20, "msync": 20, "readahead": 20, "revio": 20, "seek": 20, "sendfile": 20,
}
# A second process of these waits for a file of the first one, for ever if that has done its part and removed it.
OF_ONE_PROCESS = {"chmod", "chown"}
# With --full ten times as often, and on a local store these, of which one is thousands of names or attributes.
LARGE_STRESSORS = {"chdir": 1, "filename": 2, "link": 1, "symlink": 1, "xattr": 1}
OPTIONS = {
    "chdir": ["--chdir-dirs", 512], "fallocate": ["--fallocate-bytes", "16m"], "hdd": ["--hdd-bytes", "16m"],
    "iomix": ["--iomix-bytes", "16m"], "readahead": ["--readahead-bytes", "16m"], "seek": ["--seek-size", "16m"],
    "sync-file": ["--sync-file-bytes", "16m"],
}


class StressTest(SuiteTest):
    limit_s = 240

    def test_stressors_find_what_they_did(self):
        wanted = STRESSORS
        if context.full:
            wanted = {name: 10 * times for name, times in STRESSORS.items()}
            wanted |= LARGE_STRESSORS if context.store == "local" else {}
        names = list(wanted) if self.is_whole_run() else self.random.sample(list(wanted), 8)
        self.judge("stress-ng", {name: self.complaint(name, wanted[name]) for name in names})

    def complaint(self, name, times):
        ended = self.run_stressor(name, times)
        # On a busy machine one of its processes may end before it has begun, on any file system: it says so.
        if "finished prematurely" in ended.stdout and "error:" not in ended.stdout:
            ended = self.run_stressor(name, times)
        counted = re.search(rf"metrc: \[\d+\] {name} +(\d+) ", ended.stdout)
        done = int(counted[1]) if counted else 0
        if ended.returncode == 0 and done >= times and "error:" not in ended.stdout:
            return None
        return f"status {ended.returncode}, {done} of {times} times: {ended.stdout[-400:]}"

    def run_stressor(self, name, times):
        processes = 1 if name in OF_ONE_PROCESS else 2
        ended = run("stress-ng", f"--{name}", processes, f"--{name}-ops", times, *OPTIONS.get(name, []), "--verify",
                    "--seed", context.seed, "--timeout", 1000, "--metrics-brief", "--temp-path", self.mount.path,
                    check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(ended.stdout)
        return ended
