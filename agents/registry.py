"""Policies by name, as on command lines."""

from __future__ import annotations

from agents.fixed import FixedSettings, RegimeOracle
from agents.policy import Policy
from agents.preset import StaticPreset, preset_names
from agents.random_policy import RandomPolicy
from roce_gym.errors import ConfigError


def allowed_policies() -> str:
    """What :func:`make_policy` takes, for messages and help."""
    presets = ", ".join(f"preset:{name}" for name in preset_names())
    return (
        f"{presets}, random, sb3:PATH (a checkpoint or the folder of a run), static:FILE (settings "
        "as eval.search writes them), oracle:FILE (those by regime, told when one begins)"
    )


def make_policy(spec: str) -> Policy:
    """Makes a policy.

    Args:
        spec: `preset:NAME`, `random`, `sb3:PATH`, `static:FILE` or `oracle:FILE`.

    Raises:
        ConfigError: unknown name; lists those allowed. Or a file of settings is not acceptable.
        CheckpointError: the path holds no readable checkpoint.
    """
    kind, colon, rest = spec.partition(":")
    if kind == "preset" and colon:
        return StaticPreset(rest)
    if kind == "random" and not colon:
        return RandomPolicy()
    if kind == "static" and rest:
        return FixedSettings.load(rest)
    if kind == "oracle" and rest:
        return RegimeOracle.load(rest)
    if kind == "sb3" and rest:
        from agents.learned import Sb3Policy

        return Sb3Policy.load(rest)
    raise ConfigError(f"policy {spec!r} is unknown; allowed: {allowed_policies()}")
