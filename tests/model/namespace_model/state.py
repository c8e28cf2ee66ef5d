# SPDX-License-Identifier: LGPL-2.1-or-later
"""A case (what runs, and what may go wrong), and the state of a run."""

from typing import NamedTuple

from .processes import FIRST_COLLECTOR, NEXT_OPERATION, Process
from .rules import on


class Case(NamedTuple):
    world: str
    operations: tuple  # one for each client; ("then", operation, operation): one client, one after the other
    reader: tuple = ()  # of names: looked up one after the other
    collectors: int = 0
    passes: int = 0  # items that collectors take while the operations run
    faults: int = 0
    crashes: bool = True  # a client dies, its step in flight not applied, applied, or applied late
    lost_answers: bool = True  # a step's answer is lost: it was applied or not
    repeats: bool = True  # a step was applied, its answer lost, and it is run again, at once or later
    collectors_die: bool = False
    after_end: bool = False  # collectors continue when the operations are over


class State(NamedTuple):
    volume: tuple
    queue: frozenset
    processes: tuple
    turn: object  # the value on Super: (token, new directory, whether it is not over), or None
    answers: tuple  # of each operation, and of each lookup of the reader
    earlier: frozenset  # (a, b): operation a had ended when b began
    passes: int
    faults: int


class Cast:
    """Who is who among the processes, and which operation has which number."""

    def __init__(self, case):
        self.case = case
        self.sequences = [op[1:] if op[0] == "then" else (op,) for op in case.operations]
        self.clients = len(self.sequences)
        self.reader = self.clients if case.reader else None
        self.first_collector = self.clients + bool(case.reader)
        self.operations = [op for sequence in self.sequences for op in sequence]
        self.first_answer = [sum(map(len, self.sequences[:i])) for i in range(self.clients)]
        self.first_look = len(self.operations)
        self.operations += [("look", *name) for name in case.reader]

    def first_state(self, volume):
        processes, queue = [], set()
        answers = ["not run"] * self.first_look + [None] * len(self.case.reader)
        for client, sequence in enumerate(self.sequences):
            processes.append(self.operation(client, 0))
            answers[self.first_answer[client]] = None
            for k, operation in enumerate(sequence):
                if operation[0] == "create":
                    queue.add(("range", (operation[3],), client + 1 + NEXT_OPERATION * k))
        if self.case.reader:
            processes.append(Process("new", "look", self.case.reader[0]))
        processes += [Process("idle")] * self.case.collectors
        return State(
            volume,
            frozenset(queue),
            tuple(processes),
            None,
            tuple(answers),
            frozenset(),
            self.case.passes,
            self.case.faults,
        )

    def operation(self, client, k):
        kind, *arguments = self.sequences[client][k]
        return Process("new", kind, (*arguments, client + 1 + NEXT_OPERATION * k))

    def name(self, i):
        if i < self.clients:
            return f"C{i + 1}"
        return "the reader" if i == self.reader else f"collector {i - self.first_collector + 1}"

    def instance(self, i):
        return i + 1 if i < self.clients else FIRST_COLLECTOR + i - self.first_collector

    def answer_of(self, i, process, answers):
        """Where the answer of what a process runs now belongs; None: a collector."""
        if i < self.clients:
            return self.first_answer[i] + process.number() // NEXT_OPERATION
        if i == self.reader:
            return self.first_look + sum(answer is not None for answer in answers[self.first_look :])
        return None

    def running(self, processes):
        """The operations that are not over."""
        numbers = set()
        for i in range(self.clients):
            process = processes[i]
            if process.status in ("new", "running") or (process.status == "crashed" and on("ONLY_WHEN_RETIRED")):
                first = process.number() // NEXT_OPERATION
                numbers.update(i + 1 + NEXT_OPERATION * k for k in range(first, len(self.sequences[i])))
        if on("COLLECTOR_TOKENS"):
            for i in range(self.first_collector, len(processes)):
                if processes[i].status in ("new", "running", "crashed"):
                    numbers.add(self.instance(i))
        return numbers

    def all_over(self, processes):
        return all(process.status in ("done", "fenced") for process in processes[: self.first_collector])
