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


_programs = set()


def runs_operations(kind):
    """Of a program: its last argument is its operations, the one that runs and those to come."""
    _programs.add(kind)
    return kind


def is_program(actor):
    return actor.kind in _programs


def moved_on(actor, reply):
    """What is in the background starts again at its end, and an operation of a program where it says so."""
    after = actor._replace(replies=actor.replies + (reply,))
    request = request_of(after)
    if request == ("again",):
        return after._replace(replies=())
    if request is not None:
        return after
    return next_operation(actor) if is_program(actor) else after._replace(replies=())


def next_operation(actor):
    *who, operations = actor.arguments
    return actor._replace(arguments=(*who, operations[1:]), replies=()) if len(operations) > 1 else Actor("done")


def replace(items, index, item):
    return items[:index] + (item,) + items[index + 1 :]
