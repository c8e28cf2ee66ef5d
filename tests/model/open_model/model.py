# SPDX-License-Identifier: LGPL-2.1-or-later
"""All that may happen next. The reader's opens and reads, and the writers' writes, come in the order of their
programs; keys, questions and dropped pages in any order beside them. Left out: deaths, steps whose answer is lost
(keys promise nothing that the next holder does not look up), the second of a short open, attributes."""

from typing import NamedTuple

from .rules import on
from .world import NOBODY, Reader, World, Writer, changed, of_reader, of_writer


class Case(NamedTuple):
    reader: tuple
    writers: tuple


class OpenModel:
    def __init__(self, case):
        self.case = case

    def initial(self):
        return World(Reader(self.case.reader), tuple(Writer(program) for program in self.case.writers))

    def successors(self, world, _labelled):
        found = [*reads(world), *keys(world), *drops(world)]
        for who in range(len(world.writers)):
            found += writes(world, who) + answers(world, who) + tells(world, who)
        return found

    @staticmethod
    def violation(_before, after):
        return after.wrong

    def at_end(self, world):
        if self.successors(world, False):
            return None
        r = world.reader
        if r.is_open and r.pages is not None and r.pages != world.newest:
            return f"the pages have {r.pages} for ever, and {world.newest} was written"
        return "" if not r.program and not any(w.program for w in world.writers) else "nobody can continue"

    @staticmethod
    def continues(_state):
        return False


# ---- the reader's program


def reads(world):
    r = world.reader
    if not r.program:
        return []
    after = of_reader(world, program=r.program[1:])
    if r.program[0] == "open":
        return [("R opens", opened(after))]
    if r.program[0] == "close":
        return [("R closes", of_reader(after, is_open=False))] if r.reading is None else []
    if r.pages is not None:
        return [("R reads its pages", after)]
    if r.reading is None:
        return [("R begins to read", of_reader(world, reading=world.stored))]
    return [("R has read", of_reader(after, pages=r.reading, reading=None))]


def opened(world):
    """The holder stores what it has first, and then keeps nothing back."""
    holder = world.lease
    if holder != NOBODY:
        w = world.writers[holder]
        stored = world.stored if w.buffered is None else w.buffered
        world = of_writer(world, holder, shared=True, buffered=None)._replace(stored=stored)
    r = world.reader
    is_right = r.right == world.taken and (holder == NOBODY or not on("NOT_RIGHT_WHILE_LEASED"))
    pages = r.pages if is_right else None
    if pages is not None and pages != world.newest:
        return world._replace(wrong=f"an open keeps pages with {pages}, and {world.newest} was written")
    records = holder == NOBODY or not on("NOT_RIGHT_WHILE_LEASED")
    return of_reader(world, is_open=True, pages=pages, right=world.taken if records else None)


# ---- the key


def keys(world):
    r = world.reader
    if r.phase in ("ask", "half"):
        return []
    if r.phase == "answered":
        drop = on("DROP_AFTER_ANSWER") or r.drop
        known = not (r.forgotten and on("FORGOTTEN_MEANWHILE"))
        return [("R is known", of_reader(world, phase="", asked=NOBODY, known=known, forgotten=False, drop=drop))]
    if not r.is_open:
        if r.phase or not world.key:
            return []
        return [("R removes its key", changed(of_reader(world, known=False), key=False))]
    if r.known:
        return []
    if on("KEY_BEFORE_READ"):
        if not world.key:
            return [("R writes its key", changed(world, key=True))]
        return [look(world)]
    if r.phase == "":
        return [("R reads the inode", of_reader(world, phase="seen", asked=world.lease))]
    return [("R writes its key", ask(changed(world, key=True), r.asked))]


def look(world):
    return "R reads the inode", ask(world, world.lease)


def ask(world, holder):
    if holder == NOBODY or not on("HOLDER_IS_ASKED"):
        stale = world.reader.right != world.taken
        return of_reader(world, phase="", known=True, asked=NOBODY, drop=world.reader.drop or stale)
    return of_reader(world, phase="ask", asked=holder, forgotten=False, drop=world.reader.drop or not on("DROP_AFTER_ANSWER"))


