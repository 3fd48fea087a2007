"""Where an environment's scenario comes from, and whether its file is still the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roce_gym.config import Scenario
from roce_gym.errors import ConfigError
from roce_gym.scenario_file.read import find_file, load_raw


@dataclass
class Source:
    """A scenario before any value is drawn.

    Attributes:
        tree: as from :func:`load_raw`.
        path: its file; None if it does not come from one.
    """

    tree: dict[str, Any]
    path: Path | None = None
    _stamp: tuple[int, int] = (0, 0)
    _digest: str = ""

    def check(self) -> None:
        """The file must not say anything else by now; it may be gone.

        Raises:
            ConfigError: it does.
        """
        if self.path is None:
            return
        try:
            stamp = _stamp_of(self.path)
            if stamp == self._stamp or _digest_of(self.path) == self._digest:
                return
        except OSError:
            return
        raise ConfigError(
            f"{self.path}: has changed since this environment was made, which still has the old "
            "scenario and results kept for it; make a new environment"
        )


def read_source(scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario | None) -> Source:
    """Reads a scenario from wherever it is.

    Raises:
        ConfigError: no such scenario or file, no YAML mapping, or None.
    """
    if scenario is None:
        raise ConfigError(
            "scenario: is missing; allowed: a packaged scenario's name, the path of a YAML file, "
            "a mapping as such a file holds, or a Scenario"
        )
    if isinstance(scenario, Scenario):
        return Source(scenario.model_dump(mode="json", exclude_unset=True))
    if isinstance(scenario, Mapping):
        return Source(dict(scenario))
    if not isinstance(scenario, str | os.PathLike):
        raise ConfigError(
            f"scenario = {scenario!r} is not allowed; allowed: a packaged scenario's name, the "
            "path of a YAML file, a mapping as such a file holds, or a Scenario"
        )
    path = find_file(scenario).absolute()
    before = (_stamp_of(path), _digest_of(path)) if path.is_file() else ((0, 0), "")
    return Source(load_raw(scenario), path, *before)


def _stamp_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
