# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whether a file without a name is removed while somebody has it open (docs/PROTOCOL.md sections 5 and 6;
src/reclaim/round_inodes.cpp, src/fs/file_handles.cpp).

Clients open a file that they have looked up before and close it again; they may lose their watch, so that
they do not hear a liveness poll, and set it again. A collector marks the inode dead, asks, and removes it if all
answered and none has it open. Left out: clients that are gone (they are fenced, which makes them over:
sessions.py)."""

from typing import NamedTuple

from actors import Actor, answered, replace, request_of

from .rules import on


class Case(NamedTuple):
    clients: int
    opens: int  # of each client
    lost_watches: int
    collectors: int
    passes: int


class World(NamedTuple):
    inode: str  # unnamed, dead, removed
    opening: tuple  # of each client, whether it counts itself among those that open
    opened: tuple
    watching: tuple
    lost_watches: int


def client(me, opens):
    for _ in range(opens):
        if on("OPENING_COUNTS"):
            yield ("opening", me, True)
        inode = yield ("read",)
        if inode == "unnamed":
            yield ("open", me, True)
            yield ("open", me, False)
        yield ("opening", me, False)


def collector(clients, passes):
    for _ in range(passes):
        if on("ASK_AFTER_MARK"):
            yield ("mark dead",)
        may_go = True
        for other in range(clients):
            answer = yield ("ask", other)
            if answer == "open" or (answer == "silent" and on("ALL_ANSWER")):
                may_go = False
        if may_go:
            if not on("ASK_AFTER_MARK"):
                yield ("mark dead",)
            yield ("remove",)


def act(world, request):
    kind = request[0]
    if kind == "read":
        return world.inode, world
    if kind == "mark dead":
        return None, world if world.inode == "removed" else world._replace(inode="dead")
    if kind == "remove":
        return None, world._replace(inode="removed")
    if kind == "ask":
        who = request[1]
        if not world.watching[who]:
            return "silent", world
        return "open" if world.opening[who] or world.opened[who] else "not open", world
    flags = "opening" if kind == "opening" else "opened"
    return None, world._replace(**{flags: replace(getattr(world, flags), request[1], request[2])})


class OpenFilesModel:
    def __init__(self, case):
        actors = [Actor("running", client, (i, case.opens)) for i in range(case.clients)]
        actors += [Actor("running", collector, (case.clients, case.passes))] * case.collectors
        no, yes = (False,) * case.clients, (True,) * case.clients
        self.first = (World("unnamed", no, no, yes, case.lost_watches), tuple(actors))

    def initial(self):
        return self.first

    def successors(self, state, _labelled):
        world, actors = state
        found = []
        for i, actor in enumerate(actors):
            if actor.status == "running":
                request = request_of(actor)
                reply, after = act(world, request)
                words = f"{i}: {' '.join(map(str, request))}{'' if reply is None else f' -> {reply}'}"
                found.append((words, (after, replace(actors, i, answered(actor, reply)))))
        for i, watching in enumerate(world.watching):
            if not watching:
                found.append(
                    (
                        f"{i} sets its watch again",
                        (world._replace(watching=replace(world.watching, i, True)), actors),
                    )
                )
            elif world.lost_watches:
                found.append(
                    (
                        f"{i} LOSES ITS WATCH",
                        (
                            world._replace(
                                watching=replace(world.watching, i, False),
                                lost_watches=world.lost_watches - 1,
                            ),
                            actors,
                        ),
                    )
                )
        return found

    def violation(self, _before, state):
        world = state[0]
        if world.inode == "removed" and any(world.opened):
            return f"removed, and open at client {world.opened.index(True)}"
        return ""

    def continues(self, _state):
        return False

    def at_end(self, state):
        return None if any(actor.status == "running" for actor in state[1]) else ""
