"""RLlib: PPO on a local Ray cluster; each env runner has a native vector environment."""

import ray

ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)

# shown
import gymnasium
from ray.rllib.algorithms.ppo import PPOConfig

config = (
    PPOConfig()
    .environment("roce_gym:RoCE/NoisyNeighbor-v0")
    .env_runners(num_env_runners=2, num_envs_per_env_runner=2, sample_timeout_s=600)
    .env_runners(gym_env_vectorize_mode=gymnasium.VectorizeMode.VECTOR_ENTRY_POINT)
    .training(train_batch_size=512, minibatch_size=128, num_epochs=2)
)
result = config.build_algo().train()
# end

runners = result["env_runners"]
assert runners["num_env_steps_sampled_lifetime"] >= 512
assert runners["num_episodes"] >= 4 and -100 < runners["episode_return_mean"] < 100
assert result["learners"]["default_policy"]["num_module_steps_trained_lifetime"] > 0
ray.shutdown()
