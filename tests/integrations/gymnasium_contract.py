"""Gymnasium: its checker, copies, and its vectors, with processes that are spawned."""

# shown
import gymnasium

import roce_gym

env = gymnasium.make("RoCE/NoisyNeighbor-v0")
envs = gymnasium.make_vec("RoCE/NoisyNeighbor-v0", num_envs=2, threads=2)
# end

import pickle
import warnings

import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv

from roce_gym.registration import ENVIRONMENTS


def make():
    return gymnasium.make("roce_gym:RoCE/NoisyNeighbor-v0")


def main():
    warnings.simplefilter("error")
    for env_id in ENVIRONMENTS:
        check_env(gymnasium.make(env_id).unwrapped)
    env.reset(seed=0)
    twin = pickle.loads(pickle.dumps(env))
    action = env.action_space.sample()
    (a, *others), (b, *expected) = env.step(action), twin.step(action)
    assert (a == b).all() and others == expected
    spawned = AsyncVectorEnv([make] * 2, context="spawn")
    assert (spawned.reset(seed=3)[0] == envs.reset(seed=3)[0]).all()
    for _ in range(110):  # past the end of an episode
        actions = envs.action_space.sample()
        a, b = spawned.step(actions), envs.step(actions)
        assert all((x == y).all() for x, y in zip(a[:4], b[:4], strict=True))
        assert all((a[4][key] == b[4][key]).all() for key in b[4])
    spawned.close()
    envs.close()


if __name__ == "__main__":
    main()
