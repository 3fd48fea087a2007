import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from small import SMALL

from agents.registry import make_policy
from eval import evaluate as script
from eval.episode import run_episode
from eval.evaluate import Evaluation, evaluate, parse_seeds
from eval.records import read_record, record_path
from roce_gym.env import RoceEnv
from roce_gym.errors import CheckpointError, ConfigError
from training.environment import EnvChoice

ROOT = Path(__file__).parents[2]
POLICIES = ("preset:default", "random")
SEEDS = (10_000, 10_001)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "small.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    return path


def make_evaluation(scenario, out, **more):
    given = {"choice": EnvChoice(str(scenario)), "policies": POLICIES, "seeds": SEEDS, "out": out}
    return Evaluation(**given | more)


def paths_of(out):
    return [record_path(out, policy, seed) for policy in POLICIES for seed in SEEDS]


def test_records_hold_what_the_episode_came_to(scenario, tmp_path):
    evaluate(make_evaluation(scenario, tmp_path), jobs=1)
    env = RoceEnv(str(scenario))
    for policy in POLICIES:
        record = read_record(record_path(tmp_path, policy, 10_001))
        again = run_episode(env, make_policy(policy), 10_001)
        assert record.episode == again
        assert len(again.series["time_us"]) == again.totals["steps"] == 10
        assert set(again.series) >= {"queue_max_bytes/gold", "rate_gbps/ring", "pfc_frames_per_s"}


def test_only_what_is_missing_damaged_or_out_of_date_is_done_again(scenario, tmp_path, capsys):
    evaluate(make_evaluation(scenario, tmp_path), jobs=2)
    keep, missing, damaged, stale = paths_of(tmp_path)
    missing.unlink()
    damaged.write_text("{")
    record = json.loads(stale.read_text())
    stale.write_text(json.dumps(record | {"key": "of another simulator"}))
    before = keep.stat().st_mtime_ns
    capsys.readouterr()
    evaluate(make_evaluation(scenario, tmp_path), jobs=1)
    told = capsys.readouterr().err
    assert "1 of 4 records are there already" in told
    assert f"{damaged}: is damaged" in told
    assert f"{stale}: made with another simulator" in told
    assert keep.stat().st_mtime_ns == before
    assert json.loads(stale.read_text()) == record
    evaluate(make_evaluation(scenario, tmp_path), jobs=1)
    assert "4 of 4" in capsys.readouterr().err


def test_an_interrupted_evaluation_keeps_what_is_finished_and_goes_on(scenario, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "eval.evaluate", "--env", str(scenario), "--out", str(out)]
    command += ["--policies", *POLICIES, "--jobs", "1", "--seeds", "10000:10300"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while len(list(out.glob("records/*/*.json"))) < 3:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "the same command goes on" in output and "Traceback" not in output
    done = list(out.glob("records/*/*.json"))
    assert 3 <= len(done) < 600
    for path in done:
        read_record(path)
    assert not list(out.rglob("*.tmp"))


def die_at_10001(choice, spec, seed, out):
    """In place of `play`, in a process of its own; what else is under way then takes long."""
    first = Path(choice.env).with_suffix(".done")
    if seed == 10_000:
        first.touch()
    if seed == 10_001:
        while not first.exists():
            time.sleep(0.05)
        time.sleep(2.0)  # so that its result has arrived
        os.kill(os.getpid(), signal.SIGKILL)
    if seed > 10_001:
        time.sleep(60)
    return ""


@pytest.mark.parametrize(("jobs", "others"), [(1, ""), (2, "; random, .*, seed 10002")])
def test_a_process_that_dies__names_what_was_under_way(
    scenario, tmp_path, monkeypatch, jobs, others
):
    monkeypatch.setattr(script, "play", die_at_10001)
    choice = EnvChoice(str(scenario), ("control.horizon_us=200",))
    more = {"choice": choice, "policies": ("random",), "seeds": tuple(range(10_000, 10_006))}
    told = (
        rf"under way: random, scenario .*small\.yaml control.horizon_us=200, seed 10001{others}; fi"
    )
    with pytest.raises(CheckpointError, match=told):
        evaluate(make_evaluation(scenario, tmp_path, **more), jobs=jobs)


def test_faults_are_found_before_anything_is_played(scenario, tmp_path, capsys):
    out = tmp_path / "out"
    with pytest.raises(ConfigError, match="'nobody' is unknown; allowed: preset:default"):
        evaluate(make_evaluation(scenario, out, policies=("nobody",)))
    with pytest.raises(CheckpointError, match="nowhere: does not exist"):
        evaluate(make_evaluation(scenario, out, policies=("random", "sb3:nowhere")))
    common = ["--env", str(scenario), "--out", str(out), "--policies", "random"]
    assert script.main([*common, "--seeds", "0:4"]) == 2
    assert "10000 and above" in capsys.readouterr().err
    assert not out.exists()


def test_seeds_are_ranges_or_lists():
    assert parse_seeds("10000:10003") == (10000, 10001, 10002)
    assert parse_seeds("7, 3,10:12") == (7, 3, 10, 11)
    for wrong in ("", "a", "5:5", "1,1", "-1", "1:2:3"):
        with pytest.raises(ConfigError, match="seeds: "):
            parse_seeds(wrong)
