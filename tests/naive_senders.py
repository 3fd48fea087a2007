"""Sender algorithms that react to ACKs, for `naive.py`: rules of `docs/rules.md` (8.4 to 8.11),
once more.

Where `asks` is True, `window`, in bytes, is the QP's, and each data packet asks for an ACK.
"""

from __future__ import annotations

import math

from naive_cc import Ack, Sender

from roce_gym.units import PS_PER_S, mbps_to_bps, us_to_ps


class Reacting(Sender):
    """What is common to all of these."""

    def whole_packets(self, size: float) -> int:
        """The window in which packets of `size` bytes in all fit whole, and one in any case."""
        return max(1, int(size) - self.path.nic.mtu_bytes + 1)


class Swift(Reacting):
    """8.4."""

    asks = True

    def _start(self) -> None:
        self.fabric_cwnd = self.endpoint_cwnd = self.config.initial_cwnd
        self.fabric_cut = self.endpoint_cut = 0
        self.rtt = self.acked = 0
        self.window = self.whole_packets(self.config.initial_cwnd * self.path.nic.mtu_bytes)

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
        packets = (ack.acked - self.acked) / self.path.nic.mtu_bytes
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
        self.window = self.whole_packets(cwnd * self.path.nic.mtu_bytes)
        self.rate = self.max_rate
        if cwnd < 1 and self.rtt > 0:
            nic = self.path.nic
            size = nic.mtu_bytes + nic.header_bytes + nic.interframe_gap_bytes
            paced = size * cwnd * (8.0 * PS_PER_S) / self.rtt
            self.rate = max(1, min(int(paced), self.rate))


class Rtt(Reacting):
    """8.5."""

    changed = 0

    def _start(self) -> None:
        self.changed = 0

    def on_ack(self, ack: Ack, t: int) -> None:
        c, before = self.config, self.rate
        if t - ack.rtt < self.changed:
            return
        target = us_to_ps(c.target_us)
        if ack.rtt > target:
            self.rate = int(self.rate * (1 - c.gain * ((ack.rtt - target) / ack.rtt)))
            self.rate = max(self.rate, mbps_to_bps(c.min_rate_mbps))
        else:
            self.rate += mbps_to_bps(c.rate_ai_mbps)
        self.rate = min(self.rate, self.max_rate)
        if self.rate != before:
            self.changed = t


class Reno(Reacting):
    """8.6."""

    asks = True

    def _start(self) -> None:
        c = self.config
        self.cwnd: float = c.initial_window_bytes
        self.ssthresh = c.initial_ssthresh_bytes or c.max_window_bytes
        self.acked = 0
        self.window = self.whole_packets(self.cwnd)

    def on_ack(self, ack: Ack, t: int) -> None:
        count = ack.acked - self.acked
        self.acked = ack.acked
        if ack.is_loss:
            self.cwnd = self.ssthresh = self.after_loss()
        else:
            self.grow(ack, count)
        self.settle()

    def grow(self, ack: Ack, count: int) -> None:
        mtu = self.path.nic.mtu_bytes
        was_outstanding = ack.sent - (ack.acked - count)
        if 2 * was_outstanding < self.cwnd:
            return
        if self.cwnd < self.ssthresh:
            self.cwnd += min(count, 2 * mtu)
        else:
            self.cwnd += self.config.additive_packets * mtu * count / self.cwnd

    def after_loss(self) -> int:
        return max(int(self.cwnd * self.config.loss_factor), 2 * self.path.nic.mtu_bytes)

    def on_timeout(self, retries: int, t: int) -> None:
        if retries == 1:
            self.ssthresh = self.after_loss()
        self.cwnd = self.path.nic.mtu_bytes
        self.settle()

    def settle(self) -> None:
        self.cwnd = min(self.cwnd, self.config.max_window_bytes)
        self.window = self.whole_packets(self.cwnd)
        self.rate = self.max_rate


