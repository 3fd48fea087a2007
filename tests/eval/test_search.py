import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from small import SMALL

from agents.settings_file import SettingsFile, read_settings
from eval.episode import run_episode
from eval.progress import Counter
from eval.search import __main__ as script
from eval.search import episodes as searched
from eval.search.episodes import Episodes, as_policy, spent
from eval.search.plan import Search, SearchPlan, tied_knobs
from roce_gym.env import RoceEnv
from roce_gym.errors import CheckpointError, ConfigError
from training.environment import EnvChoice

pytest.importorskip("cma")

ROOT = Path(__file__).parents[2]
SEEDS = tuple(range(4))
LITTLE = {"budget": 60, "regime_budget": 0, "repeats": 1, "confirm": 2}


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    """The burst is there in the second half only."""
    raw = yaml.safe_load(yaml.safe_dump(SMALL))
    raw["tenants"][1]["jobs"][0] |= {"start_us": 250, "stop_us": 600}
    path = tmp_path_factory.mktemp("scenario") / "small.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


def make_plan(scenario, **more):
    given = {"budget": 40, "regime_budget": 14, "repeats": 2, "confirm": 3}
    return SearchPlan(EnvChoice(str(scenario)), SEEDS, **given | more)


def mean_score(scenario, content):
    env, policy = RoceEnv(str(scenario)), as_policy(content)
    return np.mean([run_episode(env, policy, seed).totals["score"] for seed in SEEDS])


def test_a_search_finds_better_settings_and_better_ones_still_by_regime(scenario, tmp_path):
    out = tmp_path / "found.yaml"
    script.search(make_plan(scenario), out)
    found = read_settings(out)
    env = RoceEnv(str(scenario))
    assert list(found.settings) == list(env.knobs.names)
    assert sorted(found.regimes) == ["burst incast of 3", "usual"]
    assert found.about["env"] == str(scenario)
    static = mean_score(scenario, SettingsFile(found.settings))
    presets = []
    for name in ("default", "pfc_only", "dcqcn_paper"):
        env.reset(seed=0)
        scores = []
        for seed in SEEDS:
            env.reset(seed=seed, options={"preset": name})
            is_over = False
            while not is_over:
                *_, is_over, info = env.step(env.action_space.sample())
            scores.append(info["score"])
        presets.append(np.mean(scores))
    assert static < min(presets)
    assert mean_score(scenario, found) <= static + 0.02


def test_the_same_plan_finds_the_same_without_playing_again(scenario, tmp_path):
    first, second, other = (tmp_path / name for name in ("a.yaml", "b.yaml", "c.yaml"))
    plan = make_plan(scenario, **LITTLE)
    script.search(plan, first)
    played, seconds = spent(script.log_of(first))
    assert 40 < played <= 60 + 2 * 5 * 2 and seconds > 0.0
    script.search(plan, first)
    assert spent(script.log_of(first)) == (played, seconds)
    script.search(plan, second, jobs=2)
    assert second.read_text() == first.read_text()
    script.search(make_plan(scenario, **LITTLE, random_seed=1), other)
    assert read_settings(other).settings != read_settings(first).settings


def test_a_cut_log_is_gone_on_from(scenario, tmp_path):
    out = tmp_path / "found.yaml"
    plan = make_plan(scenario, **LITTLE)
    script.search(plan, out)
    before, whole = out.read_text(), spent(script.log_of(out))[0]
    log = script.log_of(out)
    lines = log.read_text().splitlines()
    kept = len(lines) // 2
    log.write_text("\n".join(lines[:kept]) + '\n{"policy": "cut o')
    out.unlink()
    script.search(plan, out)
    assert out.read_text() == before
    assert spent(log)[0] == whole
    assert log.read_text().splitlines()[:kept] == lines[:kept]


