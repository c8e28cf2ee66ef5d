# SPDX-License-Identifier: LGPL-2.1-or-later
"""A case as a model for search.py: states in short form, the invariants in every state, and at each end a
last collector, after which nothing may be left over and answers and tree must fit some order."""

from .invariants import broken_invariant, leftover
from .processes import (
    FIRST_COLLECTOR,
    LAST_COLLECTOR,
    apply_step,
    change_queue,
    drop_numbers,
    next_request,
    own_number,
)
from .rules import MENDS
from .serial import fits_an_order, tree_of
from .state import Cast, State
from .store import load, look
from .successors import Successors
from .worlds import volume_of

MOST_REQUESTS = 400
MOST_ROUNDS = 12

# Large parts of states are replaced by numbers: equal parts have equal numbers.
_parts = []
_part_numbers = {}
_verdicts = {}
MENDS.when_changed.append(_verdicts.clear)


def _number(part):
    number = _part_numbers.get(part)
    if number is None:
        number = len(_parts)
        _parts.append(part)
        _part_numbers[part] = number
    return number


def pack(state):
    processes = tuple([_number(process) for process in state.processes])
    return (
        state.volume,
        _number(state.queue),
        processes,
        state.turn,
        _number(state.answers),
        _number(state.earlier),
        state.passes,
        state.faults,
    )


def unpack(packed):
    volume, queue, processes, turn, answers, earlier, passes, faults = packed
    processes = tuple([_parts[number] for number in processes])
    return State(volume, _parts[queue], processes, turn, _parts[answers], _parts[earlier], passes, faults)


class Unending(Exception):
    pass


class NamespaceModel:
    def __init__(self, case):
        self.case = case
        self.cast = Cast(case)
        self.first = self.cast.first_state(volume_of(case.world))
        self.tree_before = tree_of(self.first.volume)
        self.ends = {}

    def initial(self):
        return pack(self.first)

    def successors(self, packed, labelled):
        return [
            (words, pack(state)) for words, state in Successors(self.cast, unpack(packed), labelled).all()
        ]

    def violation(self, before, after):
        if before[:2] == after[:2]:
            return ""
        verdict = _verdicts.get(after[:2])
        if verdict is None:
            verdict = broken_invariant(after[0], _parts[after[1]])
            if len(_verdicts) > 500_000:
                _verdicts.clear()
            _verdicts[after[:2]] = verdict
        return verdict

    def continues(self, _packed):
        return self.case.after_end

    def at_end(self, packed):
        state = unpack(packed)
        if not self.cast.all_over(state.processes):
            return None
        collectors = state.processes[self.cast.first_collector :]
        key = (state.volume, state.queue, collectors, state.answers, state.earlier)
        if key not in self.ends:
            self.ends[key] = self.judge_end(state, collectors)
        return self.ends[key]

    def judge_end(self, state, collectors):
        last = LastCollectors(state.volume, state.queue)
        wrong = last.run(collectors) or leftover(last.volume, last.queue)
        if wrong:
            return wrong
        tree = tree_of(last.volume)
        if fits_an_order(self.tree_before, tree, self.cast.operations, state.answers, state.earlier):
            return ""
        answers = [
            f"{' '.join(map(str, op))} = {answer}" for op, answer in zip(self.cast.operations, state.answers)
        ]
        return f"answers fit no order: {', '.join(answers)}; in the end {tree}"


class LastCollectors:
    """Everybody is expired: collectors finish what they are at, and one more does all the rest, alone."""

    def __init__(self, volume, queue):
        self.volume, self.queue = volume, queue
        self.changed = set()
        self.wrong = ""

    def run(self, collectors):
        try:
            for k, process in enumerate(collectors):
                if process.status == "crashed":
                    self.volume = drop_numbers(self.volume, FIRST_COLLECTOR + k)
            for k, process in enumerate(collectors):
                if process.status in ("new", "running"):
                    self.finish(
                        process.kind,
                        process.arguments,
                        process.replies,
                        process.versions - self.changed,
                        FIRST_COLLECTOR + k,
                    )
            for _ in range(MOST_ROUNDS):
                for item in sorted(self.queue, key=repr):
                    if item in self.queue:
                        self.finish("handle", (item, LAST_COLLECTOR), (), frozenset(), LAST_COLLECTOR)
        except Unending:
            return "a collector does not come to an end"
        return self.wrong

    def finish(self, kind, arguments, replies, versions, instance):
        versions = set(versions)
        at_once, request = next_request(kind, arguments, replies)
        if not replies:
            self.queue = change_queue(self.queue, at_once)
        while request[0] != "end":
            if len(replies) > MOST_REQUESTS:
                raise Unending
            replies += (self.reply(request, versions, instance),)
            at_once, request = next_request(kind, arguments, replies)
            self.queue = change_queue(self.queue, at_once)
            self.wrong = self.wrong or broken_invariant(self.volume, self.queue)

    def reply(self, request, versions, instance):
        kind, ino = request[:2]
        if kind == "read":
            if request[4]:
                versions.add(ino)
            return look(load(self.volume, ino), request[2], request[3], ())
        if kind == "own number":
            number = own_number(self.volume, ino, instance)
            self.volume = drop_numbers(self.volume, instance, [ino])
            return number
        reply, self.volume = apply_step(self.volume, request, instance, versions)
        if reply == "applied":
            versions.discard(ino)
            self.changed.add(ino)
        return reply