class Dctcp(Reno):
    """8.7."""

    def _start(self) -> None:
        super()._start()
        self.share = self.config.initial_alpha
        self.end = self.observed = self.marked = 0
        self.was_cut = False

    def on_ack(self, ack: Ack, t: int) -> None:
        c, count = self.config, ack.acked - self.acked
        self.acked = ack.acked
        self.observed += count
        self.marked += count if ack.echo else 0
        if ack.acked >= self.end:
            if self.observed:
                self.share = self.share * (1 - c.g) + c.g * (self.marked / self.observed)
            self.observed = self.marked = 0
            self.was_cut = False
            self.end = ack.sent
        if ack.is_loss:
            self.cwnd = self.ssthresh = self.after_loss()
        elif ack.echo and not self.was_cut:
            self.cwnd = max(self.cwnd * (1 - self.share / 2), 2 * self.path.nic.mtu_bytes)
            self.ssthresh = int(self.cwnd)
            self.was_cut = True
        elif not self.was_cut:
            self.grow(ack, count)
        self.settle()


class Credit(Reacting):
    """8.9; what the receiver does is in `naive_receiving.py`."""

    is_granted = True

    def _start(self) -> None:
        self.limit = self.window = self.config.initial_window_bytes

    def on_ack(self, ack: Ack, t: int) -> None:
        self.limit = max(self.limit, ack.granted)
        if ack.acked == ack.posted:
            self.limit = max(self.limit, ack.posted + self.config.initial_window_bytes)
        self.window = max(1, self.limit - ack.acked)
        self.rate = self.max_rate


class User(Reacting):
    """8.8. The function is called uncompiled, with a dict and lists."""

    def _start(self) -> None:
        self.words = [0.0] * 6

    def tell(self, kind: int, t: int, rtt: int = 0, size: int = 0, acked: int = 0) -> None:
        c = self.config
        event = {"kind": kind, "now_ps": t, "rtt_ps": rtt, "bytes": size, "timer_ps": 0}
        event |= {"acked_bytes": acked, "line_bps": self.path.line_rate}
        event["rate"] = self.rate / self.path.line_rate
        function = getattr(c.function, "py_func", c.function)
        wanted = function(event, self.words, list(c.words)) * self.path.line_rate
        least = min(mbps_to_bps(c.min_rate_mbps), self.max_rate)
        if wanted >= self.max_rate:
            self.rate = self.max_rate
        else:
            self.rate = int(wanted) if wanted > least else least
        if event["timer_ps"] > 0:
            self.timers["increase"] = t + max(event["timer_ps"], 1_000)
        elif event["timer_ps"] < 0:
            self.timers.pop("increase", None)

    def advance(self, until: int, inclusive: bool) -> None:
        while "increase" in self.timers:
            due = self.timers["increase"]
            if due > until or (due == until and not inclusive):
                return
            del self.timers["increase"]
            self.tell(0, due)

    def on_cnp(self, t: int) -> None:
        self.advance(t, inclusive=False)
        self.tell(2, t)

    def on_sent(self, wire_bytes: int, owed: int, t: int) -> None:
        self.tell(3, t, size=wire_bytes)

    def on_ack(self, ack: Ack, t: int) -> None:
        self.advance(t, inclusive=False)
        self.tell(5 if ack.is_nack else 4, t, rtt=ack.rtt, acked=ack.acked)


class IntThrottle(Reacting):
    """8.10."""

    def _start(self) -> None:
        self.reference, self.updated = self.rate, 0

    def _lower(self) -> None:
        self.reference = min(self.reference, self.max_rate)

    def on_ack(self, ack: Ack, t: int) -> None:
        c = self.config
        if ack.level < c.start_fraction:
            wanted = self.reference + mbps_to_bps(c.rate_ai_mbps)
        else:
            excess = (ack.level - c.start_fraction) / (c.full_fraction - c.start_fraction)
            wanted = int(self.reference * (1 - c.gain * min(1.0, excess)))
        self.rate = min(max(wanted, mbps_to_bps(c.min_rate_mbps)), self.max_rate)
        if t - self.updated >= us_to_ps(c.update_interval_us):
            self.reference, self.updated = self.rate, t


REACTING: dict[str, type[Sender]] = {
    "swift": Swift,
    "rtt": Rtt,
    "dctcp": Dctcp,
    "reno": Reno,
    "user": User,
    "credit": Credit,
    "int_throttle": IntThrottle,
    "none": Reacting,
}
