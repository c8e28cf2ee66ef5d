# SPDX-License-Identifier: LGPL-2.1-or-later
"""What may happen next: a process takes its next step, or a fault of docs/PROTOCOL.md section 7 strikes."""

from .processes import (
    NEXT_OPERATION,
    Process,
    apply_step,
    change_queue,
    drop_numbers,
    next_request,
    own_number,
)
from .store import load, look


def replace(items, index, item):
    return items[:index] + (item,) + items[index + 1 :]


class Successors:
    def __init__(self, cast, state, labelled):
        self.cast, self.case, self.state, self.labelled = cast, cast.case, state, labelled
        self.running = cast.running(state.processes)
        self.found = []

    def all(self):
        for i, process in enumerate(self.state.processes):
            if process.status == "idle":
                self.take_an_item(i)
            elif process.status == "crashed":
                self.late_step_or_fence(i, process)
            elif process.status == "between":
                self.begin_next_lookup(i, process)
            elif process.status in ("new", "running"):
                self.resume(i, process)
        return self.found

    def add(self, i, words, state):
        self.found.append((f"{self.cast.name(i)} {words}" if self.labelled else "", state))

    def with_process(self, i, process, **changes):
        return self.state._replace(processes=replace(self.state.processes, i, process), **changes)

    def take_an_item(self, i):
        if self.state.passes == 0 or (self.cast.all_over(self.state.processes) and not self.case.after_end):
            return
        for item in sorted(self.state.queue, key=repr):
            if item[2] not in self.running:
                process = Process("new", "handle", (item, self.cast.instance(i)))
                self.add(i, f"takes {item}", self.with_process(i, process, passes=self.state.passes - 1))

    def late_step_or_fence(self, i, process):
        if process.in_flight is not None:
            reply, volume, processes = self.applied(i, process.in_flight)
            if reply == "applied":
                state = self.state._replace(volume=volume)
                landed = process._replace(in_flight=None, versions=frozenset())
                self.add(
                    i,
                    f": its step in flight lands late: {self.words(process.in_flight)}",
                    state._replace(processes=replace(processes, i, landed)),
                )
        over = Process("fenced") if i < self.cast.clients else Process("idle")
        volume = drop_numbers(self.state.volume, self.cast.instance(i))
        self.add(i, "is fenced", self.with_process(i, over, volume=volume))

    def begin_next_lookup(self, i, process):
        me = self.cast.answer_of(i, process, self.state.answers)
        self.add(
            i, "looks again", self.with_process(i, process._replace(status="running"), earlier=self.ended(me))
        )

    def ended(self, me):
        answers = self.state.answers
        return self.state.earlier | {
            (k, me) for k, a in enumerate(answers) if a is not None and a != "not run"
        }

    def resume(self, i, process):
        _, request = next_request(process.kind, process.arguments, process.replies)
        if request[0] == "read":
            self.read(i, process, request)
        elif request[0] == "own number":
            number = own_number(self.state.volume, request[1], self.cast.instance(i))
            volume = drop_numbers(self.state.volume, self.cast.instance(i), [request[1]])
            self.answer(i, number, f"reads its number in {request[1]}: {number}", volume=volume)
        elif request[0] == "read turn":
            self.answer(i, self.state.turn, f"reads whose turn it is: {self.state.turn}")
        elif request[0] == "swap turn":
            self.swap_turn(i, request)
        else:
            self.step(i, process, request)
        self.crash(i, process, request)

    def read(self, i, process, request):
        _, ino, view, arguments, remember = request
        seen = look(load(self.state.volume, ino), view, arguments, self.running)
        processes = self.state.processes
        if remember:
            processes = replace(processes, i, process._replace(versions=process.versions | {ino}))
        self.answer(i, seen, f"reads {view} {arguments or ''} of {ino}: {seen}", processes=processes)

    def swap_turn(self, i, request):
        """Each value is there once, so that a step run again, or late, does nothing."""
        _, before, after = request
        if self.state.turn == before:
            self.answer(i, "applied", f"Super: turn {before} -> {after}", turn=after)
        else:
            self.answer(i, "refused", f"Super: turn {before} -> {after}: refused")

    def step(self, i, process, request):
        reply, volume, processes = self.applied(i, request)
        self.answer(i, reply, f"{self.words(request)}: {reply}", volume=volume, processes=processes)
        if not self.state.faults or process.status != "running":
            return
        faults = self.state.faults - 1
        is_client, is_collector = i < self.cast.clients, i >= self.cast.first_collector
        _, undecided, processes = self.applied(i, request, undecided=True)
        if is_client and self.case.lost_answers:
            self.answer(i, "unknown", f"{self.words(request)}: NOT APPLIED, no answer", faults=faults)
            if reply == "applied":
                self.answer(
                    i,
                    "unknown",
                    f"{self.words(request)}: APPLIED, its answer lost",
                    volume=undecided,
                    processes=processes,
                    faults=faults,
                )
        if reply == "applied" and self.case.repeats and (is_client or is_collector):
            state = self.state._replace(volume=undecided, processes=processes, faults=faults)
            self.add(i, f"{self.words(request)}: APPLIED, its answer lost; it WILL BE RUN AGAIN", state)
            if self.case.crashes if is_client else self.case.collectors_die:
                crashed = self.crashed(i, process, request)._replace(versions=processes[i].versions)
                self.add(
                    i,
                    f"{self.words(request)}: APPLIED, then it DIES with a copy in flight",
                    state._replace(processes=replace(processes, i, crashed)),
                )

    def crash(self, i, process, request):
        is_client, is_collector = i < self.cast.clients, i >= self.cast.first_collector
        may_die = (is_client and self.case.crashes) or (is_collector and self.case.collectors_die)
        if process.status != "running" or not self.state.faults or not may_die:
            return
        in_flight = request if request[0] == "step" else None
        crashed = self.crashed(i, process, in_flight)
        words = f"DIES{f' with {self.words(in_flight)} in flight' if in_flight else ''}"
        volume = self.state.volume
        if is_collector and not in_flight:
            crashed = Process("idle")
            volume = drop_numbers(volume, self.cast.instance(i))
        self.add(i, words, self.with_process(i, crashed, volume=volume, faults=self.state.faults - 1))

    def crashed(self, i, process, in_flight):
        number = process.number() if i < self.cast.clients else 0
        versions = process.versions if in_flight else frozenset()
        return Process("crashed", arguments=(number,), versions=versions, in_flight=in_flight)

    def applied(self, i, request, undecided=False):
        process = self.state.processes[i]
        before = self.state.volume
        reply, volume = apply_step(before, request, self.cast.instance(i), process.versions, undecided)
        if reply != "applied":
            return reply, volume, self.state.processes
        ino, makes = request[1], request[3][0][0] == "make"
        if makes and volume == before and load(before, ino) is not None:
            return reply, volume, self.state.processes
        processes = []
        for k, other in enumerate(self.state.processes):
            if ino in other.versions:
                other = other._replace(versions=other.versions - {ino})
            if makes and k == i:
                other = other._replace(versions=other.versions | {ino})
            processes.append(other)
        return reply, volume, tuple(processes)

    def answer(self, i, reply, words, **changes):
        """Process i has its answer: it continues to its next request, and does what it does at once."""
        state = self.state._replace(**changes)
        process = state.processes[i]
        me = self.cast.answer_of(i, process, state.answers)
        if process.status == "new" and me is not None:
            state = state._replace(earlier=self.ended(me))
        replies = process.replies + (reply,)
        while True:
            at_once, request = next_request(process.kind, process.arguments, replies)
            state = state._replace(queue=change_queue(state.queue, at_once))
            if request[0] != "own number":
                break
            number = own_number(state.volume, request[1], self.cast.instance(i))
            if number == "mine":
                break
            replies += (number,)  # nobody can change that: reading it is no step of the model
        if request[0] == "end":
            state = self.end(state, i, process, me, request[1])
        else:
            after = process._replace(status="running", replies=replies)
            state = state._replace(processes=replace(state.processes, i, after))
        self.add(i, words, state)

    def end(self, state, i, process, me, result):
        after = Process("idle")
        if me is not None:
            state = state._replace(answers=replace(state.answers, me, result))
            after = Process("done")
        if i == self.cast.reader and me + 1 < len(state.answers):
            following = me - self.cast.first_look + 1
            after = Process("between", "look", self.case.reader[following])
        elif i < self.cast.clients:
            k = process.number() // NEXT_OPERATION + 1
            if k < len(self.cast.sequences[i]):
                after = self.cast.operation(i, k)
                state = state._replace(answers=replace(state.answers, me + 1, None))
            else:
                state = state._replace(volume=drop_numbers(state.volume, self.cast.instance(i)))
        return state._replace(processes=replace(state.processes, i, after))

    def words(self, request):
        if not self.labelled:
            return ""
        _, ino, guards, mutations, _ = request
        shown = [" ".join([kind, *map(str, arguments)]) for kind, *arguments in (*guards, *mutations)]
        return f"Inode.{ino}: " + ", ".join(shown[: len(guards)]) + " -> " + ", ".join(shown[len(guards) :])
