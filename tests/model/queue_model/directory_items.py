# SPDX-License-Identifier: LGPL-2.1-or-later
"""Directory items that several operations of one instance rely on, and the liveness polls that drop them
(docs/PROTOCOL.md section 2, liveness poll; src/instance/answers.cpp, queue.cpp, src/reclaim/round.cpp).

Threads of one instance remove names in one directory, a collector polls. A d/ key there must at all
times be led to by an item; and an item must not hold the answer back for longer than those who may rely on it
run.

Left out: other instances, deaths (sessions.py), and what recount does about the key."""

from typing import NamedTuple

from actors import Actor, answered, replace, request_of

from .rules import on

FOR_EVER = 9999


class Case(NamedTuple):
    threads: tuple  # of each, how many operations it does
    rounds: int
    collects: bool = True  # else the collector polls, and does no more


class World(NamedTuple):
    next_number: int = 1
    running: tuple = ()  # (operation, the next number when it began)
    relied_on: tuple = ()  # at most one: (item, the next number at its last use)
    dropped: tuple = ()  # the same, of items that liveness polls have dropped
    queue: frozenset = frozenset()  # numbers of the items
    keys: frozenset = frozenset()  # tokens of the d/ keys
    calls: tuple = ()  # of the last two liveness polls: (next number, operations that ran)
    wrong: str = ""


def thread(me, operations):
    """unlink: rely on the directory, then set the d/ key."""
    for k in range(operations):
        operation = (me, k)
        yield ("begin", operation)
        relied_on = yield ("relies already",)
        if not relied_on:
            number = yield ("draw",)
            steps = [("append", number), ("note", number)]
            for step in steps if on("NOTED_AFTER_APPEND") else reversed(steps):
                yield step
        yield ("set key",)
        yield ("end", operation)


def collector(rounds, collects):
    for _ in range(rounds):
        lowest = yield ("liveness poll",)
        if not collects:
            continue
        items = yield ("read queue",)
        due = [item for item in items if item < lowest]
        if not due:
            continue
        keys = yield ("read keys",)
        for token in keys:
            if token < lowest:
                yield ("remove key", token)
        something_left = any(token >= lowest for token in keys)
        finished = tuple(due[1:] if something_left else due)  # one leads to all that is left
        if finished:
            yield ("remove items", finished)


def answer_to_poll(world):
    """Instance::drop_directory_items."""
    next_number = world.next_number
    if world.running or on("NEXT_NUMBER"):
        lowest_running = min([number for _, number in world.running] + [next_number])
    else:
        lowest_running = FOR_EVER
    relied_on = world.relied_on
    dropped = world.dropped
    if on("DROP_ALL") or not world.running:
        dropped += relied_on
        relied_on = ()
    dropped = tuple(item for item in dropped if on("HELD_WHILE_RELIED_ON") and item[1] >= lowest_running)
    lowest = min([lowest_running] + [item for item, _ in dropped + relied_on])
    return lowest, world._replace(relied_on=relied_on, dropped=dropped, **note_call(world, lowest))


def note_call(world, lowest):
    """Two liveness polls on, who used an item before the first has ended, and so have those who overlapped with
    them."""
    running = frozenset(operation for operation, _ in world.running)
    wrong = world.wrong
    if len(world.calls) == 2:
        (next_at_first, ran_at_first), (_, ran_at_second) = world.calls
        if not ran_at_first & ran_at_second and not ran_at_second & running and lowest < next_at_first:
            wrong = f"the answer {lowest} is held back by what all have ended that relied on it"
    return {"calls": (world.calls + ((world.next_number, running),))[-2:], "wrong": wrong}


def act(world, request):
    kind = request[0]
    if kind == "liveness poll":
        return answer_to_poll(world)
    if kind == "begin":
        running = world.running + ((request[1], world.next_number),) if on("OPERATION_HOLDS_BACK") else ()
        return None, world._replace(running=tuple(sorted(running)))
    if kind == "end":
        return None, world._replace(running=tuple(one for one in world.running if one[0] != request[1]))
    if kind == "draw":
        return world.next_number, world._replace(next_number=world.next_number + 1)
    if kind == "relies already":
        if not world.relied_on:
            return False, world
        used = ((world.relied_on[0][0], world.next_number),)
        return True, world._replace(relied_on=used, next_number=world.next_number + 1)
    if kind == "note":
        noted = ((request[1], world.next_number),)
        return None, world._replace(relied_on=noted, next_number=world.next_number + 1)
    if kind == "append":
        return None, world._replace(queue=world.queue | {request[1]})
    if kind == "set key":
        token = world.next_number
        return token, world._replace(keys=world.keys | {token}, next_number=token + 1)
    if kind == "remove key":
        return None, world._replace(keys=world.keys - {request[1]})
    if kind == "remove items":
        return None, world._replace(queue=world.queue - set(request[1]))
    return tuple(sorted(world.queue if kind == "read queue" else world.keys)), world


class DirectoryItemsModel:
    def __init__(self, case):
        actors = [Actor("running", thread, (i, operations)) for i, operations in enumerate(case.threads)]
        self.first = (World(), (*actors, Actor("running", collector, (case.rounds, case.collects))))

    def initial(self):
        return self.first

    def successors(self, state, _labelled):
        world, actors = state
        found = []
        for i, actor in enumerate(actors):
            if actor.status == "running":
                request = request_of(actor)
                reply, after = act(world, request)
                name = "collector" if i == len(actors) - 1 else f"thread {i}"
                words = f"{name}: {' '.join(map(str, request))}{'' if reply is None else f' -> {reply}'}"
                found.append((words, (after, replace(actors, i, answered(actor, reply)))))
        return found

    def violation(self, _before, state):
        world = state[0]
        if world.keys and not world.queue:
            return f"Q: no item leads to the keys {sorted(world.keys)}"
        return world.wrong

    def continues(self, _state):
        return False

    def at_end(self, state):
        world, actors = state
        if any(actor.status == "running" for actor in actors):
            return None
        last = Actor("running", collector, (2, True))
        while last.status == "running":
            reply, world = act(world, request_of(last))
            last = answered(last, reply)
        return (
            f"stays for ever: items {world.queue}, keys {world.keys}"
            if world.queue or world.keys
            else world.wrong
        )
