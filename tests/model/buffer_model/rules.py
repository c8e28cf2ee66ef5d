# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rules of the write buffer and of idle leases that can be switched off, one at a time."""

from actors import forget
from mends import Mends

MENDS = Mends(
    {
        "NO_OVERTAKING": ("DATA 10", "one unit is on its way at most once"),
        "DIRECT_WAITS": ("DATA 10", "a direct write waits for what is buffered of its range"),
        "SIZE_AFTER_BYTES": ("DATA 10", "the size is stored after the bytes below it"),
        "FSYNC_WAITS": ("DATA 8, 10", "fsync waits for buffered bytes that are on their way already"),
        "RELEASE_WRITES_OUT": ("DATA 3, 10", "a release begins with all bytes in the store"),
        "NOTHING_NEW_IN": ("DATA 3", "while the lease is released nothing new is buffered"),
        "RELEASE_ENDS_MEMORY": (
            "DATA 3, 7",
            "while the lease is released, memory answers no open, stat or read: another may hold it already",
        ),
        "COPY_BEFORE_STORE": ("DATA 10", "a read copies the buffer before it asks the store"),
        "IDLE_IS_ASKED": ("DATA 3, 7", "an idle holder that is asked releases before it answers"),
        "WRITER_STORES": ("DATA 7, 10", "a holder that is asked for its size writes out, and stores it"),
        "ANSWERS_WHAT_CAME_BEFORE": (
            "DATA 3, 7",
            "work that stores answers the questions that came before it began, no later ones",
        ),
        "OPEN_ASKS": ("DATA 7", "open, stat and lookup ask the holder"),
        "REREAD_AFTER_DONE": ("DATA 3, 7", "after `done` the asker reads the inode again"),
        "TAKE_OVER_CUTS": ("DATA 4", "who takes over removes what was written out past the stored size"),
        "LEASE_IS_NEED": ("PROTOCOL 5", "an instance with the lease of a file answers the poll that it needs it"),
        "GONE_ARE_FENCED": ("PROTOCOL 5", "a holder that is gone is fenced before anything is removed"),
        # The code throws none away: it writes them out as for any other file. What it would need to throw them away:
        "IN_FLIGHT_IS_DEFINITE": (
            "C30",
            "bytes are thrown away, and the lease dropped, when what is in flight is definite",
        ),
        "THROWN_AWAY_WHEN_DEAD": ("C30", "bytes are thrown away only after the inode was marked dead"),
        "THROWN_AWAY_UNSEEN": (
            "C30",
            "... of a file that no other instance can have open: leased since its birth, and never asked",
        ),
        "THROWN_AWAY_CLOSED": ("C30", "... and that has no handle of any kind here"),
        "FORGOTTEN_STAYS": (
            "C30",
            "who throws bytes away does not remove the lease: some may be in the store, past the size",
        ),
        "RENAME_STORES": ("DATA 10", "who renames over a file stores the source's bytes and size first"),
        "RENAME_ASKS": ("DATA 10", "... and asks another holder of the source to do so"),
        "RENAME_REFUSES_LOST": ("DATA 10", "... and answers an error if that holder turns out to be gone"),
    }
)
MENDS.when_changed.append(forget)
on = MENDS.on
