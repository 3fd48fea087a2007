"""NCCL-tests' definitions, by hand."""

import pytest

from roce_gym.workload.bandwidth import (
    algorithm_bandwidth_bps,
    bus_bandwidth_bps,
    bus_factor,
    kind_of_rounds,
)
from roce_gym.workload.plan import JobPlan


@pytest.mark.parametrize(
    ("operation", "ranks", "factor"),
    [
        ("all_reduce", 2, 1.0),
        ("all_reduce", 8, 1.75),
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 4, 0.75),
        ("all_to_all", 4, 0.75),
        ("broadcast", 4, 1.0),
    ],
)
def test_factors(operation, ranks, factor):
    assert bus_factor(operation, ranks) == factor


def test_a_gigabyte_in_a_tenth_of_a_second():
    assert algorithm_bandwidth_bps(10**9, 10**11) == pytest.approx(80e9)
    assert bus_bandwidth_bps("all_reduce", 4, 10**9, 10**11) == pytest.approx(120e9)


def test_rounds_of_loops_are_collectives():
    qps = ((0, 1, 2, 3), (4, 5, 6, 7))
    ring = JobPlan("ring_all_reduce", 0, (0, 1, 2, 3), qps, message_bytes=10, chunks=3)
    assert kind_of_rounds(ring) == ("all_reduce", "ring", 4, 240)
    mesh = JobPlan("all_to_all", 0, (0, 1, 2), ((0, 1), (2, 3), (4, 5)), message_bytes=10)
    assert kind_of_rounds(mesh) == ("all_to_all", "direct", 3, 30)
    assert kind_of_rounds(JobPlan("incast", 0, (0, 1), ((0, 1),))) is None
