from dataclasses import replace

import numpy as np
import pytest
import yaml
from small import SMALL

from agents.registry import make_policy
from agents.settings_file import FORMAT, SettingsFile, read_settings, write_settings
from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError


@pytest.fixture(scope="module")
def env():
    raw = yaml.safe_load(yaml.safe_dump(SMALL))
    incast = raw["tenants"][1]["jobs"][0]
    raw["tenants"][1]["jobs"] = [incast | {"start_us": 160, "stop_us": 310}]
    return RoceEnv(raw)


def settings(env, value):
    return dict.fromkeys(env.knobs.names, value)


@pytest.fixture
def content(env):
    regimes = {"usual": settings(env, -0.5), "burst incast of 3": settings(env, 0.75)}
    return SettingsFile(settings(env, 0.125), regimes, {"env": "small", "found": 3})


@pytest.fixture
def path(env, content, tmp_path):
    path = tmp_path / "found.yaml"
    write_settings(path, content, env.knobs.knobs)
    return path


def actions(env, policy, seed=5):
    observation, _ = env.reset(seed=seed, options=dict(policy.reset_options))
    policy.reset(env, seed)
    found, is_over = [], False
    while not is_over:
        found.append(policy.act(observation))
        observation, _, terminated, truncated, _ = env.step(found[-1])
        is_over = terminated or truncated
    return np.array(found)


def test_what_is_written_is_read_again(path, content):
    assert read_settings(path) == content


def test_comments_say_what_positions_mean(env, path):
    lines = path.read_text().splitlines()
    middle = {k.name: (k.low * k.high) ** 0.5 for k in env.knobs.knobs if k.is_log}
    write_settings(path, SettingsFile(settings(env, 0.0)), env.knobs.knobs)
    (line,) = (x for x in path.read_text().splitlines() if x.startswith("  class/gold/kmin"))
    assert line.split() == ["class/gold/kmin:", "0.0", "#", "80,000", "bytes"]
    assert middle["class/gold/kmin"] == pytest.approx(80_000)
    assert any(x.split()[:2] == ["class/lead/buffer_split:", "0.75"] for x in lines)


def test_static_settings_are_held_as_they_are(env, path):
    policy = make_policy(f"static:{path}")
    policy.check(env)
    assert (actions(env, policy) == np.float32(0.125)).all()
    assert env.knobs.encode(env.fabric.settings) == pytest.approx(0.125, abs=0.002)  # whole bytes


def test_the_oracle_changes_in_the_interval_that_a_regime_begins_in(env, path):
    policy = make_policy(f"oracle:{path}")
    policy.check(env)
    # Intervals of 50 us: the incast is there from 160 to 310, most of intervals 3 to 5.
    expected = np.repeat(np.float32([-0.5, 0.75, -0.5]), [3, 3, 4])
    assert (actions(env, policy) == expected[:, None]).all()


def test_the_oracle_counts_in_that_actions_are_late(path):
    raw = yaml.safe_load(yaml.safe_dump(SMALL))
    raw["tenants"][1]["jobs"][0] |= {"start_us": 160, "stop_us": 310}
    late = RoceEnv(raw, action_delay=2)
    expected = np.repeat(np.float32([-0.5, 0.75, -0.5]), [1, 3, 6])
    assert (actions(late, make_policy(f"oracle:{path}")) == expected[:, None]).all()


def test_regimes_without_settings_have_the_usual_ones(env, content, path):
    del content.regimes["usual"]
    write_settings(path, content, env.knobs.knobs)
    expected = np.repeat(np.float32([0.125, 0.75, 0.125]), [3, 3, 4])
    assert (actions(env, make_policy(f"oracle:{path}")) == expected[:, None]).all()


def test_fingerprints_follow_what_is_held(env, content, path):
    static, oracle = make_policy(f"static:{path}"), make_policy(f"oracle:{path}")
    other = content.regimes | {"usual": settings(env, 0.0)}
    write_settings(path, replace(content, regimes=other, about={}), env.knobs.knobs)
    assert make_policy(f"static:{path}").fingerprint == static.fingerprint
    assert make_policy(f"oracle:{path}").fingerprint != oracle.fingerprint != static.fingerprint


def test_files_that_are_not_acceptable(tmp_path):
    path = tmp_path / "bad.yaml"
    good = {"format": FORMAT, "settings": {"a": 0.5}}
    for raw, message in (
        ([1], "is no file of settings"),
        ({"settings": {}}, "expected: format"),
        ({"format": FORMAT}, "settings = None is not allowed"),
        (good | {"more": 1}, "more is unknown; allowed: about, format"),
        (good | {"settings": {"a": 1.5}}, r"settings.a = 1.5 is not allowed; allowed: -1 to 1"),
        (good | {"settings": {"a": True}}, r"settings.a = True is not allowed"),
        (good | {"settings": {"a": float("nan")}}, r"settings.a = nan is not allowed"),
        (good | {"regimes": {"x": {"a": "b"}}}, r"regimes.x.a = 'b' is not allowed"),
    ):
        path.write_text(yaml.safe_dump(raw))
        with pytest.raises(ConfigError, match=f"bad.yaml: .*{message}|{message}"):
            make_policy(f"static:{path}")
    path.write_text("a: [")
    with pytest.raises(ConfigError, match=r"bad\.yaml: is no YAML"):
        make_policy(f"static:{path}")
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read"):
        make_policy(f"static:{tmp_path / 'none.yaml'}")
    path.write_text(yaml.safe_dump(good))
    with pytest.raises(ConfigError, match="regimes is missing"):
        make_policy(f"oracle:{path}")


def test_files_for_other_knobs_are_refused(env, content, path):
    usual, name = dict(content.settings), env.knobs.names[0]
    with pytest.raises(ConfigError, match="settings: other is unknown; this environment"):
        write_and_check(path, env, {"other": 0.0} | usual, "static")
    with pytest.raises(ConfigError, match=f"settings: {name} is missing"):
        write_and_check(path, env, {k: v for k, v in usual.items() if k != name}, "static")
    with pytest.raises(ConfigError, match=f"regimes.x: {name} is missing"):
        write_and_check(path, env, usual, "oracle", {"x": {}})


def write_and_check(path, env, usual, kind, regimes=None):
    raw = {"format": FORMAT, "settings": usual, "regimes": regimes or {}}
    path.write_text(yaml.safe_dump(raw))
    make_policy(f"{kind}:{path}").check(env)


@pytest.mark.parametrize("mode", ["delta", "multidiscrete"])
def test_positions_are_no_actions_in_other_modes(path, mode):
    with pytest.raises(ConfigError, match=f"knob_mode = '{mode}' is not allowed"):
        make_policy(f"static:{path}").check(RoceEnv(SMALL, knob_mode=mode))
