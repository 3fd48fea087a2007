"""What each switch sees of itself: counters of its own ports and queues.

Scales are those of :mod:`roce_gym.observation`. Per switch and class, over the switch's ports:

| Entry                             | Meaning                                                    |
|-----------------------------------|------------------------------------------------------------|
| `queue_max`, `queue_mean`         | highest queue, highest average queue; share of buffer, log |
| `marked_fraction`                 | of packets sent                                            |
| `utilisation`, `utilisation_max`  | bytes sent over link rate: mean of ports, busiest port     |
| `pause_frames`, `pauses_received` | PFC frames that it sent, that it got; 1/s and port, log    |
| `paused`, `paused_max`            | share of time that it had to be silent: mean, worst port   |
| `drops`                           | packets it had no room for; 1/s, log                       |

and per switch `buffer`: bytes held at the end of the interval over its buffer. With
`observation: deployable` there are only those that SONiC exports, as last polled
(`control.polling.switch_us`): `queue_max` (SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES),
`marked_fraction` (WRED_ECN_MARKED_PACKETS over PACKETS), `utilisation` and `utilisation_max`
(SAI_QUEUE_STAT_BYTES), `pause_frames` and `pauses_received` (SAI_PORT_STAT_PFC_n_TX_PKTS and
RX_PKTS), `paused` and `paused_max` (PFC_n_RX_PAUSE_DURATION_US), `drops`
(SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from roce_gym.config import Scenario
from roce_gym.deployable import Poll
from roce_gym.observation import (
    DROP_TOP_PER_S,
    DROP_UNIT_PER_S,
    PAUSE_TOP_PER_S,
    PAUSE_UNIT_PER_S,
    QUEUE_UNIT,
    Scaler,
    positions,
)
from roce_gym.telemetry import Interval
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, us_to_ps

Floats = NDArray[np.float64]
Frame = NDArray[np.float32]

_PAUSES = (PAUSE_UNIT_PER_S, PAUSE_TOP_PER_S)
_SCALES: dict[str, tuple[float, float] | None] = {
    "queue_max": (QUEUE_UNIT, 1.0),
    "queue_mean": (QUEUE_UNIT, 1.0),
    "marked_fraction": None,
    "utilisation": None,
    "utilisation_max": None,
    "pause_frames": _PAUSES,
    "pauses_received": _PAUSES,
    "paused": None,
    "paused_max": None,
    "drops": (DROP_UNIT_PER_S, DROP_TOP_PER_S),
}
SIGNALS = tuple(_SCALES)
POLLED_SIGNALS = tuple(name for name in SIGNALS if name != "queue_mean")

_PEAK = "queue_max_bytes"
_SUMS = (
    *("tx_bytes", "tx_packets", "ecn_marked_packets"),
    *("pause_frames", "paused_ps", "dropped_packets"),
)
"""Counters of :class:`Interval`, shape (L, C)."""


class SwitchPorts:
    """Links by the Ethernet switch they leave.

    Attributes:
        nodes: of the S switches, ascending.
        out: links that leave them, those of one switch together.
        into: the other directions of the same cables.
    """

    def __init__(self, network: Network) -> None:
        links = network.from_switch
        self.out = links[np.argsort(network.link_src[links], kind="stable")]
        self.into = self.out ^ 1
        self.nodes, self._starts, self.num_ports = np.unique(
            network.link_src[self.out], return_index=True, return_counts=True
        )

    def total(self, values: NDArray[Any]) -> Floats:
        """Shape (S, C), from values of ports, shape (ports, C)."""
        return np.add.reduceat(values, self._starts, axis=0).astype(np.float64)

    def mean(self, values: NDArray[Any]) -> Floats:
        """Likewise."""
        return self.total(values) / self.num_ports[:, None]

    def most(self, values: NDArray[Any]) -> Floats:
        """Likewise."""
        return np.maximum.reduceat(values, self._starts, axis=0).astype(np.float64)


class SwitchObservation:
    """Telemetry of the last interval, by switch.

    Attributes:
        names: `<switch>/<class>/<signal>`, and `<switch>/buffer`; see the module.
        num_measured: their number.
    """

    signals = SIGNALS
    of_switch: tuple[str, ...] = ("buffer",)

    def __init__(self, scenario: Scenario, network: Network) -> None:
        self._ports = SwitchPorts(network)
        self._rate_bps = network.link_rate_bps[self._ports.out].astype(np.float64)[:, None]
        self._buffer = float(scenario.switch.buffer_bytes)
        own = [f"{c.name}/{signal}" for c in scenario.classes for signal in self.signals]
        own += self.of_switch
        nodes = self._ports.nodes.tolist()
        self.names = tuple(f"{network.describe(node)}/{name}" for node in nodes for name in own)
        self.num_measured = len(self.names)
        scales = [_SCALES[signal] for signal in self.signals] * len(scenario.classes)
        self._scaled = Scaler((scales + [None] * len(self.of_switch)) * len(nodes))

    def at_start(self) -> Frame:
        """Nothing was measured yet."""
        return self._scaled(np.zeros(self.num_measured))

    def __call__(self, interval: Interval, errors: Floats | float = 1.0) -> Frame:
        """Shape (num_measured,); `errors` are factors, before scaling."""
        counters = {name: getattr(interval, name) for name in (_PEAK, *_SUMS)}
        rows = self._rows(counters, (interval.end_ps - interval.start_ps) / PS_PER_S)
        rows["queue_mean"] = self._ports.most(interval.queue_mean_bytes[self._ports.out])
        rows["queue_mean"] /= self._buffer
        held = interval.ingress_bytes[self._ports.into].sum(axis=1, keepdims=True)
        return self._scaled(self._flat(rows, self._ports.total(held) / self._buffer) * errors)

    def _rows(self, counters: Mapping[str, NDArray[Any]], seconds: float) -> dict[str, Floats]:
        """Shape (S, C) each, before scaling: signals that need nothing but counters."""
        ports = self._ports
        out = {name: counters[name][ports.out] for name in counters}
        into = {name: counters[name][ports.into] for name in ("pause_frames", "dropped_packets")}
        use = 8.0 * out["tx_bytes"] / (seconds * self._rate_bps)
        paused = out["paused_ps"] / (seconds * PS_PER_S)
        return {
            "queue_max": ports.most(out[_PEAK]) / self._buffer,
            "marked_fraction": ports.total(out["ecn_marked_packets"])
            / np.maximum(ports.total(out["tx_packets"]), 1.0),
            "utilisation": ports.mean(use),
            "utilisation_max": ports.most(use),
            "pause_frames": ports.mean(into["pause_frames"]) / seconds,
            "pauses_received": ports.mean(out["pause_frames"]) / seconds,
            "paused": ports.mean(paused),
            "paused_max": ports.most(paused),
            "drops": ports.total(into["dropped_packets"]) / seconds,
        }

    def _flat(self, rows: Mapping[str, Floats], *of_switch: Floats) -> Floats:
        """In the order of `names`; `of_switch`: shape (S, 1) each."""
        table = np.stack([rows[signal] for signal in self.signals], axis=-1)
        parts = [table.reshape(len(table), -1), *of_switch]
        return np.concatenate(parts, axis=1).ravel()


class PolledSwitchObservation(SwitchObservation):
    """Counters as last polled, as :class:`roce_gym.deployable.DeployableObservation` has them."""

    signals = POLLED_SIGNALS
    of_switch = ()

    def __init__(self, scenario: Scenario, network: Network) -> None:
        super().__init__(scenario, network)
        self._shape = (network.num_links, len(scenario.classes))
        self._period_ps = us_to_ps(scenario.control.polling.switch_us)
        self.at_start()

    def at_start(self) -> Frame:
        """As before the first poll; what was polled before is forgotten."""
        size = self._shape[0] * self._shape[1]
        self._poll = Poll(self._period_ps, len(_SUMS) * size, size)
        self._shown = super().at_start()
        return self._shown.copy()

    def __call__(self, interval: Interval, errors: Floats | float = 1.0) -> Frame:
        """As of :class:`SwitchObservation`; errors act on what a poll brings."""
        sums = np.concatenate([getattr(interval, name).ravel() for name in _SUMS])
        peaks = getattr(interval, _PEAK).ravel()
        seconds = self._poll.add(sums, peaks, interval.end_ps)
        if seconds:
            shown = self._poll.shown.reshape(-1, *self._shape)
            rows = self._rows(dict(zip((_PEAK, *_SUMS), shown, strict=True)), seconds)
            self._shown = self._scaled(self._flat(rows) * errors)
        return self._shown.copy()


class EyesOnSwitches:
    """Observes the fabric as a whole, then each switch, then the knobs' positions.

    Attributes:
        space: Box(0, 1), shape (n,), float32.
        names: of the fabric's eyes, of switches, then `knob/…`.
        num_measured: entries before those of knobs.
    """

    def __init__(self, fabric: Any, switches: SwitchObservation, knobs: tuple[str, ...]) -> None:
        """Takes eyes on the fabric that see no knobs."""
        self._fabric, self._switches = fabric, switches
        self.names = (*fabric.names, *switches.names, *(f"knob/{name}" for name in knobs))
        self.num_measured = len(self.names) - len(knobs)
        self.space: Box[np.float32] = Box(0.0, 1.0, (len(self.names),), np.float32)

    def at_start(self, knobs: ArrayLike = ()) -> Frame:
        """See :class:`roce_gym.observation.Observation`."""
        return self._joined(self._fabric.at_start(()), self._switches.at_start(), knobs)

    def __call__(self, interval: Interval, knobs: ArrayLike = (), errors: ArrayLike = 1.0) -> Frame:
        """See :class:`roce_gym.observation.Observation`."""
        factors = np.broadcast_to(np.asarray(errors, np.float64), self.num_measured)
        split = len(self._fabric.names)
        fabric = self._fabric(interval, (), factors[:split])
        return self._joined(fabric, self._switches(interval, factors[split:]), knobs)

    def _joined(self, fabric: Frame, switches: Frame, knobs: ArrayLike) -> Frame:
        return np.concatenate([fabric, switches, positions(knobs).astype(np.float32)])
