# SPDX-License-Identifier: LGPL-2.1-or-later
"""The queue of each instance, from its record to its end, and collectors that read all of them
(docs/PROTOCOL.md sections 2 and 5; src/instance/instance.cpp, others.cpp, src/reclaim/round.cpp).

An operation appends items, leaves debris, and cleans all of it up but for the first inode's. Anyone may die
at any step; the step in flight may land until the instance is fenced; a step whose answer is lost may be run
again later. Debris must at all times be named by an item that a collector can find.

Left out: who is silent and alive (open_files.py), directory items that several operations use
(directory_items.py), grace, range items, and how a fence gets to the objects."""

from typing import NamedTuple

from actors import Actor, answered, replace, request_of

from .rules import on

NOTHING_RUNS_ABOVE = 9999
ROUND = 1000  # numbers of a collector's rounds lie so far apart
READS = ("records", "items", "ask", "fence")


class Case(NamedTuple):
    producers: tuple  # (batches of inodes, whether it ends): one operation for each batch
    collectors: int
    passes: int
    deaths: int
    repeats: int


class World(NamedTuple):
    records: tuple  # of each instance on Super: None, live, ended, fenced
    sessions: tuple  # of each: None, or its items (instance, number, inode)
    debris: frozenset
    actors: tuple
    deaths: int
    repeats: int


# ---- what they do. The last part of each request: the lowest number running or relied on, else the next one


def start(me):
    if on("RECORD_OUTLIVES_SESSION"):
        yield ("record", me, None, "live", 0)
    yield ("make session", me, 0)
    if not on("RECORD_OUTLIVES_SESSION"):
        yield ("record", me, None, "live", 0)


def producer(me, batches, ends):
    yield from start(me)
    number = 1
    for k, inodes in enumerate(batches):
        if ends and not on("ENDED_IS_LAST") and k == len(batches) - 1:
            yield ("record", me, "live", "ended", number)
        items = tuple((me, number + i, inode) for i, inode in enumerate(inodes))
        began = number
        number += len(inodes)
        lowest = began if on("OPERATION_HOLDS_BACK") else number
        done = yield ("append", me, items, lowest)
        if done != "done":
            return
        for inode in inodes:
            yield ("leave", inode, lowest)
        for inode in inodes[1:]:
            yield ("clean", inode, lowest)
    if ends and on("ENDED_IS_LAST"):
        items = yield ("items", me, number)
        if items:
            yield ("record", me, "live", "ended", number)
        else:
            yield from remove_instance(me, "live", number)


def remove_instance(instance, record, number):
    if on("RECORD_OUTLIVES_SESSION"):
        yield ("remove session", instance, number)
        yield ("record", instance, record, None, number)
    else:
        yield ("record", instance, record, None, number)
        yield ("remove session", instance, number)


def handle(me, item, number, lowest):
    inode = item[2]
    if not inode.startswith("directory"):
        yield ("clean", inode, lowest)
        return
    child = (
        (me, number, "child of " + inode),
    )  # a directory with one child: it gets an item, then its name goes
    if on("LOG_BEFORE_ACTING"):
        yield ("append", me, child, lowest)
    yield ("empty", inode, child[0][2], lowest)
    if not on("LOG_BEFORE_ACTING"):
        yield ("append", me, child, lowest)


def collector(me, passes, first_number):
    if first_number == 0:
        yield from start(me)
    number = first_number
    for _ in range(passes):
        read_before = {}
        records = yield ("records", number)
        if not on("READ_AFTER_ASKING"):
            for instance, record in enumerate(records):
                if record is not None:
                    read_before[instance] = yield ("items", instance, number)
        lowest_of = {}
        for instance, record in enumerate(records):
            if record is None:
                continue
            lowest_of[instance] = NOTHING_RUNS_ABOVE
            if record == "live":
                lowest_of[instance] = (
                    number if instance == me else (yield from ask_or_fence(instance, number))
                )
        over = [i for i, record in enumerate(records) if lowest_of.get(i) == NOTHING_RUNS_ABOVE and i != me]
        due = []
        for instance, lowest in lowest_of.items():
            items = read_before.get(instance) if read_before else (yield ("items", instance, number))
            due += [(instance, item) for item in items or () if item[1] < lowest]
        began = number + 1
        for instance, item in due:
            number += 1
            yield from handle(me, item, number, began)
            yield ("delete", instance, item, began)
        number += 1
        for instance in over:
            items = read_before.get(instance) if read_before else (yield ("items", instance, number))
            if not items:
                record = "fenced" if records[instance] == "live" else records[instance]
                yield from remove_instance(instance, record, number)


def ask_or_fence(instance, number):
    lowest = yield ("ask", instance, number)
    if lowest != "gone":
        return lowest
    if not on("FENCE_BEFORE_MARK"):
        yield ("record", instance, "live", "fenced", number)
    yield ("fence", instance, number)
    if on("FENCE_BEFORE_MARK"):
        yield ("record", instance, "live", "fenced", number)
    return NOTHING_RUNS_ABOVE


