"""Counter-based random numbers: a draw depends on (seed, stream, id, counter) and nothing else.

No state is kept, so the order in which events are handled cannot change a draw, and two settings
compared on one seed see the same draws (common random numbers). The mixing function is the
finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014).

For comparison with ns-3 there is also its own sequential generator, MRG32k3a (L'Ecuyer, "Good
parameters and implementations for combined multiple recursive random number generators",
Operations Research 47, 1999).
"""

from __future__ import annotations

import numpy as np

from roce_gym.sim.jit import helper, rare

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MUL_1 = np.uint64(0xBF58476D1CE4E5B9)
_MUL_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_ONE = np.uint64(1)
_UNIT = 2.0**-53
_M1, _M2 = 4294967087, 4294944443


@helper
def _mix(z):
    z = (z ^ (z >> _S30)) * _MUL_1
    z = (z ^ (z >> _S27)) * _MUL_2
    return z ^ (z >> _S31)


@helper
def _absorb(state, value):
    return _mix(state + (np.uint64(value) + _ONE) * _GOLDEN)


@helper
def uniform(seed, stream, ident, counter):
    """A float64 in [0, 1).

    Args:
        seed: uint64 of the run.
        stream: what the draw is for (`types.STREAM_…`), int.
        ident: non-negative int, e.g. a queue.
        counter: non-negative int, e.g. packets that left the queue before.
    """
    bits = _absorb(_absorb(_absorb(np.uint64(seed), stream), ident), counter)
    return float(bits >> _S11) * _UNIT


@rare
def next_mrg32k3a(state):
    """The next float64 in (0, 1) of MRG32k3a.

    Args:
        state: shape (6,), int64, three words of each component [in/out].
    """
    first = (1403580 * state[1] - 810728 * state[0]) % _M1
    second = (527612 * state[5] - 1370589 * state[3]) % _M2
    state[0], state[1], state[2] = state[1], state[2], first
    state[3], state[4], state[5] = state[4], state[5], second
    difference = first - second
    if difference <= 0:
        difference += _M1
    return difference / (_M1 + 1.0)
