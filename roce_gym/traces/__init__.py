"""Readers of other people's workload files: what they say becomes an operation graph, or flows.

    read_trace ─► Trace (graph, notes about what was left out)      SizeCdf ─► poisson_flows

Files are not trusted: everything is checked while it is read, within the limits of `limits.py`, and
what is wrong raises `TraceFileError` with file and line or record.
"""

from __future__ import annotations

from roce_gym.traces.builder import Trace
from roce_gym.traces.formats import FLOW_FORMATS, FORMATS, detect, read_trace, trace_files
from roce_gym.traces.notes import Note
from roce_gym.traces.poisson import Flows, poisson_flows
from roce_gym.traces.scale import scale_graph
from roce_gym.traces.size_cdf import SizeCdf, make_size_cdf, read_size_cdf

__all__ = [
    "FLOW_FORMATS",
    "FORMATS",
    "Flows",
    "Note",
    "SizeCdf",
    "Trace",
    "detect",
    "make_size_cdf",
    "poisson_flows",
    "read_size_cdf",
    "read_trace",
    "scale_graph",
    "trace_files",
]
