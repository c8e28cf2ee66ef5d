# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients C0, C1, ... with the locks of one inode, the store and its faults. Everything may happen in any order.

Left out: owners within a client (their conflicts are judged in memory, which is always right), ranges (bytes
conflict one by one), deadlocks, `locks_changed` and the looks of each second (a waiter looks again when the inode
has changed, at any time after that), and bytes under a lock. That a client takes the lease after 16 locks is: at any
time."""

from typing import NamedTuple

from actors import Actor, is_program, moved_on, next_operation, request_of

from . import clients, memory, store
from .rules import on
from .world import (
    FREE,
    NOBODY,
    READ,
    WRITE,
    Memory,
    World,
    is_in,
    left_over,
    put,
    remember,
    stands,
    stored,
    violation,
    words,
)

AFTER_AN_ANSWER = ("applied", "look", "look for the key", "decide")


class Case(NamedTuple):
    programs: tuple  # (client, operations)
    size: int = 1  # bytes
    leases_again: bool = False  # a client with a shared lock state may lease it
    crashes: int = 0  # of C0
    evictions: int = 0  # of C0, which lives
    repeats: int = 0  # runs of a step beside the one whose answer comes
    errors: int = 0  # steps that the store cannot do: it is full
    slow: int = 0  # answers that come after other things have happened
    interrupts: int = 0
    impatience: int = 0  # requests that may not wait, and stop asking


class LockModel:
    def __init__(self, case):
        self.case = case
        self.clients = 1 + max(client for client, _ in case.programs)
        self.actors = [Actor("running", clients.program, what) for what in case.programs]
        self.actors += [Actor("running", clients.answerer, (c,)) for c in range(self.clients)]
        self.client_of = [actor.arguments[0] for actor in self.actors]

    def initial(self):
        case = self.case
        nothing = Memory(held=(FREE,) * case.size)
        faults = {name: getattr(case, name) for name in World._fields if name in Case._fields}
        world = World((nothing,) * self.clients, keys=(None,) * self.clients, **faults)
        return world, tuple(self.actors)

    def successors(self, state, labelled):
        world, actors = state
        found = []
        for i, actor in enumerate(actors):
            if actor.status == "running":
                found += self.steps_of(state, i, labelled)
        if world.crashes and world.memory[0].alive:
            found.append(("C0 CRASHES", self.die((world._replace(crashes=world.crashes - 1), actors), 0)))
        for question in sorted(world.questions):
            found += self.unanswered(world, actors, question)
        for client, step in sorted(world.late, key=str):
            done, after = store.apply(world, client, step)
            after = after._replace(late=world.late - {(client, step)})
            found.append((f"LATE, of C{client}: {shown(step)} -> {done}", (after, actors)))
        return found

    def unanswered(self, world, actors, question):
        who, client, waits = question
        found = []

        def told(world, answer):
            return world._replace(questions=world.questions - {question}, answers=world.answers | {(who, answer)})

        if is_in(world.expired, client):
            found.append((f"C{client}'s record says that it is expired", (told(world, "gone"), actors)))
        elif not world.memory[client].alive or (client == 0 and world.evictions):
            alive = world.memory[client].alive
            after = world._replace(evictions=world.evictions - alive)
            if on("FENCE_FIRST"):
                bit = 1 << client
                after = after._replace(expired=after.expired | bit, fenced=after.fenced | bit)
            label = f"C{client}{' stands still, and' if alive else ''} is {'fenced' if after.fenced else 'given up'}"
            found.append((label, (told(after, "gone"), actors)))
        if world.impatience and not waits:
            after = world._replace(impatience=world.impatience - 1)
            found.append((f"a request of C{self.client_of[who]} stops asking", (told(after, "no answer"), actors)))
        return found

    def steps_of(self, state, i, labelled):
        world, actors = state
        actor, client = actors[i], self.client_of[i]
        request = request_of(actor)
        if request[0] == "read":
            return self.at_store(state, i, request, labelled)
        if request[0] == "store":
            found = self.at_store(state, i, request, labelled) + self.sent_twice(state, i, request[1])
            if world.errors:
                after = world._replace(errors=world.errors - 1, late=world.late - {(client, request[1])})
                found.append((f"C{client}: {said(request)}: ERROR", (after, put(actors, i, moved_on(actor, "error")))))
            return found
        if request[0] == "wait for the others":
            others = any(a.status == "running" and is_program(a) for k, a in enumerate(actors) if k != i)
            return [] if others else [("the others are done", (world, put(actors, i, moved_on(actor, None))))]
        found = []
        for reply, after in memory.act(world, i, client, request, self.case.leases_again):
            label = f"C{client}: {said(request)}{heard(reply)}" if labelled else ""
            if after.memory[client].alive:
                found.append((label, (after, put(actors, i, moved_on(actor, reply)))))
            else:
                found.append((label, self.die((after, actors), client)))
        if world.interrupts and request[0] in ("begin", "wait for a change") and request[-1]:
            after = world._replace(interrupts=world.interrupts - 1)
            found.append((f"C{client}: a signal ends the wait", (after, put(actors, i, next_operation(actor)))))
        return found

    def at_store(self, state, i, request, labelled):
        """Of a fenced client: refused, by an object that one who knows has touched since; or by any."""
        world, actors = state
        client, found = self.client_of[i], []
        if is_in(world.fenced, client):
            found.append((f"C{client}: {said(request)}: REFUSED, fenced", self.die(state, client)))
            if is_in(world.barred, client):
                return found
        world = touched(world, client)
        if request[0] == "read":
            reply, after = (world.locks, world.keys, stands(world, client, *request[1:])), world
        else:
            reply, after = store.apply(world, client, request[1])
        label = f"C{client}: {said(request)} -> {stored(after)}" if labelled else ""
        answered = put(actors, i, moved_on(actors[i], reply))
        following = request_of(answered[i])
        if following[0] not in AFTER_AN_ANSWER:  # the step was refused: the inode is read next
            return found + [(label, (after, answered))]
        if world.slow:
            found.append((f"{label}; ITS ANSWER IS SLOW", (after._replace(slow=world.slow - 1), answered)))
        for told, then in memory.act(after, i, client, following, self.case.leases_again):
            label_then = f"{label}{heard(told)}" if labelled else ""
            found.append((label_then, (then, put(answered, i, moved_on(answered[i], told)))))
        return found

    def sent_twice(self, state, i, step):
        """One of the two runs may come before another client's steps, the other after them."""
        world, actors = state
        client = self.client_of[i]
        if not world.repeats or is_in(world.fenced, client) or (client, step) in world.late:
            return []
        after = world._replace(repeats=world.repeats - 1, late=world.late | {(client, step)})
        return [(f"C{client}: {shown(step)} IS SENT TWICE", (after, actors))]

    def die(self, state, client):
        """It crashes, or learns that it is fenced. Its locks stand until it is expired."""
        world, actors = state
        world = remember(world, client, alive=False, work=NOBODY)
        left, late = [], set(world.late)
        for i, actor in enumerate(actors):
            if self.client_of[i] != client or actor.status != "running":
                left.append(actor)
                continue
            request = request_of(actor)
            if request[0] == "store" and not is_in(world.barred, client):
                late.add((client, request[1]))
            world = world._replace(questions=frozenset(q for q in world.questions if q[0] != i))
            left.append(Actor("done"))
        return world._replace(late=frozenset(late)), tuple(left)

    def violation(self, _before, after):
        return violation(after[0])

    def at_end(self, state):
        world, actors = state
        if any(actor.status == "running" and is_program(actor) for actor in actors):
            return None
        if any(m.alive and m.work != NOBODY for m in world.memory):
            return None
        return left_over(world)

    def continues(self, _state):
        return True


