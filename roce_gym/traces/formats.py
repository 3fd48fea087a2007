"""Which format a file has, and its reader."""

from __future__ import annotations

import re
from pathlib import Path

from roce_gym.bounded import open_bounded
from roce_gym.errors import ConfigError, TraceFileError
from roce_gym.traces.builder import Trace
from roce_gym.traces.chakra import read_chakra
from roce_gym.traces.chakra_files import chakra_files
from roce_gym.traces.goal import read_goal
from roce_gym.traces.msccl import read_msccl
from roce_gym.traces.simai import read_simai

FORMATS = ("simai", "chakra", "msccl", "goal")
"""Those that become operation graphs."""

FLOW_FORMATS = ("hpcc_flows", "size_cdf")
"""Those that become lists of flows."""

_HEAD_BYTES = 2**16
_GOAL = re.compile(r"^\s*num_ranks\s", re.MULTILINE)
_NUMBERS = r"[0-9.eE+-]+"
_FLOWS = re.compile(rf"\s*[0-9]+[ \t\r]*\n\s*(?:{_NUMBERS}[ \t]+){{5}}{_NUMBERS}[ \t\r]*(?:\n|$)")
_TOPOLOGY = re.compile(r"\s*[0-9]+[ \t]+[0-9]+[ \t]+[0-9]+[ \t\r]*\n[0-9 \t\r]*\n")
_CDF = re.compile(rf"\s*(?:{_NUMBERS}[ \t]+{_NUMBERS}[ \t\r]*\n\s*){{2}}")


def read_trace(
    path: str | Path,
    trace_format: str = "auto",
    buffer_bytes: int | None = None,
    groups_file: str | Path | None = None,
) -> Trace:
    """Reads a trace.

    Args:
        path: the file; of Chakra the folder, see `chakra_files`.
        trace_format: one of `FORMATS`, or "auto".
        buffer_bytes: of MSCCL, where it is needed: size of the whole buffer.
        groups_file: of Chakra: JSON with process groups.

    Raises:
        TraceFileError: names file, line or record, and value.
        ConfigError: an argument is missing, or of another format.
    """
    chosen = detect(path) if trace_format == "auto" else trace_format
    if chosen not in FORMATS:
        raise ConfigError(
            f"{path}: has the format {chosen!r}, a list of flows; allowed: {', '.join(FORMATS)}"
        )
    if (buffer_bytes is None) == (chosen == "msccl"):
        raise ConfigError(
            f"{path}: the size of the buffer in bytes is needed with the format 'msccl', and "
            f"allowed with no other; the format is {chosen!r}"
        )
    if groups_file is not None and chosen != "chakra":
        raise ConfigError(
            f"{path}: a file of groups is allowed with the format 'chakra' only; the format is "
            f"{chosen!r}"
        )
    if chosen == "chakra":
        return read_chakra(path, groups_file)
    if chosen == "msccl":
        return read_msccl(path, buffer_bytes or 0)
    return read_simai(path) if chosen == "simai" else read_goal(path)


def detect(path: str | Path) -> str:
    """The format of a file, by its name or else by how it begins.

    Returns:
        One of `FORMATS` and `FLOW_FORMATS`.

    Raises:
        TraceFileError: it cannot be read, or is of no known format.
    """
    path = Path(path)
    try:
        if path.suffix == ".et" or path.is_dir() or not path.exists():
            chakra_files(path)
            return "chakra"
    except (OSError, ValueError) as error:
        if isinstance(error, TraceFileError):
            if not path.is_dir() and path.suffix != ".et":
                open_bounded(path)  # says why it cannot be read
            raise
        raise TraceFileError(f"{path}: cannot be read: {error}") from None
    with open_bounded(path) as file:
        head = file.read(_HEAD_BYTES).decode("latin-1").removeprefix("\xef\xbb\xbf")
    if head.lstrip().startswith("<"):
        return "msccl"
    if head.lstrip().startswith("HYBRID_") or "model_parallel_NPU_group" in head.split("\n")[0]:
        return "simai"
    if path.suffix == ".goal" or _GOAL.search(head):
        return "goal"
    if _FLOWS.match(head):
        return "hpcc_flows"
    if _CDF.match(head):
        return "size_cdf"
    if _TOPOLOGY.match(head):
        raise TraceFileError(
            f"{path}: is no workload but looks like an HPCC topology, which a scenario reads as "
            "topology: {kind: hpcc_file, path: …}"
        )
    raise TraceFileError(
        f"{path}: of no known format; allowed: {', '.join((*FORMATS, *FLOW_FORMATS))}"
    )


def trace_files(path: str | Path, trace_format: str = "auto") -> list[Path]:
    """All files that a trace is read from.

    Raises:
        TraceFileError: see `detect`.
    """
    chosen = detect(path) if trace_format == "auto" else trace_format
    return chakra_files(path) if chosen == "chakra" else [Path(path)]
