"""A Gymnasium environment for tuning shared RoCEv2 fabrics, on a packet-level simulator."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from roce_gym.registration import register_environments

if TYPE_CHECKING:
    from roce_gym.multi_agent import RoceParallelEnv

try:
    __version__ = version("roce-gym")
except PackageNotFoundError:  # a checkout that was not installed
    __version__ = "0+unknown"

register_environments()


def parallel_env(scenario: Any = "noisy_neighbor", **kwargs: Any) -> RoceParallelEnv:
    """A PettingZoo environment with one agent a tenant; see :mod:`roce_gym.multi_agent`.

    Raises:
        ImportError: pettingzoo is not installed.
        ConfigError: an argument that is not acceptable.
    """
    from roce_gym import multi_agent

    return multi_agent.parallel_env(scenario, **kwargs)
