"""Finding and parsing scenario files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml

from roce_gym.errors import ConfigError
from roce_gym.scenario_file.tree import copy_tree

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "envs_config", _PACKAGE.parent / "envs_config")
"""In an installed package, and in a checkout."""

_SUFFIXES = (".yaml", ".yml")
_FILE_FIELDS = {
    "hpcc_file": ("path",),
    "flows": ("file",),
    "trace": ("file", "groups_file"),
    "poisson": ("sizes_file",),
}
"""Fields that hold a path, by the `kind` of their mapping."""


class _Loader(yaml.SafeLoader):
    """YAML as people expect it: 1e6 is a number, and no key is given twice."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if (key.tag, key.value) in seen:
                    problem = f"key {key.value!r} is given twice"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                seen.add((key.tag, key.value))
        return node


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def available_scenarios() -> list[str]:
    """Names of the packaged scenarios, sorted."""
    return sorted({path.stem for folder in _FOLDERS for path in folder.glob("*.yaml")})


def load_raw(path_or_name: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a scenario file as it stands: distributions are not drawn, nothing is checked.

    Paths of topology and flow files in it are made absolute; relative ones start at its folder.

    Args:
        path_or_name: a packaged scenario's name, or the path of a YAML file.

    Raises:
        ConfigError: no such scenario or file, or no YAML mapping; names file and line.
    """
    path = find_file(path_or_name)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{path}: cannot be read: {reason}; packaged scenarios: {_names()}"
        ) from None
    raw = parse_yaml(text, str(path))
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: a mapping is expected, found {type(raw).__name__}")
    _anchor_files(raw, path.absolute().parent)
    return raw


def parse_yaml(text: str, source: str) -> Any:
    """The tree that a YAML text stands for.

    Args:
        text: one document.
        source: what to call it in messages.

    Raises:
        ConfigError: names source and line.
    """
    try:
        return copy_tree(yaml.load(text, _Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{source}{where}: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{source}, line {line}: {error.reason}") from None
    except RecursionError:
        raise ConfigError(f"{source}: is nested too deeply, or refers to itself") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{source}: {error}") from None


def find_file(path_or_name: str | os.PathLike[str]) -> Path:
    """Where a scenario's file is; see :func:`load_raw`. A path need not exist.

    Raises:
        ConfigError: a name that no packaged scenario has.
    """
    text = os.fspath(path_or_name)
    if not isinstance(path_or_name, str) or text.endswith(_SUFFIXES) or Path(text).name != text:
        return Path(text)
    for folder in _FOLDERS:
        path = folder / f"{text}.yaml"
        if path.is_file():
            return path
    if Path(text).is_file():
        return Path(text)
    raise ConfigError(f"scenario {text!r} is unknown; packaged scenarios: {_names()}")


def _names() -> str:
    return ", ".join(available_scenarios()) or "none"


def _anchor_files(node: Any, folder: Path) -> None:
    """Makes the paths in a tree absolute, in place."""
    if isinstance(node, list):
        for element in node:
            _anchor_files(element, folder)
    elif isinstance(node, dict):
        kind = node.get("kind")
        fields = _FILE_FIELDS.get(kind, ()) if isinstance(kind, str) else ()
        if not fields and "file" in node and "function" in node:
            fields = ("file",)  # of a sender
        for field in fields:
            if field in node:
                node[field] = _anchored(node[field], folder)
        for child in node.values():
            _anchor_files(child, folder)


def _anchored(value: Any, folder: Path) -> Any:
    if isinstance(value, str):
        return str(folder / value)
    if isinstance(value, dict) and isinstance(value.get("choice"), list):
        return {**value, "choice": [_anchored(one, folder) for one in value["choice"]]}
    return value
