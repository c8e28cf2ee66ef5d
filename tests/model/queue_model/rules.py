# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rules of queue, roll call and removal that can be switched off, one at a time."""

from mends import Mends

MENDS = Mends(
    {
        "READ_AFTER_ASKING": ("5", "a collector asks (or fences) an instance, and only then reads its queue"),
        "LOG_BEFORE_ACTING": ("5", "a collector logs what its work leaves before it does it"),
        "RECORD_OUTLIVES_SESSION": (
            "5",
            "the record is written before the session object is made, and removed after it",
        ),
        "FENCE_BEFORE_MARK": ("2", "first the fence holds, then the record says so"),
        "ENDED_IS_LAST": ("2; 5", "`ended` is an instance's last step, with nothing in flight"),
        "OPERATION_HOLDS_BACK": ("2, as built", "an operation holds back all numbers drawn since it began"),
        "NEXT_NUMBER": (
            "5",
            "who has nothing running answers its next number: what it logs from then on is not over",
        ),
        "LET_GO_OF_ALL": (
            "2, as built",
            "a roll call lets go of all directory items: none is held by use that goes on",
        ),
        "HELD_WHILE_RELIED_ON": (
            "2, as built",
            "an item let go of holds the answer back while who relied on it runs",
        ),
        "NOTED_AFTER_APPEND": ("2, as built", "an item is relied on by others only once it is in the queue"),
        "ALL_ANSWER": (
            "5, pass; 9",
            "dead inodes are removed only if every recorded instance has answered or is over",
        ),
        "ASK_AFTER_MARK": (
            "5, recount",
            "the instances are asked who has an inode open after it was marked dead",
        ),
        "OPENING_COUNTS": (
            "5, recount",
            "an open that is under way counts as open, from before it reads the inode",
        ),
    }
)
on = MENDS.on
