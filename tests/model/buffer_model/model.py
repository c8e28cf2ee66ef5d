# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients C0 and C1, the store and its faults. An operation that another client's memory or the store holds up
waits; everything else may happen in any order."""

from typing import NamedTuple

from actors import Actor, is_program, moved_on, request_of

from . import clients, memory, store
from .world import BLOCKS, Inode, Memory, World, is_fenced, lost, put, violation


class Case(NamedTuple):
    programs: tuple  # (client, operations)
    holder: str = "born"  # born: C0 has made the file and writes it; taken: C0 has opened it; none
    size: int = 0
    writers: tuple = (1, 0)  # handles open for writing, of each client
    readers: tuple = (0, 0)
    crashes: int = 0  # of C0
    repeats: int = 0
    evictions: int = 0  # of C0
    silences: int = 0


def first_world(case):
    holds = case.holder != "none"
    holder = Memory(holds=holds, size=case.size, stored=case.size, unseen=case.holder == "born")
    data = tuple(int(b < case.size) for b in range(BLOCKS))
    return World(
        inode=Inode(size=case.size, lease=int(holds)),
        name="x.tmp",
        data=data,
        memory=tuple(
            m._replace(writers=case.writers[c], handles=case.readers[c])
            for c, m in enumerate((holder, Memory()))
        ),
        crashes=case.crashes,
        repeats=case.repeats,
        evictions=case.evictions,
        silences=case.silences,
        order=tuple((0, 1) if value else (0,) for value in data),
        durable=data,
        published=data,
    )


def first_actors(case):
    actors = []
    for number, (client, operations) in enumerate(case.programs):
        who = f"C{client}.{number}"
        actors.append(Actor("running", clients.program, (client, who, operations)))
    for client in (0, 1):
        actors.append(Actor("running", clients.keeper, (client,)))
        for block in range(BLOCKS):
            actors += [Actor("running", clients.flusher, (client, block))] * 2
    return tuple(actors)


class BufferModel:
    def __init__(self, case):
        self.case = case
        self.actors = first_actors(case)
        self.client_of = [actor.arguments[0] for actor in self.actors]

    def initial(self):
        return first_world(self.case), self.actors

    def successors(self, state, labelled):
        found = []
        world, actors = state
        seen = set()
        for i, actor in enumerate(actors):
            if actor.status == "dead":
                found += self.late_step(state, i)
            elif actor.status == "running" and (self.client_of[i], actor) not in seen:
                seen.add((self.client_of[i], actor))
                found += self.steps_of(state, i, labelled)
        if world.crashes and world.memory[0].alive:
            dead = die((world._replace(crashes=world.crashes - 1), actors), 0, self.client_of)
            found.append(("C0 CRASHES", dead))
        for question in world.questions:
            found += self.unanswered(state, *question)
        return found

    def unanswered(self, state, who, kind, holder):
        world, actors = state
        found = []
        if is_fenced(world, holder):
            return found
        alive = world.memory[holder].alive
        after = world._replace(fenced=world.fenced | 1 << holder)
        if not alive:
            found.append((f"C{holder} is fenced", (after, actors)))
        elif world.evictions and holder == 0:
            after = lost(after._replace(evictions=world.evictions - 1), holder)
            found.append((f"C{holder}, alive, is EVICTED", (after, actors)))
        if world.silences and kind == "tell soon" and who not in world.silent:
            after = world._replace(silences=world.silences - 1, silent=world.silent | {who})
            found.append((f"{who} gives up asking", (after, actors)))
        return found

    def steps_of(self, state, i, labelled):
        world, actors = state
        actor, client = actors[i], self.client_of[i]
        request = request_of(actor)
        if request[0] == "store":
            return self.store_step(state, i, request[1], request[2])
        if request[0] in ("read inode", "read data"):
            return self.at_store(state, i, request, lambda touched: (store.read(touched, request), touched))
        found = []
        for reply, after in memory.act(world, client, request):
            label = f"C{client}: {words(request)}{'' if reply is None else f' -> {reply}'}" if labelled else ""
            found.append((label, (after, put(actors, i, moved_on(actor, reply)))))
        return found

    def at_store(self, state, i, step, does):
        """Of a fenced client: refused, by an object that another one has touched since; or by any."""
        world, actors = state
        client, found = self.client_of[i], []
        if is_fenced(world, client):
            found.append((f"C{client}: {words(step)}: REFUSED, fenced", die(state, client, self.client_of)))
            if world.barred[store.object_of(step)] >> client & 1:
                return found
        else:
            world = store.touched(world, step, world.fenced)
        reply, after = does(world)
        label = f"C{client}: {words(step)} -> {reply}"
        return found + [(label, (after, put(actors, i, moved_on(actors[i], reply))))]

    def store_step(self, state, i, step, noted):
        client = self.client_of[i]

        def applied_and_answered(world):
            applied, after = store.apply(world, client, step)
            return applied, after if noted is None else memory.note(after, client, noted, applied)

        found = self.at_store(state, i, step, applied_and_answered)
        world, actors = state
        if world.repeats and not is_fenced(world, client):
            _, after = store.apply(store.touched(world, step, world.fenced), client, step)
            after = after._replace(repeats=world.repeats - 1)
            label = f"C{client}: {words(step)}: APPLIED, ANSWER LOST, will be run again"
            found.append((label, (after, actors)))
        return found

    def late_step(self, state, i):
        world, actors = state
        client, step = self.client_of[i], actors[i].in_flight
        if world.barred[store.object_of(step)] >> client & 1:
            return []
        _, after = store.apply(world, client, step)
        return [(f"C{client} is dead; LATE: {words(step)}", (after, put(actors, i, Actor("done"))))]

    def violation(self, before, after):
        return violation(before[0], after[0])

    def at_end(self, state):
        world, actors = state
        if any(actor.status == "running" and is_program(actor) for actor in actors):
            return None
        for m in world.memory:
            if m.alive and ((m.holds and m.writers == 0) or any(m.dirty) or any(m.flying)):
                return None
        return ""

    def continues(self, _state):
        return True


def words(request):
    return " ".join(str(part) for part in request)


def die(state, client, client_of):
    world, actors = state
    memories = put(world.memory, client, Memory(alive=False))
    asked = frozenset(q for q in world.questions if not q[0].startswith(f"C{client}"))
    world = lost(world._replace(memory=memories, questions=asked), client)
    left = []
    for i, actor in enumerate(actors):
        if client_of[i] != client or actor.status != "running":
            left.append(actor)
            continue
        request = request_of(actor)
        in_flight = request[0] == "store"
        left.append(Actor("dead", in_flight=request[1]) if in_flight else Actor("done"))
    return world, tuple(left)
