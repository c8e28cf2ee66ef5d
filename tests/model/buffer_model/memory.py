# SPDX-License-Identifier: LGPL-2.1-or-later
"""What clients do in their memories, each in one moment, and the questions that they send each other.

An action returns [(reply, world)]: none while it waits."""

from .rules import on
from .world import (
    BLOCKS,
    NOTHING,
    closed,
    is_fenced,
    last_own,
    lost,
    made_durable,
    newer,
    put,
    remember,
    written,
)


def act(world, client, request):
    return ACTIONS[request[0]](world, client, world.memory[client], *request[1:])


def nothing_on_its_way(m):
    return not any(m.flying) and not any(m.direct)


# ---- the buffer


def buffer(world, client, m, block, value):
    if (m.releasing and on("NOTHING_NEW_IN")) or m.direct[block] or m.acquiring:
        return []
    if not m.holds:
        return [(False, world)]
    world = remember(world, client, dirty=put(m.dirty, block, value), size=max(m.size, block + 1))
    return [(True, written(world, client, block, value))]


def take_dirty(world, client, m, block):
    if not m.dirty[block] or (m.flying[block] and on("NO_OVERTAKING")):
        return []
    flying = put(m.flying, block, m.flying[block] + (m.dirty[block],))
    return [(m.dirty[block], remember(world, client, dirty=put(m.dirty, block, 0), flying=flying))]


def written_out(world, client, m, block, value):
    left = tuple(other for other in m.flying[block] if other != value)
    return remember(world, client, flying=put(m.flying, block, left))


def enter_direct(world, client, m, block, value):
    if m.releasing or m.acquiring or m.direct[block]:
        return []
    if on("DIRECT_WAITS") and (m.dirty[block] or m.flying[block]):
        return []
    if not m.holds:
        return [(False, world)]
    world = remember(world, client, direct=put(m.direct, block, value))
    return [(True, written(world, client, block, value))]


def direct_done(world, client, m, block):
    return remember(world, client, direct=put(m.direct, block, 0), size=max(m.size, block + 1))


def own_view(world, _client, m, block):
    if m.acquiring == 2 or (m.releasing and on("RELEASE_ENDS_MEMORY")):
        return []
    if not m.holds:
        return [(None, world)]
    return [((m.dirty[block] or (m.flying[block] or (0,))[-1], m.size), world)]


# ---- what is stored


def bytes_are_out(world, client, m):
    """Of a size that has changed; None: there is nothing to store."""
    if m.stepping or m.releasing:
        return []
    waits_for_flying = on("FSYNC_WAITS") or m.size != m.stored
    if on("SIZE_AFTER_BYTES") and (any(m.dirty) or (waits_for_flying and any(m.flying))):
        return []
    if not m.holds or m.size == m.stored:
        return [(None, world)]
    return [(m.size, remember(world, client, stepping=True))]


def size_stored(world, client, _m, size):
    return remember(world, client, stepping=False, stored=size)


def begin_fsync(world, client, m):
    if m.acquiring or m.releasing:
        return []
    own = tuple(last_own(world, client, b) for b in range(BLOCKS))
    return [(own if m.holds else None, world)]


def fsynced(world, _client, _m, covered):
    return [(None, made_durable(world, covered))]


# ---- release


def wake(world, client, m):
    found = []
    for question in world.questions:
        who, kind, holder = question
        if holder != client or m.acquiring == 2 or m.releasing:
            continue
        idle = m.writers == 0
        is_obeyed = kind == "recall" or on("IDLE_IS_ASKED" if idle else "WRITER_STORES")
        if not m.holds or not is_obeyed:
            found.append((("answered", who), remember(without(world, who), client, unseen=False)))
        elif kind == "recall" or idle:
            found.append((("release", who), remember(world, client, releasing=True, unseen=False)))
        else:
            found.append((("store", who), remember(world, client, unseen=False)))
    if m.holds and m.writers == 0 and not m.releasing:
        found.append((("release", None), remember(world, client, releasing=True)))
    return found


