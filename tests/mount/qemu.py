# SPDX-License-Identifier: LGPL-2.1-or-later
"""QEMU processes that are told by QMP what to do, as libvirt does it."""

import itertools
import json
import subprocess

from harness import context, wait_until

END_LIMIT_S = 60
MIGRATION_LIMIT_S = 120
AT_ONCE = 1 << 40  # bytes in a second
QUIT = '{"execute": "qmp_capabilities"}\n{"execute": "quit"}\n'
_numbers = itertools.count(1)


class NotStarted(Exception):
    """With what QEMU said."""


def command(*arguments):
    words = ["qemu-system-x86_64", "-accel", "tcg", "-m", "128", "-display", "none", "-nodefaults", "-qmp", "stdio",
             *map(str, arguments)]
    print("+", " ".join(words), flush=True)
    return words


def drive(path, image_format, cache="none", aio="threads"):
    return ["-drive", f"file={path},format={image_format},cache={cache},aio={aio},if=virtio"]


def start_and_end(*arguments):
    """What a QEMU says that ends as soon as it has opened everything; empty if it had nothing to complain about."""
    ended = subprocess.run(command("-S", *arguments), input=QUIT, capture_output=True, text=True, check=False,
                           timeout=END_LIMIT_S)
    if ended.returncode != 0 and not ended.stderr:
        raise AssertionError(f"QEMU ended with status {ended.returncode}")
    return ended.stderr


class Ended(AssertionError):
    pass


class Qemu:
    """A virtual machine that runs, or with "-incoming defer" waits for one that is migrated to it."""

    def __init__(self, *arguments):
        self._errors = open(context.workdir / f"qemu-{next(_numbers)}.log", "w+", encoding="utf-8")
        self._process = subprocess.Popen(command(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._errors, text=True)
        if not self._is_ready():
            self._process.wait()
            self._errors.seek(0)
            errors = self._errors.read()
            self.kill()
            raise NotStarted(errors)

    def _is_ready(self):
        """One that may not open its drives ends, before or after its greeting."""
        try:
            return self._process.stdout.readline() != "" and self.tell("qmp_capabilities") is not None
        except (Ended, BrokenPipeError):
            return False

    def tell(self, what, **arguments):
        """Its answer."""
        self._process.stdin.write(json.dumps({"execute": what, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            answer = json.loads(line)
            if "event" not in answer:
                break
        else:
            raise Ended(f"QEMU ended before it answered {what}")
        if "return" not in answer:
            raise AssertionError(f"{what}: {answer}")
        return answer["return"]

    def status(self):
        return self.tell("query-status")["status"]

    def begin_migration(self, incoming, bytes_per_s):
        address = f"unix:migration-{next(_numbers)}"  # in the test's folder: paths of sockets are short
        incoming.tell("migrate-incoming", uri=address)
        self.tell("migrate-set-parameters", **{"max-bandwidth": bytes_per_s})
        self.tell("migrate", uri=address)

    def cancel_migration(self):
        self.tell("migrate_cancel")
        wait_until(lambda: self.tell("query-migrate")["status"] == "cancelled", END_LIMIT_S, "migration is cancelled")

    def migrate(self, incoming):
        """The machine runs in `incoming` then; this process still has its files open, and no lock of them."""
        self.begin_migration(incoming, AT_ONCE)
        wait_until(self._has_migrated, MIGRATION_LIMIT_S, "migration")
        wait_until(lambda: incoming.status() == "running", END_LIMIT_S, "the machine runs again")

    def _has_migrated(self):
        answer = self.tell("query-migrate")
        if answer["status"] == "failed":
            raise AssertionError(f"migration failed: {answer}")
        return answer["status"] == "completed"

    def quit(self):
        self._process.communicate('{"execute": "quit"}\n', timeout=END_LIMIT_S)
        if self._process.returncode != 0:
            raise AssertionError(f"QEMU ended with status {self._process.returncode}")
        self._errors.close()

    def kill(self):
        """Whatever state it is in, ended or not."""
        self._process.kill()
        self._process.wait()
        for file in [self._process.stdin, self._process.stdout, self._errors]:
            file.close()
