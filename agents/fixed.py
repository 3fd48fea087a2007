"""Settings from a file, held throughout, or by regime for a policy that is told the times."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from agents.policy import Action, Observed
from agents.regimes import Regime, find_regimes, regime_at
from agents.settings_file import Positions, SettingsFile, read_settings
from roce_gym.env import RoceEnv
from roce_gym.errors import ConfigError


class FixedSettings:
    """Holds one position of every knob for the whole episode: `settings` of a file."""

    def __init__(self, name: str, content: SettingsFile) -> None:
        """Use :meth:`load`, unless the settings come from elsewhere."""
        self.name = name
        self.reset_options: Mapping[str, Any] = {}
        self._content = content
        self._names: tuple[str, ...] = ()
        self._action: Action = np.zeros(0, np.float32)
        self.fingerprint = _hash(content.settings)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FixedSettings:
        """Reads a file; see :mod:`agents.settings_file`.

        Raises:
            ConfigError: see :func:`agents.settings_file.read_settings`.
        """
        return cls(f"static:{os.fspath(path)}", read_settings(Path(path)))

    def check(self, env: RoceEnv) -> None:
        """Checks that the file is about this environment's knobs.

        Raises:
            ConfigError: it names other knobs, or actions are not positions.
        """
        _check_knobs(self.name, "settings", self._content.settings, env)

    def reset(self, env: RoceEnv, seed: int) -> None:
        """Looks up the order of the knobs."""
        self._action = _action(self._content.settings, env)

    def act(self, observation: Observed) -> Action:
        """The same action every time."""
        return self._action.copy()


class RegimeOracle:
    """Holds each regime's settings from the moment it begins: it reads times from the scenario.

    No fair policy: an agent has to find out from telemetry. What it gains over the best static
    settings bounds from above what reacting to regimes can gain with these settings.
    """

    def __init__(self, name: str, content: SettingsFile) -> None:
        """Use :meth:`load`, unless the settings come from elsewhere."""
        self.name = name
        self.reset_options: Mapping[str, Any] = {}
        self._content = content
        self._actions: dict[str, Action] = {}
        self._usual: Action = np.zeros(0, np.float32)
        self._regimes: tuple[Regime, ...] = ()
        self._interval_us, self._step = 0.0, 0
        self.fingerprint = _hash({"settings": content.settings, "regimes": content.regimes})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RegimeOracle:
        """Reads a file; see :mod:`agents.settings_file`.

        Raises:
            ConfigError: as there, or it has no `regimes`.
        """
        content = read_settings(Path(path))
        if not content.regimes:
            raise ConfigError(f"{path}: regimes is missing; an oracle needs settings by regime")
        return cls(f"oracle:{os.fspath(path)}", content)

    def check(self, env: RoceEnv) -> None:
        """Checks that the file is about this environment's knobs.

        Raises:
            ConfigError: it names other knobs, or actions are not positions.
        """
        _check_knobs(self.name, "settings", self._content.settings, env)
        for regime, positions in self._content.regimes.items():
            _check_knobs(self.name, f"regimes.{regime}", positions, env)

    def reset(self, env: RoceEnv, seed: int) -> None:
        """Reads the regimes of the episode from its scenario."""
        self._regimes = find_regimes(env.scenario)
        self._actions = {k: _action(v, env) for k, v in self._content.regimes.items()}
        self._usual = _action(self._content.settings, env)
        self._interval_us = env.scenario.control.interval_us
        self._step = env.scenario.control.action_delay

    def act(self, observation: Observed) -> Action:
        """The settings of the regime at the middle of the interval in which they will hold."""
        regime = regime_at(self._regimes, (self._step + 0.5) * self._interval_us)
        self._step += 1
        return self._actions.get(regime.name, self._usual).copy()


def _action(positions: Positions, env: RoceEnv) -> Action:
    return np.array([positions[name] for name in env.knobs.names], np.float32)


def _check_knobs(policy: str, where: str, positions: Positions, env: RoceEnv) -> None:
    mode = env.scenario.control.knob_mode
    if mode != "absolute":
        raise ConfigError(
            f"{policy}: control.knob_mode = {mode!r} is not allowed; allowed: absolute"
        )
    missing = [name for name in env.knobs.names if name not in positions]
    unknown = [name for name in positions if name not in env.knobs.names]
    if missing or unknown:
        what = f"{missing[0]} is missing" if missing else f"{unknown[0]} is unknown"
        raise ConfigError(
            f"{policy}: {where}: {what}; this environment ({env.scenario.name}) has the knobs "
            f"{', '.join(env.knobs.names)}"
        )


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
