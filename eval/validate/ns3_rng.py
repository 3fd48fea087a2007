"""The random numbers of an ns-3 run: where in its generator the draws for marking begin.

ns-3 has one generator, MRG32k3a (L'Ecuyer, "Good parameters and implementations for combined
multiple recursive random number generators", Operations Research 47, 1999). It is cut into streams
of 2^127 numbers and those into substreams of 2^76 (L'Ecuyer, Simard, Chen, Kelton, "An
object-oriented random-number package with many long streams and substreams", Operations Research
50, 2002). A seed fills all words of the first state, every random variable takes the next stream
when it is created, and the run number picks the substream.
"""

from __future__ import annotations

from functools import cache

M1, M2 = 4_294_967_087, 4_294_944_443
"""The moduli of the two components."""

Matrix = tuple[tuple[int, ...], ...]
State = tuple[int, int, int, int, int, int]

_STEP_1: Matrix = ((0, 1, 0), (0, 0, 1), (-810_728, 1_403_580, 0))
_STEP_2: Matrix = ((0, 1, 0), (0, 0, 1), (-1_370_589, 0, 527_612))
_STREAM, _SUBSTREAM = 2**127, 2**76
_STREAMS_A_NODE, _STREAMS_BEFORE = 9, 2


def stream_of(num_nodes: int) -> int:
    """The stream that a reference run with so many hosts and switches marks from.

    Found by search over streams: for each topology there is one with which a repeated run equals
    the reference's to the nanosecond, and this formula gives it for all of them, from 4 nodes to
    152. Nine streams a node and two more precede it, taken by what the reference creates earlier.
    """
    return _STREAMS_A_NODE * num_nodes + _STREAMS_BEFORE


def initial_state(seed: int, stream: int, run: int = 1) -> State:
    """The generator's six words before the first draw.

    Args:
        seed: fills all words; 1 and above, below :data:`M2`.
        stream: counts from 0.
        run: the substream; ns-3 counts from 1, and 0 is the start of the stream.

    Raises:
        ValueError: outside of these ranges.
    """
    if not (0 < seed < M2 and stream >= 0 and run >= 0):
        raise ValueError(f"seed = {seed}, stream = {stream}, run = {run} is not allowed")
    return advance((seed, seed, seed, seed, seed, seed), stream * _STREAM + run * _SUBSTREAM)


def advance(state: State, steps: int) -> State:
    """The state after so many draws, however many these are."""
    a, b, c = _apply(_power(_STEP_1, steps, M1), state[:3], M1)
    d, e, f = _apply(_power(_STEP_2, steps, M2), state[3:], M2)
    return a, b, c, d, e, f


@cache
def _power(matrix: Matrix, exponent: int, modulus: int) -> Matrix:
    if exponent == 0:
        return ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    half = _power(matrix, exponent // 2, modulus)
    square = _multiply(half, half, modulus)
    return _multiply(square, matrix, modulus) if exponent % 2 else square


def _multiply(left: Matrix, right: Matrix, modulus: int) -> Matrix:
    columns = tuple(zip(*right, strict=True))
    return tuple(_apply(columns, row, modulus) for row in left)


def _apply(matrix: Matrix, vector: tuple[int, ...], modulus: int) -> tuple[int, ...]:
    return tuple(sum(x * y for x, y in zip(row, vector, strict=True)) % modulus for row in matrix)
