# SPDX-License-Identifier: LGPL-2.1-or-later
"""What clients do in their memory: of each request all that may come of it, as (reply, world). None: it waits."""

from . import store
from .rules import on
from .world import (
    FREE,
    LEASED,
    NOBODY,
    SHARED,
    Memory,
    conflict,
    is_in,
    is_leased_by,
    put,
    remember,
    stands,
)


def act(world, who, me, request, leases_again):
    kind, arguments = request[0], request[1:]
    if kind in ("begin", "look"):
        return ACTS[kind](world, who, me, *arguments, leases_again)
    return ACTS[kind](world, who, me, *arguments)


# ---- lock


def begin(world, who, me, byte, mode, waits, leases_again):
    m = world.memory[me]
    if m.leased and not (m.sharing and on("SHARING_GRANTS_NOTHING")):
        return [(("granted",), granted(world, me, byte, mode))]
    if m.work != NOBODY:
        return []
    world = remember(world, me, work=who)
    if m.state is None or m.state[0] == LEASED:
        return [(("read",), world)]
    if conflicts(m, me, byte, mode):
        if waits or on("REFUSED_ON_READ"):
            return [(("read",), world)]
        return refuse(world, who, me, "done", stands(world, me, byte, mode))
    return take(world, me, byte, mode, leases_again)


def look(world, who, me, seen, byte, mode, leases_again):
    """At the inode as it was read."""
    locks, keys, _ = seen
    world = learn(world, me, locks, keys)
    m = world.memory[me]
    if locks is not None and locks[0] == LEASED:
        holder = locks[1]
        if holder == me and on("OWN_LEASE_IS_ADOPTED"):
            world = remember(world, me, leased=True, key=None, work=NOBODY)
            return [(("granted",), granted(world, me, byte, mode))]
        if is_in(m.expired, holder):
            return [step_of(world, me, "lease", byte, mode)]
        return [(("leased", holder, seen), remember(world, me, work=NOBODY))]
    in_the_way = conflicts(m, me, byte, mode)
    if in_the_way:
        return [(("conflict", in_the_way[0], seen), remember(world, me, work=NOBODY))]
    return take(world, me, byte, mode, leases_again)


def learn(world, me, locks, keys):
    return remember(world, me, state=locks, others=put(keys, me, None), key=keys[me])


def take(world, me, byte, mode, leases_again):
    """No lock that is known conflicts."""
    m = world.memory[me]
    alone = not any(any(key[1]) for key in others_of(m, me).values())
    first = m.state is None
    kinds = []
    if (first or leases_again) and (alone or not on("LEASED_WHEN_ALONE")):
        kinds.append("lease")
    if not first or not alone:
        kinds.append("lock")
    return [step_of(world, me, kind, byte, mode) for kind in kinds]


def step_of(world, me, kind, byte, mode):
    m = world.memory[me]
    step = (kind, m.number, m.state)
    if kind == "lock":
        step += (put(m.held, byte, mode),)
    return ("step", step + (m.expired,)), remember(world, me, number=m.number + 1, wanted=((byte, mode),))


def others_of(m, me):
    """The keys of others that count, as known."""
    return {c: k for c, k in enumerate(m.others) if k is not None and c != me and not is_in(m.expired, c)}


def conflicts(m, me, byte, mode):
    return [c for c, key in others_of(m, me).items() if conflict(mode, key[1][byte])]


def granted(world, me, byte, mode):
    return remember(world, me, held=put(world.memory[me].held, byte, mode), wanted=())


def refuse(world, who, me, heard, stood):
    world = without_work(world, who, me)
    if heard == "done" and not stood and not is_in(world.expired, me):
        world = world._replace(wrong=f"C{me} is refused for a lock that is not there")
    return [(("refused",), world)]


def without_work(world, who, me):
    return remember(world, me, work=NOBODY) if world.memory[me].work == who else world


# ---- unlock


def drop(world, _who, me, byte):
    """Memory first. None: that is all."""
    m = world.memory[me]
    mode = m.held[byte]
    world = remember(world, me, held=put(m.held, byte, FREE))
    if mode == FREE or (m.leased and not (m.sharing and on("DROPPED_MEANWHILE"))):
        return [(None, world)]
    if on("UNLOCK_WAITS"):
        world = remember(world, me, unlocking=m.unlocking + ((byte, mode),))
    return [(mode, world)]


def begin_unlock(world, who, me, byte, mode):
    m = world.memory[me]
    if m.work != NOBODY:
        return []
    world = remember(world, me, work=who)
    if m.state is None:
        return [("read", world)]
    return [store_what_is_left(world, who, me, (byte, mode))]


def look_for_the_key(world, who, me, seen, subject):
    """For an unlock, or for others who ask."""
    locks, keys, _ = seen
    if is_leased_by(locks, me):
        world = remember(world, me, leased=True, state=locks, key=None)
        return [begin_sharing(world, who, me) if is_asked(subject) else store_what_is_left(world, who, me, subject)]
    if world.memory[me].work == who:
        world = learn(world, me, locks, keys)
    return [store_what_is_left(world, who, me, subject)]


def is_asked(subject):
    return isinstance(subject, frozenset)


def store_what_is_left(world, who, me, subject):
    m = world.memory[me]
    if m.leased or m.key is None or m.key[1] == m.held:
        world = without_work(world, who, me)
        return "done", ended(world, me, subject)
    return ("unlock", m.number, m.key, m.held), remember(world, me, number=m.number + 1)


def ended(world, me, subject):
    return answer(world, subject) if is_asked(subject) else unlocked(world, me, *subject)


