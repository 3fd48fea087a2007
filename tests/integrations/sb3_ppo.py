"""Stable-Baselines3: PPO, environments stepped by threads."""

# shown
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import roce_gym
from roce_gym.sb3 import ThreadVecEnv

env = make_vec_env("RoCE/NoisyNeighbor-v0", n_envs=2, seed=0, vec_env_cls=ThreadVecEnv)
model = PPO("MlpPolicy", env, n_steps=128, device="cpu").learn(512)
# end

assert model.num_timesteps == 512 and len(model.ep_info_buffer) == 4
assert [episode["l"] for episode in model.ep_info_buffer] == [100] * 4
env.close()
