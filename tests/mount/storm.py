# SPDX-License-Identifier: LGPL-2.1-or-later
"""Work on a mount whose client may be killed at any moment, and what must be found there afterwards.

A Storm works in a child process. It says outside of the mount what it begins, and what it may rely on: a record after
its fsync has returned, a name after the call has. From these notes alone the parent knows what must stand, and what may
stand because it was under way. What a storm leaves is where it continues next time.
"""

import errno
import hashlib
import os
import random
import signal
import sys
import time
import traceback

CLIENT_DIED = {errno.ENOTCONN, errno.ECONNABORTED}
CLIENT_FENCED = {errno.EIO}
NO_ERRNO = 255  # a child's status, if it failed in another way
END_LIMIT_S = 300
FOLDER = "storm"


def content_of(identity, size):
    word = hashlib.sha256(str(identity).encode()).digest()
    return (word * (size // len(word) + 1))[:size]


def a_size(identity, limit):
    return int.from_bytes(content_of(f"size of {identity}", 4), "big") % limit


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


class Storm:
    """All storms work in the mount's folder "storm", on what begins with their name. `scratch` is outside of it."""

    def __init__(self, name, scratch, seed):
        self.name, self.scratch, self.seed = name, scratch, seed
        self.trusted = 0  # notes of something that must survive
        self._path = scratch / f"{name}.notes"
        self._path.touch()
        self._offset = 0
        self._runs = 0
        self._child = None

    has_notes = True

    # -- in the parent

    def prepare(self, mount):
        """Once, and not disturbed."""

    def start(self, mount):
        self._runs += 1
        sys.stdout.flush()
        self._child = os.fork()
        if self._child == 0:
            self._work_until_told(mount / FOLDER)

    def has_ended(self):
        if self._child is not None and os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return False
        return True

    def has_noted(self):
        return any(self.is_trust(line.split()) for line in self._lines(keep=True))

    def wait_for_error(self, numbers):
        """Its client went; it must not have met any other failure before."""
        status = self._wait()
        expect(status in numbers, f"{self.name} ended with status {status}, and not with an errno of {numbers}")

    def stop(self):
        """Nothing that it did may have failed."""
        os.kill(self._child, signal.SIGTERM)
        status = self._wait()
        expect(status == 0, f"{self.name} ended with status {status}")

    def kill(self):
        if self._child is not None:
            os.kill(self._child, signal.SIGKILL)
            self._wait()

    def check(self, mount):
        """Reads the notes made since the last time, and what is there."""
        for line in self._lines():
            words = line.split()
            self.trusted += self.is_trust(words)
            self.heard(*words)
        try:
            self.compare(mount / FOLDER)
        except AssertionError as error:
            raise AssertionError(f"{self.name}: {error}; its notes: {self._path}") from error

    # -- in the child

    def note(self, *words):
        os.write(self._notes, (" ".join(map(str, words)) + "\n").encode())

    def _work_until_told(self, folder):
        told = []
        signal.signal(signal.SIGTERM, lambda *_: told.append(True))
        status = NO_ERRNO
        try:
            self.random = random.Random(f"{self.seed} {self.name} {self._runs}")
            self._notes = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            self.begin(folder)
            while not told:
                self.step(folder)
            status = 0
        except OSError as error:
            print(f"{self.name}: {error}", flush=True)
            status = error.errno
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)

    def _wait(self):
        deadline = time.monotonic() + END_LIMIT_S
        while not self.has_ended():
            expect(time.monotonic() < deadline, f"{self.name} hangs")
            time.sleep(0.01)
        status = os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
        self._child = None
        return status

    def _lines(self, keep=False):
        with open(self._path, "rb") as notes:
            notes.seek(self._offset)
            text = notes.read()
        if not keep:
            self._offset += len(text)
        return text.decode().splitlines()

    # -- what each storm is

    def is_trust(self, words):
        """Whether a note is one of something that must survive."""
        return False

    def heard(self, *words):
        """One note, in the parent."""

    def compare(self, folder):
        """Raises AssertionError; what is found besides what was noted is remembered."""

    def begin(self, folder):
        """In the child, on what the last one left."""

    def step(self, folder):
        raise NotImplementedError
