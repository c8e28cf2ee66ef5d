# SPDX-License-Identifier: LGPL-2.1-or-later
"""Breadth-first search through every interleaving of a model, so that a violation comes with a shortest
trace.

A model has
    initial()                    -> a hashable state
    successors(state, labelled)  -> [(label, state)]; labels need to say something only if `labelled`
    violation(before, after)     -> what is wrong with a state, or ""; `before`: where it was reached from
    at_end(state)                -> None: not an end; "": a good end; else what is wrong with it
    continues(state)               -> whether to look after an end as well
"""

from collections import deque
from typing import NamedTuple


class Outcome(NamedTuple):
    verdict: str  # ok, violated, or cut: the limit of states was reached without a violation
    states: int
    message: str = ""
    trace: tuple = ()


def explore(model, limit):
    first = model.initial()
    came_from = {first: None}
    waiting = deque([first])
    states = 0
    while waiting:
        state = waiting.popleft()
        if states == limit:
            return Outcome("cut", states)
        states += 1
        ending = model.at_end(state)
        if ending:
            return Outcome("violated", states, ending, trace_to(model, came_from, state))
        if ending is not None and not model.continues(state):
            continue
        following = model.successors(state, False)
        if not following and ending is None:
            return Outcome("violated", states, "nobody can continue", trace_to(model, came_from, state))
        for index, (_, after) in enumerate(following):
            if after in came_from:
                continue
            came_from[after] = (state, index)
            wrong = model.violation(state, after)
            if wrong:
                return Outcome("violated", states, wrong, trace_to(model, came_from, after))
            waiting.append(after)
    return Outcome("ok", states)


def trace_to(model, came_from, state):
    labels = []
    while came_from[state] is not None:
        state, index = came_from[state]
        labels.append(model.successors(state, True)[index][0])
    return tuple(reversed(labels))
