"""PPO in a single file, in the manner of CleanRL, on the native vector environment."""

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

# shown
import gymnasium

import roce_gym

envs = gymnasium.make_vec("RoCE/NoisyNeighbor-v0", num_envs=4, threads=2)
envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
# end

NUM_STEPS, UPDATES, EPOCHS, GAMMA, LAMBDA, CLIP = 64, 4, 4, 0.99, 0.95, 0.2
torch.manual_seed(1)
n, m = envs.single_action_space.shape[0], envs.single_observation_space.shape[0]
actor = nn.Sequential(nn.Linear(m, 64), nn.Tanh(), nn.Linear(64, n))
critic = nn.Sequential(nn.Linear(m, 64), nn.Tanh(), nn.Linear(64, 1))
log_std = nn.Parameter(torch.zeros(n) - 0.5)
parameters = [*actor.parameters(), *critic.parameters(), log_std]
optimiser = torch.optim.Adam(parameters, 3e-4, eps=1e-5)
before = [p.detach().clone() for p in parameters]


def log_prob(obs, action):
    return Normal(actor(obs), log_std.exp()).log_prob(action).sum(-1)


obs, _ = envs.reset(seed=1)
over = np.zeros(envs.num_envs, bool)
returns = []
for _ in range(UPDATES):
    rows = []
    with torch.no_grad():
        for _ in range(NUM_STEPS):
            seen = torch.as_tensor(obs)
            action = Normal(actor(seen), log_std.exp()).sample()
            old = log_prob(seen, action), critic(seen).squeeze(-1)
            obs, reward, terminated, truncated, infos = envs.step(action.numpy())
            # The step after an end only resets (NEXT_STEP): it is no transition.
            is_real, over = ~over, terminated | truncated
            value_next = critic(torch.as_tensor(obs)).squeeze(-1)
            rows.append((seen, action, *old, reward, terminated, over, value_next, is_real))
            if "episode" in infos:
                returns += infos["episode"]["r"][infos["_episode"]].tolist()
        columns = [torch.as_tensor(np.stack(column)) for column in zip(*rows, strict=True)]
        b_obs, b_action, b_logp, b_value, b_reward, b_terminated, b_over, b_next, b_real = columns
        delta = b_reward + GAMMA * b_next * ~b_terminated - b_value
        advantage, last = torch.zeros_like(delta), torch.zeros(envs.num_envs)
        for t in reversed(range(NUM_STEPS)):
            last = delta[t] + GAMMA * LAMBDA * last * ~b_over[t]
            advantage[t] = last
        target = advantage + b_value
    for _ in range(EPOCHS):
        ratio = (log_prob(b_obs, b_action)[b_real] - b_logp[b_real]).exp()
        a = advantage[b_real]
        a = (a - a.mean()) / (a.std() + 1e-8)
        policy_loss = -torch.min(ratio * a, ratio.clamp(1 - CLIP, 1 + CLIP) * a).mean()
        value_loss = ((critic(b_obs).squeeze(-1) - target)[b_real] ** 2).mean()
        optimiser.zero_grad()
        (policy_loss + 0.5 * value_loss).backward()
        nn.utils.clip_grad_norm_(parameters, 0.5)
        optimiser.step()
assert len(returns) == 2 * envs.num_envs and np.isfinite(returns).all()
assert all((a != b).any() for a, b in zip(before, parameters, strict=True))
envs.close()
