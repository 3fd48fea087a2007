"""Stable-Baselines3: SAC, one environment."""

# shown
import gymnasium
from stable_baselines3 import SAC

import roce_gym

env = gymnasium.make("RoCE/NoisyNeighbor-v0")
model = SAC("MlpPolicy", env, learning_starts=100, seed=0, device="cpu").learn(300)
# end

assert model.num_timesteps == 300 and model._n_updates > 150
