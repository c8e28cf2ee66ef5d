# SPDX-License-Identifier: LGPL-2.1-or-later
"""What an operation asks of the store, as generators: it yields a request, and is sent the answer
(docs/PROTOCOL.md section 4, rule 5; src/instance/steps.cpp).

    ("read", ino, view, arguments, remember the version)   -> what the view shows, or None
    ("step", ino, guards, mutations, numbered) -> applied | refused | missing | unknown (a lost answer)
    ("own number", ino)                                    -> mine | other | missing
    ("read turn",)                                         -> what Super says of directories that move
    ("swap turn", before, after)                           -> applied | refused
    ("log", item), ("unlog", item)                         : at once, without an answer
"""

from .rules import on
from .store import owner

ATTEMPTS = 2  # of an operation, before it gives up without an answer


def read(ino, view, *arguments, version=False):
    seen = yield ("read", ino, view, arguments, version)
    return seen


def numbered(ino, guards, mutations):
    """Instance::run: until it is decided."""
    while True:
        reply = yield ("step", ino, tuple(guards), tuple(mutations), True)
        if reply in ("applied", "missing"):
            return reply
        if not on("STEP_NUMBERS"):
            if reply == "unknown":
                continue
            return reply
        number = yield ("own number", ino)
        if number == "mine":
            return "applied"
        if reply == "refused" or number == "missing":
            return "refused" if reply == "refused" else "missing"


def repeatable(ino, guards, mutations):
    """Instance::run_repeatable: a step that may be done twice, or whose version guard says who was first."""
    while True:
        reply = yield ("step", ino, tuple(guards), tuple(mutations), False)
        if reply != "unknown":
            return reply


def log_inode(ino, token):
    yield ("log", ("inode", ino, owner(token)))


def log_directory(ino, token):
    yield ("log", ("directory", ino, owner(token)))


def key_token(token):
    return token if on("OWN_DETACHED_KEY") else 0
