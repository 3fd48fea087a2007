"""TorchRL: a collector on the native vector environment, and its PPO loss."""

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.modules import NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

# shown
import gymnasium
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper

import roce_gym

env = GymWrapper(gymnasium.make_vec("RoCE/NoisyNeighbor-v0", num_envs=2, autoreset_mode="Disabled"))
# end

n, m = env.action_spec.shape[-1], env.observation_spec["observation"].shape[-1]
torch.manual_seed(0)
env.set_seed(0)
net = nn.Sequential(nn.Linear(m, 64), nn.Tanh(), nn.Linear(64, 2 * n), NormalParamExtractor())
actor = ProbabilisticActor(
    TensorDictModule(net, ["observation"], ["loc", "scale"]),
    in_keys=["loc", "scale"],
    distribution_class=TanhNormal,
    return_log_prob=True,
)
critic = ValueOperator(nn.Sequential(nn.Linear(m, 64), nn.Tanh(), nn.Linear(64, 1)))
loss, advantage = ClipPPOLoss(actor, critic), GAE(gamma=0.99, lmbda=0.95, value_network=critic)
optimiser = torch.optim.Adam(loss.parameters(), 3e-4)
before = [p.detach().clone() for p in loss.parameters()]
frames, ends = 0, 0
for batch in Collector(env, actor, frames_per_batch=128, total_frames=512):
    advantage(batch)
    for _ in range(3):
        terms = loss(batch)
        optimiser.zero_grad()
        sum(terms[k] for k in ("loss_objective", "loss_critic", "loss_entropy")).backward()
        optimiser.step()
    frames += batch.numel()
    ends += int(batch["next", "done"].sum())
assert frames == 512 and ends == 4
assert all((a != b).any() for a, b in zip(before, loss.parameters(), strict=True))