def unlocked(world, me, byte, mode):
    left = list(world.memory[me].unlocking)
    if on("UNLOCK_WAITS"):
        left.remove((byte, mode))
    return remember(world, me, unlocking=tuple(left))


# ---- the answer of a step


def applied(world, who, me, step, subject):
    return [("noted", note(world, who, me, step, subject))]


def note(world, who, me, step, subject):
    m = world.memory[me]
    if m.stale == who:
        return answer(remember(world, me, stale=NOBODY), subject) if is_asked(subject) else world
    kind, number = step[0], step[1]
    world = remember(without_work(world, who, me), me, doubtful=())
    if kind == "lease":
        world = remember(world, me, leased=True, state=(LEASED, me, number), others=(), key=None)
        return granted(world, me, *subject)
    world = remember(world, me, key=(number, step[3]) if any(step[3]) else None)
    if kind == "unlock":
        return ended(world, me, subject)
    if kind == "lock":
        state = (SHARED, me, number) if on("LOCK_WRITES_TOKEN") else m.state
        return granted(remember(world, me, state=state), me, *subject)
    state = (SHARED, me, number) if on("LOCKS_STAYS") else None
    return answer(remember(world, me, leased=False, sharing=False, state=state, others=()), subject)


def failed(world, who, me, step, subject):
    """An error of the store: no run is under way any more, but an earlier one may have been applied."""
    m = world.memory[me]
    if m.stale == who:
        return [("error", remember(world, me, stale=NOBODY))]
    in_doubt = m.doubtful + m.wanted + (() if is_asked(subject) else (subject,))
    world = remember(world, me, work=NOBODY, sharing=False, wanted=(), doubtful=in_doubt)
    if step[0] == "lock" and on("ERROR_LESSENS"):
        byte, mode = subject
        in_doubt += ((byte, m.held[byte]),)
        world = remember(world, me, held=put(m.held, byte, min(mode, m.held[byte])), doubtful=in_doubt)
    if on("ERROR_KNOWS_NOTHING"):
        world = remember(world, me, leased=False, state=None)
    return [("error", unlocked(world, me, *subject) if step[0] == "unlock" and not is_asked(subject) else world)]


def decide(world, who, me, step, seen, subject):
    locks, keys, _ = seen
    if store.was_applied(me, step, locks, keys):
        stale = world.memory[me].stale == who
        world = note(world, who, me, step, subject)
        if step[0] != "lease" and not stale:
            world = learn(world, me, locks, keys)
        return [(True, world)]
    world = remember(world, me, work=NOBODY, sharing=False, wanted=())
    if not world.memory[me].leased:
        world = learn(world, me, locks, keys)
    return [(False, world)]


# ---- questions


def ask(world, who, me, other, waits):
    if other == me:  # it takes its own lease for another's (a rule is off): nobody asks itself
        return [(None, world)]
    return [(None, world._replace(questions=world.questions | {(who, other, waits)}))]


def hear(world, who, me, other):
    for asker, heard in world.answers:
        if asker == who:
            after = world._replace(answers=world.answers - {(asker, heard)})
            if heard == "gone":
                m = after.memory[me]  # what was read before the fence is read again
                after = remember(after, me, expired=m.expired | 1 << other, state=m.state if m.leased else None)
            return [(heard, after)]
    return []


def wait_for_a_change(world, _who, _me, other, seen, _waits):
    """Of the inode, or of what the other would do if it were asked again."""
    m = world.memory[other]
    same = m.alive and not is_in(world.expired, other) and not m.doubtful
    return [] if same and (world.locks, world.keys) == seen else [(None, world)]


def wake(world, who, me):
    m = world.memory[me]
    askers = frozenset(q for q in world.questions if q[1] == me)
    if not askers or (m.work != NOBODY and on("ONE_AT_A_TIME")):
        return []
    if m.leased:
        step, world = begin_sharing(world, who, me)
        return [((step, askers), world)]
    if not on("HOLDER_READS"):
        return [(("done", askers), answer(world, askers))]
    if m.work == NOBODY:
        world = remember(world, me, work=who)
    return [(("read", askers), world)]


def begin_sharing(world, who, me):
    m = world.memory[me]
    step = ("share", m.number, m.state, m.held)
    return step, remember(world, me, number=m.number + 1, work=who if m.work == NOBODY else m.work, sharing=True)


def answer(world, askers):
    asking = world.questions & frozenset(askers)
    told = frozenset((asker, "done") for asker, _, _ in asking)
    return world._replace(questions=world.questions - asking, answers=world.answers | told)


# ---- close, and the end of a client


def forget(world, _who, me):
    m = world.memory[me]
    if any(m.held):
        return [(None, world)]
    if not is_idle(m) and on("FORGOTTEN_WHEN_IDLE"):
        return []
    new = Memory(m.held, number=m.number, expired=m.expired, stale=m.work)
    new = new._replace(unlocking=m.unlocking, doubtful=m.doubtful)
    return [(None, world._replace(memory=put(world.memory, me, new)))]


def is_idle(m):
    """A key that could not be removed stays: it goes when another asks."""
    return m.work == NOBODY and (m.leased or m.key is None or m.doubtful != ())


def end(world, _who, me):
    m = world.memory[me]
    if any(m.held) or not is_idle(m):
        return []
    return [(None, remember(world, me, alive=False)._replace(expired=world.expired | 1 << me))]


ACTS = {
    "begin": begin,
    "look": look,
    "refuse": refuse,
    "drop": drop,
    "begin unlock": begin_unlock,
    "applied": applied,
    "decide": decide,
    "ask": ask,
    "hear": hear,
    "wait for a change": wait_for_a_change,
    "wake": wake,
    "look for the key": look_for_the_key,
    "failed": failed,
    "forget": forget,
    "end": end,
}
