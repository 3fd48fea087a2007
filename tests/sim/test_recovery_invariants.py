"""What must hold for any routing, recovery, loss and change of cables."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.sim import types as t

REPAIRS = st.sampled_from(
    [(False, "go_back_n"), (True, "go_back_n"), (True, "selective_repeat"), (False, "go_back_0")]
)
POLICIES = st.sampled_from(["ecmp", "spray_random", "spray_round_robin", "adaptive", "flowlet"])


@settings(max_examples=40, deadline=None)
@given(
    policy=POLICIES,
    repair=REPAIRS,
    loss=st.sampled_from([0.0, 0.002, 0.02]),
    cut=st.booleans(),
    wait_us=st.sampled_from([0, 2, 50]),
    window=st.integers(4, 64),
    seed=st.integers(0, 2**32),
)
def test_everything_arrives_and_nothing_is_kept(policy, repair, loss, cut, wait_us, window, seed):
    """In spite of all, messages arrive, once each; afterwards all packet records are free again."""
    if repair[1] == "go_back_0":
        policy, loss = "ecmp", min(loss, 0.002)  # it may well never end otherwise
    events = [{"kind": "lossy", "between": [4, 6], "loss": loss}]
    if cut:
        events += [{"kind": "down", "between": [5, 7], "start_us": 7, "stop_us": 40}]
    scenario = validate_scenario(
        {
            "name": "property",
            "topology": {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 2, "spines": 2},
            "routing": {"policy": policy, "flowlet_gap_us": 1, "reroute_delay_us": 3},
            "nic": {
                "mtu_bytes": 1024,
                "ack_every": 4,
                "out_of_order": repair[0],
                "recovery": repair[1],
                "reorder_wait_us": wait_us,
                "reorder_window_packets": window,
                "retransmit_timeout_us": 200,
                "nack_interval_us": 30,
            },
            "preset": "pfc_only",
            "link_events": events,
            "tenants": [
                {
                    "name": "all",
                    "hosts": [0, 1, 2, 3],
                    "jobs": [{"kind": "all_to_all", "bytes": 150_000, "rounds": 2}],
                }
            ],
        }
    )
    fabric = Fabric(scenario, seed)
    delivered = np.zeros(len(fabric.plan.qps), np.int64)
    done = 0
    for _ in range(400):
        interval = fabric.advance(us=500)
        delivered += interval.delivered_bytes
        done += len(interval.completions)
        if done == 2 and not interval.outstanding_bytes.any():
            break
    state = fabric._state
    assert done == 2
    assert interval.failed_qps == 0
    assert (delivered == 2 * 37_500).all()
    assert (state.receiver["messages"] == 2).all()
    fabric.advance(us=1_000)
    assert (state.held["first"] == t.NONE).all()
    assert (state.resend["first"] == t.NONE).all()
    assert fabric._state.core[0]["packets_left"] == len(fabric._state.packet)


@settings(max_examples=15, deadline=None)
@given(gap_us=st.sampled_from([0.5, 5, 1_000]), seed=st.integers(0, 1_000))
def test_a_flowlet_keeps_its_way(gap_us, seed):
    """A flow without gaps stays on one cable however short the gap; ACKs are always by ECMP."""
    scenario = validate_scenario(
        {
            "name": "flowlet",
            "topology": {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 1, "spines": 4},
            "routing": {"policy": "flowlet", "flowlet_gap_us": gap_us},
            "preset": "pfc_only",
            "tenants": [
                {
                    "name": "one",
                    "hosts": [0, 1],
                    "jobs": [
                        {"kind": "flows", "flows": [{"src": 0, "dst": 1, "bytes": 10**6}]},
                    ],
                }
            ],
        }
    )
    fabric = Fabric(scenario, seed)
    interval = fabric.advance(us=500)
    up = np.flatnonzero(fabric.network.link_src == 2)
    assert np.count_nonzero(interval.tx_bytes[up, 0] > 10**6) == 1
    assert interval.nacks.sum() == 0


def test_a_short_gap_makes_flowlets_of_bursts():
    """Messages 10 us apart choose anew with a gap of 5 us, and never with one of 50 us."""

    def cables_used(gap_us):
        scenario = validate_scenario(
            {
                "name": "bursts",
                "topology": {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 1, "spines": 4},
                "routing": {"policy": "flowlet", "flowlet_gap_us": gap_us},
                "preset": "pfc_only",
                "tenants": [
                    {
                        "name": "one",
                        "hosts": [0, 1],
                        "jobs": [
                            {"kind": "incast", "bytes": 9_000, "degree": 1, "period_us": 20},
                        ],
                    }
                ],
            }
        )
        fabric = Fabric(scenario)
        interval = fabric.advance(us=2_000)
        up = np.flatnonzero(fabric.network.link_src == 3)
        return np.count_nonzero(interval.tx_bytes[up, 0] > 9_000)

    assert cables_used(5) == 4
    assert cables_used(50) == 1