# ---- the world they act on


def act(world, request):
    """(reply, world) of one request."""
    kind, subject = request[0], request[1]
    if kind == "records":
        return world.records, world
    if kind == "record":
        if world.records[subject] != request[2]:
            return "refused", world
        return "done", world._replace(records=replace(world.records, subject, request[3]))
    if kind in ("leave", "clean"):
        debris = world.debris | {subject} if kind == "leave" else world.debris - {subject}
        return "done", world._replace(debris=debris)
    if kind == "empty":
        left = {request[2]} if subject in world.debris else set()
        return "done", world._replace(debris=(world.debris - {subject}) | left)
    if kind == "ask":
        return answer_to_poll(world.actors[subject]), world
    if kind == "fence":
        return "done", world._replace(actors=replace(world.actors, subject, Actor("fenced")))
    return act_on_session(world, kind, subject, request)


def act_on_session(world, kind, subject, request):
    session = world.sessions[subject]

    def changed(items):
        return "done", world._replace(sessions=replace(world.sessions, subject, items))

    if kind == "make session":
        return changed(frozenset()) if session is None else ("refused", world)
    if kind == "remove session":
        return changed(None)
    if kind == "items":
        return None if session is None else tuple(sorted(session)), world
    if session is None:
        return "missing", world
    if kind == "append":
        return changed(session | set(request[2]))
    assert kind == "delete", kind
    return changed(session - {request[2]})


def answer_to_poll(actor):
    if actor.status in ("dead", "fenced"):
        return "gone"
    if actor.status == "done":  # still there, with nothing running: below its next number, which no item has
        return NOTHING_RUNS_ABOVE - 1
    return request_of(actor)[-1]


class SessionsModel:
    def __init__(self, case):
        actors = [Actor("running", producer, (i, *what)) for i, what in enumerate(case.producers)]
        first = len(actors)
        actors += [Actor("running", collector, (first + k, case.passes, 0)) for k in range(case.collectors)]
        none = (None,) * len(actors)
        self.first = World(none, none, frozenset(), tuple(actors), case.deaths, case.repeats)

    def initial(self):
        return self.first

    def successors(self, world, _labelled):
        found = []
        for i, actor in enumerate(world.actors):
            if actor.status == "dead" and actor.in_flight is not None:
                reply, after = act(world, actor.in_flight)
                after = after._replace(actors=replace(after.actors, i, Actor("dead")))
                found.append((f"{i}: in flight, lands late: {actor.in_flight[:-1]} -> {reply}", after))
            if actor.status == "running":
                found += self.steps_of(world, i, actor)
        return found

    def steps_of(self, world, i, actor):
        request = request_of(actor)
        reply, after = act(world, request)
        found = [
            (
                f"{i} {request[:-1]} -> {reply}",
                after._replace(actors=replace(after.actors, i, answered(actor, reply))),
            )
        ]
        writes = request[0] not in READS
        if world.repeats and writes:
            found.append(
                (
                    f"{i} {request[:-1]}: APPLIED, its answer lost; it WILL BE RUN AGAIN",
                    after._replace(repeats=world.repeats - 1),
                )
            )
        if world.deaths and actor.replies:
            dead = Actor("dead", in_flight=request if writes else None)
            found.append(
                (
                    f"{i} DIES{f' with {request[:-1]} in flight' if writes else ''}",
                    world._replace(actors=replace(world.actors, i, dead), deaths=world.deaths - 1),
                )
            )
        return found

    def violation(self, _before, world):
        for inode in world.debris:
            if not any(
                record is not None and session is not None and any(item[2] == inode for item in session)
                for record, session in zip(world.records, world.sessions)
            ):
                return f"no queue that can be found names {inode}: {world.records}, {world.sessions}"
        return ""

    def continues(self, _world):
        return True

    def at_end(self, world):
        """When nobody is running any more, everybody is expired, and one more collector drains all of it,
        alone."""
        if any(actor.status == "running" or actor.in_flight is not None for actor in world.actors):
            return None
        me = len(world.actors)
        actors = tuple(Actor("dead") for _ in world.actors)
        world = World(
            world.records + (None,), world.sessions + (None,), world.debris, actors + (Actor("done"),), 0, 0
        )
        for round_number in range(4):
            last = Actor("running", collector, (me, 1, ROUND * round_number))
            while last.status == "running":
                reply, world = act(world, request_of(last))
                last = answered(last, reply)
                wrong = self.violation(world, world)
                if wrong:
                    return wrong
        if world.debris or world.sessions[me]:
            return f"stays for ever: {sorted(world.debris)}, items {sorted(world.sessions[me])}"
        for i in range(me):
            if world.sessions[i] is not None or world.records[i] is not None:
                return f"of instance {i} stays: {world.sessions[i]}, record {world.records[i]}"
        return ""
