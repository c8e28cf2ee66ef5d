# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rules of queue, liveness poll and removal that can be switched off, one at a time."""

from actors import forget
from mends import Mends

MENDS = Mends(
    {
        "READ_AFTER_ASKING": ("PROTOCOL 5", "a collector asks (or fences) an instance, and only then reads its queue"),
        "LOG_BEFORE_ACTING": ("PROTOCOL 5", "a collector logs what its work leaves before it does it"),
        "RECORD_OUTLIVES_SESSION": (
            "PROTOCOL 5",
            "the record is written before the session object is made, and removed after it",
        ),
        "FENCE_BEFORE_MARK": ("PROTOCOL 2", "first the fence holds, then the record says so"),
        "ENDED_IS_LAST": ("PROTOCOL 2, 5", "`ended` is an instance's last step, with nothing in flight"),
        "OPERATION_HOLDS_BACK": ("PROTOCOL 2, liveness poll", "an operation holds back all numbers drawn since it began"),
        "NEXT_NUMBER": (
            "PROTOCOL 5",
            "who has nothing running answers its next number: what it logs from then on is not retired",
        ),
        "DROP_ALL": (
            "PROTOCOL 2, liveness poll",
            "a liveness poll drops all directory items: none is held by use that continues",
        ),
        "HELD_WHILE_RELIED_ON": (
            "PROTOCOL 2, liveness poll",
            "a dropped item holds the answer back while who relied on it runs",
        ),
        "NOTED_AFTER_APPEND": ("PROTOCOL 2, liveness poll", "an item is relied on by others only once it is in the queue"),
        "ALL_ANSWER": (
            "PROTOCOL 5, pass; 6",
            "dead inodes are removed only if every recorded instance has answered or is expired",
        ),
        "ASK_AFTER_MARK": (
            "PROTOCOL 5, recount",
            "the instances are asked who has an inode open after it was marked dead",
        ),
        "OPENING_COUNTS": (
            "PROTOCOL 5, recount",
            "an open that is under way counts as open, from before it reads the inode",
        ),
    }
)
MENDS.when_changed.append(forget)
on = MENDS.on
