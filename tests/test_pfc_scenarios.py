"""The packaged scenarios of PFC failures show what they say, and settings cure them."""

import json

import numpy as np
import pytest

from eval.validate.published.spread import WATCHED, senders, stormy_fabric
from roce_gym.cli import main

# --------------------------------------------------------------------------- storm


@pytest.mark.shows("pfc_storm")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_storm__freezes_half_of_the_hosts(seed):
    fabric = stormy_fabric(seed=seed)
    before = fabric.advance(us=2_000)
    assert senders(fabric, before) == set(range(16))
    fabric.advance(us=1_000)  # the pause spreads
    frozen = fabric.advance(us=2_000)
    assert senders(fabric, frozen) == set(range(8, 16))
    # The NIC pauses nearly 6,000 times a second, as often as a pause of 335.5 us has to be sent.
    towards_host_0 = int(fabric.network.host_link[0]) ^ 1
    assert frozen.pause_frames[towards_host_0, 0] == pytest.approx(2_000 / 167.77, abs=1)
    assert frozen.dropped_packets.sum() == 0
    assert not frozen.deadlock


@pytest.mark.shows("pfc_storm")
@pytest.mark.parametrize("seed", [0, 1])
def test_storm__a_watchdog_frees_all_but_the_broken_host(seed):
    fabric = stormy_fabric(WATCHED, seed=seed)
    healthy = fabric.advance(us=2_000)
    fabric.advance(us=4_000)  # detected at 4 ms
    cured = fabric.advance(us=2_000)
    # The broken host's tenant waits for what the leaf drops; nobody else does.
    assert senders(fabric, cured) == {2, 3, 6, 7, *range(8, 16)}
    innocent = np.array([pair.tenant == 1 for pair in fabric.plan.qps])
    assert cured.delivered_bytes[innocent].sum() > 0.9 * healthy.delivered_bytes[innocent].sum()
    assert cured.watchdog_dropped_packets.sum() > 0


@pytest.mark.shows("pfc_storm")
def test_storm__a_slower_watchdog_acts_later():
    lost = []
    for detection_us in (1_000, 4_000):
        fabric = stormy_fabric(WATCHED, f"pfc.watchdog.detection_us={detection_us}")
        innocent = np.array([pair.tenant == 1 for pair in fabric.plan.qps])
        lost.append(fabric.advance(us=8_000).delivered_bytes[innocent].sum())
    assert lost[0] > 1.5 * lost[1]


@pytest.mark.shows("pfc_storm")
def test_storm__without_it_all_are_well():
    fabric = stormy_fabric("faults.storms=[]")
    fabric.advance(us=3_000)
    assert senders(fabric, fabric.advance(us=2_000)) == set(range(16))


@pytest.mark.shows("pfc_storm")
def test_storm__a_run_names_the_broken_host(capsys):
    """From the pauses that were counted, not from the scenario: without a storm there are none."""
    assert main(["run", "pfc_storm"]) == 0
    text = capsys.readouterr().out
    row = next(line for line in text.splitlines() if "PAUSING NIC" in line)
    # For 10 of 12 ms, a frame each 167.77 us.
    assert "host 0 (roce) sends pauses: 60 frames since 2,000.0 us, 83.32 % of the time" in row
    assert main(["run", "pfc_storm", "--json", "--set", "faults.storms=[]"]) == 0
    assert json.loads(capsys.readouterr().out)["fabric"]["pausing_hosts"] == []


# --------------------------------------------------------------------------- deadlock


def run(capsys, *changes):
    options = [option for change in changes for option in ("--set", change)]
    assert main(["run", "pfc_deadlock", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.shows("pfc_deadlock")
def test_deadlock__ends_the_run(capsys):
    found = run(capsys)
    assert found["status"] == "deadlock"
    assert found["tenants"]["training"]["flows_completed"] == 0
    assert found["fabric"]["deadlock"]["ports"][0] == "switch 3 -> switch 4"
    assert found["fabric"]["dropped_packets"] == 0


@pytest.mark.shows("pfc_deadlock")
def test_deadlock__not_where_routes_have_no_circle(capsys):
    found = run(capsys, "topology.routing=shortest")
    assert found["status"] == "completed" and found["fabric"]["deadlock"] is None
    assert found["tenants"]["training"]["flows_completed"] == 3


@pytest.mark.shows("pfc_deadlock")
@pytest.mark.parametrize("action", ["drop", "forward", "alert"])
def test_deadlock__a_watchdog_breaks_it_or_only_says_so(capsys, action):
    found = run(capsys, WATCHED, f"pfc.watchdog.action={action}")
    fabric = found["fabric"]
    assert fabric["watchdog"]["storms"] >= 3
    if action == "alert":
        assert found["status"] == "deadlock"
        return
    assert found["status"] == "completed"
    assert found["tenants"]["training"]["flows_completed"] == 3
    causes = {place["cause"] for place in fabric["drops"]}
    assert causes == ({"watchdog"} if action == "drop" else set())
    assert fabric["watchdog"]["restored"] == fabric["watchdog"]["storms"]