def drops(world):
    r = world.reader
    if not r.drop or (r.reading is not None and on("DROP_WAITS_FOR_READS")):
        return []
    return [("R drops its pages", of_reader(world, drop=False, pages=None, right=None))]


# ---- the writers


def writes(world, who):
    w = world.writers[who]
    if w.storing is not None:
        return [(f"W{who}'s write is stored", written(world, who))]
    if not w.program:
        return []
    if w.program[0] == "release":
        return [(f"W{who} releases the lease", released(world, who))]
    if not w.held:
        return take(world, who)
    value = world.newest + 1
    waits = w.shared or (w.heard != 0 and on("OPENERS_WAIT"))
    if not waits and w.buffered is None:
        after = of_writer(world, who, program=w.program[1:], buffered=value, due=w.due or w.heard != 0)
        return [(f"W{who} buffers {value}", after._replace(newest=value))]
    due = w.due or (w.heard != 0 and not on("TOLD_AFTER_STORED"))
    return [(f"W{who} writes {value}", of_writer(world, who, storing=value, due=due))]


def take(world, who):
    w = world.writers[who]
    if w.seen is None:
        if world.lease != NOBODY:
            return []
        return [(f"W{who} reads the inode", of_writer(world, who, seen=(world.version, world.key)))]
    version, key = w.seen
    again = of_writer(world, who, seen=None)
    if world.lease != NOBODY or (version != world.version and on("TAKE_GUARDS_VERSION")):
        return [(f"W{who} is refused the lease", again)]
    taken = world.taken + 1 if on("TAKEN_CHANGES") else world.taken
    after = of_writer(again, who, held=True)
    if key:
        after = heard_of(after, who)
    return [(f"W{who} takes the lease", changed(after, lease=who, taken=taken))]


def written(world, who):
    w = world.writers[who]
    is_told = w.heard != 0 and on("TOLD_AFTER_STORED")
    due = w.due or (is_told and (w.told is None or on("TOLD_AGAIN")))
    after = of_writer(world, who, program=w.program[1:], storing=None, buffered=None, due=due)
    return after._replace(stored=w.storing, newest=w.storing)


def released(world, who):
    w = world.writers[who]
    stored = world.stored if w.buffered is None else w.buffered
    after = of_writer(world, who, program=w.program[1:], held=False, shared=False, heard=0, buffered=None)
    return changed(after, lease=NOBODY, stored=stored)


def heard_of(world, who):
    """Numbers that come again, where the lease was released in between, are those of another opener."""
    times = world.writers[who].times + 1 if on("HEARD_ONCE") else world.writers[who].heard + 1
    return of_writer(world, who, times=times, heard=times)


def answers(world, who):
    """To an opener: two moments."""
    r, w = world.reader, world.writers[who]
    if r.asked != who or r.phase not in ("ask", "half") or w.storing is not None:
        return []
    remembers = heard_of(world, who)
    stores = of_writer(world, who, buffered=None)
    if w.buffered is not None:
        stores = stores._replace(stored=w.buffered)
    first = (r.phase == "ask") == on("REGISTERED_FIRST")
    after = remembers if first else stores
    return [(f"W{who} {'hears of R' if first else 'stores'}", of_reader(after, phase="half" if r.phase == "ask" else "answered"))]


def tells(world, who):
    w = world.writers[who]
    if w.told is None:
        if not w.due:
            return []
        return [(f"W{who} tells R", of_writer(world, who, due=False, told=(w.heard, "sent")))]
    heard, answer = w.told
    if answer == "sent":
        r = world.reader
        after = of_writer(world, who, told=(heard, "open" if r.is_open else "not open"))
        if r.is_open:
            return [("R hears of a change", of_reader(after, drop=True))]
        known = r.known and not on("FORGOTTEN_ASKS_AGAIN")
        return [("R says that it is not open", of_reader(after, known=known, forgotten=bool(r.phase), drop=True))]
    forgets = answer == "not open" and (w.heard == heard or not on("HEARD_SINCE"))
    return [(f"W{who} hears: {answer}", of_writer(world, who, told=None, heard=0 if forgets else w.heard))]
