"""Cables that change during a run: detours, unreachable hosts, snapshots, bad input."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from roce_gym.config import validate_scenario
from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric

pytestmark = pytest.mark.nojit

CUT = {"kind": "down", "between": [4, 6], "start_us": 20, "stop_us": 60}


def raw(events, **changes):
    """Two leaves (4, 5) of two hosts, two spines (6, 7); four flows from leaf to leaf."""
    pairs = [(0, 2), (1, 3), (2, 0), (3, 1)] * 2
    scenario = {
        "name": "small",
        "topology": {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 2, "spines": 2},
        "nic": {"mtu_bytes": 4096, "retransmit_timeout_us": 30},
        "routing": {"reroute_delay_us": 5},
        "preset": "pfc_only",
        "link_events": events,
        "tenants": [
            {
                "name": "flows",
                "hosts": [0, 1, 2, 3],
                "jobs": [
                    {
                        "kind": "flows",
                        "flows": [{"src": a, "dst": b, "bytes": 200_000} for a, b in pairs],
                    }
                ],
            }
        ],
    }
    for name, value in changes.items():
        section, _, key = name.partition("__")
        scenario[section] = (scenario.get(section) or {}) | {key: value}
    return scenario


def fabric_of(events, seed=0, **changes):
    return Fabric(validate_scenario(raw(events, **changes)), seed)


def paths(fabric):
    rows = fabric._state.path.reshape(len(fabric.plan.qps), 2, -1)
    return [[tuple(int(i) for i in row if i >= 0) for row in pair] for pair in rows]


def cut_links(fabric):
    ends = list(zip(fabric.network.link_src, fabric.network.link_dst, strict=True))
    return {i for i, end in enumerate(ends) if set(end) == set(CUT["between"])}


def test_only_broken_paths_change_and_come_back():
    fabric = fabric_of([CUT])
    links, planned = cut_links(fabric), paths(fabric)
    broken = [[not links.isdisjoint(path) for path in pair] for pair in planned]
    assert 0 < np.sum(broken) < np.size(broken)
    fabric.advance(us=24.9)
    assert paths(fabric) == planned
    fabric.advance(us=0.2)
    for old, new, was_broken in zip(planned, paths(fabric), broken, strict=True):
        for one, other, changed in zip(old, new, was_broken, strict=True):
            assert (one != other) == changed
            assert links.isdisjoint(other)
            assert (one[0], one[-1], len(one)) == (other[0], other[-1], len(other))
    fabric.advance(us=39.8)
    assert paths(fabric) != planned
    fabric.advance(us=0.2)
    assert paths(fabric) == planned


@pytest.mark.parametrize("policy", ["ecmp", "spray_random", "adaptive", "flowlet"])
def test_all_arrives_in_spite_of_a_cut(policy):
    any_order = {} if policy == "ecmp" else {"nic__out_of_order": True}
    fabric = fabric_of([CUT | {"stop_us": None}], routing__policy=policy, **any_order)
    interval = fabric.advance(us=3_000)
    assert len(interval.completions) == 8
    assert interval.lost_packets.sum() > 0
    assert interval.unreachable_qps == interval.failed_qps == 0


def test_a_shorter_delay_loses_less():
    lost = [
        int(fabric_of([CUT], routing__reroute_delay_us=delay).advance(us=500).lost_packets.sum())
        for delay in (0, 3, 30)
    ]
    assert lost == sorted(lost) and lost[0] < lost[-1]


@pytest.mark.parametrize("policy", ["ecmp", "spray_round_robin"])
def test_a_route_to_nowhere_ends_in_a_status_and_partial_results(policy):
    """Leaf 4 loses both cables up: its flows fail one after the other; others have arrived."""
    cuts = [CUT | {"between": [4, spine], "stop_us": None} for spine in (6, 7)]
    scenario = raw(cuts, routing__policy=policy, nic__retry_limit=2, nic__out_of_order=True)
    flows = scenario["tenants"][0]["jobs"][0]["flows"]
    flows += [{"src": 0, "dst": 1, "bytes": 10_000}]
    fabric = Fabric(validate_scenario(scenario))
    interval = fabric.advance(us=2_000)
    assert interval.unreachable_qps == 8
    assert interval.failed_qps == 8
    apart = [(qp.src, qp.dst) != (0, 1) for qp in fabric.plan.qps]
    assert interval.qp_failed.tolist() == interval.qp_unreachable.tolist() == apart
    assert interval.completions["index"].tolist() == [8]
    assert 0 < interval.delivered_bytes.sum() < 8 * 200_000


def test_the_cable_of_a_host_has_no_detour():
    fabric = fabric_of([{"kind": "down", "between": [0, 4], "start_us": 1}])
    interval = fabric.advance(us=10)
    assert interval.unreachable_qps == interval.qp_unreachable.sum() == 4


def test_snapshots_hold_what_cables_are_like():
    events = [CUT, {"kind": "slow", "between": [5, 7], "rate_gbps": 10, "start_us": 30}]
    events += [{"kind": "lossy", "between": [3, 5], "loss": 0.1, "start_us": 10, "stop_us": 90}]
    for policy in ("ecmp", "spray_random"):
        fabric = fabric_of(events, routing__policy=policy, nic__out_of_order=True)
        fabric.advance(us=27)
        snapshot, twin = fabric.snapshot(), copy.deepcopy(fabric)
        first = fabric.advance(us=400)
        fabric.restore(snapshot)
        for again in (fabric.advance(us=400), twin.advance(us=400)):
            assert np.array_equal(first.completions, again.completions)
            assert np.array_equal(first.tx_packets, again.tx_packets)
            assert np.array_equal(first.lost_packets, again.lost_packets)


def test_steps_do_not_matter():
    """However a run is cut into intervals, changes come at their own times."""
    one, other = (fabric_of([CUT], nic__out_of_order=True) for _ in range(2))
    whole = one.advance(us=300)
    parts = [other.advance(us=7.5) for _ in range(40)]
    assert np.array_equal(whole.completions, np.concatenate([p.completions for p in parts]))
    assert np.array_equal(whole.tx_packets, sum(p.tx_packets for p in parts))


def test_a_change_of_a_cable_forgets_its_pauses():
    """Leaf 5 pauses leaf 4's only way; when the cable is back, packets flow again."""
    scenario = raw([], switch__buffer_bytes=600_000)
    scenario["topology"] |= {"spines": 1}
    scenario["nic"]["retransmit_timeout_us"] = 500
    flows = [{"src": src, "dst": 2, "bytes": 400_000} for src in (0, 1, 0, 1)]
    scenario["tenants"][0]["jobs"][0]["flows"] = flows
    scenario["link_events"] = [{"kind": "down", "between": [6, 5], "start_us": 80, "stop_us": 95}]
    scenario["link_events"] += [{"kind": "slow", "between": [5, 2], "rate_gbps": 10}]
    fabric = Fabric(validate_scenario(scenario))
    fabric.advance(us=79.999)
    cable = next(
        link
        for link in range(fabric.network.num_links)
        if fabric._state.link["paused"][link] and fabric.network.link_src[link] == 6
    )
    fabric.advance(us=0.002)
    assert fabric._state.link["paused"][cable] == 0
    assert len(fabric.advance(us=8_000).completions) == 4