def touched(world, client):
    """Who knows of a fence brings it to the object."""
    barred = world.barred | world.memory[client].expired & world.fenced
    if barred == world.barred:
        return world
    return world._replace(barred=barred, late=frozenset(run for run in world.late if not is_in(barred, run[0])))


MODES = {FREE: "free", READ: "shared", WRITE: "exclusive"}


def said(request):
    kind, *rest = request
    if kind == "begin":
        return f"wants byte {rest[0]} {MODES[rest[1]]}{', and waits' if rest[2] else ''}"
    if kind == "drop":
        return f"unlocks byte {rest[0]}"
    if kind in ("ask", "hear"):
        return f"{'asks' if kind == 'ask' else 'hears from'} C{rest[0]}"
    if kind == "store":
        return shown(rest[0])
    return "reads" if kind == "read" else kind


def shown(step):
    kind, number, guard = step[:3]
    if kind == "unlock":
        return f"[unlock] {number}, guard key {guard}"
    return f"[{kind if kind == 'lock' else kind + ' locks'}] {number}, guard {words(guard)}"


def heard(reply):
    """What comes of it; not what was seen."""
    if isinstance(reply, tuple):
        if reply[0] == "step":
            return f" -> {shown(reply[1])}"
        if reply[0] in ("lease", "share", "unlock"):
            return f" -> {shown(reply)}"
        return heard(reply[0])
    return f" -> {reply}" if isinstance(reply, str) and reply != "noted" else ""