def all_is_out(world, client, m, asker):
    """The size to store. None: the bytes of a file without names are thrown away, and the lease is forgotten."""
    if m.stepping:
        return []
    is_open = m.writers or (on("THROWN_AWAY_CLOSED") and (m.handles or m.opening))
    if m.throws_away and not is_open:
        if on("IN_FLIGHT_IS_DEFINITE") and not nothing_on_its_way(m):
            return []
        nothing_left = {"dirty": NOTHING, "flying": ((),) * BLOCKS, "size": m.stored}
        world = remember(world, client, **nothing_left)
        if on("FORGOTTEN_STAYS"):
            return [(None, released(world, client, m, asker))]
        return [(m.stored, remember(world, client, stepping=True))]
    if on("RELEASE_WRITES_OUT") and (any(m.dirty) or not nothing_on_its_way(m)):
        return []
    return [(m.size, remember(world, client, stepping=True))]


def released(world, client, _m, asker):
    world = remember(
        world, client, holds=False, releasing=False, stepping=False, size=0, stored=0, unseen=False
    )
    return without(world, asker)


# ---- acquire


def begin_acquiring(world, client, m):
    if m.acquiring or m.releasing:
        return []
    if m.holds:
        return [(False, world)]
    return [(True, remember(world, client, acquiring=1))]


def stop_acquiring(world, client, _m):
    return [(None, remember(world, client, acquiring=0))]


def lease_taken(world, client, _m, size):
    return remember(world, client, acquiring=0, holds=True, size=size, stored=size)


def adopt(world, client, _m, size):
    return [(None, lease_taken(world, client, None, size))]


def memory_has_settled(world, _client, m):
    return [] if m.acquiring or m.releasing else [(None, world)]


# ---- questions


def without(world, asker):
    questions = frozenset(question for question in world.questions if question[0] != asker)
    return world._replace(questions=questions)


def ask(world, _client, _m, who, kind, holder):
    return [(None, world._replace(questions=world.questions | {(who, kind, holder)}))]


def wait_for_answer(world, _client, _m, who, holder):
    if is_fenced(world, holder):
        return [("gone", without(world, who))]
    if who in world.silent:
        return [("silent", without(world, who)._replace(silent=world.silent - {who}))]
    asked = any(question[0] == who for question in world.questions)
    return [] if asked else [("done", world)]


def answer(world, client, _m, who):
    if on("ANSWERS_WHAT_CAME_BEFORE"):
        return [(None, without(world, who))]
    return [(None, world._replace(questions=frozenset(q for q in world.questions if q[2] != client)))]


# ---- handles, and what operations must see


def close(world, client, m):
    return [(None, closed(remember(world, client, writers=m.writers - 1), client))]


def close_reader(world, client, m):
    return [(None, remember(world, client, handles=m.handles - 1))]


def newest_for(world, client):
    if is_fenced(world, client):
        return world.durable
    return tuple(newer(world, b, last_own(world, client, b), world.published[b]) for b in range(BLOCKS))


def begin_look(world, client, m, who, stat):
    if any(known == who for known, _ in world.floors):
        return [(None, world)]
    world = world._replace(floors=world.floors | {(who, newest_for(world, client))})
    return [(None, world if stat else remember(world, client, opening=m.opening + 1))]


def end_look(world, client, m, who, stat):
    floors = frozenset(floor for floor in world.floors if floor[0] != who)
    world = world._replace(floors=floors)
    return world if stat else remember(world, client, opening=m.opening - 1)


def was_read(world, client, m, who, block, value):
    floor = dict(world.floors)[who][block]
    wrong = ""
    if value not in world.order[block]:
        wrong = f"block {block} reads {value}, which nobody wrote"
    elif newer(world, block, value, floor) != value and not is_fenced(world, client):
        wrong = f"block {block} reads {value}; {floor} was closed (or its own) before it began"
    return [(None, end_look(world, client, m, who, False)._replace(wrong=wrong))]


def told_size(world, client, m, who, size, answer_of_holder):
    floor = world.durable if answer_of_holder == "silent" else dict(world.floors)[who]
    wrong = ""
    if any(value and block >= size for block, value in enumerate(floor)) and not is_fenced(world, client):
        wrong = f"told size {size}; {floor} was closed (or its own) before it began"
    return [(None, end_look(world, client, m, who, True)._replace(wrong=wrong))]


