import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import make_interval, parts

from roce_gym.fabric import Fabric
from roce_gym.observation import CLASS_SIGNALS, TENANT_SIGNALS, Observation
from roce_gym.scenario_file import load_scenario

SCENARIO, NETWORK, PLAN = parts()
EYES = Observation(SCENARIO, NETWORK, PLAN, ("first", "second"))
QUIET = make_interval(SCENARIO, NETWORK, PLAN)
UP, DOWN = 0, 1  # links of host 0 to and from the switch


def see(knobs=(0, 0), **fields):
    """Observation by name of a 100 us interval."""
    interval = make_interval(SCENARIO, NETWORK, PLAN, **fields)
    return dict(zip(EYES.names, EYES(interval, knobs).tolist(), strict=True))


def table(kind=np.int64, **entries):
    """An array (L, C) of zeros with `entries` `link_class=value`."""
    out = np.zeros((NETWORK.num_links, 2), kind)
    for place, value in entries.items():
        link, cls = place.removeprefix("at").split("_")
        out[int(link), int(cls)] = value
    return out


def log_scale(x, unit, top):
    return np.log(1 + x / unit) / np.log(1 + top / unit)


def test_names_and_space():
    assert EYES.names == (
        *(f"class/{c}/{s}" for c in ("gold", "lead") for s in CLASS_SIGNALS),
        *(f"tenant/{t}/{s}" for t in ("ring", "burst") for s in TENANT_SIGNALS),
        "fabric/buffer",
        "knob/first",
        "knob/second",
    )
    assert EYES.space.shape == (len(EYES.names),) and EYES.space.dtype == np.float32


def test_quiet():
    seen = see(knobs=(-1, 0.5))
    ones = {f"tenant/{t}/{s}" for t in ("ring", "burst") for s in ("rate_mean", "rate_min")}
    for name, value in seen.items():
        assert value == (1.0 if name in ones else 0.75 if name == "knob/second" else 0.0), name


def test_queues__switch_ports_only():
    queues = table(at1_0=20_000, at3_0=5_000, at0_1=500_000)
    seen = see(queue_max_bytes=queues, queue_mean_bytes=queues / 2)
    assert seen["class/gold/queue_max"] == pytest.approx(log_scale(0.02, 0.01, 1))
    assert seen["class/gold/queue_mean"] == pytest.approx(log_scale(0.01, 0.01, 1))
    assert seen["class/lead/queue_max"] == 0


def test_marks_and_drops():
    sent = table(at1_0=30, at3_0=10, at0_0=1000, at1_1=5)
    marks = table(at1_0=6, at3_0=4)
    seen = see(tx_packets=sent, ecn_marked_packets=marks, dropped_packets=table(at0_1=1))
    assert seen["class/gold/marked_fraction"] == pytest.approx(0.25)
    assert seen["class/lead/marked_fraction"] == 0
    assert seen["class/gold/drops"] == 0
    assert seen["class/lead/drops"] == pytest.approx(log_scale(10_000, 1e3, 1e8))


def test_pauses():
    seen = see(
        pause_frames=table(at0_0=3, at2_0=3), paused_ps=table(at0_0=60_000_000, at2_0=30_000_000)
    )
    # 6 frames in 100 us at 6 ports: 10,000 a second and port.
    assert seen["class/gold/pause_frames"] == pytest.approx(log_scale(1e4, 30, 1e5))
    assert seen["class/gold/paused_max"] == pytest.approx(0.6)
    assert seen["class/gold/paused_mean"] == pytest.approx(0.15)
    assert seen["class/lead/paused_max"] == 0


def test_tenants():
    burst = [i for i, pair in enumerate(PLAN.qps) if pair.tenant == 1]
    assert len(burst) == 3
    zeros = np.zeros(len(PLAN.qps), np.int64)
    delivered, cnps, outstanding = zeros.copy(), zeros.copy(), zeros.copy()
    rates = np.full(len(PLAN.qps), 100_000_000_000)
    delivered[burst] = 100_000
    cnps[burst] = 1
    outstanding[burst[:2]] = 1
    rates[burst] = [10_000_000_000, 50_000_000_000, 1_000_000]
    seen = see(delivered_bytes=delivered, cnps=cnps, outstanding_bytes=outstanding, rate_bps=rates)
    # 300,000 bytes in 100 us are 24 Gb/s; three senders, but one receiver.
    assert seen["tenant/burst/throughput"] == pytest.approx(0.24)
    assert seen["tenant/burst/cnps"] == pytest.approx(log_scale(0.01, 0.001, 1))
    assert seen["tenant/burst/rate_mean"] == pytest.approx(log_scale(0.3, 0.01, 1))
    assert seen["tenant/burst/rate_min"] == pytest.approx(log_scale(0.1, 0.01, 1))
    assert seen["tenant/burst/active_qps"] == pytest.approx(2 / 3)
    assert seen["tenant/ring/throughput"] == seen["tenant/ring/cnps"] == 0


def test_buffer__fullest_switch_all_classes():
    held = table(at0_0=100_000, at2_1=150_000, at1_0=900_000)
    assert see(ingress_bytes=held)["fabric/buffer"] == pytest.approx(0.25)


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), power=st.integers(0, 15))
def test_stays_in_the_space(seed, power):
    rng = np.random.default_rng(seed)
    fields = {
        field.name: rng.integers(0, 10**power, getattr(QUIET, field.name).shape, endpoint=True)
        for field in dataclasses.fields(QUIET)
        if isinstance(getattr(QUIET, field.name), np.ndarray) and field.name != "completions"
    }
    interval = make_interval(SCENARIO, NETWORK, PLAN, **fields)
    assert EYES(interval, (1.0, -1.0)) in EYES.space


def test_arrays_are_fresh():
    first, second = EYES(QUIET, (0, 0)), EYES(QUIET, (0, 0))
    first[:] = -1
    assert second in EYES.space and EYES.at_start((0, 0)) in EYES.space


def test_a_run_moves_every_signal_but_drops():
    seen = []
    for preset in ("dcqcn_paper", "pfc_only"):
        fabric = Fabric(load_scenario("noisy_neighbor"), preset=preset)
        eyes = Observation(fabric.scenario, fabric.network, fabric.plan)
        seen += [eyes(fabric.advance(us=200)) for _ in range(50)]
    still = {n for n, moves in zip(eyes.names, np.ptp(seen, axis=0) > 0, strict=True) if not moves}
    assert still == {"class/training/drops", "class/checkpoint/drops"}
