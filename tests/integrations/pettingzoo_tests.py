"""PettingZoo: its own tests of api, seeds, pictures and cycles."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of one of its own environments
    from pettingzoo.test import (
        api_test,
        max_cycles_test,
        parallel_api_test,
        parallel_seed_test,
        render_test,
    )
warnings.simplefilter("error")

# shown
import roce_gym

env = roce_gym.parallel_env("noisy_neighbor")
observations, infos = env.reset(seed=0)
while env.agents:
    actions = {agent: env.action_space(agent).sample() for agent in env.agents}
    observations, rewards, terminations, truncations, infos = env.step(actions)
# end

from roce_gym import multi_agent

for scenario in ("noisy_neighbor", "regime_shift"):
    parallel_api_test(roce_gym.parallel_env(scenario), num_cycles=250)
    parallel_seed_test(lambda name=scenario: roce_gym.parallel_env(name), num_cycles=50)
for agents in ("switches", "both"):
    parallel_api_test(roce_gym.parallel_env(agents=agents), num_cycles=250)
    parallel_seed_test(lambda agents=agents: roce_gym.parallel_env(agents=agents), num_cycles=50)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that observations are not images
    api_test(multi_agent.env("noisy_neighbor"), num_cycles=200)
    api_test(multi_agent.env("noisy_neighbor", agents="switches"), num_cycles=600)
render_test(
    lambda render_mode: multi_agent.env(
        render_mode=None if render_mode == "human" else render_mode  # no window here
    )
)
max_cycles_test(multi_agent)
