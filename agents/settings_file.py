"""Files with settings that someone, or a search, found good: YAML, positions of knobs by name.

    format: roce-gym settings 1
    about: {env: RoCE/RegimeShift-v0, ...}     # free: where it comes from
    settings:                                  # held throughout
      class/shared/kmin: -0.25                 # position in the knob's range, from -1 to 1
      ...
    regimes:                                   # optional: held instead while a regime lasts
      shifting ring_all_reduce:
        class/shared/kmin: 0.5
        ...

Positions, not values, so that a file holds at any link rate, as actions do; values follow as
comments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agents.files import write_whole
from roce_gym.errors import ConfigError
from roce_gym.knob_choice import Knob

FORMAT = "roce-gym settings 1"
_KEYS = {"format", "about", "settings", "regimes"}

Positions = Mapping[str, float]
"""Knob -> position in [-1, 1]."""


@dataclass(frozen=True)
class SettingsFile:
    """What such a file holds.

    Attributes:
        settings: held where no regime says otherwise.
        regimes: by name of :class:`agents.regimes.Regime`.
        about: where it comes from.
    """

    settings: Positions
    regimes: Mapping[str, Positions] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)


def read_settings(path: Path) -> SettingsFile:
    """Reads and checks a file.

    Raises:
        ConfigError: missing, or not of this form; names the file, the field and what is allowed.
    """
    try:
        raw: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: is no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise ConfigError(f"{path}: is no file of settings; expected: format: {FORMAT}")
    if unknown := sorted(map(str, set(raw) - _KEYS)):
        raise ConfigError(f"{path}: {unknown[0]} is unknown; allowed: {', '.join(sorted(_KEYS))}")
    regimes = _mapping(path, "regimes", raw.get("regimes", {}))
    return SettingsFile(
        settings=_positions(path, "settings", raw.get("settings")),
        regimes={str(k): _positions(path, f"regimes.{k}", v) for k, v in regimes.items()},
        about=_mapping(path, "about", raw.get("about", {})),
    )


def _mapping(path: Path, where: str, raw: Any) -> dict[Any, Any]:
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: {where} = {raw!r} is not allowed; allowed: a mapping")
    return raw


def _positions(path: Path, where: str, raw: Any) -> Positions:
    found = {}
    for name, value in _mapping(path, where, raw).items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not -1.0 <= value <= 1.0:
            raise ConfigError(
                f"{path}: {where}.{name} = {value!r} is not allowed; allowed: -1 to 1, the "
                "position in the knob's range"
            )
        found[str(name)] = float(value)
    return found


def write_settings(path: Path, content: SettingsFile, knobs: Sequence[Knob]) -> None:
    """Writes a file whole or not at all, with what each position means as a comment."""
    by_name = {knob.name: knob for knob in knobs}
    head = {"format": FORMAT, "about": dict(content.about)}
    lines = [yaml.safe_dump(head, sort_keys=False, allow_unicode=True).rstrip(), "settings:"]
    lines += _lines(content.settings, by_name, 2)
    if content.regimes:
        lines.append("regimes:")
        for name, positions in content.regimes.items():
            lines += [f"  {name}:", *_lines(positions, by_name, 4)]
    write_whole(path, ("\n".join(lines) + "\n").encode())


def _lines(positions: Positions, knobs: Mapping[str, Knob], indent: int) -> list[str]:
    pairs = [
        (f"{' ' * indent}{name}: {value!r}", knobs[name], value)
        for name, value in positions.items()
    ]
    width = max((len(text) for text, _, _ in pairs), default=0)
    return [
        f"{text:<{width}}  # {_value(knob, value):,.6g} {knob.unit}".rstrip()
        for text, knob, value in pairs
    ]


def _value(knob: Knob, position: float) -> float:
    share = (position + 1.0) / 2.0
    if knob.is_log:
        return knob.low * math.exp(share * math.log(knob.high / knob.low))
    return knob.low + share * (knob.high - knob.low)
