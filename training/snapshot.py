"""From a training state to a checkpoint and back, random number generators included."""

from __future__ import annotations

import io
import pickle
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from agents.checkpoint import Checkpoint
from roce_gym import __version__
from roce_gym.errors import CheckpointError
from training.args import Args


def take_snapshot(model: PPO, args: Args) -> Checkpoint:
    """What is needed to act, and to go on training. Precondition: between two rollouts."""
    buffer = io.BytesIO()
    model.save(buffer)
    env = model.get_env()
    assert env is not None
    about = {
        "algorithm": "PPO",
        "steps": model.num_timesteps,
        "env": args.env,
        "observations": list(model.observation_space.shape or ()),
        "actions": list(model.action_space.shape or ()),
        "roce_gym": __version__,
        "config": asdict(args),
    }
    state = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002, Stable-Baselines3 draws from it
        "torch": torch.get_rng_state().numpy(),
        "order": env.env_method("get_order"),
    }
    normalizer = pickle.dumps(env) if isinstance(env, VecNormalize) else None
    return Checkpoint(about, buffer.getvalue(), normalizer, pickle.dumps(state))


def restore_env(env: VecEnv, checkpoint: Checkpoint, path: Path) -> VecEnv:
    """Puts the statistics of a checkpoint around a new environment, if it has any.

    Raises:
        CheckpointError: they cannot be read.
    """
    if checkpoint.normalizer is None:
        return env
    normalizer = _unpickle(checkpoint.normalizer, path)
    if not isinstance(normalizer, VecNormalize):
        raise CheckpointError(f"{path}: normalizer.pkl in it holds no VecNormalize")
    normalizer.set_venv(env)
    return normalizer


def restore_model(env: VecEnv, checkpoint: Checkpoint, path: Path) -> PPO:
    """The model as it was, with all generators as they were.

    Raises:
        CheckpointError: it cannot be read.
    """
    try:
        model = PPO.load(io.BytesIO(checkpoint.model), env=env, device="cpu")
    except Exception as error:  # whatever unpickling may raise
        raise CheckpointError(f"{path}: the model in it cannot be loaded: {error}") from error
    state: dict[str, Any] = _unpickle(checkpoint.state or b"", path)
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    torch.set_rng_state(torch.from_numpy(state["torch"]))
    for index, order in enumerate(state["order"]):
        env.env_method("set_order", order, indices=[index])
    return model


def _unpickle(content: bytes, path: Path) -> Any:
    try:
        return pickle.loads(content)
    except Exception as error:  # whatever unpickling may raise
        raise CheckpointError(f"{path}: is damaged ({type(error).__name__}: {error})") from error
