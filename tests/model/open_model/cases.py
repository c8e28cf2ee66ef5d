# SPDX-License-Identifier: LGPL-2.1-or-later
"""For each rule a case that goes wrong without it; and the cases of the short and the long run."""

import itertools

from .model import Case, OpenModel

O, R, C, W, X = "open", "read", "close", "write", "release"

ONE = Case((O, R, R), ((W,),))
TWO_WRITES = Case((O, R, R), ((W, W),))
THREE_WRITES = Case((O, R, R, R), ((W, W, W),))
RELEASED = Case((O, R, R), ((W, X),))
AGAIN = Case((O, R, C, O, R, R), ((W, W, W),))
OPENED_AGAIN = Case((O, R, C, O, R), ((W, X),))
RETAKEN = Case((O, R, C, O, R), ((W, X, W),))
HELD = Case((O, R, C, O, R), ((W, W),))
TWO_WRITERS = Case((O, R), ((W, X), (W, X)))

NEEDED = [
    ("KEY_BEFORE_READ", ONE),
    ("TAKE_GUARDS_VERSION", ONE),
    ("HOLDER_IS_ASKED", TWO_WRITES),
    ("REGISTERED_FIRST", TWO_WRITES),
    ("OPENERS_WAIT", ONE),
    ("DROP_AFTER_ANSWER", TWO_WRITES),
    ("TOLD_AFTER_STORED", TWO_WRITES),
    ("TOLD_AGAIN", THREE_WRITES),
    ("HEARD_SINCE", AGAIN),
    ("FORGOTTEN_ASKS_AGAIN", AGAIN),
    ("DROP_WAITS_FOR_READS", TWO_WRITES),
    ("TAKEN_CHANGES", OPENED_AGAIN),
    ("NOT_RIGHT_WHILE_LEASED", HELD),
    ("FORGOTTEN_MEANWHILE", AGAIN),
    ("HEARD_ONCE", RETAKEN),
]

SHORT = [
    ("named cases", [ONE, TWO_WRITES, RELEASED, OPENED_AGAIN, TWO_WRITERS]),
]
LONG = [
    ("larger cases", [THREE_WRITES, AGAIN, RETAKEN, HELD]),
    ("pairs", [Case(r, (w,)) for r in ((O, R, R), (O, R, C, O, R, R)) for w in ((W, X, W), (W, X, W, X), (W, W, X, W))]),
    (
        "three clients",
        [
            Case(r, (v, w))
            for r in ((O, R, R), (O, R, C, O, R, R), (O, R, C, O, R, C, O, R))
            for v, w in itertools.combinations_with_replacement(((W, X), (W, W, X), (W, X, W, X)), 2)
        ],
    ),
]


def model_of(case):
    return OpenModel(case)
