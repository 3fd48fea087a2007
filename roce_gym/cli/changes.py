"""What `--set` changes: any field of the scenario, or one setting of a class or a tenant.

A change of a setting acts on the resolved settings, after the preset: it leaves all others as they
are, where a change of the scenario would put the model's defaults in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from roce_gym.config import (
    BufferConfig,
    DcqcnConfig,
    EcnConfig,
    Scenario,
    Settings,
    ShaperConfig,
)
from roce_gym.errors import ConfigError
from roce_gym.faults import explain
from roce_gym.scenario_file import apply_overrides, draw
from roce_gym.scenario_file.read import parse_yaml
from roce_gym.scenario_file.tree import is_distribution

Place = tuple[str, str]
"""Section of the settings, field in it."""

_RATIO = "kmax_ratio"
_SECTIONS: dict[str, dict[str, type[BaseModel]]] = {
    "classes": {"ecn": EcnConfig, "buffer": BufferConfig, "shaper": ShaperConfig},
    "tenants": {"dcqcn": DcqcnConfig, "shaper": ShaperConfig},
}
_KNOB_OWNERS = {"class": "classes", "tenant": "tenants"}
_KNOBS: dict[str, dict[str, Place]] = {
    "classes": {
        "kmin": ("ecn", "kmin_bytes"),
        _RATIO: ("ecn", _RATIO),
        "buffer_alpha": ("buffer", "alpha"),
        "shaper_rate": ("shaper", "rate_gbps"),
    },
    "tenants": {
        "increase_timer": ("dcqcn", "increase_timer_us"),
        "rate_ai": ("dcqcn", "rate_ai_mbps"),
        "shaper_rate": ("shaper", "rate_gbps"),
    },
}
"""Names that knobs have and settings do not. `buffer_split` is missing: it has no meaning alone."""


@dataclass(frozen=True)
class Change:
    """A change of one setting.

    Attributes:
        path: as given, in parts.
        value: as given.
    """

    path: tuple[str, ...]
    value: Any


def split_changes(texts: Sequence[str]) -> tuple[list[str], list[Change]]:
    """Sorts changes by what they act on.

    Returns:
        Overrides of the scenario, and changes of settings.

    Raises:
        ConfigError: not of the form NAME=VALUE.
    """
    overrides: list[str] = []
    changes: list[Change] = []
    for text in texts:
        name, equals, given = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise ConfigError(f"--set: {text!r} is not allowed; allowed: NAME=VALUE")
        value = parse_yaml(given, f"--set {text!r}")
        is_knob = name.split("/")[0] in _KNOB_OWNERS
        path = tuple(name.split("/", 2) if is_knob else name.split("."))
        if path[:1] + path[2:] == ("class", "weight"):
            overrides.append(f"classes.{path[1]}.weight={given}")
        elif path[0] not in Scenario.model_fields:
            changes.append(Change(path, value))
        elif len(path) >= 3 and path[2] in _SECTIONS.get(path[0], {}):
            changes += _in_section(path, value)
        else:
            overrides.append(text)
    return overrides, changes


def _in_section(path: tuple[str, ...], value: Any) -> list[Change]:
    """A change inside of a section, or one for each entry of a mapping given for all of it."""
    if len(path) > 3:
        return [Change(path, value)]
    if not isinstance(value, dict) or is_distribution(value):
        shown = ".".join(path)
        raise ConfigError(f"--set: {shown} = {value!r} is not allowed; allowed: a mapping")
    return [Change((*path, str(key)), one) for key, one in value.items()]


def override(raw: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """As :func:`apply_overrides`, with messages that name the option."""
    try:
        return apply_overrides(raw, overrides)
    except ConfigError as error:
        raise ConfigError(f"--set{str(error).removeprefix('override')}") from None


def change_settings(
    settings: Settings, changes: Sequence[Change], scenario: Scenario, seed: int
) -> Settings:
    """Settings with some values replaced, in the order given.

    Args:
        settings: to start from.
        changes: values may be distributions.
        scenario: names classes and tenants, for those called by index.
        seed: of distributions.

    Raises:
        ConfigError: no such class, tenant or setting, or a value that is not allowed.
    """
    if not changes:
        return settings
    tree: dict[str, Any] = settings.model_dump(mode="json")
    ratios: dict[str, Any] = {}
    for change in changes:
        kind, name, (section, field) = _find(change.path, scenario)
        value = draw({kind: {name: {section: {field: change.value}}}}, seed)
        drawn = value[kind][name][section][field]
        if field == _RATIO:
            ratios[name] = drawn
            continue
        _section_of(tree, kind, name, section)[field] = drawn
        if field == "kmax_bytes":
            ratios.pop(name, None)
    for name, ratio in ratios.items():
        ecn = tree["classes"][name]["ecn"]
        ecn["kmax_bytes"] = _kmax_bytes(name, ecn["kmin_bytes"], ratio)
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        lines = explain(error, tree, Settings).splitlines()
        raise ConfigError("\n".join(f"--set: {line}" for line in lines)) from None


def _section_of(tree: dict[str, Any], kind: str, name: str, section: str) -> dict[str, Any]:
    """The mapping in which the fields of a section stand; that of a new shaper is empty."""
    found: dict[str, Any] | None
    if kind == "classes":
        found = tree[kind][name][section]
        if found is None:
            found = tree[kind][name][section] = {}
    elif section == "shaper":
        found = tree["shapers"].setdefault(name, {})
    else:
        found = tree[kind][name]
    return found


def _kmax_bytes(name: str, kmin_bytes: Any, ratio: Any) -> int:
    is_number = isinstance(ratio, int | float) and not isinstance(ratio, bool)
    if not is_number or not 1 <= ratio <= 1e9:
        raise ConfigError(
            f"--set: class/{name}/{_RATIO} = {ratio!r} is not allowed; allowed: 1 and above"
        )
    return round(float(kmin_bytes) * float(ratio))


def _find(path: tuple[str, ...], scenario: Scenario) -> tuple[str, str, Place]:
    """Kind of owner, its name, and the setting that a path stands for."""
    owners = {
        "classes": [c.name for c in scenario.classes],
        "tenants": [t.name for t in scenario.tenants],
    }
    shown = "/".join(path) if path[0] in _KNOB_OWNERS else ".".join(path)
    if path[0] in _SECTIONS and len(path) == 4:
        return _find_by_section(path, owners[path[0]], shown)
    if path[0] in _KNOB_OWNERS and len(path) == 3:
        kinds, name, key = [_KNOB_OWNERS[path[0]]], path[1], path[2]
    elif len(path) == 2:
        kinds, name, key = list(owners), path[0], path[1]
    else:
        raise ConfigError(f"--set: {shown!r} is unknown; {_existing(owners)}")
    found = [kind for kind in kinds if name in owners[kind]]
    if not found:
        raise ConfigError(f"--set: {name!r} (in {shown!r}) is unknown; {_existing(owners)}")
    places = [(kind, _keys(kind)[key]) for kind in found if key in _keys(kind)]
    if not places:
        there_is = "; ".join(f"{kind}.{name} has: {', '.join(_keys(kind))}" for kind in found)
        raise ConfigError(f"--set: {shown}: {name} has no {key!r}; {there_is}")
    if len(places) > 1:
        longer = " or ".join(f"{kind}.{name}.{'.'.join(place)}" for kind, place in places)
        raise ConfigError(f"--set: {shown!r} may be two things; write {longer}")
    ((kind, place),) = places
    return kind, name, place


def _find_by_section(path: tuple[str, ...], names: list[str], shown: str) -> tuple[str, str, Place]:
    kind, name, section, field = path
    indices = [str(i) for i in range(len(names))]
    if name not in names:
        if name not in indices:
            raise ConfigError(
                f"--set: {kind} has no {name!r} (in {shown!r}); there is: {', '.join(names)}"
            )
        name = names[int(name)]
    fields = _SECTIONS[kind][section].model_fields
    if field not in fields:
        raise ConfigError(
            f"--set: {kind}.{name}.{section} has no {field!r}; there is: {', '.join(fields)}"
        )
    return kind, name, (section, field)


def _keys(kind: str) -> dict[str, Place]:
    """What a class or tenant may be given, by its short name."""
    own = {
        field: (section, field)
        for section, model in _SECTIONS[kind].items()
        for field in model.model_fields
    }
    return own | _KNOBS[kind]


def _existing(owners: dict[str, list[str]]) -> str:
    fields = [field for field in Scenario.model_fields if field not in owners]
    return (
        f"there is: classes {', '.join(owners['classes'])}; tenants "
        f"{', '.join(owners['tenants'])}; fields classes, tenants, {', '.join(fields)}"
    )
