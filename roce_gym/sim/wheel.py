"""Event queue: a timing wheel whose buckets are sorted when they become current.

An event is a *slot*: a fixed small number for "arrival on link 7", "wake-up of host 3" and so on,
so every event exists at most once and the queue never needs memory. Slots are numbered by kind,
then id, which makes (time, slot) the order of `docs/rules.md` section 2, whatever the order of
insertion:

    [0, L)          ARRIVAL(link)
    [L, 2L)         TX_DONE(link)
    [2L, 2L + H)    WAKE(host)
    from 2L + H     TIMER: a slot for each QP, member and job, for each QP if there is reordering
                    and each host if there are credits; then those of PFC (pfc_timers.py), then for
                    each token bucket

For comparison with simulators that run events of one time in the order in which they were
scheduled, ties can go by `State.event_order` instead (`SimulatorConfig.tie_order`).

A bucket is 2^bucket_shift ps wide; the width follows the load (`bucket_width.py`) and has no
influence on results. Far timers wait in a binary heap until
their bucket becomes current.
"""

from __future__ import annotations

import numpy as np
from numpy import int64

from roce_gym.sim.handle import prefetch
from roce_gym.sim.jit import helper, rare
from roce_gym.sim.sorting import KEY_SHIFT, precedes, sort, sort_by_order
from roce_gym.sim.types import FOREVER, NONE

_DE_BRUIJN = 0x077CB531
_LOW_32 = 0xFFFFFFFF
_BIT_INDEX = np.zeros(32, np.int64)
for _i in range(32):
    _BIT_INDEX[((_DE_BRUIJN << _i) & _LOW_32) >> 27] = _i


@helper
def lowest_bit(word):
    """Index of the lowest set bit of a non-zero word of 32 bits (de Bruijn multiplication)."""
    return _BIT_INDEX[(((word & -word) * _DE_BRUIJN) & _LOW_32) >> 27]


@helper
def _is_current(core, due_ps):
    return due_ps < core["bucket_ps"] + (1 << core["bucket_shift"])


@helper
def schedule(s, slot, due_ps):
    """Adds an event that is not scheduled. PRECONDITION: now <= due_ps <= now + horizon.

    Where ties go by the order of scheduling, the caller has set `event_order`.
    """
    core = s.core[0]
    s.event_ps[slot] = due_ps
    if _is_current(core, due_ps):
        _insert_current(s, core, ((due_ps - core["bucket_ps"]) << KEY_SHIFT) | slot)
    else:
        put(s, core, slot, due_ps)


@helper
def put(s, core, slot, due_ps):
    """Puts an event into its bucket, which is not the current one."""
    index = (due_ps >> core["bucket_shift"]) & (s.bucket_head.size - 1)
    head = s.bucket_head[index]
    s.event_next[slot] = head
    s.bucket_head[index] = slot
    if head == NONE:
        word = index >> 5
        s.bucket_bits[word] |= 1 << (index & 31)
        s.bucket_words[word >> 5] |= 1 << (word & 31)


@helper
def next_order(s):
    """The next place in the order of scheduling."""
    core = s.core[0]
    core["sequence"] += 1
    return core["sequence"]


@helper
def _insert_current(s, core, key):
    """Inserts a key among what is left of the sorted current bucket."""
    cursor = core["cursor"]
    core["cursor"] = cursor - 1
    if not s.plain and s.params[0]["scheduled_order"] == 1:
        _insert_by_order(s.current, s.event_order, cursor, key)
        return
    end = s.current.size
    place = cursor - 1
    while place + 1 < end and s.current[place + 1] < key:
        s.current[place] = s.current[place + 1]
        place += 1
    s.current[place] = key


@rare
def _insert_by_order(current, order, cursor, key):
    end = current.size
    place = cursor - 1
    while place + 1 < end and precedes(order, current[place + 1], key):
        current[place] = current[place + 1]
        place += 1
    current[place] = key


@helper
def cancel(s, slot):
    """Removes a scheduled event."""
    core = s.core[0]
    due_ps = s.event_ps[slot]
    s.event_ps[slot] = FOREVER
    if _is_current(core, due_ps):
        _take_from_current(s, core, ((due_ps - core["bucket_ps"]) << KEY_SHIFT) | slot)
        return
    index = (due_ps >> core["bucket_shift"]) & (s.bucket_head.size - 1)
    head = int64(s.bucket_head[index])
    if head == slot:
        s.bucket_head[index] = s.event_next[slot]
        if s.event_next[slot] == NONE:
            _clear_bit(s, index)
        return
    while s.event_next[head] != slot:
        head = int64(s.event_next[head])
    s.event_next[head] = s.event_next[slot]


@helper
def _take_from_current(s, core, key):
    """Takes a key out of the current bucket."""
    place = core["cursor"]
    held = s.current[place]
    while held != key:
        place += 1
        following = s.current[place]
        s.current[place] = held
        held = following
    core["cursor"] += 1


@helper
def _clear_bit(s, index):
    word = index >> 5
    s.bucket_bits[word] &= ~(1 << (index & 31))
    if s.bucket_bits[word] == 0:
        s.bucket_words[word >> 5] &= ~(1 << (word & 31))


