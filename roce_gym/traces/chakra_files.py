"""Which files make up a Chakra trace: `PREFIX.RANK.et`, one a rank."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from roce_gym.bounded import read_bounded
from roce_gym.errors import TraceFileError
from roce_gym.traces.limits import MAX_RANKS

_NAME = re.compile(r"(.*)\.(-?[0-9]{1,40})\.et", re.DOTALL)
_MAX_ENTRIES = 4 * MAX_RANKS


def chakra_files(path: str | Path) -> list[Path]:
    """The files of a trace, by rank.

    Args:
        path: a folder with the files of one trace, one of the files, or what all their names
            begin with (as ASTRA-sim takes it).

    Raises:
        TraceFileError: there are none, of several traces, or not one for each rank from 0 on.
    """
    path = Path(path)
    folder, prefix = path, None
    if not os.path.isdir(path):
        found = _NAME.fullmatch(path.name)
        folder, prefix = path.parent, found[1] if found else path.name
    by_rank: dict[int, Path] = {}
    prefixes: set[str] = set()
    for name in _names(path, folder):
        found = _NAME.fullmatch(name)
        if found is None or (prefix is not None and found[1] != prefix):
            continue
        if not 0 <= int(found[2]) < MAX_RANKS:
            raise TraceFileError(
                f"{folder / name}: rank {found[2]} is not allowed; allowed: 0 … {MAX_RANKS - 1}"
            )
        prefixes.add(found[1])
        if by_rank.setdefault(int(found[2]), folder / name) != folder / name:
            if len(prefixes) == 1:
                raise TraceFileError(f"{path}: rank {int(found[2])} has two files")
            break
    if len(prefixes) > 1:
        raise TraceFileError(
            f"{path}: holds several traces; give one of {', '.join(sorted(prefixes)[:8])}"
        )
    if not by_rank:
        raise TraceFileError(f"{path}: no file PREFIX.RANK.et")
    for rank in range(len(by_rank)):
        if rank not in by_rank:
            known = next(iter(by_rank.values()))
            raise TraceFileError(
                f"{path}: has files of {len(by_rank)} ranks, up to rank {max(by_rank)}, but none "
                f"of rank {rank}: {file_name(known, rank)} is missing"
            )
    if len(by_rank) > MAX_RANKS:
        raise TraceFileError(f"{path}: has {len(by_rank)} ranks; allowed: 1 … {MAX_RANKS}")
    return [by_rank[rank] for rank in range(len(by_rank))]


def file_name(known: Path, rank: int) -> str:
    """What the file of a rank is called, or would be if it were there.

    Args:
        known: a file of the same trace.
        rank: any.
    """
    found = _NAME.fullmatch(known.name)
    if found is None:
        raise TraceFileError(f"{known}: is not called PREFIX.RANK.et")
    prefix, digits = found.groups()
    width = len(digits) if digits.startswith("0") else 1
    return f"{prefix}.{rank:0{width}}.et"


def _names(path: Path, folder: Path) -> list[str]:
    names = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > _MAX_ENTRIES:
                    raise TraceFileError(f"{folder}: has more than {_MAX_ENTRIES} files")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TraceFileError(f"{path}: cannot be read: {reason}") from None
    return sorted(names)


def read_group_file(path: str | Path) -> dict[str, list[int]]:
    """Communicator groups as ASTRA-sim takes them: JSON, lists of ranks by name.

    Raises:
        TraceFileError: it is something else.
    """
    content = read_bounded(path)
    try:
        groups = json.loads(content)
    except (ValueError, RecursionError) as error:
        reason = "is nested too deeply" if isinstance(error, RecursionError) else error
        raise TraceFileError(f"{path}: no JSON: {reason}") from None
    if not isinstance(groups, dict):
        raise TraceFileError(f"{path}: lists of ranks by name of group expected")
    for name, ranks in groups.items():
        if not isinstance(ranks, list) or not all(type(rank) is int for rank in ranks):
            raise TraceFileError(f"{path}: group {name[:40]!r} is no list of ranks")
    return groups
