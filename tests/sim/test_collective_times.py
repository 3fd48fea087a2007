"""Collectives on an idle fabric: bytes of every link as in textbooks, and times within 3 % of what
latency and bandwidth allow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.units import PS_PER_S

GBPS = 100
MTU, HEADER, GAP = 4_096, 66, 20
DELAY_NS = 500
TOTAL = 16_000_000 * 21 // 20  # divisible by all that the cases divide it by
CHUNK = 1 << 16

BETA_PS = 8_000 / GBPS * (MTU + HEADER + GAP) / MTU
"""Of a byte, ps."""
PACKET_PS = (MTU + HEADER + GAP) * 8_000 / GBPS
ALPHA_PS = 2 * DELAY_NS * 1_000 + PACKET_PS
"""Through one switch, which takes a packet in before it sends it on."""


def run(operation, algorithm, n, topology=None, preset="pfc_only", chunk_bytes=CHUNK, **options):
    job = {"kind": "collective", "operation": operation, "algorithm": algorithm, "rounds": 1}
    raw = {
        "name": "idle",
        "topology": topology
        or {"kind": "star", "hosts": n, "host_rate_gbps": GBPS, "link_delay_ns": DELAY_NS},
        "nic": {
            "mtu_bytes": MTU,
            "header_bytes": HEADER,
            "interframe_gap_bytes": GAP,
            "ack_class": "acks",
            "cnp_class": "acks",
        },
        "preset": preset,
        "classes": [{"name": "data", "priority": 3}, {"name": "acks", "priority": 6}],
        "tenants": [
            {
                "name": "t",
                "traffic_class": "data",
                "hosts": list(range(n)),
                "jobs": [job | {"bytes": TOTAL, "chunk_bytes": chunk_bytes} | options],
            }
        ],
    }
    fabric = Fabric(validate_scenario(raw), seed=1)
    interval = fabric.advance(us=60_000)
    assert len(interval.completions) == 1
    (entry,) = interval.collectives
    assert entry["bytes"] == TOTAL
    assert interval.dropped_packets.sum() == 0
    payload = interval.tx_bytes[:, 0] - HEADER * interval.tx_packets[:, 0]
    return fabric, int(entry["end_ps"] - entry["start_ps"]), payload


def up_and_down(fabric, payload):
    up = fabric.network.host_link
    return payload[up].tolist(), payload[up ^ 1].tolist()


PIECE = CHUNK * BETA_PS
"""Time of a piece on a link."""

# operation, algorithm, ranks, bytes a rank sends and gets at most, least time beyond those bytes
ONE_SHARE = [
    ("all_reduce", "ring", 8, 2 * 7 / 8, 14 * ALPHA_PS),
    ("all_reduce", "ring", 7, 2 * 6 / 7, 12 * ALPHA_PS),
    ("all_gather", "ring", 8, 7 / 8, 7 * ALPHA_PS),
    ("reduce_scatter", "ring", 8, 7 / 8, 7 * ALPHA_PS),
    ("all_reduce", "halving_doubling", 8, 2 * 7 / 8, 6 * ALPHA_PS),
    ("all_gather", "halving_doubling", 8, 7 / 8, 3 * ALPHA_PS),
    ("reduce_scatter", "halving_doubling", 8, 7 / 8, 3 * ALPHA_PS),
    ("all_gather", "direct", 8, 7 / 8, ALPHA_PS),
    ("reduce_scatter", "direct", 8, 7 / 8, ALPHA_PS),
    ("all_to_all", "direct", 8, 7 / 8, ALPHA_PS),
    ("all_to_all", "pairwise", 8, 7 / 8, 7 * ALPHA_PS),
]


@pytest.mark.parametrize(("operation", "algorithm", "n", "share", "latency_ps"), ONE_SHARE)
def test_every_link_carries_the_same_share(operation, algorithm, n, share, latency_ps):
    fabric, time_ps, payload = run(operation, algorithm, n)
    up, down = up_and_down(fabric, payload)
    expected = share * TOTAL
    assert min(up + down) >= expected
    assert max(up + down) <= expected * 1.001  # messages are whole bytes
    least = expected * BETA_PS
    assert least <= time_ps <= 1.03 * (least + latency_ps)


@pytest.mark.parametrize("preset", ["connectx_default", "pfc_only"])
@pytest.mark.parametrize("n", [3, 6, 12, 24])
def test_halving_folds_what_is_beyond_a_power_of_two_at_full_rate(n, preset):
    """Nobody has two senders at once, so that neither ECN nor PFC slows anybody down."""
    fabric, time_ps, payload = run("all_reduce", "halving_doubling", n, preset=preset)
    up, down = up_and_down(fabric, payload)
    assert sorted(up) == sorted(down)
    power = 2 ** (n.bit_length() - 1)
    least = (2 + 2 * (power - 1) / power) * TOTAL * BETA_PS
    steps = 2 + 2 * (n.bit_length() - 1)
    assert least <= time_ps <= 1.03 * least + steps * (ALPHA_PS + 2 * PIECE)


@pytest.mark.parametrize("n", [4, 7])
def test_a_chain_is_as_long_as_its_first_piece_takes(n):
    fabric, time_ps, payload = run("broadcast", "ring", n)
    up, down = up_and_down(fabric, payload)
    assert up == [*down[1:], 0]
    assert down[0] == 0
    assert TOTAL <= min(down[1:]) <= max(down[1:]) <= TOTAL * 1.001
    least = TOTAL * BETA_PS + (n - 1) * ALPHA_PS + (n - 2) * PIECE
    assert 0.999 * least <= time_ps <= 1.03 * least


@pytest.mark.parametrize("n", [4, 8, 9])
def test_two_trees_broadcast_at_full_rate(n):
    fabric, time_ps, payload = run("broadcast", "tree", n)
    up, down = up_and_down(fabric, payload)
    assert down[0] == 0
    assert TOTAL <= min(down[1:]) <= max(down[1:]) <= TOTAL * 1.001
    assert sum(up) == sum(down)
    depth = 2 + math.ceil(math.log2(n - 1))
    least = TOTAL * BETA_PS
    assert least <= time_ps <= 1.03 * (least + depth * (ALPHA_PS + 2 * PIECE))


@pytest.mark.parametrize("preset", ["connectx_default", "pfc_only"])
@pytest.mark.parametrize(
    ("n", "channels"), [(3, 1), (4, 1), (8, 1), (9, 1), (16, 1), (64, 1), (16, 4)]
)
def test_two_trees_reduce_at_full_rate(n, channels, preset):
    """A rank inside one tree, and a leaf of the other, sends twice the bytes; the roots, once.

    All settings are the defaults; the queues of the parents, to which two children send, stay so
    short that neither ECN nor PFC slows anybody down.
    """
    fabric, time_ps, payload = run(
        "all_reduce", "tree", n, preset=preset, chunk_bytes=None, channels=channels
    )
    up, down = up_and_down(fabric, payload)
    assert up == down
    assert 2 * (n - 1) * TOTAL <= sum(up) <= 2 * (n - 1) * TOTAL * 1.001
    if n % 2 == 0:
        assert sorted(round(sent / TOTAL) for sent in up) == [1, 1, *[2] * (n - 2)]
    least = max(up) * BETA_PS
    assert least <= time_ps <= 1.03 * least


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter"])
def test_layers_use_nvlink_inside_and_rails_across(operation):
    g, m = 4, 3
    topology = {
        "kind": "rail_optimised",
        "nodes": m,
        "gpus_per_node": g,
        "host_rate_gbps": GBPS,
        "nvlink_gbps": 800,
        "link_delay_ns": DELAY_NS,
    }
    fabric, time_ps, payload = run(operation, "hierarchical", g * m, topology)
    twice = 2 if operation == "all_reduce" else 1
    places = fabric.network.num_places
    up, down = (np.array(side) for side in up_and_down(fabric, payload))
    assert (up == down).all()
    across, inside = twice * (m - 1) / m * TOTAL / g, twice * (g - 1) / g * TOTAL
    for part, expected in ((up[:places], across), (up[places:], inside)):
        assert expected <= part.min() <= part.max() <= expected * 1.001
    least = across * BETA_PS + inside * BETA_PS * GBPS / 800
    latency = twice * (m - 1 + g - 1) * 2 * ALPHA_PS
    assert least <= time_ps <= 1.03 * (least + latency)


@pytest.mark.parametrize(
    "options",
    [
        {"channels": 4},
        {"qps_per_connection": 4},
        {"qps_per_connection": 2, "split_data_on_qps": True},
        {"slices": 2, "channels": 2},
        {"in_flight": 2, "bytes": TOTAL},
    ],
)
def test_channels_and_queue_pairs_share_a_link_without_loss(options):
    count = options.get("in_flight", 1)
    if count > 1:
        options = {k: v for k, v in options.items() if k != "in_flight"}
    fabric, time_ps, payload = run("all_reduce", "ring", 8, **options)
    up, _ = up_and_down(fabric, payload)
    least = 2 * 7 / 8 * TOTAL * BETA_PS
    assert max(up) <= 2 * 7 / 8 * TOTAL * 1.001
    assert least <= time_ps <= 1.03 * (least + 14 * ALPHA_PS)


def test_collectives_in_flight_share_the_links():
    """Two at once take as long as one of twice the size, and end together."""
    raw_time = []
    for count, size in ((2, TOTAL // 2), (1, TOTAL)):
        job = {"kind": "collective", "operation": "all_reduce", "bytes": size, "rounds": 1}
        raw = {
            "name": "idle",
            "topology": {"kind": "star", "hosts": 4, "host_rate_gbps": GBPS},
            "preset": "pfc_only",
            "tenants": [{"name": "t", "hosts": [0, 1, 2, 3], "jobs": [job | {"in_flight": count}]}],
        }
        interval = Fabric(validate_scenario(raw), seed=1).advance(us=20_000)
        assert len(interval.collectives) == count
        assert set(interval.collectives["call"].tolist()) == set(range(count))
        raw_time.append(int(interval.completions[0]["end_ps"]))
    assert abs(raw_time[0] / raw_time[1] - 1) < 0.01


def test_a_ring_of_the_graph_is_the_ring_of_the_loop():
    """The same messages at the same times, to the picosecond, where only numbers differ."""
    times = []
    ring = {"kind": "ring_all_reduce", "bytes": 400_000, "chunks_per_step": 4}
    graph = {"kind": "collective", "operation": "all_reduce", "algorithm": "ring"}
    graph |= {"bytes": 400_000, "chunk_bytes": 20_000}
    for job in (ring, graph):
        job = job | {"compute_us": 10, "jitter": 0.3, "rounds": 8}
        raw = {
            "name": "same",
            "topology": {"kind": "star", "hosts": 5, "host_rate_gbps": GBPS},
            "preset": "pfc_only",
            "tenants": [{"name": "t", "hosts": [0, 1, 2, 3, 4], "jobs": [job]}],
        }
        interval = Fabric(validate_scenario(raw), seed=3).advance(us=2_000)
        times.append(interval.completions[["index", "start_ps", "end_ps"]].tolist())
    assert len(times[0]) == 8
    assert times[0] == times[1]


def test_stages_of_a_pipeline_overlap_as_its_schedule_says():
    """Without communication time, 1F1B takes (m + p - 1) (forward + backward)."""
    stages, batches, forward, backward = 4, 6, 100.0, 200.0
    job = {"kind": "pipeline", "bytes": 1, "micro_batches": batches, "rounds": 1}
    job |= {"forward_us": forward, "backward_us": backward}
    for schedule in ("1f1b", "gpipe"):
        raw = {
            "name": "stages",
            "topology": {"kind": "star", "hosts": stages, "host_rate_gbps": 400},
            "tenants": [
                {
                    "name": "t",
                    "hosts": list(range(stages)),
                    "jobs": [job | {"schedule": schedule}],
                }
            ],
        }
        interval = Fabric(validate_scenario(raw), seed=1).advance(us=10_000)
        ideal_us = (batches + stages - 1) * (forward + backward)
        (entry,) = interval.completions
        time_us = int(entry["end_ps"]) / (PS_PER_S / 1e6)
        assert ideal_us <= time_us <= ideal_us * 1.02
        assert interval.delivered_bytes.sum() == 2 * batches * (stages - 1)


def test_a_ring_of_16384_ranks_goes_on_as_one_of_64():
    """Every step of a ring on one switch takes as long, however many take part."""
    progress = []
    for n in (64, 16_384):
        job = {"kind": "collective", "operation": "all_reduce", "bytes": 2_000 * n}
        raw = {
            "name": "large",
            "topology": {"kind": "star", "hosts": n},
            "switch": {"buffer_bytes": 2**31 - 1},  # reserve and headroom of every port
            "tenants": [{"name": "t", "hosts": {"kind": "packed", "count": n}, "jobs": [job]}],
        }
        got = Fabric(validate_scenario(raw), seed=1).advance(us=20).delivered_bytes
        assert got.min() == got.max()
        progress.append((len(got), int(got.max())))
    assert progress[0] == (64, progress[1][1]) and progress[1][0] == 16_384
    assert progress[0][1] >= 6 * 2_000