@helper
def _next_in_wheel(s, bucket):
    """The first non-empty bucket after `bucket`, counted from time 0; FOREVER if none."""
    size = s.bucket_head.size
    start = (bucket + 1) & (size - 1)
    word = start >> 5
    bits = s.bucket_bits[word] & ~((1 << (start & 31)) - 1)
    if bits != 0:
        index = (word << 5) + lowest_bit(bits)
        return bucket + 1 + ((index - start) & (size - 1))
    group = word >> 5
    groups = s.bucket_words.size
    words = s.bucket_words[group] & ~((1 << (word & 31)) - 1) & ~(1 << (word & 31))
    for _ in range(groups + 1):
        if words != 0:
            word = (group << 5) + lowest_bit(words)
            index = (word << 5) + lowest_bit(s.bucket_bits[word])
            return bucket + 1 + ((index - start) & (size - 1))
        group += 1
        if group == groups:
            group = 0
        words = s.bucket_words[group]
    return FOREVER


@helper
def next_bucket_ps(s, core):
    """Start of the next bucket that holds an event; FOREVER if there is none."""
    shift = core["bucket_shift"]
    bucket = _next_in_wheel(s, core["bucket_ps"] >> shift)
    if core["num_far"] > 0:
        far = s.far[0]["due_ps"] >> shift
        if far < bucket:
            bucket = far
    return bucket << shift if bucket < FOREVER else FOREVER


@helper
def open_bucket(s, core, start_ps):
    """Makes a bucket current: takes its events and due far timers, sorted."""
    core["bucket_ps"] = start_ps
    end = s.current.size
    cursor = end
    index = (start_ps >> core["bucket_shift"]) & (s.bucket_head.size - 1)
    slot = int64(s.bucket_head[index])
    num_links = s.params[0]["num_links"]
    if slot != NONE:
        while slot != NONE:
            cursor -= 1
            s.current[cursor] = ((s.event_ps[slot] - start_ps) << KEY_SHIFT) | slot
            if slot < 2 * num_links:
                prefetch(s.link, slot if slot < num_links else slot - num_links)
            slot = int64(s.event_next[slot])
        s.bucket_head[index] = NONE
        _clear_bit(s, index)
    while core["num_far"] > 0 and _is_current(core, s.far[0]["due_ps"]):
        slot = s.far[0]["slot"]
        cursor -= 1
        s.current[cursor] = ((s.far[0]["due_ps"] - start_ps) << KEY_SHIFT) | slot
        pop_far(s)
    core["cursor"] = cursor
    if not s.plain and s.params[0]["scheduled_order"] == 1:
        sort_by_order(s.current, s.event_order, cursor)
    else:
        sort(s.current, cursor, end)


@helper
def _before(a, b):
    return a["due_ps"] < b["due_ps"] or (a["due_ps"] == b["due_ps"] and a["slot"] < b["slot"])


@helper
def push_far(s, slot, due_ps):
    """Adds a timer that may lie beyond the wheel. Each slot is in the heap at most once."""
    core = s.core[0]
    s.event_ps[slot] = due_ps
    if not s.plain and s.params[0]["scheduled_order"] == 1:
        s.event_order[slot] = next_order(s)
    if _is_current(core, due_ps):
        _insert_current(s, core, ((due_ps - core["bucket_ps"]) << KEY_SHIFT) | slot)
        return
    i = core["num_far"]
    core["num_far"] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        up = s.far[parent]
        if up["due_ps"] < due_ps or (up["due_ps"] == due_ps and up["slot"] < slot):
            break
        s.far[i]["due_ps"] = up["due_ps"]
        s.far[i]["slot"] = up["slot"]
        i = parent
    s.far[i]["due_ps"] = due_ps
    s.far[i]["slot"] = slot


@helper
def pop_far(s):
    """Removes the first timer of the heap."""
    core = s.core[0]
    last = core["num_far"] - 1
    core["num_far"] = last
    due_ps = s.far[last]["due_ps"]
    slot = s.far[last]["slot"]
    i = 0
    child = 1
    while child < last:
        if child + 1 < last and _before(s.far[child + 1], s.far[child]):
            child += 1
        low = s.far[child]
        if due_ps < low["due_ps"] or (due_ps == low["due_ps"] and slot < low["slot"]):
            break
        s.far[i]["due_ps"] = low["due_ps"]
        s.far[i]["slot"] = low["slot"]
        i = child
        child = 2 * i + 1
    s.far[i]["due_ps"] = due_ps
    s.far[i]["slot"] = slot


@rare
def pull_far(s, slot, due_ps):
    """Moves a timer that is scheduled to an earlier time."""
    core = s.core[0]
    if _is_current(core, s.event_ps[slot]):
        _take_from_current(s, core, ((s.event_ps[slot] - core["bucket_ps"]) << KEY_SHIFT) | slot)
    else:
        i = 0
        while s.far[i]["slot"] != slot:
            i += 1
        _remove_far(s, i)
    push_far(s, slot, due_ps)


@helper
def _remove_far(s, i):
    """Takes an entry out of the heap: the ones above it move down, and the first is taken."""
    while i > 0:
        parent = (i - 1) >> 1
        s.far[i]["due_ps"] = s.far[parent]["due_ps"]
        s.far[i]["slot"] = s.far[parent]["slot"]
        i = parent
    pop_far(s)
