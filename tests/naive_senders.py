"""Sender algorithms that react to ACKs, for `naive.py`: rules of `docs/rules.md`, once more.

Each has `rate`, in bit/s, and `window`, in bytes, where `asks` is True: then each data packet asks
for an ACK. `timers` and `advance` are those that the simulator knows from DCQCN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from roce_gym.config import NicConfig, SwiftConfig
from roce_gym.units import PS_PER_S, mbps_to_bps, us_to_ps


@dataclass
class Ack:
    """An ACK or NACK as the sender sees it, after it was taken in."""

    rtt: int
    waited: int  # at the receiver's NIC
    switches: int  # it passed
    acked: int  # all bytes before are acknowledged
    sent: int  # all bytes before are sent
    is_nack: bool
    is_loss: bool  # a NACK that made the QP go back
    echo: bool  # of a CE mark


class Sender:
    """What is common to all: no timers, no interest in CNPs."""

    asks = False
    window: int | None = None

    def __init__(self, config: Any, line_rate: int, nic: NicConfig) -> None:
        self.config, self.line_rate, self.nic = config, line_rate, nic
        self.timers: dict[str, int] = {}
        self.rate = self.max_rate if config.enabled else line_rate
        self.begin()

    @property
    def max_rate(self) -> int:
        given = mbps_to_bps(self.config.max_rate_mbps)
        return min(given, self.line_rate) if given > 0 else self.line_rate

    def adopt(self, config: Any) -> None:
        if config.enabled != self.config.enabled:
            self.__init__(config, self.line_rate, self.nic)
            return
        self.config = config
        if config.enabled:
            self.rate = min(self.rate, self.max_rate)

    def begin(self) -> None:
        """The QP starts."""

    def advance(self, until: int, inclusive: bool) -> None:
        """No timers."""

    def on_cnp(self, t: int) -> None:
        """CNPs are ignored."""

    def on_sent(self, wire_bytes: int, t: int) -> None:
        """A packet was sent."""

    def on_timeout(self, retries: int, t: int) -> None:
        """The retransmission timer made the QP go back."""

    def on_ack(self, ack: Ack, t: int) -> None:
        """An ACK or NACK was taken in."""

    def whole_packets(self, packets: float) -> int:
        """The window in which that many packets fit whole, and one in any case."""
        return max(1, int(packets * self.nic.mtu_bytes) - self.nic.mtu_bytes + 1)


class Swift(Sender):
    """Section 11."""

    asks = True

    def begin(self) -> None:
        self.fabric_cwnd = self.endpoint_cwnd = self.config.initial_cwnd
        self.fabric_cut = self.endpoint_cut = 0
        self.rtt = self.acked = 0
        self.window = self.whole_packets(self.config.initial_cwnd)

    def target(self, switches: int) -> float:
        c = self.config
        plain = us_to_ps(c.base_target_us) + switches * us_to_ps(c.hop_target_us)
        most = us_to_ps(c.fs_range_us)
        if most == 0:
            return plain
        zero = 1 / math.sqrt(c.fs_max_cwnd)
        slope = most / (1 / math.sqrt(c.fs_min_cwnd) - zero)
        return plain + max(0, min(slope * (1 / math.sqrt(self.fabric_cwnd) - zero), most))

    def follow(self, cwnd: float, acked: float, delay: int, target: float, cut: int, t: int):
        c = self.config
        if delay < target:
            return cwnd + c.ai * acked / cwnd if cwnd >= 1 else cwnd + c.ai * acked
        if t - cut < self.rtt:
            return cwnd
        return cwnd * max(1 - c.beta * ((delay - target) / delay), 1 - c.max_mdf)

    def clamp(self, cwnd: float) -> float:
        return min(max(cwnd, self.config.min_cwnd), self.config.max_cwnd)

    def set_fabric(self, cwnd: float, t: int) -> None:
        before, self.fabric_cwnd = self.fabric_cwnd, self.clamp(cwnd)
        if self.fabric_cwnd < before:
            self.fabric_cut = t

    def on_loss(self, t: int) -> None:
        if t - self.fabric_cut >= self.rtt:
            self.set_fabric(self.fabric_cwnd * (1 - self.config.max_mdf), t)
        else:
            self.set_fabric(self.fabric_cwnd, t)

    def on_ack(self, ack: Ack, t: int) -> None:
        self.rtt = ack.rtt
        packets = (ack.acked - self.acked) / self.nic.mtu_bytes
        self.acked = ack.acked
        if ack.is_loss:
            self.on_loss(t)
        else:
            delay, target = ack.rtt - ack.waited, self.target(ack.switches)
            f = self.follow(self.fabric_cwnd, packets, delay, target, self.fabric_cut, t)
            self.set_fabric(f, t)
        before, target = self.endpoint_cwnd, us_to_ps(self.config.endpoint_target_us)
        self.endpoint_cwnd = self.clamp(
            self.follow(before, packets, ack.waited, target, self.endpoint_cut, t)
        )
        if self.endpoint_cwnd < before:
            self.endpoint_cut = t
        self.settle()

    def on_timeout(self, retries: int, t: int) -> None:
        if retries >= self.config.retransmit_reset:
            self.set_fabric(self.config.min_cwnd, t)
        else:
            self.on_loss(t)
        self.settle()

    def settle(self) -> None:
        """Window and rate from both windows."""
        cwnd = min(self.fabric_cwnd, self.endpoint_cwnd)
        self.window = self.whole_packets(cwnd)
        self.rate = self.max_rate
        if cwnd < 1 and self.rtt > 0:
            nic = self.nic
            size = nic.mtu_bytes + nic.header_bytes + nic.interframe_gap_bytes
            paced = size * cwnd * (8.0 * PS_PER_S) / self.rtt
            self.rate = max(1, min(int(paced), self.rate))


SENDERS: dict[type, type[Sender]] = {SwiftConfig: Swift}
