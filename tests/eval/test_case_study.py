"""The case study: the table says what was measured, and the phenomenon is there."""

import json
import math
import re

import pytest

from eval.case_study import __main__ as command
from eval.case_study.measure import alone_us, measure
from eval.case_study.table import ROWS, differences, spread, table
from eval.case_study.variants import tuned, variants
from roce_gym.errors import ConfigError
from roce_gym.topology import build_network

SMALL = [
    "scales.step=64",
    "scale=64",
    "tenants.checkpointing.jobs.1.degree=7",
    "control.horizon_us=1500",
]


def values(**given):
    return {row.key: math.nan for row in ROWS} | given


def test_differences():
    before = [values(pfc_frames_per_s=42_500.0, neighbour_slowdown=0.47)]
    after = [
        values(pfc_frames_per_s=2_000.0, neighbour_slowdown=0.01),
        values(pfc_frames_per_s=6_400.0, neighbour_slowdown=0.03),
    ]
    lines = differences(before, after)
    assert len(lines) == 10
    assert lines[0].endswith("before: ours is lower: 42,500 against 85,000, 0.5 times as much")
    assert lines[1].endswith("after: ours is higher: 4,200 against 2,100, 2 times as much")
    assert lines[2].endswith("before: ours is 47.0 % against 47.0 %, within 10 %")
    assert lines[3].endswith("after: ours is 2.0 %, within the published bound of 3.0 %")
    assert lines[4].endswith("nothing ended in time to compare")


def test_a_bound_that_is_not_kept():
    lines = differences([values()], [values(neighbour_slowdown=0.3)])
    assert lines[3].endswith("after: ours is higher: 30.0 % against 3.0 %, 10 times as much")
    lines = differences([values(pfc_frames_per_s=0.0)], [values()])
    assert lines[0].endswith("before: ours is 0 against 85,000")


def test_table():
    text = table(
        [values(goodput_gbps=10.0)], [values(goodput_gbps=20.0), values(goodput_gbps=30.0)]
    )
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {6}
    assert "| slowdown of a neighbour | 47.0 % | < 3.0 % | - | - |" in rows
    assert "| goodput of all, Gb/s |  |  | 10 | 25 (20 … 30) |" in rows
    assert spread(ROWS[0], [values()]) == "-"


def test_variants_differ_in_classes_and_settings_only():
    before, after = (one.scenario for one in variants(0))
    assert [c.name for c in before.classes] == ["shared"]
    assert {c.name for c in after.classes} == {t.traffic_class for t in after.tenants}
    assert len(after.classes) == 8 and after.preset == "multi_tenant_tuned"
    assert all(t.dcqcn.initial_alpha == 0.5 for t in before.tenants)
    assert all(t.dcqcn is None for t in after.tenants)
    same = {"classes": (), "preset": "", "tenants": (), "switch": before.switch}
    assert before.model_copy(update=same) == after.model_copy(update=same)
    for one, other in zip(before.tenants, after.tenants, strict=True):
        assert (one.name, one.hosts, one.jobs) == (other.name, other.hosts, other.jobs)


def test_buffers_too_small_for_so_many_classes(capsys):
    """Said before the runs alone, not after them."""
    assert (
        command.main(
            ["--set", "switch.buffer_bytes=9000000", "--set", "scales.step=64", "--set", "scale=64"]
        )
        == 2
    )
    printed = capsys.readouterr().err
    assert "buffer_bytes" in printed and "simulated" not in printed


def test_more_tenants_than_priorities_share():
    raw = {"tenants": [{"name": f"t{i}"} for i in range(9)]}
    found = tuned(raw)
    assert len(found["classes"]) == 8
    assert found["tenants"][8]["traffic_class"] == found["tenants"][0]["traffic_class"] == "t0"


def test_a_change_that_is_refused(capsys):
    with pytest.raises(ConfigError, match=r"scale = 0 is not allowed"):
        variants(0, ["scale=0"])
    assert command.main(["--set", "scale=none"]) == 2
    assert capsys.readouterr().err.startswith("error: scale = 'none' is not allowed")


def test_command(tmp_path, capsys):
    changes = [part for change in SMALL for part in ("--set", change)]
    assert command.main([*changes, "--seeds", "2", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    text = (tmp_path / "table.md").read_text()
    assert printed.out.startswith(text)
    assert "8 tenants, 64 GPUs of 256 hosts, 1.5 ms, 2 seeds" in printed.err
    assert re.search(r"simulated: 160 / 160 ", printed.err)  # 2 seeds x 10 runs x 8 intervals
    found = json.loads((tmp_path / "table.json").read_text())
    assert found["changes"] == SMALL and len(found["before"]) == len(found["after"]) == 2
    for variant in ("before", "after"):
        for one in found[variant]:
            fabric = one["fabric"]
            worst = fabric["pause_frames_of_worst_port"] / 1.5e-3
            assert one["values"]["pfc_frames_per_s"] == pytest.approx(worst)
            assert one["values"]["effective_bandwidth"] == fabric["effective_bandwidth_share"]
            assert one["values"]["packet_p99_us"] == fabric["latency"]["packet"]["p99_us"]
            harms = {name: t["interference"] for name, t in one["tenants"].items()}
            known = [v for name, v in harms.items() if name != "checkpointing" and v is not None]
            assert one["values"]["neighbour_slowdown"] == pytest.approx(sum(known) / len(known))
            assert one["values"]["worst_neighbour_slowdown"] == max(known)
    assert found["before"][0]["values"] != found["before"][1]["values"]


@pytest.mark.shows("case_study_8_tenants")
def test_a_storm_in_the_shared_class_and_none_with_a_class_each():
    """All GPUs, two bursts, wide margins; the command has the numbers."""
    both = variants(0, ["control.horizon_us=5000"])
    base = both[0].scenario
    network = build_network(base.topology)
    alone = alone_us(base, 0, network, lambda: None)
    before, after = (
        measure(v.scenario, 0, network, alone, "checkpointing", lambda: None).values for v in both
    )
    assert before["pfc_frames_per_s"] == before["neighbour_pfc_frames_per_s"] > 10_000
    assert before["neighbour_slowdown"] > 0.25 and after["neighbour_slowdown"] < 0.05
    assert before["packet_p99_us"] > 10 * after["packet_p99_us"]
    assert before["effective_bandwidth"] < 0.8 < 0.9 < after["effective_bandwidth"]
    assert after["neighbour_pfc_frames_per_s"] < 0.1 * before["neighbour_pfc_frames_per_s"]
    assert before["dropped_packets"] == after["dropped_packets"] == 0
