# SPDX-License-Identifier: LGPL-2.1-or-later
"""Switches: each is one rule of docs/PROTOCOL.md that is the mend of a counter-example.

All are on; `without` switches one off, and then its case must end in a violation."""

from contextlib import contextmanager


class Mends:
    def __init__(self, rules):
        self.rules = rules  # name -> (page and section in docs/, what the rule says)
        self._off = frozenset()
        self.when_changed = []  # what is remembered between runs depends on the rules

    def on(self, name):
        assert name in self.rules, name
        return name not in self._off

    @contextmanager
    def without(self, *names):
        assert all(name in self.rules for name in names), names
        self._set(frozenset(names))
        try:
            yield
        finally:
            self._set(frozenset())

    def _set(self, off):
        self._off = off
        for forget in self.when_changed:
            forget()