def stale(world, client, m, who, stat):
    """The kernel looks the name up again."""
    wrong = "" if world.name == "none" else "stale, and it has a name"
    return [(None, end_look(world, client, m, who, stat)._replace(wrong=wrong))]


def wrong(world, _client, _m, words):
    return [(None, world._replace(wrong=words))]


def holds(world, _client, m):
    return [] if m.acquiring or m.releasing else [(m.holds, world)]


def begin_rename(world, client, _m, who):
    if any(known == who for known, _ in world.renames):
        return [(None, world)]
    return [(None, world._replace(renames=world.renames | {(who, newest_for(world, client))}))]


def rename_fails(world, _client, _m, who):
    return [(None, world._replace(renames=frozenset(one for one in world.renames if one[0] != who)))]


# ---- unlink and collector


def unlinked(world, client, _m):
    return remember(world, client, throws_away=True) if not on("THROWN_AWAY_WHEN_DEAD") else world


def name_is_gone(world, _client, _m):
    return [(None, world)] if world.name == "none" else []


def needs(m):
    has_bytes = m.holds or any(m.dirty) or not nothing_on_its_way(m) or m.acquiring
    return bool(m.writers or m.handles or m.opening or (on("LEASE_IS_NEED") and has_bytes))


def poll(world, _client, _m, other):
    m = world.memory[other]
    if not m.alive or is_fenced(world, other):
        return [("gone", world)]
    if not needs(m):
        return [("not needed", world)]
    may_throw_away = m.holds and (m.unseen or not on("THROWN_AWAY_UNSEEN"))
    found = [("needed", remember(world, other, throws_away=may_throw_away))]
    if world.evictions and other == 0:  # it does not answer
        evicted = world._replace(fenced=world.fenced | 1 << other, evictions=world.evictions - 1)
        found.append(("gone", lost(evicted, other)))
    return found


def not_needed_any_more(world, _client, _m, other):
    m = world.memory[other]
    return [(None, world)] if not m.alive or is_fenced(world, other) or not needs(m) else []


def fence(world, _client, _m, other):
    return [(None, world._replace(fenced=world.fenced | 1 << other))]


ACTIONS = {
    "buffer": buffer,
    "take dirty": take_dirty,
    "enter direct": enter_direct,
    "own view": own_view,
    "bytes are out": bytes_are_out,
    "begin fsync": begin_fsync,
    "fsynced": fsynced,
    "wake": wake,
    "all is out": all_is_out,
    "begin acquiring": begin_acquiring,
    "stop acquiring": stop_acquiring,
    "adopt": adopt,
    "memory has settled": memory_has_settled,
    "ask": ask,
    "wait for answer": wait_for_answer,
    "answer": answer,
    "close": close,
    "close reader": close_reader,
    "begin look": begin_look,
    "was read": was_read,
    "told size": told_size,
    "stale": stale,
    "wrong": wrong,
    "holds": holds,
    "begin rename": begin_rename,
    "rename fails": rename_fails,
    "name is gone": name_is_gone,
    "poll": poll,
    "not needed any more": not_needed_any_more,
    "fence": fence,
}


# ---- what memory notes with the answer of the store


def note(world, client, noted, applied):
    m = world.memory[client]
    kind, *arguments = noted
    if kind in ("size stored", "released") and not applied and not is_fenced(world, client):
        if kind == "size stored" or world.inode.lease == client + 1:
            world = world._replace(wrong="a step under the lease is refused, and nobody fenced its holder")
    if kind in ("lease taken", "taken over") and not applied:
        return remember(world, client, acquiring=0)
    if kind == "taken over":
        return remember(world, client, acquiring=2)
    return NOTES[kind](world, client, m, *arguments)


NOTES = {
    "written out": written_out,
    "direct done": direct_done,
    "size stored": size_stored,
    "released": released,
    "lease taken": lease_taken,
    "unlinked": unlinked,
}
