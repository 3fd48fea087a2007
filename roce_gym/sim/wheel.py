"""Event queue: a timing wheel whose buckets are sorted when they become current.

An event is a *slot*: a fixed small number for "arrival on link 7", "wake-up of host 3" and so on,
so every event exists at most once and the queue never needs memory. Slots are numbered by kind,
then id, which makes (time, slot) the order of `docs/rules.md` section 2, whatever the order of
insertion:

    [0, L)          ARRIVAL(link)
    [L, 2L)         TX_DONE(link)
    [2L, 2L + H)    WAKE(host)
    from 2L + H     TIMER: a slot for each QP, member and job

Buckets are 1,024 ps wide. Far timers wait in a binary heap until their bucket becomes current.
"""

from __future__ import annotations

import numpy as np

from roce_gym.sim.jit import helper
from roce_gym.sim.types import FOREVER, NONE

BUCKET_SHIFT = 10
BUCKET_PS = 1 << BUCKET_SHIFT
BUCKET_MASK = BUCKET_PS - 1
KEY_SHIFT = 40
SLOT_MASK = (1 << KEY_SHIFT) - 1

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
def schedule(s, slot, due_ps):
    """Adds an event that is not scheduled. PRECONDITION: now <= due_ps <= now + horizon."""
    s.event_ps[slot] = due_ps
    bucket = due_ps >> BUCKET_SHIFT
    if bucket == s.core[0]["bucket"]:
        _insert_current(s, ((due_ps & BUCKET_MASK) << KEY_SHIFT) | slot)
        return
    index = bucket & (s.bucket_head.size - 1)
    head = s.bucket_head[index]
    s.event_next[slot] = head
    s.bucket_head[index] = slot
    if head == NONE:
        word = index >> 5
        s.bucket_bits[word] |= 1 << (index & 31)
        s.bucket_words[word >> 5] |= 1 << (word & 31)


@helper
def _insert_current(s, key):
    """Inserts a key among what is left of the sorted current bucket."""
    cursor = s.core[0]["cursor"]
    end = s.current.size
    place = cursor - 1
    while place + 1 < end and s.current[place + 1] < key:
        s.current[place] = s.current[place + 1]
        place += 1
    s.current[place] = key
    s.core[0]["cursor"] = cursor - 1


@helper
def cancel(s, slot):
    """Removes a scheduled event."""
    due_ps = s.event_ps[slot]
    s.event_ps[slot] = FOREVER
    bucket = due_ps >> BUCKET_SHIFT
    if bucket == s.core[0]["bucket"]:
        return  # its key stays in `current` and is skipped
    index = bucket & (s.bucket_head.size - 1)
    head = s.bucket_head[index]
    if head == slot:
        s.bucket_head[index] = s.event_next[slot]
        if s.event_next[slot] == NONE:
            _clear_bit(s, index)
        return
    while s.event_next[head] != slot:
        head = s.event_next[head]
    s.event_next[head] = s.event_next[slot]


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
def next_bucket(s):
    """The next bucket that holds an event, counted from time 0; FOREVER if there is none."""
    core = s.core[0]
    bucket = _next_in_wheel(s, core["bucket"])
    if core["num_far"] > 0:
        far = s.far[0]["due_ps"] >> BUCKET_SHIFT
        if far < bucket:
            bucket = far
    return bucket


@helper
def open_bucket(s, bucket):
    """Makes a bucket current: takes its events and due far timers, sorted."""
    core = s.core[0]
    core["bucket"] = bucket
    end = s.current.size
    cursor = end
    index = bucket & (s.bucket_head.size - 1)
    slot = s.bucket_head[index]
    if slot != NONE:
        while slot != NONE:
            cursor -= 1
            s.current[cursor] = ((s.event_ps[slot] & BUCKET_MASK) << KEY_SHIFT) | slot
            slot = s.event_next[slot]
        s.bucket_head[index] = NONE
        _clear_bit(s, index)
    while core["num_far"] > 0 and s.far[0]["due_ps"] >> BUCKET_SHIFT <= bucket:
        slot = s.far[0]["slot"]
        cursor -= 1
        s.current[cursor] = ((s.far[0]["due_ps"] & BUCKET_MASK) << KEY_SHIFT) | slot
        pop_far(s)
    core["cursor"] = cursor
    _sort(s.current, cursor, end)


@helper
def _sort(keys, start, end):
    """Shell sort (gaps 57, 10, 1): short buckets are the rule, nearly sorted ones common."""
    count = end - start
    gap = 57 if count > 114 else (10 if count > 20 else 1)
    while gap > 0:
        for i in range(start + gap, end):
            key = keys[i]
            j = i - gap
            while j >= start and keys[j] > key:
                keys[j + gap] = keys[j]
                j -= gap
            keys[j + gap] = key
        gap = 10 if gap == 57 else (1 if gap == 10 else 0)


@helper
def _before(a, b):
    return a["due_ps"] < b["due_ps"] or (a["due_ps"] == b["due_ps"] and a["slot"] < b["slot"])


@helper
def push_far(s, slot, due_ps):
    """Adds a timer that may lie beyond the wheel. Each slot is in the heap at most once."""
    core = s.core[0]
    s.event_ps[slot] = due_ps
    if due_ps >> BUCKET_SHIFT <= core["bucket"]:
        _insert_current(s, ((due_ps & BUCKET_MASK) << KEY_SHIFT) | slot)
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