def test_tables_are_small():
    """A thousand hosts on 64 leaves, half of them in use: a number for each switch and leaf."""
    scenario = validate_scenario(
        {
            "name": "large",
            "topology": {"kind": "leaf_spine", "leaves": 64, "hosts_per_leaf": 16, "spines": 16},
            "routing": {"policy": "adaptive"},
            "tenants": [
                {
                    "name": "ring",
                    "hosts": list(range(1024)),
                    "jobs": [{"kind": "ring_all_reduce", "bytes": 10**6}],
                }
            ],
        }
    )
    state = Fabric(scenario)._state
    assert len(state.hop_table) == 80 * 64
    assert len(state.hop_set) == 1 + 64 + 16 * 64  # up: one set a leaf; down: one a leaf and spine
    assert state.hop_table.nbytes + state.hop_set.nbytes + state.hop_link.nbytes < 50_000


def test_nothing_is_kept_that_is_not_used():
    state = Fabric(validate_scenario(raw([])))._state
    for name in ("route", "hop_table", "hop_set", "choice", "held", "resend", "span"):
        assert len(getattr(state, name)) == 1


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"between": [4, 99]}, ["link_events.0.between", "node 99", "0 … 7"]),
        ({"between": [4, 5]}, ["link_events.0.between", "4 and 5", "0, 1, 6, 7"]),
        ({"cable": 1}, ["link_events.0.cable = 1", "1 cable(s)"]),
        ({"start_us": 60}, ["link_events.0", "stop_us = 60", "start_us = 60"]),
        ({"kind": "bent"}, ["link_events.0.kind", "'bent'", "down", "slow", "lossy"]),
        ({"kind": "lossy", "loss": 1.5}, ["link_events.0.loss", "1.5"]),
        ({"kind": "slow"}, ["link_events.0.rate_gbps", "missing"]),
    ],
)
def test_bad_events(event, words):
    with pytest.raises(ConfigError) as error:
        fabric_of([CUT | event])
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"routing__policy": "random"}, ["routing.policy", "'random'", "ecmp", "flowlet"]),
        ({"routing__flowlet_gap_us": 0}, ["routing.flowlet_gap_us", "0"]),
        ({"nic__recovery": "go_back_1"}, ["nic.recovery", "'go_back_1'", "selective_repeat"]),
        ({"nic__recovery": "selective_repeat"}, ["nic", "selective_repeat", "out_of_order = true"]),
        (
            {"nic__recovery": "go_back_0", "nic__out_of_order": True},
            ["nic", "go_back_0", "out_of_order = false"],
        ),
        (
            {"nic__out_of_order": True, "nic__reorder_window_packets": 4},
            ["reorder_window_packets = 4", "ack_every = 16"],
        ),
        ({"simulator__tie_order": "scheduled"}, ["tie_order", "link_events", "'id'"]),
    ],
)
def test_bad_settings(changes, words):
    scenario = raw([CUT], **changes)
    if "nic__recovery" in changes and changes["nic__recovery"] == "go_back_0":
        scenario["nic"]["out_of_order"] = True
    with pytest.raises(ConfigError) as error:
        validate_scenario(scenario)
    for word in words:
        assert word in str(error.value)


def test_parallel_cables_are_told_apart(tmp_path):
    """Two cables between switches 2 and 3: the event is about the second one."""
    file = tmp_path / "topology.txt"
    rows = ["0 2", "1 3", "2 3", "2 3"]
    lines = ["4 2 4", "2 3", *(f"{row} 100Gbps 0.001ms 0" for row in rows)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    scenario = raw([{"kind": "lossy", "loss": 0.5, "between": [3, 2], "cable": 1}])
    scenario["topology"] = {"kind": "hpcc_file", "path": str(file)}
    scenario["tenants"][0]["hosts"] = [0, 1]
    scenario["tenants"][0]["jobs"] = [{"kind": "ring_all_reduce", "bytes": 1000}]
    fabric = Fabric(validate_scenario(scenario))
    assert np.flatnonzero(fabric._state.link["loss"]).tolist() == [6, 7]
