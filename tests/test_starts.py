import pickle

import numpy as np
import pytest
from small import SMALL

from roce_gym import env as env_module
from roce_gym import starts
from roce_gym.env import RoceEnv
from roce_gym.knobs import KnobSpace
from roce_gym.starts import forget_starts


@pytest.fixture
def built(monkeypatch):
    """Seeds for which a plan was made, but for those of constructors."""
    forget_starts()
    seeds = []

    def plan(scenario, network, seed, **given):
        seeds.append(seed)
        return original(scenario, network, seed, **given)

    original = env_module.make_plan
    monkeypatch.setattr(env_module, "make_plan", plan)
    yield seeds
    forget_starts()


def episode(env, seed, steps=10, **options):
    """Everything that an episode gives, as comparable values."""
    env.action_space.seed(4)
    observation, info = env.reset(seed=seed, options=options)
    rows = [(observation.tobytes(), info)]
    for _ in range(steps):
        observation, *rest = env.step(env.action_space.sample())
        rows.append((observation.tobytes(), *rest))
    return rows


@pytest.mark.parametrize("arguments", [{}, {"observation": "deployable", "noise": 0.1}])
def test_seed_that_comes_again__is_not_built_again_and_gives_the_same(built, arguments):
    env, other = RoceEnv(SMALL, **arguments), RoceEnv(SMALL, **arguments)
    built.clear()
    first, another = episode(env, 1), episode(env, 2)
    assert built == [1, 2] and first != another
    assert episode(env, 1) == first and episode(other, 2) == another and built == [1, 2]
    forget_starts()
    assert episode(env, 1) == first and built == [1, 2, 1]


def test_episodes_do_not_disturb_what_is_kept(built):
    env, other = RoceEnv(SMALL), RoceEnv(SMALL)
    first = episode(env, 1)
    env.reset(seed=1)
    other.reset(seed=1)
    env.step(np.ones(20))
    other.step(-np.ones(20))
    snapshot = pickle.loads(pickle.dumps(env.snapshot()))
    assert episode(other, 1) == first
    env.restore(snapshot)
    assert episode(env, 1) == first


def test_what_else_decides_an_episode(built):
    env = RoceEnv(SMALL)
    built.clear()
    plain = episode(env, 1)
    held = episode(env, 1, preset="pfc_only")
    changed = episode(env, 1, params={"tenants.burst.jobs.0.degree": 2})
    assert plain != held != changed != plain and built == [1, 1, 1]
    assert episode(env, 1, preset="pfc_only") == held and built == [1, 1, 1]
    assert episode(env, 1, preset="default")[0] == plain[0] and built == [1, 1, 1]
    assert episode(env, 1, params={"tenants.burst.jobs.0.degree": 2}) == changed
    assert built == [1, 1, 1, 1]


def test_what_is_not_kept(built, tmp_path):
    flows = tmp_path / "flows.txt"
    flows.write_text("1\n4 5 3 100 20000 0.0001\n")
    job = {"kind": "flows", "file": str(flows)}
    with_file = SMALL | {"tenants": [SMALL["tenants"][0], SMALL["tenants"][1] | {"jobs": [job]}]}
    own_knobs = {"knobs": lambda scenario, network: KnobSpace(scenario, network)}
    for arguments in ({"scenario": with_file}, {"layouts": None}, own_knobs):
        env = RoceEnv(**({"scenario": SMALL} | arguments))
        built.clear()
        first = episode(env, 1, steps=2)
        assert episode(env, 1, steps=2) == first and built == [1, 1]


def test_memory_is_bounded_and_the_oldest_goes_first(built, monkeypatch):
    env = RoceEnv(SMALL)
    env.reset(seed=1)
    image = env.fabric.state_bytes
    forget_starts()
    monkeypatch.setattr(starts, "MEMORY_BYTES", 4 * image)
    for seed in range(40):
        env.reset(seed=seed)
    assert sum(size for _, size in starts._memory.values()) <= 4 * image
    assert 10 < len(starts._memory) <= 40  # equal arrays are kept once
    monkeypatch.setattr(starts, "MEMORY_BYTES", image + image // 2)
    forget_starts()
    env.reset(seed=1)
    assert not starts._memory  # too large by itself
