from dataclasses import replace

import pytest

from roce_gym.errors import ConfigError
from training.args import Args, check_args, config_names, dump_args, load_args
from training.command import parse
from training.environment import EVALUATION_SEEDS_FROM, EnvChoice


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", config_names())
def test_packaged_configurations_fit_their_environments(name):
    args = load_args(name)
    env = args.choice.make(args.layouts)
    episode = round(env.scenario.control.horizon_us / env.scenario.control.interval_us)
    assert args.n_steps % episode == 0  # so that resuming repeats exactly
    assert args.layouts <= EVALUATION_SEEDS_FROM


def test_unknown_keys_are_refused_with_those_allowed(tmp_path):
    path = write(tmp_path / "a.yaml", "learning_rat: 0.1\n")
    with pytest.raises(ConfigError, match=r"a\.yaml: learning_rat: unknown; allowed: .*gamma"):
        load_args(path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("gamma: 1.5", "gamma"),
        ("total_steps: 0", "total_steps"),
        ("layouts: 10001", "layouts"),
        ("n_steps: many", "n_steps"),
        ("learning_rate: .nan", "learning_rate"),
        ("batch_size: 7", "batch_size = 7 .* a divisor of"),
        ("gamma: 0.5\ngamma: 0.6", "line 2"),
        ("[1, 2]", "a mapping"),
    ],
)
def test_values_that_are_not_acceptable_are_named_with_their_file(tmp_path, text, fault):
    path = write(tmp_path / "a.yaml", text)
    with pytest.raises(ConfigError, match=rf"(?s)a\.yaml.*{fault}"):
        load_args(path)


def test_missing_configurations_are_answered_with_the_packaged_ones():
    with pytest.raises(ConfigError, match=r"nowhere: .*noisy_neighbor"):
        load_args("nowhere")


def test_what_is_dumped_is_loaded(tmp_path):
    args = Args(overrides=("a.b=1",), hidden_sizes=(8,), gamma=0.5)
    assert load_args(write(tmp_path / "a.yaml", dump_args(args))) == args


def test_steps_are_rounded_up_to_whole_rollouts():
    args = check_args({"total_steps": 41, "n_steps": 10, "num_envs": 2, "batch_size": 10}, "")
    assert args.rollout_steps == 20
    assert args.whole_steps == 60
    assert replace(args, total_steps=40).whole_steps == 40


def test_the_command_line_wins_over_the_file(tmp_path):
    path = write(tmp_path / "mine.yaml", "gamma: 0.5\nseed: 3\n")
    command = parse(["--config", str(path), "--gamma", "0.6", "--hidden-sizes", "8", "9"])
    assert command.args == replace(Args(), gamma=0.6, seed=3, hidden_sizes=(8, 9))
    assert command.run_dir == "runs/train/mine-seed3"


def test_a_run_keeps_its_configuration(tmp_path):
    write(tmp_path / "config.yaml", dump_args(Args(gamma=0.5)))
    command = parse(["--resume", str(tmp_path), "--total-steps", "5"])
    assert command.args == Args(gamma=0.5, total_steps=5)
    with pytest.raises(ConfigError, match="gamma cannot differ"):
        parse([f"--resume={tmp_path}", "--gamma", "0.6"])
    with pytest.raises(ConfigError, match="exclude each other"):
        parse(["--resume", str(tmp_path), "--config", "demo"])
    with pytest.raises(ConfigError, match="holds no training run"):
        parse(["--resume", str(tmp_path / "nowhere")])


def test_unknown_environments_are_answered_with_those_allowed():
    for name in ("RoCE/Noise-v0", "CartPole-v1", "nowhere"):
        with pytest.raises(ConfigError, match=r"noisy_neighbor|NoisyNeighbor"):
            EnvChoice(name).make()


def test_scenarios_are_those_of_the_environment():
    choice = EnvChoice("RoCE/NoisyNeighbor-v0", ("control.horizon_us=1000",))
    env = choice.make(layouts=4)
    assert choice.scenario(0) == env.scenario
    assert choice.scenario(1) != env.scenario
    assert env.scenario.control.horizon_us == 1000
