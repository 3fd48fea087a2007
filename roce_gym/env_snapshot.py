"""Copies of an episode under way, and going back to them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from roce_gym.errors import ConfigError
from roce_gym.fabric import Fabric, Snapshot
from roce_gym.topology.graph import Network

_SHARED = ("scenario", "knobs", "actions", "last_interval", "_last_info")
"""Parts of an episode that are replaced, but never change."""

_COPIED = (
    *("_progress", "_terms", "_judge", "_score", "_measures", "eyes", "sight", "_pending"),
    *("_position", "_np_random", "_np_random_seed", "episode_seed", "_holds_preset"),
    *("_num_steps", "_step", "_is_over", "_trail"),
)
"""Parts of an episode that change, and refer to each other."""


@dataclass(frozen=True)
class EnvSnapshot:
    """A copy of an episode under way; opaque. Can be pickled.

    It names what the environment was made with, not what a seed has drawn or a reset has changed
    of it: all episodes of an environment can be gone back to.
    """

    source_name: str
    source_digest: str
    fabric: Fabric
    state: Snapshot
    parts: dict[str, Any]


def take(env: Any) -> EnvSnapshot:
    """Of an environment that has begun an episode."""
    parts = {name: getattr(env, name) for name in _SHARED + _COPIED}
    copied = _copied(parts, env.fabric.network)
    return EnvSnapshot(
        env.source_name, env.source_digest, env.fabric, env.fabric.snapshot(), copied
    )


def put(env: Any, snapshot: EnvSnapshot) -> None:
    """Into an environment of the same scenario; the snapshot stays as it is.

    A fabric is never shared: an environment that did not make the snapshot gets a copy of it.

    Raises:
        ConfigError: no snapshot, or one of an environment that was made with something else.
    """
    _check(env, snapshot)
    is_own = snapshot.fabric is env.fabric
    fabric = snapshot.fabric if is_own else copy.copy(snapshot.fabric)
    fabric.restore(snapshot.state)
    env.fabric = fabric
    for name, value in _copied(snapshot.parts, fabric.network).items():
        setattr(env, name, value)


def _check(env: Any, snapshot: Any) -> None:
    if not isinstance(snapshot, EnvSnapshot):
        raise ConfigError(
            f"restore: snapshot = {snapshot!r} is not allowed; allowed: what snapshot() returned"
        )
    parts = snapshot.parts
    names, space = (parts["knobs"].names, parts["sight"].names), parts["actions"].space
    if names != env._names or space != env.action_space:
        raise ConfigError("restore: the snapshot is of an environment with other spaces")
    if snapshot.source_digest != env.source_digest:
        raise ConfigError(
            f"restore: the snapshot is of an environment of {snapshot.source_name!r}, this one is "
            f"of {env.source_name!r}, or their overrides differ; allowed: snapshots of "
            "environments made with the same arguments"
        )


def _copied(values: dict[str, Any], network: Network) -> dict[str, Any]:
    """Deep copies that refer to each other as before, and to the same of what never changes."""
    shared = {name: values[name] for name in _SHARED}
    memo = {id(value): value for value in (network, *shared.values())}
    return shared | copy.deepcopy({name: values[name] for name in _COPIED}, memo)
