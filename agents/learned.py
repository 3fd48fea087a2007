"""Policies learned with Stable-Baselines3. PyTorch is imported only when one is loaded."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.checkpoint import Checkpoint, find_checkpoint, read_checkpoint
from agents.policy import Action, Observed
from roce_gym.env import RoceEnv
from roce_gym.errors import CheckpointError

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecNormalize


class Sb3Policy:
    """Acts as a trained model does, without exploration noise.

    Attributes:
        checkpoint: what the policy was loaded from.
    """

    def __init__(self, name: str, path: Path, checkpoint: Checkpoint) -> None:
        """Use :meth:`load`."""
        self.name = name
        self.fingerprint = hashlib.sha256(
            checkpoint.model + (checkpoint.normalizer or b"")
        ).hexdigest()
        self.reset_options: Mapping[str, Any] = {}
        self.checkpoint = checkpoint
        self._path = path
        self._model = _load_model(path, checkpoint)
        self._normalizer = _load_normalizer(path, checkpoint)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sb3Policy:
        """Loads a checkpoint, the newest checkpoint of a run's folder, or a plain model.

        Raises:
            CheckpointError: missing, damaged, or not what is expected; or Stable-Baselines3 is not
                installed.
        """
        file = find_checkpoint(Path(path))
        return cls(f"sb3:{os.fspath(path)}", file, read_checkpoint(file))

    def reset(self, env: RoceEnv, seed: int) -> None:
        """Nothing is remembered from one episode to the next."""

    def check(self, env: RoceEnv) -> None:
        """Checks that the model fits the environment.

        Raises:
            CheckpointError: it was trained on other observations or actions.
        """
        for what, own, given in (
            ("observation", self._model.observation_space, env.observation_space),
            ("action", self._model.action_space, env.action_space),
        ):
            if own.shape != given.shape:
                raise CheckpointError(
                    f"{self._path}: was trained with {what}s of shape {own.shape}; "
                    f"this environment ({env.scenario.name}) has {given.shape}"
                )

    def act(self, observation: Observed) -> Action:
        """The mean of the policy's distribution, within the action space."""
        if self._normalizer is not None:
            normal: Any = self._normalizer.normalize_obs(observation)
            observation = normal
        action, _ = self._model.predict(observation, deterministic=True)
        return np.asarray(action, np.float32)


def _load_model(path: Path, checkpoint: Checkpoint) -> BaseAlgorithm:
    try:
        import stable_baselines3
        import torch
    except ImportError as error:
        raise CheckpointError(
            f"{path}: needs stable-baselines3 and torch ({error}); "
            'install them with: pip install "roce-gym[train]"'
        ) from None
    torch.set_num_threads(1)  # small networks: more threads only get in each other's way
    algorithm = getattr(stable_baselines3, str(checkpoint.about["algorithm"]), None)
    if algorithm is None:
        raise CheckpointError(
            f"{path}: algorithm {checkpoint.about['algorithm']!r} is unknown to "
            f"stable-baselines3 {stable_baselines3.__version__}"
        )
    try:
        model: BaseAlgorithm = algorithm.load(io.BytesIO(checkpoint.model), device="cpu")
    except Exception as error:  # whatever unpickling may raise
        raise CheckpointError(
            f"{path}: the model in it cannot be loaded ({type(error).__name__}: {error}); "
            f"expected: {checkpoint.about['algorithm']} saved by stable-baselines3"
        ) from error
    return model


def _load_normalizer(path: Path, checkpoint: Checkpoint) -> VecNormalize | None:
    if checkpoint.normalizer is None:
        return None
    try:
        normalizer: VecNormalize = pickle.loads(checkpoint.normalizer)
    except Exception as error:  # whatever unpickling may raise
        raise CheckpointError(
            f"{path}: the VecNormalize statistics in it cannot be loaded "
            f"({type(error).__name__}: {error})"
        ) from error
    return normalizer
