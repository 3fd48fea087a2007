"""Runs of the real script, with tiny budgets."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from small import SMALL

from agents.checkpoint import list_checkpoints, read_checkpoint
from agents.learned import Sb3Policy
from roce_gym.errors import CheckpointError, ConfigError
from training.args import check_args
from training.ppo import train
from training.run_folder import RunFolder

ROOT = Path(__file__).parents[2]
STEPS = 600


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    """Episodes of 10 steps; `n_steps` is one, so that resuming repeats exactly."""
    path = tmp_path_factory.mktemp("scenario") / "small.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    return path


def options(scenario, **more):
    return {
        "env": str(scenario),
        "layouts": 4,
        "total_steps": STEPS,
        "num_envs": 2,
        "parallel": False,
        "checkpoint_every": 20,
        "n_steps": 10,
        "batch_size": 20,
        "n_epochs": 2,
        "hidden_sizes": [8],
    } | more


def start(scenario, run_dir, **more):
    config = run_dir.with_suffix(".yaml")
    config.write_text(yaml.safe_dump(options(scenario, **more)))
    return launch("--config", str(config), "--run-dir", str(run_dir))


def launch(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "training.ppo", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process):
    output, _ = process.communicate(timeout=120)
    return process.returncode, output


def wait_for_checkpoints(process, run_dir, count):
    while len(list_checkpoints(run_dir / "checkpoints")) < count:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)


def steps_of(run_dir):
    return [read_checkpoint(path).about["steps"] for path in RunFolder(run_dir).all_checkpoints()]


def weights_of(run_dir):
    model = Sb3Policy.load(run_dir)._model
    return np.concatenate([p.detach().numpy().ravel() for p in model.policy.parameters()])


@pytest.fixture(scope="module")
def whole(scenario, tmp_path_factory):
    """A run without interruptions."""
    run_dir = tmp_path_factory.mktemp("runs") / "whole"
    assert train(check_args(options(scenario), ""), run_dir) == ""
    return run_dir


def test_a_run_leaves_checkpoints_configuration_and_curves(whole):
    assert steps_of(whole) == list(range(0, STEPS + 1, 20))
    assert yaml.safe_load((whole / "config.yaml").read_text())["layouts"] == 4
    assert list((whole / "tensorboard").iterdir())


def test_a_killed_run_goes_on_and_ends_as_if_nothing_had_happened(scenario, whole, tmp_path):
    run_dir = tmp_path / "killed"
    process = start(scenario, run_dir)
    wait_for_checkpoints(process, run_dir, 4)
    process.kill()
    finish(process)
    before = steps_of(run_dir)
    assert 60 <= before[-1] < STEPS
    (run_dir / "checkpoints" / ".step_0000009999.zip.1.tmp").write_bytes(b"unfinished")

    code, output = finish(launch("--resume", str(run_dir)))
    assert code == 0, output
    assert f"going on from {RunFolder(run_dir).checkpoint_path(before[-1])}" in output
    assert steps_of(run_dir) == list(range(0, STEPS + 1, 20))
    assert not list(run_dir.rglob("*.tmp"))
    assert (weights_of(run_dir) == weights_of(whole)).all()


def test_interrupted_in_processes_of_their_own_it_saves_and_says_how_to_go_on(scenario, tmp_path):
    run_dir = tmp_path / "interrupted"
    process = start(scenario, run_dir, parallel=True, checkpoint_every=10_000, total_steps=50_000)
    wait_for_checkpoints(process, run_dir, 1)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    code, output = finish(process)
    assert code == 130, output
    assert f"--resume {run_dir}" in output
    assert "Traceback" not in output
    assert len(steps_of(run_dir)) in (1, 2)


def test_curves_of_the_same_seed_agree(scenario, whole, tmp_path):
    args = check_args(options(scenario, total_steps=100), "")
    for name in ("a", "b"):
        train(args, tmp_path / name)
    assert (weights_of(tmp_path / "a") == weights_of(tmp_path / "b")).all()
    train(check_args(options(scenario, total_steps=100, seed=2), ""), tmp_path / "c")
    assert (weights_of(tmp_path / "a") != weights_of(tmp_path / "c")).any()


def test_normalisation_is_kept_and_the_time_limit_ends_a_run(scenario, tmp_path):
    args = check_args(
        options(scenario, normalize_observations=True, normalize_reward=True, max_minutes=1e-9), ""
    )
    assert train(args, tmp_path / "run") == "time limit"
    assert steps_of(tmp_path / "run") == [0]
    args = check_args(
        options(
            scenario,
            normalize_observations=True,
            normalize_reward=True,
            total_steps=60,
            checkpoint_every=100,
        ),
        "",
    )
    assert train(args, tmp_path / "run", resume=True) == ""
    assert steps_of(tmp_path / "run") == [0, 60]
    assert Sb3Policy.load(tmp_path / "run")._normalizer.obs_rms.count > 60


def test_training_begins_at_the_default_settings(scenario, whole):
    args = check_args(options(scenario), "")
    env = args.choice.make()
    observation, _ = env.reset(seed=10_000)
    policy = Sb3Policy.load(RunFolder(whole).checkpoint_path(0))
    position = env.knobs.encode(env.fabric.settings)
    assert np.abs(policy.act(observation) - position).max() < 0.1


def test_nothing_is_overwritten_unless_told(scenario, whole, tmp_path):
    args = check_args(options(scenario, total_steps=20), "")
    with pytest.raises(ConfigError, match=r"holds a run already.*--resume.*--overwrite"):
        train(args, whole)
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(ConfigError, match="exists and is no training run"):
        train(args, tmp_path, overwrite=True)
    train(args, tmp_path / "run")
    train(args, tmp_path / "run", overwrite=True)
    assert steps_of(tmp_path / "run") == [0, 20]


def test_a_damaged_newest_checkpoint_is_left_out_with_a_warning(scenario, tmp_path, capsys):
    run_dir = tmp_path / "run"
    args = check_args(options(scenario, total_steps=200, checkpoint_every=100), "")
    train(args, run_dir)
    newest = RunFolder(run_dir).all_checkpoints()[-1]
    os.truncate(newest, 100)
    assert train(args, run_dir, resume=True) == ""
    assert f"warning: left out: {newest}: is damaged" in capsys.readouterr().err
    assert steps_of(run_dir) == [0, 100, 200]
    for path in RunFolder(run_dir).all_checkpoints():
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="no checkpoint to go on from"):
        train(args, run_dir, resume=True)


def test_a_run_stopped_before_its_first_checkpoint_begins_again(scenario, tmp_path):
    args = check_args(options(scenario, total_steps=20), "")
    RunFolder(tmp_path / "run").begin(args)
    train(args, tmp_path / "run", resume=True)
    assert steps_of(tmp_path / "run") == [0, 20]


def test_faults_are_found_before_anything_runs(scenario, tmp_path):
    code, output = finish(
        launch("--env", str(scenario), "--overrides", "nothing.here=1", "--run-dir", str(tmp_path))
    )
    assert code == 2
    assert output.startswith("error: ") and "nothing" in output and "Traceback" not in output
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_tells_what_it_was_trained_on(scenario, whole):
    about = Sb3Policy.load(whole).checkpoint.about
    assert about["env"] == str(scenario)
    assert about["steps"] == STEPS
    assert json.loads(json.dumps(about["config"]))["seed"] == 1
