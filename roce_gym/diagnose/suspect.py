"""What rules return, and the small steps that several of them take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roce_gym.diagnose.view import View

Mask = NDArray[np.bool_]

FREE_SHARE = 0.1
"""Of the time: a port that is paused longer has a reason not to send."""


@dataclass(frozen=True)
class Suspect:
    """What may be wrong.

    Attributes:
        rule: name of the rule.
        device, port: where.
        verdict: what is suspected, in a sentence.
        evidence: what was seen, a sentence each.
    """

    rule: str
    device: str
    port: str
    verdict: str
    evidence: tuple[str, ...]


Rule = Callable[[View], Iterator[Suspect]]


def longest_run(mask: Mask) -> Mask:
    """Only the longest run of a mask, the first of those; nothing where there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    out = np.zeros(len(mask), np.bool_)
    if len(edges):
        starts, stops = edges[::2], edges[1::2]
        best = int((stops - starts).argmax())
        out[starts[best] : stops[best]] = True
    return out


def last_run(mask: Mask) -> Mask:
    """Only the run of a mask that lasts to its end."""
    out: Mask = np.logical_and.accumulate(mask[::-1])[::-1]
    return out


def poisson_tail(count: int, expected: float) -> float:
    """Probability of `count` or more where `expected` are to be expected."""
    if expected > count:
        return 1.0
    term, below = math.exp(-expected), 0.0
    for k in range(count):
        below += term
        term *= expected / (k + 1)
    # Where nearly nothing is expected, the difference from 1 drowns in rounding.
    return max(1.0 - below, term) if below > 0.5 else 1.0


def port_at(view: View, port: int) -> str:
    """The port at the other end, if it is known."""
    facing = view.facing[port]
    return view.places[facing].port if facing >= 0 else ""


def ports_by_device(view: View) -> dict[str, list[int]]:
    """Numbers of ports, ascending."""
    out: dict[str, list[int]] = {}
    for port, place in enumerate(view.places):
        out.setdefault(place.device, []).append(port)
    return out


def by_device(view: View, values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Shape (S - 1,) each: sums over a device's ports."""
    return {
        device: np.nansum(values[:, ports], axis=1)
        for device, ports in ports_by_device(view).items()
    }


def percent(share: float) -> str:
    """As it stands in sentences."""
    return f"{100 * share:.0f} %"
