"""The folder of a training run: its configuration, its checkpoints, its curves.

    config.yaml      all options, written first
    checkpoints/     step_0000020000.zip …; see `agents.checkpoint`
    tensorboard/     curves: `tensorboard --logdir runs`

Checkpoints are never overwritten or deleted, except by `--overwrite`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from agents.checkpoint import (
    FOLDER,
    Checkpoint,
    checkpoint_path,
    list_checkpoints,
    read_checkpoint,
)
from agents.files import write_whole
from roce_gym.errors import CheckpointError, ConfigError
from training.args import Args, dump_args, load_args

CONFIG = "config.yaml"
CURVES = "tensorboard"


class RunFolder:
    """Where one run keeps everything."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / FOLDER
        self.curves = path / CURVES

    def check_new(self, overwrite: bool) -> None:
        """Whether a run may begin here; nothing is changed.

        Raises:
            ConfigError: it would overwrite something.
        """
        if not self.path.exists() or (self.path.is_dir() and not any(self.path.iterdir())):
            return
        is_run = (self.path / CONFIG).is_file() or self.checkpoints.is_dir()
        if not is_run:
            raise ConfigError(f"run_dir: {self.path} exists and is no training run; choose another")
        if not overwrite:
            raise ConfigError(
                f"run_dir: {self.path} holds a run already; go on with it: --resume {self.path}, "
                "or begin anew: --overwrite"
            )

    def begin(self, args: Args) -> None:
        """Makes the folder; what an earlier run left there is deleted."""
        (self.path / CONFIG).unlink(missing_ok=True)
        for folder in (self.checkpoints, self.curves):
            shutil.rmtree(folder, ignore_errors=True)
        self.checkpoints.mkdir(parents=True)
        self.write_args(args)

    def write_args(self, args: Args) -> None:
        """Stores the options of the run."""
        write_whole(self.path / CONFIG, dump_args(args).encode())

    def read_args(self) -> Args:
        """The options the run was begun with.

        Raises:
            ConfigError: no run here, or its configuration is not readable.
        """
        if not (self.path / CONFIG).is_file():
            raise ConfigError(f"resume: {self.path} holds no training run ({CONFIG} is missing)")
        return load_args(self.path / CONFIG)

    def all_checkpoints(self) -> list[Path]:
        """Its checkpoints, fewest steps first."""
        return list_checkpoints(self.checkpoints)

    def newest(self) -> tuple[Path, Checkpoint, list[str]]:
        """The readable checkpoint with the most steps, and a message for each damaged one.

        Raises:
            CheckpointError: none is readable.
        """
        complaints: list[str] = []
        for path in reversed(self.all_checkpoints()):
            try:
                checkpoint = read_checkpoint(path)
                if checkpoint.state is not None:
                    return path, checkpoint, complaints
                complaints.append(f"{path}: holds nothing to go on training with")
            except CheckpointError as error:
                complaints.append(str(error))
        lines = "\n".join([f"{self.path}: no checkpoint to go on from", *complaints])
        raise CheckpointError(f"{lines}\nbegin anew with --overwrite")

    def remove_leftovers(self) -> None:
        """Deletes files that a killed process had not finished."""
        for path in (*self.checkpoints.glob(".*.tmp"), *self.path.glob(".*.tmp")):
            path.unlink(missing_ok=True)

    def checkpoint_path(self, steps: int) -> Path:
        """Where the checkpoint after this number of steps belongs."""
        return checkpoint_path(self.checkpoints, steps)
