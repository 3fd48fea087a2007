"""The packaged scenario of a DSCP mismatch shows what it says, and settings cure it."""

import json

import pytest

from roce_gym.cli import main

CURED = "switch.dscp.overrides=[]"
AS_STORAGE = "switch.dscp.overrides.0.map.26=storage"
SPINE, LEAVES = "switch 16", ("switch 12", "switch 13", "switch 14")


def run(capsys, *changes, seed=0):
    options = [option for change in changes for option in ("--set", change)]
    assert main(["run", "dscp_mismatch", "--seed", str(seed), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def places(found):
    """Class and cause of drops, by whether they are at the spine or the leaves."""
    split = {SPINE: set(), "leaves": set()}
    for place in found["fabric"]["drops"]:
        src, dst = place["port"].split(" -> ")
        assert SPINE in (src, dst) and {src, dst} & set(LEAVES)
        at = src if place["cause"] == "egress queue limit" else dst
        split[SPINE if at == SPINE else "leaves"].add((place["class"], place["cause"]))
    return split


@pytest.mark.shows("dscp_mismatch")
@pytest.mark.parametrize("seed", [0, 2])
def test_roce_is_dropped_at_the_spine_and_behind_it(capsys, seed):
    found = run(capsys, seed=seed)
    assert places(found) == {
        SPINE: {("best_effort", "egress queue limit")},
        "leaves": {("roce", "headroom exceeded")},
    }
    assert found["fabric"]["dscp_mismatches"] == [
        {"switch": SPINE, "dscp": 26, "class": "roce", "taken_as": "best_effort"}
    ]
    cured = run(capsys, CURED, seed=seed)
    assert cured["fabric"]["dropped_packets"] == 0 and not cured["fabric"]["dscp_mismatches"]
    times = [one["tenants"]["training"]["cct_mean_us"] for one in (found, cured)]
    assert times[0] > 1.1 * times[1]
    # Storage has a class of its own everywhere and does not notice.
    storage = [one["tenants"]["storage"]["cct_mean_us"] for one in (found, cured)]
    assert storage[0] == pytest.approx(storage[1], rel=0.01)


@pytest.mark.shows("dscp_mismatch")
def test_who_goes_through_the_other_spine_notices_nothing(capsys):
    found, cured = (run(capsys, *change, seed=1) for change in ((), (CURED,)))
    assert found["fabric"]["dropped_packets"] == 0
    assert found["tenants"] == cured["tenants"]


@pytest.mark.shows("dscp_mismatch")
def test_in_the_other_lossless_class_it_takes_storage_along(capsys):
    found, cured = run(capsys, AS_STORAGE), run(capsys, CURED)
    assert ("storage", "headroom exceeded") in places(found)[SPINE]
    for tenant in ("training", "storage"):
        times = [one["tenants"][tenant]["cct_mean_us"] for one in (found, cured)]
        assert times[0] > 1.1 * times[1], tenant
    paused = [one["fabric"]["classes"]["storage"]["paused_share_mean"] for one in (found, cured)]
    assert paused[0] > 2 * paused[1]


def test_the_report_names_the_switch(capsys):
    assert main(["run", "dscp_mismatch"]) == 0
    text = capsys.readouterr().out
    assert "DSCP MISMATCH  switch 16 takes DSCP 26 (roce) as best_effort" in text


def test_a_deadlock_is_found_whatever_switches_call_the_class(capsys):
    # Switch 4 takes RoCE as storage, and calls that priority 3: on the wire nothing differs.
    like_roce = "buffer: {alpha: 0.125}, ecn: {kmin_bytes: 20000, kmax_bytes: 20000, pmax: 1}"
    classes = ", ".join(
        f"{{name: {name}, priority: {priority}, {like_roce}}}"
        for name, priority in (("roce", 3), ("storage", 4))
    )
    changed = "map: {24: storage}, priorities: {roce: 4, storage: 3}"
    found = []
    for overrides in ("[]", f"[{{switches: [4], {changed}}}]"):
        changes = f"classes=[{classes}]", f"switch.dscp={{overrides: {overrides}}}"
        options = [option for change in changes for option in ("--set", change)]
        assert main(["run", "pfc_deadlock", "--json", *options]) == 0
        found.append(json.loads(capsys.readouterr().out)["fabric"])
    usual, renamed = found
    assert [one["taken_as"] for one in renamed["dscp_mismatches"] if "taken_as" in one]
    assert usual["deadlock"]["class"] == "roce"
    assert renamed["deadlock"] == usual["deadlock"] | {"class": "storage"}  # as switch 4 says
    for name in ("pause_frames", "dropped_packets", "queue_max_bytes", "events"):
        assert renamed[name] == usual[name], name
