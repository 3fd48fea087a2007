"""Deadlocks: found where they are and nowhere else, and for ever."""

import json

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_gym.cli import main
from roce_gym.config import validate_scenario
from roce_gym.env import RoceEnv
from roce_gym.fabric import Fabric


def circle(switches=3, size=10_000_000, routing="clockwise", **more):
    """Everyone sends to the second next switch; see `tests/topology/test_circle.py`."""
    flows = [{"src": h, "dst": (h + 2) % switches, "bytes": size} for h in range(switches)]
    jobs = [{"kind": "flows", "flows": flows}]
    return {
        "name": "circle",
        "topology": {"kind": "ring", "switches": switches, "routing": routing},
        "switch": {"buffer_bytes": 600_000},
        "preset": "pfc_only",
        "tenants": [{"name": "a", "hosts": list(range(switches)), "jobs": jobs}],
        "control": {"interval_us": 200, "horizon_us": 2_000},
    } | more


def fabric_of(**given):
    return Fabric(validate_scenario(circle(**given)))


@pytest.mark.parametrize("quanta", [0, 1_000, 65_535])
@pytest.mark.parametrize("switches", [3, 4, 6])
def test_the_circle_is_named(switches, quanta):
    fabric = fabric_of(switches=switches, pfc={"quanta": quanta})
    interval = fabric.advance(us=1_000)
    # The trunks come after two links a host; clockwise ones are even.
    links = [link for link, _, _ in interval.deadlock]
    assert links == list(range(2 * switches, 4 * switches, 2))
    assert {cls for _, cls, _ in interval.deadlock} == {0}
    since = np.array([since for *_, since in interval.deadlock])
    assert (since > 20_000_000).all()
    assert (interval.paused_ps[links, 0] >= interval.end_ps - since).all()
    assert fabric.is_deadlocked


def test_it_is_found_once_a_pause_has_held():
    # Until a pause was refreshed it might still expire.
    fabric = fabric_of()
    found = [bool(fabric.advance(us=50).deadlock) for _ in range(10)]
    assert found.index(True) == 7  # 335.5 us after 21 us
    assert all(found[7:])


def test_no_circle_no_deadlock():
    fabric = fabric_of(routing="shortest")
    for _ in range(10):
        assert fabric.advance(us=100).deadlock == ()
    assert not fabric.is_deadlocked


def test_a_storm_is_no_deadlock():
    storm = {"host": 1, "traffic_class": "roce"}
    fabric = fabric_of(routing="shortest", faults={"storms": [storm]}, size=2_000_000)
    for _ in range(5):
        assert fabric.advance(us=1_000).deadlock == ()
    assert fabric._state.link["paused"].any()


@given(
    st.integers(3, 5),
    st.sampled_from([20_000, 60_000, 300_000, 5_000_000]),
    st.sampled_from([120_000, 400_000, 2_000_000]),
    st.sampled_from([0, 200, 65_535]),
    st.sampled_from(["pfc_only", "connectx_default"]),
)
@settings(deadline=None, max_examples=25, derandomize=True)
def test_what_stands_still_is_found_and_what_is_found_stands_still(
    switches, size, buffer, quanta, preset
):
    fabric = fabric_of(
        switches=switches,
        size=size,
        preset=preset,
        switch={"buffer_bytes": buffer + 300_000},
        pfc={"quanta": quanta},
    )
    first, second = fabric.advance(us=3_000), fabric.advance(us=3_000)
    stands = second.delivered_bytes.sum() == 0 and second.outstanding_bytes.sum() > 0
    assert bool(second.deadlock) == stands
    if first.deadlock:
        links = [link for link, *_ in first.deadlock]
        assert second.tx_packets[links].sum() == 0
        assert (second.paused_ps[links] == second.end_ps - second.start_ps).all()
        assert second.deadlock == first.deadlock


@pytest.mark.parametrize(("action", "ends"), [("drop", False), ("forward", False), ("alert", True)])
def test_a_watchdog_breaks_it_unless_it_only_alerts(action, ends):
    times = {"poll_us": 400, "detection_us": 400, "restoration_us": 400}
    fabric = fabric_of(pfc={"watchdog": {"enabled": True, "action": action} | times})
    stuck = fabric.advance(us=700)
    assert stuck.deadlock and fabric.is_deadlocked == ends
    later = fabric.advance(us=800)
    assert later.watchdog_storms.sum() > 0
    trunks = [link for link, *_ in stuck.deadlock]
    moved = later.tx_packets[trunks].sum() + later.watchdog_dropped_packets[trunks].sum()
    assert (moved == 0) == ends


def test_a_snapshot_remembers():
    fabric = fabric_of()
    before = fabric.snapshot()
    fabric.advance(us=1_000)
    after = fabric.snapshot()
    fabric.restore(before)
    assert not fabric.is_deadlocked
    fabric.restore(after)
    assert fabric.is_deadlocked


def test_an_episode_is_terminated():
    env = RoceEnv(circle())
    env.reset(seed=0, options={"preset": "pfc_only"})
    action = np.zeros(env.action_space.shape, np.float32)
    *_, terminated, truncated, info = env.step(action)
    assert not terminated and not info["deadlocked"]
    *_, terminated, truncated, info = env.step(action)  # 400 us: a pause has been refreshed
    assert terminated is True and truncated is False and info["deadlocked"] == 1
    with pytest.raises(ResetNeeded):
        env.step(action)


def test_a_run_ends_and_reports(tmp_path, capsys):
    path = tmp_path / "circle.yaml"
    path.write_text(json.dumps(circle()))
    assert main(["run", str(path), "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["status"] == "deadlock" and "partial" in printed.err
    assert found["duration_us"] == 400 < found["horizon_us"]
    deadlock = found["fabric"]["deadlock"]
    assert deadlock["ports"] == [
        "switch 3 -> switch 4",
        "switch 4 -> switch 5",
        "switch 5 -> switch 3",
    ]
    assert deadlock["class"] == "roce" and deadlock["found_us"] == 400 > deadlock["since_us"] > 0
    assert main(["run", str(path)]) == 0
    text = capsys.readouterr().out
    assert "DEADLOCK" in text and "ended by a deadlock" in text
    assert "switch 4 -> switch 5, switch 5 -> switch 3" in text
