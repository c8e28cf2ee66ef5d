# SPDX-License-Identifier: LGPL-2.1-or-later
from mends import Mends

MENDS = Mends(
    {
        "KEY_BEFORE_READ": ("DATA 12", "an opener writes its key, and then reads who holds the lease"),
        "TAKE_GUARDS_VERSION": ("DATA 2", "a key that comes after the taker's read has the lease read again"),
        "HOLDER_IS_ASKED": ("DATA 12", "an opener that finds the lease held tells its holder"),
        "REGISTERED_FIRST": ("DATA 12", "a holder remembers an opener, and then stores what is buffered"),
        "OPENERS_WAIT": ("DATA 12", "while openers are known, a write is in the store when it is answered"),
        "DROP_AFTER_ANSWER": ("DATA 12", "an opener drops its pages once the holder has answered"),
        "TOLD_AFTER_STORED": ("DATA 12", "a change is told once the store has it"),
        "TOLD_AGAIN": ("DATA 12", "what changes while a question is with an opener is told after it"),
        "HEARD_SINCE": ("DATA 12", "an answer `not open` forgets no opener that was heard of since the question"),
        "FORGOTTEN_ASKS_AGAIN": ("DATA 12", "an opener that has answered `not open` tells the holder again"),
        "FORGOTTEN_MEANWHILE": ("DATA 12", "and is not known by a question that was under way then"),
        "HEARD_ONCE": ("DATA 12", "what was heard before a release is not what was heard after it"),
        "DROP_WAITS_FOR_READS": ("DATA 12", "dropping pages waits for those that are being read"),
        "TAKEN_CHANGES": ("DATA 9", "each take of the lease changes `taken`"),
        "NOT_RIGHT_WHILE_LEASED": ("DATA 9", "pages that were read while another held the lease are not right"),
    }
)
on = MENDS.on
