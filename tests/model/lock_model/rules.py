# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rules of locks between clients that can be switched off, one at a time."""

from actors import forget
from mends import Mends

MENDS = Mends(
    {
        "LEASE_GUARDS_STATE": ("LOCKS 2", "`lease locks` guards the lock state as it was read"),
        "LEASED_WHEN_ALONE": ("LOCKS 2", "locks are leased only while no other client has one"),
        "LOCK_GUARDS_TOKEN": ("LOCKS 2", "`lock` guards the token with which it knows the others' locks"),
        "LOCK_WRITES_TOKEN": ("LOCKS 1, 2", "a step that adds a lock writes a new token"),
        "UNLOCK_GUARDS_KEY": ("LOCKS 2", "`unlock` guards the own key as it was written"),
        "KEY_HAS_NUMBER": ("LOCKS 1, 2", "... with the number of its step: the same locks are not the same key"),
        "LOCKS_STAYS": ("LOCKS 2", "`share locks` writes *shared*: the lock state never goes"),
        "SHARING_GRANTS_NOTHING": ("LOCKS 2", "while locks are shared, memory grants none"),
        "SHARE_REFUSED_IS_DONE": ("LOCKS 2", "a `share locks` that is refused has been applied: the lease is gone"),
        "LOCK_DECIDED_BY_KEY": ("LOCKS 2", "the own key decides whether `lock` was applied, not the token in `locks`"),
        "ERROR_KNOWS_NOTHING": (
            "LOCKS 2",
            "after an error of a step nothing is known: an earlier run of it may have been applied",
        ),
        "ERROR_LESSENS": (
            "LOCKS 2",
            "... so where an exclusive lock was to become a shared one, memory has that: no `unlock` adds a lock",
        ),
        "OWN_LEASE_IS_ADOPTED": ("LOCKS 2, 3", "a lease that is found to be mine is mine, whatever memory says"),
        "ONE_AT_A_TIME": (
            "LOCKS 2",
            "a question's work waits for the work under way, from its read to the answer of its step",
        ),
        "DROPPED_MEANWHILE": ("LOCKS 2", "what is unlocked while a step is in flight goes after it"),
        "UNLOCK_WAITS": ("LOCKS 2, 5", "an unlock is answered when its step is done"),
        "FORGOTTEN_WHEN_IDLE": ("LOCKS 3", "a file is forgotten when it has no lock, no key, and nothing in flight"),
        "HOLDER_READS": ("LOCKS 3", "a holder that remembers nothing reads the inode before it answers"),
        "FENCE_FIRST": ("LOCKS 3", "a client's locks are void once it is fenced, not when it is silent"),
        "REFUSED_ON_READ": ("LOCKS 2", "a request is refused only on what was read for it"),
    }
)
MENDS.when_changed.append(forget)
on = MENDS.on
