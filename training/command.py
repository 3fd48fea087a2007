"""The command line of a training script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import tyro

from roce_gym.errors import ConfigError
from training.args import Args, check_args, config_names, load_args
from training.run_folder import RunFolder

ALLOWED_WHEN_RESUMED = ("total_steps", "checkpoint_every", "max_minutes")


@dataclass(frozen=True)
class Run:
    """Which run."""

    config: str = "noisy_neighbor"
    """configuration to start from: a name (see below) or a YAML file; other options win over it"""
    run_dir: str = ""
    """folder of the run (default: runs/train/CONFIG-seedSEED)"""
    resume: str = ""
    """folder of a run to go on with; only the number of steps, of steps between checkpoints and
    the time limit may differ from how it was begun"""
    overwrite: bool = False
    """delete the run that is in the folder"""


@dataclass(frozen=True)
class Options:
    """Everything on the command line."""

    run: tyro.conf.OmitArgPrefixes[Run] = field(default_factory=Run)
    args: tyro.conf.OmitArgPrefixes[Args] = field(default_factory=Args)


@dataclass(frozen=True)
class Command:
    """A checked command line.

    Attributes:
        args: what to do.
        run_dir: folder of the run.
        is_resumed: whether to go on with what is there.
        overwrite: whether to delete what is there.
    """

    args: Args
    run_dir: str
    is_resumed: bool
    overwrite: bool


def parse(argv: Sequence[str]) -> Command:
    """Reads the command line and the configuration it names.

    Raises:
        ConfigError: options that are not acceptable or do not go together.
    """
    config, resume = _value(argv, "--config"), _value(argv, "--resume")
    if resume and config:
        raise ConfigError("--config and --resume exclude each other: a run keeps its configuration")
    stored = RunFolder(Path(resume)).read_args() if resume else load_args(config or Run.config)
    options = tyro.cli(
        Options,
        args=list(argv),
        default=Options(args=stored),
        prog="python -m training.ppo",
        description=f"Trains with PPO. Configurations: {', '.join(config_names())}.",
        config=(tyro.conf.FlagConversionOff, tyro.conf.FlagCreatePairsOff),
    )
    args = check_args(asdict(options.args), "command line")
    run = options.run
    if not resume:
        default = f"runs/train/{Path(run.config).stem}-seed{args.seed}"
        return Command(args, run.run_dir or default, False, run.overwrite)
    if run.overwrite or run.run_dir:
        raise ConfigError("--resume goes together with neither --overwrite nor --run-dir")
    _check_changes(stored, args)
    return Command(args, resume, True, False)


def _value(argv: Sequence[str], option: str) -> str:
    """The value of an option that has to be known before all others; empty if not given."""
    value = ""
    for here, following in zip(argv, [*argv[1:], ""], strict=True):
        name, equals, rest = here.partition("=")
        if name == option:
            value = rest if equals else following
    return value


def _check_changes(stored: Args, args: Args) -> None:
    same = replace(stored, **{name: getattr(args, name) for name in ALLOWED_WHEN_RESUMED})
    if same == args:
        return
    changed = [name for name, value in asdict(same).items() if asdict(args)[name] != value]
    raise ConfigError(
        f"--resume: {', '.join(changed)} cannot differ from how the run was begun; "
        f"allowed: {', '.join(ALLOWED_WHEN_RESUMED)}"
    )
