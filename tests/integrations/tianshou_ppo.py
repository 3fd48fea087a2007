"""Tianshou: PPO, environments in its own vector."""

import torch
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic
from torch.distributions import Independent, Normal

# shown
import gymnasium
from tianshou.env import DummyVectorEnv

import roce_gym

envs = DummyVectorEnv([lambda: gymnasium.make("RoCE/NoisyNeighbor-v0") for _ in range(2)])
# end

space = envs.action_space[0]
torch.manual_seed(0)
shape, size = envs.observation_space[0].shape, (64,)
actor = ContinuousActorProbabilistic(
    preprocess_net=Net(state_shape=shape, hidden_sizes=size), action_shape=space.shape
)
critic = ContinuousCritic(preprocess_net=Net(state_shape=shape, hidden_sizes=size))
policy = ProbabilisticActorPolicy(
    actor=actor,
    dist_fn=lambda loc_scale: Independent(Normal(*loc_scale), 1),
    action_space=space,
    action_scaling=False,
    action_bound_method=None,
)
algorithm = PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=3e-4))
before = [p.detach().clone() for p in policy.parameters()]
result = algorithm.run_training(
    OnPolicyTrainerParams(
        training_collector=Collector(algorithm, envs, VectorReplayBuffer(512, 2)),
        max_epochs=1,
        epoch_num_steps=400,
        collection_step_num_env_steps=200,
        update_step_num_repetitions=2,
        batch_size=64,
        test_in_training=False,
        show_progress=False,
    )
)
assert result.train_step == 400 and result.train_episode == 4
assert any((a != b).any() for a, b in zip(before, policy.parameters(), strict=True))
