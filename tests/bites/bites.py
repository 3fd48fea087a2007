"""One entry a parameter: a small scenario, two values, and the metric that moves between them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from roce_gym.config import validate_scenario
from roce_gym.fabric import Fabric
from roce_gym.telemetry import Interval

Raw = dict[str, Any]
NO_ECN = {"enabled": False, "kmin_bytes": 0, "kmax_bytes": 0, "pmax": 0.0}
RED = {"kmin_bytes": 100_000, "kmax_bytes": 400_000, "pmax": 0.2}
FOREVER = 10**9


@dataclass(frozen=True)
class Bite:
    """What a parameter does.

    Attributes:
        path: of the parameter in the scenario; a number is a position in a list.
        low, high: two of its values.
        metric: of what happens.
        grows: whether the metric is greater with `high` than with `low`.
        raw: the scenario.
        us, skip_us: the metric is of `us` after `skip_us`.
        least: the two values of the metric differ by this share of the greater one, at least.
        of: the parameter, where it changes together with another one at `path`.
    """

    path: str
    low: Any
    high: Any
    metric: Callable[[Interval], float]
    grows: bool
    raw: Mapping[str, Any] = field(repr=False)
    us: float = 1_000.0
    skip_us: float = 0.0
    least: float = 0.05
    of: str = ""

    @property
    def field(self) -> str:
        """The parameter: the path without positions."""
        return self.of or ".".join(part for part in self.path.split(".") if not part.isdigit())

    def measure(self, value: Any) -> float:
        """The metric with a value."""
        fabric = Fabric(validate_scenario(put(self.raw, self.path, value)), 1)
        if self.skip_us:
            fabric.advance(us=self.skip_us)
        return self.metric(fabric.advance(us=self.us))


def put(raw: Mapping[str, Any], path: str, value: Any) -> Raw:
    """A copy of the scenario with a value at a path."""
    changed: Raw = copy.deepcopy(dict(raw))
    *way, last = path.split(".")
    place: Any = changed
    for part in way:
        place = place[int(part)] if part.isdigit() else place.setdefault(part, {})
    place[int(last) if last.isdigit() else last] = value
    return changed


def flow(src: int, dst: int, size: int = FOREVER, start_us: float = 0.0) -> Raw:
    return {"src": src, "dst": dst, "bytes": size, "start_us": start_us}


def tenant(flows: list[Raw], name: str = "a", cc: str = "dcqcn", **more: Any) -> Raw:
    """On all the hosts that its flows name; without congestion control, unless said."""
    hosts = sorted({f["src"] for f in flows} | {f["dst"] for f in flows})
    quiet = {"dcqcn": {"enabled": False}} if cc == "dcqcn" else {}
    jobs = [{"kind": "flows", "flows": flows}]
    return {"name": name, "hosts": hosts, "cc": cc, "jobs": jobs} | quiet | more


def star(*tenants: Raw, hosts: int = 6, **sections: Any) -> Raw:
    """One switch, 100 Gb/s; host i sends on link 2i, and receives on 2i + 1."""
    base = {
        "name": "bites",
        "topology": {"kind": "star", "hosts": hosts, "host_rate_gbps": 100},
        "classes": [{"ecn": NO_ECN}],
        "tenants": list(tenants),
    }
    return base | sections


def incast(cc: str = "dcqcn", senders: int = 4, size: int = FOREVER, **more: Any) -> Raw:
    """Hosts 1 … send to host 0. Sections of the scenario, or `tenant`: fields of the tenant."""
    own = more.pop("tenant", {})
    flows = [flow(i + 1, 0, size) for i in range(senders)]
    return star(tenant(flows, cc=cc, **own), hosts=senders + 2, **more)


# --------------------------------------------------------------------------- metrics


def delivered(interval: Interval) -> float:
    """Bytes that arrived in order."""
    return float(interval.delivered_bytes.sum())


def delivered_most(interval: Interval) -> float:
    """The same, of the queue pair that got most."""
    return float(interval.delivered_bytes.max())


def share_of_first(interval: Interval) -> float:
    """Of what arrived."""
    return float(interval.delivered_bytes[0] / interval.delivered_bytes.sum())


def mean_queue(interval: Interval) -> float:
    """Bytes, of the queues towards host 0, on average over time."""
    return float(interval.queue_mean_bytes[1].sum())


def peak_queue(interval: Interval) -> float:
    """Bytes, of the longest queue anywhere but in hosts."""
    return float(interval.queue_max_bytes[1].max())


def queue_of_first(interval: Interval) -> float:
    """Bytes of the first class, of all queues, on average over time."""
    return float(interval.queue_mean_bytes[:, 0].sum())


def total_rate(interval: Interval) -> float:
    """Bit/s, of all senders at the end."""
    return float(interval.rate_bps.sum())


def unfairness(interval: Interval) -> float:
    """Deviation of what was acknowledged to each, over the mean."""
    return float(interval.acked_bytes.std() / interval.acked_bytes.mean())


def packets_sent(interval: Interval) -> float:
    """Packets that hosts 1 … sent."""
    return float(interval.tx_packets[2::2].sum())


def packets_of_first(interval: Interval) -> float:
    """Packets that hosts 1 … sent in the first class."""
    return float(interval.tx_packets[2::2, 0].sum())


def packets_back(interval: Interval) -> float:
    """Packets that host 0 sent: ACKs and CNPs, where it sends no data."""
    return float(interval.tx_packets[0].sum())


def bytes_back(interval: Interval) -> float:
    """Bytes of them."""
    return float(interval.tx_bytes[0].sum())


def back_in_second_class(interval: Interval) -> float:
    """Packets that host 0 sent in the second class."""
    return float(interval.tx_packets[0, 1])


def pauses(interval: Interval) -> float:
    """PAUSE frames."""
    return float(interval.pause_frames.sum())


def pauses_first(interval: Interval) -> float:
    """PAUSE frames for the first class."""
    return float(interval.pause_frames[:, 0].sum())


def peak_headroom(interval: Interval) -> float:
    """Bytes: the most that one port had beyond its threshold."""
    return float(interval.headroom_max_bytes.max())


def drops(interval: Interval) -> float:
    """Packets that switches refused."""
    return float(interval.dropped_packets.sum())


def lost(interval: Interval) -> float:
    """Packets that links lost."""
    return float(interval.lost_packets.sum())


def watchdog_drops(interval: Interval) -> float:
    """Packets that watchdogs dropped."""
    return float(interval.watchdog_dropped_packets.sum())


def nacks(interval: Interval) -> float:
    """NACKs."""
    return float(interval.nacks.sum())


def cnps(interval: Interval) -> float:
    """Notifications that senders took in."""
    return float(interval.cnps.sum())


def completed(interval: Interval) -> float:
    """Flows that ended."""
    return float(len(interval.completions))


def last_end_us(interval: Interval) -> float:
    """When the last flow ended."""
    return float(np.max(interval.completions["end_ps"])) / 1e6


def mean_round_us(interval: Interval) -> float:
    """Of a job's rounds that ended."""
    ended = interval.completions
    return float(np.mean(ended["end_ps"] - ended["start_ps"])) / 1e6


def busy_queue_pairs(interval: Interval) -> float:
    """Queue pairs on which something arrived."""
    return float(np.count_nonzero(interval.delivered_bytes))
