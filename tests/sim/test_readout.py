"""The kernel that reads counters out, against the same in NumPy."""

import numpy as np
import pytest
from small import SMALL

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.sim import types as t
from roce_gym.sim.cc.dcqcn import DCQCN
from roce_gym.sim.cc.records import qp_records
from roce_gym.sim.readout import PORT_ROWS, PORT_TOTALS, QP_ROWS, QP_TOTALS

pytestmark = pytest.mark.nojit


def fabric(**changes):
    """The second class is served first, and the second tenant's senders have no alpha."""
    ring, burst = (dict(tenant) for tenant in SMALL["tenants"])
    ring["jobs"] = [{"kind": "ring_all_reduce", "bytes": 100_000}]
    burst["cc"] = "timely"
    first, second = SMALL["classes"]
    classes = [first, second | {"scheduling": "strict"}]
    raw = (
        SMALL
        | {"classes": classes, "tenants": [ring, burst], "switch": {"buffer_bytes": 560_000}}
        | changes
    )
    return Fabric(validate_scenario(raw), 1, preset="pfc_only")


def in_numpy(state):
    """Rows by name, with all classes; and alpha."""
    now = state.core[0]["now_ps"]
    queue, ingress, pfc = state.queue, state.ingress, state.pfc
    held = queue["bytes"].astype(np.int64) * (now - queue["changed_ps"]) >> 10
    never = pfc["first_pause_ps"] == t.FOREVER
    rows = {
        "tx_bytes": queue["tx_bytes"],
        "tx_packets": queue["tx_packets"],
        "ecn_marked_packets": queue["marks"],
        "area": queue["area"] + held,
        "pause_frames": ingress["pauses"],
        "resume_frames": ingress["resumes"],
        "paused_ps": pfc["paused_ps"] + np.maximum(now - pfc["paused_since_ps"], 0),
        "dropped_packets": ingress["drops"],
        "queue_bytes": queue["bytes"],
        "queue_max_bytes": queue["max_bytes"],
        "ingress_bytes": ingress["bytes"] + ingress["headroom_used"],
        "headroom_bytes": ingress["headroom_used"],
        "ingress_max_bytes": ingress["peak_bytes"],
        "ingress_max_limit_bytes": ingress["peak_limit"],
        "headroom_max_bytes": ingress["peak_headroom"],
        "first_pause_ps": np.where(never, -1, pfc["first_pause_ps"]),
        "acked_bytes": state.sender["snd_una"],
        "delivered_bytes": state.receiver["expected"],
        "cnps": state.qp["cnps"],
        "nacks": state.receiver["nacks"],
        "outstanding_bytes": state.qp["posted"] - state.sender["snd_una"],
        "rate_bps": state.sender["rate_bps"],
    }
    return {name: values.copy() for name, values in rows.items()}


def test_rows_and_peaks():
    ran = fabric()
    columns = np.array([2, 1])
    seen = set()
    for _ in range(12):
        ran._run(ran._argument, ran.now_ps + 9_000_000)
        state = ran._state
        ran._drain_log()
        expected = in_numpy(state)
        ports = np.full((len(PORT_ROWS), ran.network.num_links, 2), 7, np.int64)
        qps, alpha = (
            np.full((len(QP_ROWS), len(ran.plan.qps)), 7, np.int64),
            np.full(len(state.qp), 7.0),
        )
        ran._read_out(columns, ports, qps, alpha)
        for name, row in zip(PORT_ROWS, ports, strict=True):
            assert np.array_equal(row, expected[name].reshape(-1, 3)[:, columns]), name
            seen |= {name} if len(np.unique(row)) > 1 else set()
        for name, row in zip(QP_ROWS, qps, strict=True):
            assert np.array_equal(row, expected[name]), name
        is_ring = state.qp["tenant"] == 0
        assert np.array_equal(alpha[is_ring], qp_records(state, DCQCN)["alpha"][is_ring])
        assert (alpha[~is_ring] == 7.0).all() and (~is_ring).any()
        assert np.array_equal(state.queue["max_bytes"], state.queue["bytes"])
        held = state.ingress["bytes"]
        more = np.where(held > state.ingress["reserved"], held, 0)
        assert np.array_equal(state.ingress["peak_bytes"], more)
        assert np.array_equal(state.ingress["peak_headroom"], state.ingress["headroom_used"])
    rare = {"ecn_marked_packets", "dropped_packets"}
    assert seen >= set(PORT_ROWS) - rare  # each was more than zeros at some time


def test_interval__totals_are_differences_and_the_rest_is_as_it_is():
    ran = fabric()
    before = in_numpy(ran._state)
    for _ in range(4):
        interval = ran.advance(us=30)
        after = in_numpy(ran._state)
        for name in (*PORT_TOTALS, *QP_TOTALS):
            if name == "area":
                continue
            change = after[name] - before[name]
            if name in PORT_TOTALS:
                change = change.reshape(-1, 3)[:, [2, 1]]
            assert np.array_equal(getattr(interval, name), change), name
        assert np.array_equal(interval.rate_bps, after["rate_bps"])
        assert not interval.alpha[ran._state.qp["tenant"] == 1].any()
        before = after
