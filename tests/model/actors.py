# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes that run side by side on a shared world, one request at a time: what several models have in
common. A process is a generator; what it does next follows from the answers that it has had."""

from typing import NamedTuple


class Actor(NamedTuple):
    status: str  # running, done, dead (its step in flight may land until it is fenced), fenced
    kind: object = None  # the generator function; None: nothing to run
    arguments: tuple = ()
    replies: tuple = ()
    in_flight: object = None


_remembered = {}


def forget():
    """What a process does next depends on the rules: a model registers this with its switches."""
    _remembered.clear()


def request_of(actor):
    """Its next request, or None at its end."""
    key = (actor.kind, actor.arguments, actor.replies)
    if key not in _remembered:
        running = actor.kind(*actor.arguments)
        try:
            request = next(running)
            for reply in actor.replies:
                request = running.send(reply)
        except StopIteration:
            request = None
        _remembered[key] = request
    return _remembered[key]


def answered(actor, reply):
    after = actor._replace(replies=actor.replies + (reply,))
    return after if request_of(after) is not None else Actor("done")


def replace(items, index, item):
    return items[:index] + (item,) + items[index + 1 :]
