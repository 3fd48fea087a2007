"""Stable-Baselines3: its checker, without a warning."""

import warnings

warnings.simplefilter("error")

# shown
import gymnasium
from stable_baselines3.common.env_checker import check_env

import roce_gym

check_env(gymnasium.make("RoCE/NoisyNeighbor-v0").unwrapped, warn=True)
# end

check_env(gymnasium.make("RoCE/RegimeShift-v0").unwrapped, warn=True)
