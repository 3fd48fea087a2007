"""What a training run is told: defaults, configuration files, command line, checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from roce_gym.errors import ConfigError
from roce_gym.faults import explain
from roce_gym.scenario_file.read import parse_yaml
from training.environment import EVALUATION_SEEDS_FROM, EnvChoice

CONFIGS = Path(__file__).parent / "configs"

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
AtLeastZero = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True)
class Args:
    """Options of training with PPO, in a configuration file or on the command line."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    env: str = "RoCE/NoisyNeighbor-v0"
    """environment id, packaged scenario or scenario file"""
    overrides: tuple[str, ...] = ()
    """changes to the scenario, dotted.path=value"""
    layouts: Annotated[int, Field(ge=1, le=EVALUATION_SEEDS_FROM)] = 256
    """episodes to train on: seeds 0 to this; evaluation uses seeds from 10,000 on"""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """of initial weights, exploration, and the order of episodes"""
    total_steps: Count = 200_000
    """control intervals in all environments together; whole rollouts are completed"""
    num_envs: Count = 4
    """environments that are stepped together"""
    parallel: bool = True
    """each environment in a process of its own"""
    checkpoint_every: Count = 20_000
    """steps between checkpoints"""
    max_minutes: AtLeastZero = 0.0
    """stop (resumably) after this time; 0: no limit"""

    learning_rate: Positive = 1e-3
    """step size of Adam at the start"""
    decay_learning_rate: bool = True
    """let the learning rate fall to 0 in a straight line"""
    n_steps: Annotated[int, Field(ge=2)] = 100
    """steps of each environment in a rollout; with whole episodes, resuming repeats exactly"""
    batch_size: Annotated[int, Field(ge=2)] = 100
    """steps in a minibatch"""
    n_epochs: Count = 10
    """passes over each rollout"""
    gamma: Share = 0.9
    """discount a step"""
    gae_lambda: Share = 0.9
    """of generalised advantage estimation"""
    clip_range: Positive = 0.2
    """of the policy ratio"""
    ent_coef: AtLeastZero = 0.0
    """weight of the entropy bonus"""
    vf_coef: AtLeastZero = 0.5
    """weight of the value loss"""
    max_grad_norm: Positive = 0.5
    """gradients are scaled down to this norm"""
    target_kl: AtLeastZero = 0.0
    """stop passing over a rollout when the policy has moved this far; 0: never"""
    hidden_sizes: tuple[Count, ...] = (64, 64)
    """layers of policy and value networks"""
    log_std_init: Finite = -0.5
    """logarithm of the exploration noise at the start; actions lie in [-1, 1]"""
    start_at_default: bool = True
    """begin with a policy that turns nothing: the scenario's default settings"""
    normalize_observations: bool = False
    """scale observations by running statistics (they lie in [0, 1] anyway)"""
    normalize_reward: bool = False
    """scale rewards by running statistics"""

    @property
    def choice(self) -> EnvChoice:
        """The environment."""
        return EnvChoice(self.env, self.overrides)

    @property
    def rollout_steps(self) -> int:
        """Steps between updates, of all environments."""
        return self.n_steps * self.num_envs

    @property
    def whole_steps(self) -> int:
        """`total_steps`, rounded up to whole rollouts."""
        return -(-self.total_steps // self.rollout_steps) * self.rollout_steps


_ADAPTER: TypeAdapter[Args] = TypeAdapter(Args)


def check_args(values: Mapping[str, Any], source: str) -> Args:
    """Makes arguments from plain values; fields left out have their defaults.

    Raises:
        ConfigError: unknown field or value out of range; one line per fault, beginning with
            `source`.
    """
    known = [field.name for field in fields(Args)]
    unknown = [str(name) for name in values if name not in known]
    if unknown:
        raise ConfigError(
            f"{source}: {', '.join(unknown)}: unknown; allowed: {', '.join(sorted(known))}"
        )
    try:
        args = _ADAPTER.validate_python(dict(values))
    except ValidationError as error:
        lines = explain(error).splitlines()
        raise ConfigError("\n".join(f"{source}: {line}" for line in lines)) from None
    if args.rollout_steps % args.batch_size:
        raise ConfigError(
            f"{source}: batch_size = {args.batch_size} is not allowed; allowed: a divisor of "
            f"n_steps × num_envs = {args.rollout_steps}"
        )
    return args


def check_environment(args: Args) -> None:
    """Builds the environment once, to learn now what it does not accept.

    Raises:
        ConfigError: unknown environment, or overrides that are not acceptable.
    """
    args.choice.make(args.layouts)


def config_names() -> list[str]:
    """Names of the configurations beside this file."""
    return sorted(path.stem for path in CONFIGS.glob("*.yaml"))


def load_args(name_or_path: str | Path) -> Args:
    """Reads a configuration file.

    Args:
        name_or_path: one of :func:`config_names`, or the path of a YAML file.

    Raises:
        ConfigError: not found, no mapping, unknown key, or a value that is not acceptable.
    """
    path = CONFIGS / f"{name_or_path}.yaml"
    if str(name_or_path) not in config_names():
        path = Path(name_or_path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise ConfigError(
            f"config: {name_or_path}: {reason}; allowed: {', '.join(config_names())}, "
            "or the path of a YAML file"
        ) from None
    raw = parse_yaml(text, str(path))
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: a mapping is expected, found {type(raw).__name__}")
    return check_args(raw, str(path))


def dump_args(args: Args) -> str:
    """The text of a configuration file that holds these arguments."""
    plain = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(args).items()
    }
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
