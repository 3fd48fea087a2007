import json
import os
from pathlib import Path

import numpy as np
import pytest
from small import SMALL, parts

from roce_gym import reference
from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.progress import Progress
from roce_gym.reference import (
    cache_folder,
    cache_key,
    compute_references,
    forget_references,
    get_references,
    num_steps,
)
from roce_gym.reward import TERMS, RewardTerms

SCENARIO = parts()[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCE_GYM_CACHE", str(tmp_path))
    forget_references()
    yield tmp_path / "references"
    forget_references()


@pytest.fixture
def computed(monkeypatch):
    """Seeds for which the counterfactuals were run."""
    seeds = []

    def compute(scenario, seed, network=None, plan=None):
        seeds.append(seed)
        return compute_references(scenario, seed, network, plan)

    monkeypatch.setattr(reference, "compute_references", compute)
    return seeds


def test_num_steps():
    steps = [
        num_steps(SCENARIO.control.model_copy(update={"interval_us": i, "horizon_us": h}))
        for i, h in ((50, 500), (50, 501), (0.1, 0.3), (100, 100), (200, 100))
    ]
    assert steps == [10, 11, 3, 1, 1]


def test_alone__is_what_each_tenant_does_by_itself():
    found = compute_references(SCENARIO, 3)
    for i, tenant in enumerate(SCENARIO.tenants):
        fabric = Fabric(SCENARIO, 3, preset="pfc_only", only_tenant=tenant.name)
        log = fabric.advance(us=500).completions
        mean = (log["end_ps"] - log["start_ps"]).mean()
        assert found.alone.cct_ps[i] == pytest.approx(mean)
        assert 0 < found.alone.busy_fraction[i] <= 1
    # Ring of 4 x 25,000 bytes: 6 steps; bursts of 600,000 bytes into one 100 Gb/s link.
    assert found.alone.cct_ps[0] > 6 * 25_000 * 80
    assert 600_000 * 80 < found.alone.cct_ps[1] < 1.1 * 600_000 * 80


def test_alone__does_not_depend_on_the_default_settings():
    other = SCENARIO.model_copy(update={"preset": "dcqcn_paper"})
    first, second = (compute_references(s, 0) for s in (SCENARIO, other))
    assert first.alone == second.alone
    assert first.baseline != second.baseline


def test_alone__job_that_does_not_end_or_begin():
    raw = SCENARIO.model_dump(mode="json")
    raw["tenants"][0]["jobs"][0]["bytes"] = 20_000_000  # 2.4 ms
    raw["tenants"][1]["jobs"][0]["start_us"] = 10_000
    found = compute_references(validate_scenario(raw), 0)
    ideal_ps = 6 * 5_000_000 * 80
    assert found.alone.cct_ps[0] == pytest.approx(ideal_ps, rel=0.1)
    assert found.alone.cct_ps[1] == 0
    assert found.alone.busy_fraction == (1.0, 0.0)
    assert all(np.isfinite(value) for value in found.baseline.values())


def test_baseline__is_the_mean_under_the_default_settings():
    found = compute_references(SCENARIO, 1)
    fabric = Fabric(SCENARIO, 1)
    progress = Progress(SCENARIO, fabric.plan)
    terms = RewardTerms(SCENARIO, fabric.network, progress, found.alone, found.pace)
    rows, works = [], []
    for _ in range(10):
        interval = fabric.advance(us=50)
        works.append(progress(interval))
        rows.append(terms(interval, works[-1]))
    assert found.pace.length_ps == 500e6
    assert found.baseline["pfc"] == pytest.approx(-np.log10(1 + found.pace.pfc_frames_per_s / 30))
    assert found.pace.busy_ps == pytest.approx(sum(work.busy_ps for work in works))
    rounds = sum(work.rounds for work in works)
    assert found.pace.needed_ps == pytest.approx(rounds * found.alone.cct_ps)
    weights, slowdown = np.array([0.75, 0.25]), np.divide(found.pace.busy_ps, found.pace.needed_ps)
    assert found.baseline["completion"] == pytest.approx(-weights @ np.log(slowdown))
    for name in TERMS:
        assert found.baseline[name] == pytest.approx(np.mean([row[name] for row in rows]))


def test_cache__memory_then_disk(folder, computed):
    first = get_references(SCENARIO, 1)
    assert get_references(SCENARIO, 1) is first and computed == [1]
    forget_references()
    assert get_references(SCENARIO, 1) == first and computed == [1]
    get_references(SCENARIO, 2)
    get_references(SCENARIO.model_copy(update={"preset": "dcqcn_paper"}), 1)
    assert computed == [1, 2, 1]
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_cache__corrupt_file_is_replaced(folder, computed, text):
    replaced(folder, computed, lambda _good: text)


@pytest.mark.parametrize(
    "change",
    [
        {"cct_ps": [1]},
        {"cct_ps": [1, float("nan")]},
        {"cct_ps": [1, "x"]},
        {"busy_fraction": [1, 1, 1]},
        {"length_ps": 0},
        {"length_ps": "long"},
        {"default_pfc_frames_per_s": None},
        {"default_busy_ps": []},
        {"default_needed_ps": None},
        {"baseline": {}},
        {"baseline": None},
    ],
)
def test_cache__file_that_does_not_fit_is_replaced(folder, computed, change):
    replaced(folder, computed, lambda good: json.dumps(json.loads(good) | change))


def replaced(folder, computed, spoil):
    """Asserts that a file which was spoilt is computed again."""
    first = get_references(SCENARIO, 1)
    (path,) = folder.iterdir()
    good = path.read_text()
    path.write_text(spoil(good))
    forget_references()
    assert get_references(SCENARIO, 1) == first and computed == [1, 1]
    assert path.read_text() == good


def test_cache__no_folder_can_be_made(tmp_path, monkeypatch, computed):
    (tmp_path / "file").write_text("")
    for value in (str(tmp_path / "file"), str(tmp_path / "file" / "below"), ""):
        monkeypatch.setenv("ROCE_GYM_CACHE", value)
        forget_references()
        get_references(SCENARIO, 1)
        get_references(SCENARIO, 1)
    assert computed == [1, 1, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_cache__failed_write_leaves_nothing(folder, monkeypatch):
    def fail(*_args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    get_references(SCENARIO, 1)
    assert list(folder.iterdir()) == []


def test_cache__memory_is_bounded(folder, computed, monkeypatch):
    monkeypatch.setattr(reference, "MEMORY_ENTRIES", 2)
    monkeypatch.setenv("ROCE_GYM_CACHE", "")
    for seed in (1, 2, 1, 3, 1, 2):
        get_references(SCENARIO, seed)
    assert computed == [1, 2, 3, 2]


def test_key__follows_files_that_the_scenario_names(tmp_path):
    topology, flows = tmp_path / "t.txt", tmp_path / "f.txt"
    topology.write_text("3 1 2\n2\n0 2 100Gbps 0.001ms 0\n1 2 100Gbps 0.001ms 0\n")
    flows.write_text("1\n0 1 3 100 5000 0.0001\n")
    raw = SMALL | {
        "topology": {"kind": "hpcc_file", "path": str(topology)},
        "tenants": [
            {
                "name": "t",
                "traffic_class": "gold",
                "hosts": [0, 1],
                "jobs": [{"kind": "flows", "file": str(flows)}],
            }
        ],
    }
    scenario = validate_scenario(raw)
    keys = {cache_key(scenario, 0), cache_key(scenario, 1)}
    topology.write_text(topology.read_text() + "\n")
    keys.add(cache_key(scenario, 0))
    flows.write_text(flows.read_text() + "\n")
    keys.add(cache_key(scenario, 0))
    assert len(keys) == 4


def test_folder__default(monkeypatch):
    monkeypatch.delenv("ROCE_GYM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    for platform, end in (
        ("linux", "/somewhere/roce_gym"),
        ("darwin", "Library/Caches/roce_gym"),
        ("win32", "roce_gym"),
    ):
        monkeypatch.setattr("sys.platform", platform)
        assert str(cache_folder()).endswith(end)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "roce_gym"


def test_file__is_plain_json(folder):
    found = get_references(SCENARIO, 1)
    (path,) = folder.iterdir()
    raw = json.loads(path.read_text())
    assert raw["baseline"] == found.baseline
