"""Sorting what is left of the current bucket: keys of (time, slot), right-aligned in an array.

A key is (time - start of the bucket) << KEY_SHIFT | slot.
"""

from __future__ import annotations

from roce_gym.sim.jit import helper, rare
from roce_gym.sim.types import NONE

KEY_SHIFT = 40
SLOT_MASK = (1 << KEY_SHIFT) - 1
SORT_MARGIN = 8


def places(num_slots: int) -> int:
    """Length of `State.current`: a bucket may hold every slot, and sorting takes as much again."""
    return 2 * num_slots + SORT_MARGIN


@helper
def sort(keys, start, end):
    """Sorts a bucket, keys[start:end].

    Below `start`, as many places as there are keys are free, and SORT_MARGIN more.

    Most buckets have eight keys or fewer. Those go through a sorting network (Knuth, The Art of
    Computer Programming, volume 3, 5.3.4), which has no branch that a processor could guess wrong;
    free places take part with a key below all others.
    """
    count = end - start
    if count > 8:
        _sort_long(keys, start, end)
    elif count > 4:
        for i in range(end - 8, start):
            keys[i] = NONE
        _sort_8(keys, end)
    elif count > 1:
        for i in range(end - 4, start):
            keys[i] = NONE
        _sort_4(keys, end)


@helper
def _sort_4(keys, end):
    k0 = keys[end - 4]
    k1 = keys[end - 3]
    k2 = keys[end - 2]
    k3 = keys[end - 1]
    k0, k2 = min(k0, k2), max(k0, k2)
    k1, k3 = min(k1, k3), max(k1, k3)
    k0, k1 = min(k0, k1), max(k0, k1)
    k2, k3 = min(k2, k3), max(k2, k3)
    k1, k2 = min(k1, k2), max(k1, k2)
    keys[end - 4] = k0
    keys[end - 3] = k1
    keys[end - 2] = k2
    keys[end - 1] = k3


@helper
def _sort_8(keys, end):
    k0 = keys[end - 8]
    k1 = keys[end - 7]
    k2 = keys[end - 6]
    k3 = keys[end - 5]
    k4 = keys[end - 4]
    k5 = keys[end - 3]
    k6 = keys[end - 2]
    k7 = keys[end - 1]
    k0, k2 = min(k0, k2), max(k0, k2)
    k1, k3 = min(k1, k3), max(k1, k3)
    k4, k6 = min(k4, k6), max(k4, k6)
    k5, k7 = min(k5, k7), max(k5, k7)
    k0, k4 = min(k0, k4), max(k0, k4)
    k1, k5 = min(k1, k5), max(k1, k5)
    k2, k6 = min(k2, k6), max(k2, k6)
    k3, k7 = min(k3, k7), max(k3, k7)
    k0, k1 = min(k0, k1), max(k0, k1)
    k2, k3 = min(k2, k3), max(k2, k3)
    k4, k5 = min(k4, k5), max(k4, k5)
    k6, k7 = min(k6, k7), max(k6, k7)
    k2, k4 = min(k2, k4), max(k2, k4)
    k3, k5 = min(k3, k5), max(k3, k5)
    k1, k4 = min(k1, k4), max(k1, k4)
    k3, k6 = min(k3, k6), max(k3, k6)
    k1, k2 = min(k1, k2), max(k1, k2)
    k3, k4 = min(k3, k4), max(k3, k4)
    k5, k6 = min(k5, k6), max(k5, k6)
    keys[end - 8] = k0
    keys[end - 7] = k1
    keys[end - 6] = k2
    keys[end - 5] = k3
    keys[end - 4] = k4
    keys[end - 3] = k5
    keys[end - 2] = k6
    keys[end - 1] = k7


@rare
def _sort_long(keys, start, end):
    """Merge sort of runs of eight; the left one of two waits below the bucket."""
    first = end - ((end - start + 7) & ~7)
    for i in range(first, start):
        keys[i] = NONE
    for run_end in range(first + 8, end + 1, 8):
        _sort_8(keys, run_end)
    width = 8
    while width < end - first:
        right = end - width
        while right > first:
            left = max(first, right - width)
            if keys[right - 1] > keys[right]:
                _merge(keys, left, right, right + width, first)
            right -= 2 * width
        width *= 2


@helper
def _merge(keys, left, right, end, free_end):
    """Merges keys[left:right] and keys[right:end]; places below `free_end` are free."""
    a_end = free_end
    a = free_end - (right - left)
    for i in range(right - left):
        keys[a + i] = keys[left + i]
    b = right
    out = left
    while a < a_end and b < end:
        key_a = keys[a]
        key_b = keys[b]
        is_a = key_a < key_b
        keys[out] = key_a if is_a else key_b
        a += is_a
        b += not is_a
        out += 1
    while a < a_end:
        keys[out] = keys[a]
        a += 1
        out += 1


@helper
def precedes(order, a, b):
    """Whether key `a` comes before key `b` by time, then by the order of scheduling."""
    if a >> KEY_SHIFT != b >> KEY_SHIFT:
        return a < b
    return order[a & SLOT_MASK] < order[b & SLOT_MASK]


@rare
def sort_by_order(current, order, start):
    """Sorts by time, then by the order of scheduling."""
    for i in range(start + 1, current.size):
        key = current[i]
        j = i - 1
        while j >= start and precedes(order, key, current[j]):
            current[j + 1] = current[j]
            j -= 1
        current[j + 1] = key
