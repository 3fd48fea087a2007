"""sb3-contrib: RecurrentPPO, a policy with memory."""

# shown
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env

import roce_gym
from roce_gym.sb3 import ThreadVecEnv

env = make_vec_env("RoCE/RegimeShift-v0", n_envs=2, seed=0, vec_env_cls=ThreadVecEnv)
model = RecurrentPPO("MlpLstmPolicy", env, n_steps=64, n_epochs=2, device="cpu").learn(256)
# end

assert model.num_timesteps == 256
env.close()
