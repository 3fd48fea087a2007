"""What a run tells about PFC: where pauses began, how full ports got, watchdogs, deadlocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.assembly.devices import headroom_bytes
from roce_gym.cli.tally import Tally
from roce_gym.config import Scenario
from roce_gym.telemetry import Interval
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_US


def pfc_results(tally: Tally, scenario: Scenario, network: Network) -> dict[str, Any]:
    """Keys `first_pause`, `pausing_hosts`, `ports`, `watchdog`, `deadlock`.

    Precondition: one interval or more were added.
    """
    names = [c.name for c in scenario.classes]
    return {
        "first_pause": _first_pause(tally, network, names),
        "pausing_hosts": _pausing_hosts(tally, network, names),
        "ports": _ports(tally, scenario, network),
        "watchdog": _watchdog(tally, network, names),
        "deadlock": _deadlock(tally.deadlocked, network, names),
    }


def leading(network: Network, link: int) -> str:
    """The two ends of a link: the port that sends on it."""
    ends = int(network.link_src[link]), int(network.link_dst[link])
    return " -> ".join(network.describe(end) for end in ends)


def facing(network: Network, link: int) -> str:
    """The port at the receiving end of a link, which sends the pause frames."""
    return leading(network, link ^ 1)


def drops_by_cause(
    tally: Tally, scenario: Scenario, network: Network
) -> tuple[NDArray[np.int64], list[dict[str, Any]]]:
    """Packets dropped by class, shape (C,), and where and why, most first."""
    names = [c.name for c in scenario.classes]
    refused, watched = tally.sums["dropped_packets"], tally.sums["watchdog_dropped_packets"]
    at_egress = tally.sums["egress_dropped_packets"]
    unbuffered = refused - tally.sums["dropped_at_egress_packets"]
    causes = [
        (int(unbuffered[at]), at, _cause(scenario, at))
        for at in zip(*np.nonzero(unbuffered), strict=True)
    ]
    for counts, cause in ((at_egress, "egress queue limit"), (watched, "watchdog")):
        causes += [(int(counts[at]), at, cause) for at in zip(*np.nonzero(counts), strict=True)]
    places = [
        {
            "port": leading(network, int(link)),
            "class": names[int(column)],
            "packets": packets,
            "cause": cause,
        }
        for packets, (link, column), cause in sorted(causes, key=lambda one: -one[0])
    ]
    return (refused + watched).sum(axis=0), places


def _cause(scenario: Scenario, at: tuple[Any, ...]) -> str:
    """Why there was no room at an input port."""
    return "headroom exceeded" if scenario.classes[int(at[1])].lossless else "buffer full"


def _first_pause(tally: Tally, network: Network, names: list[str]) -> dict[str, Any] | None:
    """When, and by whom, the first pause frame was sent outside of servers."""
    assert tally.last is not None
    first = tally.last.first_pause_ps
    sent = (first >= 0) & ~network.is_nvlink[:, None]
    if not sent.any():
        return None
    earliest = int(np.where(sent, first, np.iinfo(np.int64).max).argmin())
    link, column = divmod(earliest, len(names))
    return {
        "time_us": int(first[link, column]) / PS_PER_US,
        "port": facing(network, link),
        "class": names[column],
    }


def _pausing_hosts(tally: Tally, network: Network, names: list[str]) -> list[dict[str, Any]]:
    """NICs that paused their switch, which healthy ones do not: the longest first."""
    assert tally.last is not None
    sent = tally.sums["pause_frames"] * (network.link_dst < network.num_hosts)[:, None]
    sent[network.is_nvlink] = 0
    hosts = [
        {
            "port": network.describe(int(network.link_dst[link])),
            "class": names[int(column)],
            "pause_frames": int(sent[link, column]),
            "first_pause_us": int(tally.last.first_pause_ps[link, column]) / PS_PER_US,
            "paused_share": int(tally.sums["paused_ps"][link, column]) / tally.duration_ps,
        }
        for link, column in zip(*np.nonzero(sent), strict=True)
    ]
    return sorted(hosts, key=lambda host: -host["paused_share"])


def _ports(tally: Tally, scenario: Scenario, network: Network) -> list[dict[str, Any]]:
    """Every port and class that buffered something, those nearest to their limits first."""
    assert tally.last is not None
    out = []
    for column, chosen in enumerate(scenario.classes):
        headroom = headroom_bytes(scenario, network, column)
        for link in network.into_switch:
            at = link, column
            if tally.ingress_max_bytes[at] == 0:
                continue
            first = int(tally.last.first_pause_ps[at])
            out.append(
                {
                    "port": facing(network, int(link)),
                    "class": chosen.name,
                    "peak_bytes": int(tally.ingress_max_bytes[at]),
                    "peak_limit_bytes": int(tally.ingress_max_limit_bytes[at]),
                    "headroom_peak_bytes": int(tally.headroom_max_bytes[at]),
                    "headroom_bytes": int(headroom[link]),
                    "pause_frames": int(tally.sums["pause_frames"][at]),
                    "first_pause_us": None if first < 0 else first / PS_PER_US,
                }
            )
    return sorted(out, key=_fullness, reverse=True)


def _fullness(port: dict[str, Any]) -> tuple[float, float]:
    """Share of the headroom, then of what comes before it."""
    return (
        port["headroom_peak_bytes"] / max(port["headroom_bytes"], 1),
        port["peak_bytes"] / max(port["peak_limit_bytes"], 1),
    )


def _watchdog(tally: Tally, network: Network, names: list[str]) -> dict[str, Any]:
    storms, restored, dropped = (
        tally.sums[f"watchdog_{what}"] for what in ("storms", "restored", "dropped_packets")
    )
    return {
        "storms": int(storms.sum()),
        "restored": int(restored.sum()),
        "dropped_packets": int(dropped.sum()),
        "ports": [
            {
                "port": leading(network, int(link)),
                "class": names[int(column)],
                "storms": int(storms[link, column]),
                "restored": int(restored[link, column]),
                "dropped_packets": int(dropped[link, column]),
            }
            for link, column in zip(*np.nonzero(storms), strict=True)
        ],
    }


def _deadlock(found: Interval | None, network: Network, names: list[str]) -> dict[str, Any] | None:
    """The first circle that was found, and when."""
    if found is None:
        return None
    return {
        "found_us": found.end_ps / PS_PER_US,
        "since_us": max(since for *_, since in found.deadlock) / PS_PER_US,
        "class": names[found.deadlock[0][1]],
        "ports": [leading(network, link) for link, *_ in found.deadlock],
    }
