"""The README's first episode: random actions, with Gymnasium alone."""

# shown
import gymnasium
import roce_gym  # registers the ids; or gymnasium.make("roce_gym:RoCE/NoisyNeighbor-v0")

env = gymnasium.make("RoCE/NoisyNeighbor-v0")
observation, info = env.reset(seed=1)
done = False
while not done:
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    done = terminated or truncated
print(info["score"], info["slowdown/training"], info["pfc_frames_per_s"])
# end

assert truncated and not terminated
assert 0 < info["score"] < 10 and info["slowdown/training"] > 0
