"""Checkpoints: one file that appears whole or not at all, and is checked before it is used.

A checkpoint is a zip archive:

    about.json       format, algorithm, environment, steps, sizes, training configuration
    model.zip        as Stable-Baselines3 saves it
    normalizer.pkl   statistics of VecNormalize, if it was used
    state.pkl        random number generators, to go on with training

`model.zip` and the `.pkl` files hold pickled Python objects: load checkpoints you trust only.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.files import write_whole
from roce_gym.errors import CheckpointError

FORMAT = "roce-gym checkpoint 1"
FOLDER = "checkpoints"
"""Name of the folder within that of a run."""

_ABOUT, _MODEL, _NORMALIZER, _STATE = "about.json", "model.zip", "normalizer.pkl", "state.pkl"
_NAME = re.compile(r"step_(\d{10})\.zip")
_EXPECTED = (
    "expected: a checkpoint of training.ppo (checkpoints/step_….zip), the folder of a run, or a "
    "model saved by Stable-Baselines3 (.zip)"
)


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint file holds.

    Attributes:
        about: see the module; has at least `format`, `algorithm` and `steps`.
        model: bytes of a Stable-Baselines3 archive.
        normalizer: pickled VecNormalize, or None.
        state: pickled random number generators, or None.
    """

    about: dict[str, Any]
    model: bytes
    normalizer: bytes | None = None
    state: bytes | None = None


def checkpoint_path(folder: Path, steps: int) -> Path:
    """Where the checkpoint after this number of steps lies in a folder of checkpoints."""
    return folder / f"step_{steps:010d}.zip"


def list_checkpoints(folder: Path) -> list[Path]:
    """Checkpoints in a folder, fewest steps first; names only, nothing is opened."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def find_checkpoint(path: Path) -> Path:
    """The file itself, or the checkpoint with the most steps of a run.

    Raises:
        CheckpointError: nothing there.
    """
    if path.is_file():
        return path
    if not path.exists():
        raise CheckpointError(f"{path}: does not exist; {_EXPECTED}")
    found = list_checkpoints(path / FOLDER) or list_checkpoints(path)
    if not found:
        raise CheckpointError(f"{path}: holds no checkpoint; {_EXPECTED}")
    return found[-1]


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Writes the file whole or not at all, also if the process is killed meanwhile."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_ABOUT, json.dumps({"format": FORMAT} | checkpoint.about, indent=1))
        archive.writestr(_MODEL, checkpoint.model)
        if checkpoint.normalizer is not None:
            archive.writestr(_NORMALIZER, checkpoint.normalizer)
        if checkpoint.state is not None:
            archive.writestr(_STATE, checkpoint.state)
    write_whole(path, buffer.getvalue())


def read_checkpoint(path: Path) -> Checkpoint:
    """Reads and checks a checkpoint, or a model as Stable-Baselines3 saves it.

    Raises:
        CheckpointError: missing, damaged or something else; names the file and what is expected.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}; {_EXPECTED}") from None
    try:
        return _parse(content)
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, NotImplementedError) as error:
        reason = error.args[0] if error.args else type(error).__name__
        raise CheckpointError(f"{path}: is damaged or no checkpoint ({reason}); {_EXPECTED}") from (
            None
        )


def _parse(content: bytes) -> Checkpoint:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = set(archive.namelist())
        damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f"{damaged} in it is damaged")
        if _ABOUT not in names and "policy.pth" in names:
            data: Mapping[str, Any] = json.loads(archive.read("data"))
            return Checkpoint({"format": "", "algorithm": _algorithm(data), "steps": -1}, content)
        about = json.loads(archive.read(_ABOUT))
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        return Checkpoint(
            about,
            archive.read(_MODEL),
            archive.read(_NORMALIZER) if _NORMALIZER in names else None,
            archive.read(_STATE) if _STATE in names else None,
        )


def _algorithm(data: Mapping[str, Any]) -> str:
    """Which algorithm of Stable-Baselines3 saved these parameters."""
    for name, key in (("PPO", "clip_range_vf"), ("SAC", "target_entropy"), ("TD3", "policy_delay")):
        if key in data:
            return name
    if "gae_lambda" in data:
        return "A2C"
    raise ValueError("saved by an algorithm other than PPO, A2C, SAC, TD3 and DDPG")
