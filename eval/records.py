"""Records: one JSON file for each policy and seed, written as soon as the episode is over.

    OUT/evaluation.json          environment and overrides, so that none are mixed
    OUT/records/POLICY/SEED.json

Tables and pictures are made from records alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents.files import write_whole
from eval.episode import Episode
from roce_gym.errors import CheckpointError, ConfigError
from training.environment import EnvChoice

FORMAT = "roce-gym record 1"
_FOLDER, _HEAD = "records", "evaluation.json"


@dataclass(frozen=True)
class Record:
    """An episode, and what it was an episode of.

    Attributes:
        policy: its name.
        fingerprint: of the policy.
        seed: of the episode.
        key: changes with the simulator, the scenario and the seed.
        episode: how it went.
    """

    policy: str
    fingerprint: str
    seed: int
    key: str
    episode: Episode


def record_path(out: Path, policy: str, seed: int) -> Path:
    """Where the record of a policy and seed belongs."""
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", policy).strip("-.")
    tag = "" if plain == policy.replace(":", "-") else f"-{_hash(policy)}"
    return out / _FOLDER / f"{plain[-60:]}{tag}" / f"{seed}.json"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def write_record(out: Path, record: Record) -> None:
    """Writes a record whole or not at all."""
    content = json.dumps({"format": FORMAT} | asdict(record), allow_nan=False)
    write_whole(record_path(out, record.policy, record.seed), content.encode())


def read_record(path: Path) -> Record:
    """Reads and checks a record.

    Raises:
        CheckpointError: missing or damaged; names the file.
    """
    try:
        raw: Any = json.loads(path.read_bytes())
        if raw.pop("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        episode: Any = raw.pop("episode")
        for names in ("tenants", "classes", "class_of"):
            episode[names] = tuple(episode[names])
        record = Record(**raw, episode=Episode(**episode))
        _check(record)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(
            f"{path}: is damaged or no record of eval.evaluate ({error})"
        ) from None
    return record


def _check(record: Record) -> None:
    totals = record.episode.totals
    needed = ["score", "return", "pfc_frames_per_s"]
    needed += [f"{what}/{t}" for what in ("slowdown", "cct_us") for t in record.episode.tenants]
    for name in needed:
        if not math.isfinite(totals[name]):
            raise ValueError(f"{name} is not a finite number")
    lengths = {len(values) for values in record.episode.series.values()}
    if len(lengths) > 1:
        raise ValueError("its series have different lengths")
    if not isinstance(record.seed, int) or not isinstance(record.policy, str):
        raise ValueError("seed or policy is missing")


def read_records(out: Path) -> list[Record]:
    """All records of an evaluation.

    Raises:
        CheckpointError: there are none, or one is damaged.
    """
    paths = sorted((out / _FOLDER).glob("*/*.json"))
    if not paths:
        raise CheckpointError(f"{out}: holds no records; expected: the --out of eval.evaluate")
    try:
        return [read_record(path) for path in paths]
    except CheckpointError as error:
        raise CheckpointError(f"{error}; run eval.evaluate again to replace it") from None


def claim(out: Path, choice: EnvChoice) -> None:
    """Makes a folder this evaluation's own.

    Raises:
        ConfigError: it holds an evaluation in another environment, or something else.
    """
    head = {"env": choice.env, "overrides": list(choice.overrides)}
    path = out / _HEAD
    if path.is_file():
        before = _read_head(path)
        if before != head:
            raise ConfigError(
                f"out: {out} holds an evaluation of {before}, not of {head}; choose another folder"
            )
        return
    if out.is_file() or (out / _FOLDER).exists():
        raise ConfigError(f"out: {out} exists and is no evaluation; choose another folder")
    write_whole(path, json.dumps(head).encode())


def read_choice(out: Path) -> EnvChoice:
    """The environment of an evaluation.

    Raises:
        CheckpointError: no evaluation there.
    """
    path = out / _HEAD
    if not path.is_file():
        raise CheckpointError(f"{out}: is no evaluation ({_HEAD} is missing)")
    head = _read_head(path)
    return EnvChoice(str(head.get("env")), tuple(head.get("overrides", ())))


def _read_head(path: Path) -> dict[str, Any]:
    try:
        head: Any = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error})") from None
    if not isinstance(head, dict):
        raise CheckpointError(f"{path}: is damaged")
    return head
