"""MO-Gymnasium: its wrappers, single and vectorised."""

# shown
import mo_gymnasium
import numpy as np
from mo_gymnasium.wrappers import LinearReward

import roce_gym

env = mo_gymnasium.make("mo-RoCE/NoisyNeighbor-v0")
weighted = LinearReward(env, weight=np.array([1.0, 0.1, 0.1]))
# end

from mo_gymnasium.wrappers import MONormalizeReward, MORecordEpisodeStatistics
from mo_gymnasium.wrappers.vector import MOSyncVectorEnv

weighted.reset(seed=0)
for _ in range(5):
    *_, scalar, _, _, info = weighted.step(weighted.action_space.sample())
    assert np.isclose(scalar, info["vector_reward"] @ [1.0, 0.1, 0.1])

env = MORecordEpisodeStatistics(MONormalizeReward(env, idx=0), gamma=0.99)
env.reset(seed=0)
done = False
while not done:
    _, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert reward.shape == env.unwrapped.reward_space.shape == (3,)
    done = terminated or truncated
assert info["episode"]["r"].shape == (3,) and info["episode"]["l"] == 100

makers = [lambda: mo_gymnasium.make("mo-RoCE/NoisyNeighbor-v0")] * 2
theirs = MOSyncVectorEnv(makers)
ours = mo_gymnasium.make("mo-RoCE/NoisyNeighbor-v0").unwrapped  # keeps the id's arguments
assert ours.reward_space == theirs.reward_space
import gymnasium

native = gymnasium.make_vec("mo-RoCE/NoisyNeighbor-v0", num_envs=2)
theirs.reset(seed=0), native.reset(seed=0)
theirs.action_space.seed(0)
for _ in range(5):
    actions = theirs.action_space.sample()
    a, b = theirs.step(actions), native.step(actions)
    assert (a[0] == b[0]).all() and (a[1] == b[1]).all() and a[1].shape == (2, 3)
