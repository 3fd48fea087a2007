"""RLlib: independent PPO, one agent a tenant, on a local Ray cluster."""

import ray

ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)

# shown
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune import register_env

import roce_gym

register_env("tenants", lambda _: ParallelPettingZooEnv(roce_gym.parallel_env("noisy_neighbor")))
config = PPOConfig().environment("tenants").env_runners(num_env_runners=2, sample_timeout_s=600)
tenants = ["training", "checkpoint"]
config.multi_agent(policies=tenants, policy_mapping_fn=lambda agent, *_, **__: agent)
config.training(train_batch_size=400, minibatch_size=100, num_epochs=2)
result = config.build_algo().train()
# end

runners = result["env_runners"]
assert runners["num_env_steps_sampled_lifetime"] >= 400
assert set(runners["agent_episode_returns_mean"]) == {"training", "checkpoint"}
assert {"training", "checkpoint"} <= set(result["learners"])
ray.shutdown()
