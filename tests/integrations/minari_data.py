"""Minari: episodes of the default settings and of random actions become a data set."""

import os
import tempfile

os.environ["MINARI_DATASETS_PATH"] = tempfile.mkdtemp()

# shown
import gymnasium
import minari

import roce_gym

env = minari.DataCollector(gymnasium.make("RoCE/NoisyNeighbor-v0"), record_infos=True)
for seed in range(2):
    env.reset(seed=seed)
    while not any(env.step(env.action_space.sample())[2:4]):
        pass
dataset = env.create_dataset("roce/noisy-neighbor/random-v0", algorithm_name="random")
# end

import numpy as np

again = minari.load_dataset("roce/noisy-neighbor/random-v0")
assert again.total_episodes == 2 and again.total_steps == 200
made = again.recover_environment()
assert made.observation_space == env.observation_space
for seed, episode in enumerate(again.iterate_episodes()):
    # Playing the actions again gives the data again, bit for bit.
    observation, info = made.reset(seed=seed)
    assert (episode.observations[0] == observation).all()
    for t, action in enumerate(episode.actions):
        observation, reward, _, truncated, info = made.step(action)
        assert (episode.observations[t + 1] == observation).all()
        assert episode.rewards[t] == reward and episode.truncations[t] == truncated
        for key in ("score", "interference", "interference_of/training"):
            recorded = episode.infos
            for part in key.split("/"):
                recorded = recorded[part]
            assert np.isclose(recorded[t + 1], info[key])