def test_an_interrupted_search_keeps_what_was_played(scenario, tmp_path):
    out = tmp_path / "found.yaml"
    command = [sys.executable, "-m", "eval.search", str(scenario), "--budget", "5000"]
    process = subprocess.Popen(
        [*command, "--out", str(out)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while spent(script.log_of(out))[0] < 5:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "the same command goes on" in output and "Traceback" not in output
    assert not out.exists() and spent(script.log_of(out))[0] >= 5


def test_episodes_are_played_as_they_are_scored(scenario, tmp_path):
    choice, env = EnvChoice(str(scenario)), RoceEnv(str(scenario))
    contents = [SettingsFile(dict.fromkeys(env.knobs.names, x)) for x in (-0.5, 0.5)]
    log = tmp_path / "log.jsonl"
    with Episodes(choice, log, 1, Counter("episodes", 6)) as episodes:
        scores = episodes(contents, [3, 1])
        again = episodes(contents[::-1], [1, 2])
    for i, content in enumerate(contents):
        for j, seed in enumerate((3, 1)):
            assert scores[i, j] == run_episode(env, as_policy(content), seed).totals["score"]
    assert again[0, 0] == scores[1, 1] and again[1, 0] == scores[0, 1]
    rows = [json.loads(line) for line in log.read_text().split("\n") if line]
    assert len(rows) == 6 and len({(r["policy"], r["key"]) for r in rows}) == 6


def die_at_1(choice, content, seed):
    """In place of `play`, in a process of its own; what else is under way then takes long."""
    first = Path(choice.env).with_suffix(".done")
    if seed == 0:
        first.touch()
    if seed == 1:
        while not first.exists():
            time.sleep(0.05)
        time.sleep(2.0)  # so that its result has arrived
        os.kill(os.getpid(), signal.SIGKILL)
    if seed > 1:
        time.sleep(60)
    return 0.5, 0.1


def test_a_process_that_dies__names_what_was_under_way(scenario, tmp_path, monkeypatch):
    monkeypatch.setattr(searched, "play", die_at_1)
    env = RoceEnv(str(scenario))
    content = SettingsFile(dict.fromkeys(env.knobs.names, 0.0))
    log, counter = tmp_path / "log.jsonl", Counter("episodes", 6)
    name = f"settings {as_policy(content).fingerprint[:12]}, scenario {scenario}, seed"
    told = re.escape(f"{log}: ") + rf".*under way: {name} 1; {name} 2; finished episodes are kept"
    with (
        pytest.raises(CheckpointError, match=told),
        Episodes(EnvChoice(str(scenario)), log, 2, counter) as episodes,
    ):
        episodes([content], range(6))
    assert spent(log)[0] == 1


def test_what_another_scenario_scored_does_not_count(scenario, tmp_path):
    env = RoceEnv(str(scenario))
    contents = [SettingsFile(dict.fromkeys(env.knobs.names, 0.0))]
    log = tmp_path / "log.jsonl"
    for overrides in ((), ("switch.buffer_bytes=600000",), ()):
        choice = EnvChoice(str(scenario), overrides)
        with Episodes(choice, log, 1, Counter("episodes", 1)) as episodes:
            episodes(contents, [0])
    assert spent(log)[0] == 2


def test_knobs_of_the_same_setting_are_tied():
    names = ("class/a/kmin", "class/a/pmax", "class/b/kmin", "tenant/x/g", "tenant/y/g")
    assert tied_knobs(names) == [0, 1, 0, 2, 2]


def test_faults_are_found_before_anything_is_played(scenario, tmp_path, capsys):
    for more, message in (
        ({"budget": 5}, "budget = 5 is not allowed; allowed: 12 or more"),
        ({"regime_budget": 3}, "regime budget = 3 is not allowed"),
        ({"repeats": 0}, "repeats = 0 is not allowed"),
        ({"confirm": 5}, "seeds: 4 are too few; allowed: 5 or more"),
    ):
        with pytest.raises(ConfigError, match=message):
            Search(make_plan(scenario, **more))
    with pytest.raises(ConfigError, match="knob_mode = 'delta' is not allowed in a search"):
        Search(SearchPlan(EnvChoice(str(scenario), ("control.knob_mode=delta",)), tuple(range(8))))
    out = tmp_path / "mine.txt"
    out.write_text("precious")
    assert script.main([str(scenario), "--seeds", "0:10001", "--out", str(out)]) == 2
    assert "seeds: 10000 is not allowed; allowed: below 10000" in capsys.readouterr().err
    assert script.main([str(scenario), "--out", str(out)]) == 2
    assert "mine.txt: is no file of settings" in capsys.readouterr().err
    assert out.read_text() == "precious" and list(tmp_path.iterdir()) == [out]


def test_regimes_are_searched_only_where_they_change(scenario):
    assert Search(make_plan(scenario)).regimes == ("burst incast of 3", "usual")
    assert Search(make_plan(scenario, regime_budget=0)).regimes == ()
    assert (
        Search(SearchPlan(EnvChoice("moe_all_to_all"), tuple(range(8)), regime_budget=20)).regimes
        == ()
    )
