"""`roce-gym import`: what a workload file contains, and what of it is left out."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from roce_gym.cli.text import facts, left_out, number, table, to_json
from roce_gym.traces import Trace, detect, read_size_cdf, read_trace
from roce_gym.units import PS_PER_US
from roce_gym.workload.flow_file import read_flow_file
from roce_gym.workload.graph_check import match_messages, order_of
from roce_gym.workload.op_graph import OpKind

_QUANTILES = (0.5, 0.9, 0.99)
_KINDS = (OpKind.COMPUTE, OpKind.SEND, OpKind.RECV, OpKind.COLLECTIVE)
"""Of operations that traces can have."""


def import_trace(arguments: argparse.Namespace) -> int:
    """Prints what a file contains; nothing is simulated."""
    chosen = arguments.format
    if chosen == "auto":
        chosen = detect(arguments.file)
    if chosen == "hpcc_flows":
        found = _flows(arguments.file)
    elif chosen == "size_cdf":
        found = _sizes(arguments.file)
    else:
        trace = read_trace(arguments.file, chosen, arguments.bytes, arguments.groups)
        found = summarise(trace)
    found = {"file": arguments.file, "format": chosen, **found}
    print(to_json(found) if arguments.json else _in_text(found))
    return 0


def summarise(trace: Trace) -> dict[str, Any]:
    """A trace in numbers, as plain data."""
    graph = trace.graph
    order = order_of(graph, match_messages(graph))
    computes = graph.duration_ps[graph.kind == OpKind.COMPUTE]
    is_send = graph.kind == OpKind.SEND
    sent = np.bincount(graph.rank[is_send], graph.bytes[is_send], graph.num_ranks)
    return {
        "ranks": graph.num_ranks,
        "operations": {k.name.lower(): int((graph.kind == k).sum()) for k in _KINDS},
        "dependencies": int(graph.dependency.size),
        "compute_us": int(computes.sum()) / PS_PER_US,
        "sent_bytes": int(graph.bytes[is_send].sum()),
        "sent_bytes_of_a_rank": {"min": int(sent.min()), "max": int(sent.max())},
        "collectives": _collectives(trace),
        "critical_path_us": int(order.end_ps.max(initial=0)) / PS_PER_US,
        "longest_chain": order.longest_chain,
        "left_out": [{"times": note.times, "text": note.text} for note in trace.notes],
    }


def _collectives(trace: Trace) -> list[dict[str, Any]]:
    """By operation and number of ranks."""
    kinds: dict[tuple[str, int], list[int]] = {}
    for call in trace.graph.collectives:
        kinds.setdefault((call.operation, len(call.ranks)), []).append(call.bytes)
    return [
        {
            "operation": operation,
            "ranks": ranks,
            "count": len(sizes),
            "min_bytes": min(sizes),
            "max_bytes": max(sizes),
            "sum_bytes": sum(sizes),
        }
        for (operation, ranks), sizes in sorted(kinds.items())
    ]


def _flows(path: str) -> dict[str, Any]:
    flows = read_flow_file(path, None)
    starts = [flow.start_ps for flow in flows]
    return {
        "flows": len(flows),
        "hosts": len({host for flow in flows for host in (flow.src, flow.dst)}),
        "sum_bytes": sum(flow.bytes for flow in flows),
        "first_start_us": min(starts, default=0) / PS_PER_US,
        "last_start_us": max(starts, default=0) / PS_PER_US,
    }


def _sizes(path: str) -> dict[str, Any]:
    cdf = read_size_cdf(path)
    sizes = cdf.sizes(np.array([0.0, *_QUANTILES]))
    return {
        "points": int(cdf.bytes.size),
        "mean_bytes": cdf.mean_bytes,
        "min_bytes": int(sizes[0]),
        **{f"p{100 * q:g}_bytes": int(s) for q, s in zip(_QUANTILES, sizes[1:], strict=True)},
        "max_bytes": int(cdf.bytes[-1]),
    }


def _in_text(found: dict[str, Any]) -> str:
    head = f"{found['file']}: {found['format']}"
    if "operations" not in found:
        rows = [(k.replace("_", " "), number(v)) for k, v in list(found.items())[2:]]
        return f"{head}\n\n{facts(rows)}"
    ops = ", ".join(f"{number(count)} {kind}" for kind, count in found["operations"].items())
    each = found["sent_bytes_of_a_rank"]
    rows = [
        ("ranks", number(found["ranks"])),
        ("operations", ops),
        ("dependencies", number(found["dependencies"])),
        ("compute", f"{number(found['compute_us'])} us, all ranks"),
        (
            "sent",
            f"{number(found['sent_bytes'])} B, {number(each['min'])} … {number(each['max'])} B a "
            "rank, collectives not counted",
        ),
        (
            "critical path",
            f"{number(found['critical_path_us'])} us if the network took no time; longest chain: "
            f"{number(found['longest_chain'])} operations",
        ),
    ]
    parts = [head, facts(rows)]
    if found["collectives"]:
        columns = ("ranks", "count", "min_bytes", "max_bytes", "sum_bytes")
        lines = [
            [c["operation"], *(number(c[column]) for column in columns)]
            for c in found["collectives"]
        ]
        names = [column.replace("_", " ") for column in columns]
        parts.append("collectives\n" + table(["operation", *names], lines))
    return "\n\n".join([*parts, left_out(found["left_out"])])
