"""What holds whatever the schedulers, shapers and pools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queueing_cases import Queueing, make_queueing_case
from test_hand_computed import LINE, PAYLOAD, build, flow, flows, tenant
from test_invariants import digest, step_through
from tiny_cases import make_case

from roce_gym.fabric import Fabric
from roce_gym.sim import types as t
from roce_gym.units import mbps_to_bps

examples = settings(max_examples=30, deadline=None, derandomize=True)
numbers = st.integers(1_000, 100_000)
cases = numbers.map(make_queueing_case)


class Lossless(Queueing):
    """All classes lossless, with the headroom the simulator needs."""

    def add(self, raw: dict[str, Any], network: Any) -> None:
        for c in raw["classes"]:
            c["lossless"] = True
            c.pop("headroom_bytes", None)
            c.pop("headroom_rate_delays", None)
        raw["nic"]["ack_ignores_pause"] = False
        super().add(raw, network)
        raw["switch"].pop("headroom_pool_bytes", None)


@examples
@given(numbers)
def test_lossless_classes_with_headroom_never_drop(number):
    """Whatever the loads, thresholds, pools, weights and rates, also while they change."""
    for _, interval in step_through(make_case(number, extra=Lossless(number))):
        assert interval.dropped_packets.sum() == 0


@examples
@given(cases)
def test_a_port_with_something_to_send_is_busy(case):
    """Work conservation: only pauses and missing tokens keep a switch port idle."""
    classes = len(case.scenario.classes) + 1
    for fabric, _ in step_through(case, steps=40):
        state, now = fabric._state, fabric.now_ps
        first = int(state.params[0]["first_bucket"]) + len(state.tenant_bucket)
        for link in np.flatnonzero(case.network.link_src >= case.network.num_hosts):
            if state.link[link]["free_ps"] > now:
                continue
            for c in range(1, classes):
                port = link * classes + c
                if state.queue[port]["head"] == t.NONE or (state.link[link]["paused"] >> c) & 1:
                    continue
                assert len(state.bucket) and now < state.event_ps[first + port] < t.FOREVER


@examples
@given(cases)
def test_books_of_pools_and_shared_headroom(case):
    """Pools equal a recount, and with headroom and reserve they fit into the buffer."""
    net = case.network
    for fabric, _ in step_through(case):
        state = fabric._state
        ingress = state.ingress.reshape(net.num_links, -1)[:, 1:]
        beyond = np.maximum(ingress["bytes"] - ingress["reserved"], 0)
        pools = int(state.params[0]["num_pools"])
        shared = state.switch["shared"].reshape(-1, pools)
        sizes = state.switch["pool"].reshape(-1, pools)
        for number in range(net.num_switches):
            into = net.link_dst == net.num_hosts + number
            for pool in range(pools):
                own = state.class_pool[1:] == pool
                assert shared[number, pool] == beyond[into][:, own].sum()
            private = ingress["reserved"][into].sum()
            if case.scenario.switch.headroom_pool_bytes is None:
                private += ingress["headroom"][into].sum()
            else:
                used = ingress["headroom_used"][into].sum()
                assert state.xoff[number]["used"] == used <= state.xoff[number]["size"]
                private += state.xoff[number]["size"]
            assert private + sizes[number].sum() <= case.scenario.switch.buffer_bytes


@examples
@given(cases)
def test_shaped_classes_never_exceed_their_rate(case):
    """Between any two changes of settings: at most the rate times the time, and a burst."""
    names = [c.name for c in case.scenario.classes]
    at_switch = case.network.link_src >= case.network.num_hosts
    since, sent = 0, 0
    changes = {time for time, _ in case.settings}
    for fabric, interval in step_through(case, steps=30):
        if interval.start_ps in changes:
            since, sent = interval.start_ps, 0
        sent = sent + interval.tx_bytes[at_switch]
        chosen = dict(reversed([s for s in case.settings if s[0] <= interval.start_ps]))
        current = chosen[max(chosen)]
        for i, name in enumerate(names):
            shaper = current.classes[name].shaper
            if shaper is None or shaper.rate_gbps == 0:
                continue
            rate = mbps_to_bps(shaper.rate_gbps * 1e3)
            most = (fabric.now_ps - since) * rate / 8e12 + shaper.burst_bytes + 1
            assert sent[:, i].max(initial=0) <= most


@examples
@given(
    rate=st.floats(0.1, 99),
    burst=st.integers(4_158, 100_000),
    sizes=st.lists(st.integers(1, 30_000), min_size=1, max_size=12),
    steps=st.lists(st.integers(1, 40_000_000), min_size=2, max_size=20),
)
def test_shaped_tenants_never_exceed_their_rate(rate, burst, sizes, steps):
    """In every window between two looks at the fabric, however many QPs compete for tokens."""
    fabric = build(
        tenants=[
            tenant("a", [flows(*(flow(0, 1, size) for size in sizes))])
            | {"shaper": {"rate_gbps": rate, "burst_bytes": burst}},
            tenant("b", [flows(flow(0, 2, 100 * PAYLOAD))], (0, 2), traffic_class="other"),
        ],
        classes=[{}, {"name": "other", "priority": 1}],
        nic={"ack_class": "other"},
    )
    sent, times = [0], [0]
    for step in steps:
        interval = fabric.advance(ps=step)
        sent.append(sent[-1] + int(interval.tx_bytes[0, 0]))
        times.append(fabric.now_ps)
    rate_bps = round(rate * 1e9)
    for i, begin in enumerate(times):
        for j in range(i + 1, len(times)):
            # A frame that starts at the end of the window before belongs to that window.
            most = (times[j] - begin) * rate_bps / 8e12 + burst + 1
            assert sent[j] - sent[i] <= most
    assert rate_bps < LINE


@examples
@given(numbers)
def test_snapshots_are_exact(number):
    case = make_queueing_case(number)
    fabric = Fabric(case.scenario, case.seed, network=case.network, plan=case.plan)
    fabric.advance(ps=case.end_ps // 20)
    snapshot = fabric.snapshot()
    runs = []
    for _ in range(2):
        fabric.restore(snapshot)
        runs.append([digest(fabric.advance(ps=case.end_ps // 9)) for _ in range(3)])
    assert runs[0] == runs[1]


@pytest.mark.nojit
def test_equal_weights_are_fair_to_every_class():
    names = "abcdefgh"
    fabric = build(
        classes=[
            {"name": n, "priority": i, "scheduling": "dwrr", "weight": 7}
            for i, n in enumerate(names)
        ],
        tenants=[tenant(n, [flows(flow(0, 1, 90 * PAYLOAD))], traffic_class=n) for n in names],
    )
    sent = fabric.advance(us=200).tx_packets[0]
    assert sent.max() - sent.min() <= 1
