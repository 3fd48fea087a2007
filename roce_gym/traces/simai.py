"""Reader of SimAI workload files, as AICB writes them and SimAI (ASTRA-sim 1.0) runs them.

    HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: T ep: E pp: P vpp: V ga: G
        all_gpus: N checkpoints: 0 checkpoint_initiates: 0 [pp_comm B]            (one line)
    number of layers
    name dependency  fwd_ns fwd_comm fwd_bytes  ig_ns ig_comm ig_bytes
        wg_ns wg_comm wg_bytes  update_ns                                  (one line a layer)

All ranks go through the layers: forward, each computation followed by its collective; then back
from the last layer to the first, input gradient and its collective, weight gradient and its
collective, which nothing waits for. `update_ns` passes after each collective. Source of grammar and
meaning: Workload.cc and Layer.cc of https://github.com/aliyun/SimAI.

Groups (MockNcclGroup.cc): TP is T neighbouring ranks. Collectives of forward and input gradient run
in TP, those of the weight gradient in DP, unless a suffix says `_EP` or `_DP_EP`. With pipeline
stages, which SimAI's network simulation takes for one, the ranks of a stage are neighbours, as
Megatron-LM numbers them. A size is that of the whole buffer (MockNcclGroup: messages are
size / ranks).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from roce_gym.traces.builder import Trace
from roce_gym.traces.limits import MAX_DURATION_PS, MAX_MESSAGE_BYTES, MAX_RANKS
from roce_gym.traces.notes import NoteBook
from roce_gym.traces.source import Lines
from roce_gym.traces.uniform import Group, Layout, Step, expand
from roce_gym.units import PS_PER_NS

POLICIES = ("HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD")

_FIELDS = (
    "name dependency fwd_ns fwd_comm fwd_bytes ig_ns ig_comm ig_bytes wg_ns wg_comm wg_bytes "
    "update_ns"
)
_OPERATIONS = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
}
_SUFFIXES = {"_DP_EP": Group.DP_EP, "_EP": Group.EP}
_MAX_LAYERS = 2**18
_SIZES = ("model_parallel_NPU_group", "ep", "pp", "vpp", "ga", "all_gpus")
_LISTS = ("checkpoints", "checkpoint_initiates")


class _Phase(NamedTuple):
    """Computation and what follows it; `operation` is empty without a collective."""

    duration_ps: int
    operation: str
    group: Group
    bytes: int


class _Layer(NamedTuple):
    line: int
    forward: _Phase
    input_gradient: _Phase
    weight_gradient: _Phase
    update_ps: int


def read_simai(path: str | Path) -> Trace:
    """Reads a workload.

    Raises:
        TraceFileError: names file, line and value.
    """
    lines, notes = Lines(path, max_line_bytes=2**16), NoteBook()
    texts = iter(lines)
    layout, marked, recompute = _read_head(lines, _next(lines, texts, "the head"), notes)
    count = lines.whole("layers", _next(lines, texts, "the number of layers"), 1, _MAX_LAYERS)
    layers = [_read_layer(lines, _next(lines, texts, _FIELDS), notes) for _ in range(count)]
    notes.add("lines after the last layer", sum(1 for _ in texts))
    for layer in marked:
        if layer >= count:
            raise lines.fault(f"checkpoint {layer} is not a layer; allowed: 0 … {count - 1}")
    return expand(path, "simai", layout, _steps(layers, recompute), notes)


def _next(lines: Lines, texts: Iterator[str], what: str) -> str:
    text = next(texts, None)
    if text is None:
        raise lines.fault(f"the file ends here, where '{what}' should follow")
    return text


# --------------------------------------------------------------------------- head


def _read_head(
    lines: Lines, text: str, notes: NoteBook
) -> tuple[Layout, list[int], tuple[tuple[int, int], ...]]:
    """Groups, layers that are named, and those that are computed again.

    The last are pairs: before the input gradient of the second, forward goes again from the first.

    `checkpoints` and `checkpoint_initiates` are a count and that many layers.
    """
    policy, *words = text.split()
    if policy not in POLICIES:
        raise lines.fault(f"{policy[:40]!r} is not supported; allowed: {', '.join(POLICIES)}")
    found = dict.fromkeys(_SIZES, 1)
    lists: dict[str, list[int]] = {name: [] for name in _LISTS}
    given: set[str] = set()
    rest = iter(words)
    for word in rest:
        name = word.removesuffix(":")
        if name in given:
            raise lines.fault(f"{name} is given twice")
        given.add(name)
        if name in found:
            found[name] = lines.whole(name, next(rest, ""), 1, MAX_RANKS)
        elif name in lists:
            size = lines.whole(name, next(rest, ""), 0, len(words))
            lists[name] = [lines.whole(name, next(rest, ""), 0, _MAX_LAYERS) for _ in range(size)]
        elif name == "pp_comm":
            lines.whole(name, next(rest, ""), 0, MAX_MESSAGE_BYTES)
            notes.add("pp_comm: the file does not say when stages send to each other")
        else:
            raise lines.fault(f"{word[:40]!r} is unknown in the head")
    for name in ("model_parallel_NPU_group", "all_gpus"):
        if name not in given:
            raise lines.fault(f"{name} is missing")
    for name in ("vpp", "ga"):
        notes.add(f"{name}: the layers are taken as they are listed", int(found[name] > 1))
    tensor, expert, stages = (found[n] for n in ("model_parallel_NPU_group", "ep", "pp"))
    if found["all_gpus"] % (tensor * expert * stages):
        raise lines.fault(
            f"all_gpus = {found['all_gpus']} is no multiple of model_parallel_NPU_group × ep × pp "
            f"= {tensor} × {expert} × {stages}"
        )
    if stages > 1:
        notes.add("pp: each stage does all layers listed", 1)
    layout = Layout(found["all_gpus"], tensor, expert, stages)
    checkpoints, initiates = lists["checkpoints"], lists["checkpoint_initiates"]
    return layout, checkpoints + initiates, _pair(lines, checkpoints, initiates)


def _pair(
    lines: Lines, checkpoints: list[int], initiates: list[int]
) -> tuple[tuple[int, int], ...]:
    pairs = []
    for layer in initiates:
        before = [c for c in checkpoints if c <= layer]
        if not before:
            raise lines.fault(f"checkpoint_initiates: no checkpoint at or before layer {layer}")
        pairs.append((max(before), layer))
    return tuple(pairs)


# --------------------------------------------------------------------------- layers


def _read_layer(lines: Lines, text: str, notes: NoteBook) -> _Layer:
    fields = text.split()
    if len(fields) != len(_FIELDS.split()):
        raise lines.fault(f"12 fields expected ({_FIELDS}), found {len(fields)}")
    if fields[1] != "-1":
        lines.whole("dependency", fields[1], -1, _MAX_LAYERS)
        notes.add("dependency of a layer: layers follow each other")
    phases = [
        _read_phase(lines, fields[i : i + 3], group, notes)
        for i, group in ((2, Group.TP), (5, Group.TP), (8, Group.DP))
    ]
    update_ps = _duration(lines, "update_ns", fields[11])
    return _Layer(lines.line, phases[0], phases[1], phases[2], update_ps)


def _read_phase(lines: Lines, fields: list[str], group: Group, notes: NoteBook) -> _Phase:
    time, word, size = fields
    duration_ps = _duration(lines, "compute_ns", time)
    size_bytes = lines.whole("bytes", size, 0, MAX_MESSAGE_BYTES)
    if word == "NONE":
        notes.add("sizes without a collective", int(size_bytes > 0))
        return _Phase(duration_ps, "", group, 0)
    name = word
    for suffix, own_group in _SUFFIXES.items():
        if word.endswith(suffix):
            name, group = word.removesuffix(suffix), own_group
            break
    if name not in _OPERATIONS:
        allowed = ", ".join(("NONE", *_OPERATIONS))
        raise lines.fault(f"{word[:40]!r} is unknown; allowed: {allowed}, with _EP or _DP_EP")
    if size_bytes == 0:
        notes.add("collectives of 0 bytes")
        return _Phase(duration_ps, "", group, 0)
    return _Phase(duration_ps, _OPERATIONS[name], group, size_bytes)


def _duration(lines: Lines, name: str, text: str) -> int:
    return lines.whole(name, text, 0, MAX_DURATION_PS // PS_PER_NS) * PS_PER_NS


def _steps(layers: list[_Layer], recompute: tuple[tuple[int, int], ...]) -> Iterator[Step]:
    """What each rank does, in order."""
    again = {layer: checkpoint for checkpoint, layer in recompute}
    for layer in layers:
        yield from _phase(layer, layer.forward)
    for index in range(len(layers) - 1, -1, -1):
        for layer in layers[again.get(index, index) : index]:
            yield from _phase(layer, layer.forward)
        yield from _phase(layers[index], layers[index].input_gradient)
        yield from _phase(layers[index], layers[index].weight_gradient, is_awaited=False)


def _phase(layer: _Layer, phase: _Phase, is_awaited: bool = True) -> Iterator[Step]:
    yield Step(layer.line, phase.duration_ps, "", phase.group, 0, True)
    if phase.operation:
        yield Step(
            layer.line,
            layer.update_ps,
            phase.operation,
            phase.group,
            phase.bytes,
            is_awaited,
        )
