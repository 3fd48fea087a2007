import numpy as np
import pytest

from eval.validate.ns3_rng import advance, initial_state, stream_of
from roce_gym.sim.rng import next_mrg32k3a

PACKAGE_SEED = (12345,) * 6
"""With which the published package of L'Ecuyer et al. starts."""

draw = getattr(next_mrg32k3a, "py_func", next_mrg32k3a)


def test_draws__published():
    state = np.array(PACKAGE_SEED, np.int64)
    published = [0.1270111220, 0.3185275654, 0.3091860156, 0.8258468629, 0.2216299158]
    assert [draw(state) for _ in published] == pytest.approx(published, abs=1e-10)


def test_advance__as_many_draws():
    state = np.array(PACKAGE_SEED, np.int64)
    for _ in range(35):
        draw(state)
    assert tuple(state) == advance(PACKAGE_SEED, 35)


@pytest.mark.parametrize(
    ("stream", "run", "published"),
    [
        (0, 0, PACKAGE_SEED),
        (1, 0, (3692455944, 1366884236, 2968912127, 335948734, 4161675175, 475798818)),
        (2, 0, (1015873554, 1310354410, 2249465273, 994084013, 2912484720, 3876682925)),
        (0, 1, (870504860, 2641697727, 884013853, 339352413, 2374306706, 3651603887)),
    ],
)
def test_initial_state__published(stream, run, published):
    assert initial_state(12345, stream, run) == published


@pytest.mark.parametrize("split", [0, 1, 5, 2**76, 2**127 + 3])
def test_advance__in_two_jumps(split):
    total = 7 * 2**127 + 2**76
    there = advance(advance((3,) * 6, split), total - split)
    assert there == advance((3,) * 6, total) == initial_state(3, stream=7)


def test_stream():
    assert stream_of(num_nodes=4) == 38


@pytest.mark.parametrize(
    ("seed", "stream", "run"), [(0, 1, 1), (2**32, 1, 1), (1, -1, 1), (1, 1, -1)]
)
def test_initial_state__out_of_range(seed, stream, run):
    with pytest.raises(ValueError, match="is not allowed"):
        initial_state(seed, stream, run)
