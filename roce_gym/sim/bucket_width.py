"""Keeps the event queue's buckets as wide as holds a few events each.

A fabric's load decides how many events there are in a microsecond, and it changes: under an incast
most links are idle. Empty buckets cost the search for the next one, full ones cost sorting. The
width has no influence on results.
"""

from __future__ import annotations

from numpy import int64

from roce_gym.sim.jit import rare
from roce_gym.sim.types import NONE
from roce_gym.sim.wheel import put

LOOK_EVENTS = 8192
"""Events between two looks at the width: far more than there are in the queue of most fabrics."""
_MOST_SHIFT = 20
"""Widest: 1 us. A key has 23 bits for the time in a bucket."""


@rare
def adapt_width(s, core, events):
    """Chooses the width by the events since the last look. PRECONDITION: no bucket is current.

    Args:
        s, core: the state.
        events: handled so far.
    """
    params = s.params[0]
    count = events - core["width_events"]
    wanted = (core["now_ps"] - core["width_ps"]) * params["bucket_events"]
    shift = core["bucket_shift"]
    while shift < _MOST_SHIFT and count << (shift + 1) <= wanted:
        shift += 1
    while shift > params["least_shift"] and count << shift > 2 * wanted:
        shift -= 1
    if shift != core["bucket_shift"]:
        file_anew(s, core, shift)
    core["width_events"] = events
    core["width_ps"] = core["now_ps"]
    core["width_look"] = events + LOOK_EVENTS


@rare
def file_anew(s, core, shift):
    """Changes the width of buckets to 2^shift ps. PRECONDITION: no bucket is current."""
    first = NONE
    for index in range(s.bucket_head.size):
        slot = int64(s.bucket_head[index])
        s.bucket_head[index] = NONE
        while slot != NONE:
            following = int64(s.event_next[slot])
            s.event_next[slot] = first
            first = slot
            slot = following
    for word in range(s.bucket_bits.size):
        s.bucket_bits[word] = 0
    for word in range(s.bucket_words.size):
        s.bucket_words[word] = 0
    end_ps = core["bucket_ps"] + (1 << core["bucket_shift"])
    core["bucket_shift"] = shift
    core["bucket_ps"] = ((end_ps >> shift) - 1) << shift  # the next one holds end_ps
    core["horizon_ps"] = (s.bucket_head.size - 2) << shift
    farthest_ps = core["now_ps"] + core["horizon_ps"]
    while first != NONE:
        following = int64(s.event_next[first])
        if s.event_ps[first] > farthest_ps:  # a WAKE, which may come sooner (rules, section 6)
            s.event_ps[first] = farthest_ps
        put(s, core, first, s.event_ps[first])
        first = following
