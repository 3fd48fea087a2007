"""Sender algorithms of the oracle, one class each (`docs/rules.md`, 8): plain Python, no sharing.

All have `rate`, `target` and `alpha` (0 where there is no such thing), `timers` that may raise the
rate, and one method for each thing that happens.
"""

from __future__ import annotations

from dataclasses import dataclass

from roce_gym.config import DcqcnConfig, HpccConfig, NicConfig, SenderConfig, TimelyConfig
from roce_gym.units import PS_PER_S, mbps_to_bps, ns_to_ps, us_to_ps


@dataclass(frozen=True)
class Hop:
    """What a switch writes into a packet that leaves it."""

    time: int
    tx_bytes: int
    queue_bytes: int
    rate: int  # of the link, bit/s


@dataclass(frozen=True)
class Path:
    """What a sender knows about its way."""

    line_rate: int
    base_rtt: int
    window: int  # bytes at line rate; 0: none
    nic: NicConfig


@dataclass
class Ack:
    """An ACK or NACK as the sender sees it, after it was taken in."""

    seq: int
    rtt: int
    hops: list[Hop]  # what switches wrote into the data packet
    waited: int  # at the receiver's NIC
    switches: int  # it passed
    acked: int  # all bytes before are acknowledged
    sent: int  # all bytes before are sent
    posted: int  # all bytes before were posted
    is_nack: bool
    is_loss: bool  # a NACK that made the QP go back
    echo: bool  # of a CE mark
    granted: int  # by the receiver: all bytes before may be sent
    level: float = 0.0  # of the fullest buffer that the data packet met


class Sender:
    """No congestion control, and what all algorithms have in common."""

    asks = False  # each data packet asks for an ACK
    is_granted = False  # its receiver grants credits
    window: int | None = None  # that the algorithm sets, bytes

    def __init__(self, config: SenderConfig, path: Path) -> None:
        self.path = path
        self._configure(config)
        self.rate = self.max_rate if config.enabled else path.line_rate
        self.timers: dict[str, int] = {}
        self._start()

    @property
    def target(self) -> int:
        return 0

    @property
    def alpha(self) -> float:
        return 0.0

    def _configure(self, config: SenderConfig) -> None:
        self.config = config
        self.min_rate = mbps_to_bps(getattr(config, "min_rate_mbps", 0.0))
        given, line = mbps_to_bps(config.max_rate_mbps), self.path.line_rate
        self.max_rate = min(given, line) if given > 0 else line

    def adopt(self, config: SenderConfig) -> bool:
        """New parameters; rates obey a new bound at once. Whether the sender starts afresh."""
        if config.enabled != self.config.enabled:
            self.__init__(config, self.path)
            return True
        self._configure(config)
        if config.enabled:
            self.rate = min(self.rate, self.max_rate)
            self._lower()
        return False

    def _start(self) -> None:
        """A sender that has heard nothing."""

    def _lower(self) -> None:
        """The highest rate may be lower now."""

    def advance(self, until: int, inclusive: bool) -> None:
        """Lets every timer due before `until` (or also at `until`) fire, in order of time."""

    def on_cnp(self, t: int) -> None:
        """A notification arrived."""

    def on_timeout(self, retries: int, t: int) -> None:
        """The retransmission timer made the QP go back."""

    def on_sent(self, wire_bytes: int, owed: int, t: int) -> None:
        """A packet was sent, which takes `owed` (bit x 10^-12) at the sender's rate."""

    def on_ack(self, ack: Ack, t: int) -> int | None:
        """An ACK or NACK was taken in.

        Returns by how much the time of the next packet moves; None: the rate is the same.
        """


class Dcqcn(Sender):
    """8.1"""

    ORDER = ("alpha", "increase", "cut")  # among timers of one time
    target = 0
    alpha = 0.0
    config: DcqcnConfig

    def _start(self) -> None:
        self.target = self.rate
        self.alpha = min(self.config.initial_alpha, self.config.alpha_cap)
        self.time_stage = self.byte_stage = self.byte_count = 0
        self.cnp_for_alpha = self.cnp_for_cut = False
        self.seen_cnp = self.was_cut = False

    def _lower(self) -> None:
        self.target = min(self.target, self.max_rate)

    def advance(self, until: int, inclusive: bool) -> None:
        while self.timers:
            time, rank = min((at, self.ORDER.index(name)) for name, at in self.timers.items())
            if time > until or (time == until and not inclusive):
                return
            {"alpha": self._alpha, "increase": self._increase, "cut": self._cut}[self.ORDER[rank]](
                time
            )

    def on_cnp(self, t: int) -> None:
        self.advance(t, inclusive=False)
        c = self.config
        self.cnp_for_cut = True
        if self.seen_cnp:
            self.cnp_for_alpha = True
            return
        self.seen_cnp = True
        self.alpha = min(c.initial_alpha, c.alpha_cap)
        self.cnp_for_alpha = False
        first = mbps_to_bps(c.first_cnp_rate_mbps)
        if 0 < first < self.rate:
            self.rate = self.target = first
        self.timers["alpha"] = t + us_to_ps(c.alpha_interval_us)
        self.timers["cut"] = t + us_to_ps(c.decrease_interval_us) + ns_to_ps(1)

    def on_sent(self, wire_bytes: int, owed: int, t: int) -> None:
        limit = self.config.byte_counter_bytes
        if limit == 0 or not self.was_cut:
            return
        self.byte_count += wire_bytes
        while self.byte_count >= limit:
            self.byte_count -= limit
            self._step()
            self.byte_stage += 1

    def _alpha(self, t: int) -> None:
        c = self.config
        added = c.g if self.cnp_for_alpha else 0.0
        self.alpha = min((1 - c.g) * self.alpha + added, c.alpha_cap)
        self.cnp_for_alpha = False
        self.timers["alpha"] = t + us_to_ps(c.alpha_interval_us)

    def _increase(self, t: int) -> None:
        self._step()
        self.time_stage += 1
        self.timers["increase"] = t + us_to_ps(self.config.increase_timer_us)

    def _cut(self, t: int) -> None:
        c = self.config
        self.timers["cut"] = t + us_to_ps(c.decrease_interval_us)
        if not self.cnp_for_cut:
            return
        after_time_increase = self.time_stage > 0 and c.clamp_target_rate_after_time_inc
        if c.clamp_target_rate or self.byte_stage > 0 or after_time_increase:
            self.target = self.rate
        wanted = max(
            self.rate * (1 - self.alpha / c.cut_divisor), self.rate * c.min_decrease_factor
        )
        self.rate = int(min(max(wanted, self.min_rate), self.max_rate))
        self.time_stage = self.byte_stage = self.byte_count = 0
        self.cnp_for_cut = False
        self.was_cut = True
        self.timers["increase"] = t + us_to_ps(c.increase_timer_us)

    def _step(self) -> None:
        """One increase, by the stages before it."""
        c = self.config
        stages = [self.time_stage]
        if c.byte_counter_bytes > 0:
            stages.append(self.byte_stage)
        if max(stages) >= c.fast_recovery_times:
            hyper = min(stages) > c.fast_recovery_times
            step = mbps_to_bps(c.rate_hai_mbps if hyper else c.rate_ai_mbps)
            self.target = min(self.max_rate, self.target + step)
        self.rate = (self.rate + self.target) // 2


class Timely(Sender):
    """8.2"""

    config: TimelyConfig

    def _start(self) -> None:
        self.update_seq = self.last_rtt = self.increases = 0
        self.rtt_diff_ns = 0.0

    def on_ack(self, ack: Ack, t: int) -> int | None:
        if ack.seq <= self.update_seq:
            return None
        if self.update_seq > 0:
            self._update(ack.rtt)
        if ack.sent > self.update_seq:
            self.update_seq, self.last_rtt = ack.sent, ack.rtt
        return None

    def _update(self, rtt: int) -> None:
        c = self.config
        low, high = us_to_ps(c.t_low_us), us_to_ps(c.t_high_us)
        newest_ns = (rtt - self.last_rtt) / 1000
        w = c.ewma_weight
        self.rtt_diff_ns = (1 - w) * self.rtt_diff_ns + w * newest_ns
        gradient = self.rtt_diff_ns / (us_to_ps(c.min_rtt_us) / 1000)
        if rtt < low or (rtt <= high and gradient <= 0):
            step = c.rate_ai_mbps if self.increases < c.hai_after else c.rate_hai_mbps
            self.rate = min(self.max_rate, self.rate + mbps_to_bps(step))
            self.increases += 1
            return
        self.increases = 0
        kept = 1 - c.beta * (1 - high / rtt) if rtt > high else max(0.0, 1 - c.beta * gradient)
        self.rate = max(min(self.min_rate, self.max_rate), int(self.rate * kept))


class Hpcc(Sender):
    """8.3"""

    config: HpccConfig

    def _start(self) -> None:
        self.reference = self.rate
        self.update_seq = self.stage = self.last_owed = 0
        self.utilisation = 1.0
        self.seen: list[Hop] = []

    def _lower(self) -> None:
        self.reference = min(self.reference, self.max_rate)

    def on_sent(self, wire_bytes: int, owed: int, t: int) -> None:
        self.last_owed = owed

    def on_ack(self, ack: Ack, t: int) -> int | None:
        c, base_ns = self.config, self.path.base_rtt / 1000
        rounded = [
            Hop(
                hop.time,
                hop.tx_bytes // c.tx_unit_bytes * c.tx_unit_bytes,
                hop.queue_bytes // c.queue_unit_bytes * c.queue_unit_bytes,
                hop.rate,
            )
            for hop in ack.hops
        ]
        before, self.seen = self.seen, rounded
        if self.update_seq == 0:
            self.update_seq = ack.sent
            return None
        most, age = self._most_utilised(before, rounded)
        age_ns = min(age, self.path.base_rtt) / 1000
        self.utilisation = (self.utilisation * (base_ns - age_ns) + most * age_ns) / base_ns
        excess = self.utilisation / c.target_utilisation
        if excess >= 1 or self.stage >= c.max_stage:
            rate, stage = int(min(self.reference / excess, float(self.max_rate))), 0
        else:
            rate, stage = self.reference, self.stage + 1
        rate = min(max(rate + mbps_to_bps(c.rate_ai_mbps), self.min_rate), self.max_rate)
        if ack.seq > self.update_seq:
            self.reference, self.stage = rate, stage
            self.update_seq = max(self.update_seq, ack.sent)
        old, self.rate = self.rate, rate
        if rate == old or self.last_owed == 0:
            return None
        return self.last_owed // rate - self.last_owed // old

    def _most_utilised(self, before: list[Hop], now: list[Hop]) -> tuple[float, int]:
        """Utilisation and age of the most utilised hop."""
        most, age = 0.0, 0
        for old, new in zip(before, now, strict=True):
            passed = new.time - old.time
            if passed <= 0:
                continue
            rate = (new.tx_bytes - old.tx_bytes) * 8 / (passed / 1000 * 1e-9)
            shortest = float(min(new.queue_bytes, old.queue_bytes))
            queued = shortest * self.path.line_rate / new.rate / self.path.window
            if rate / new.rate + queued > most:
                most, age = rate / new.rate + queued, passed
        return most, age


SENDERS = {"dcqcn": Dcqcn, "timely": Timely, "hpcc": Hpcc}


def base_rtt(mtu: int, data: list[tuple[int, int]], ack: list[tuple[int, int]]) -> int:
    """Propagation both ways and one payload's serialisation on each link of (rate, delay)."""
    there = sum(delay + 8 * mtu * PS_PER_S // rate for rate, delay in data)
    return there + sum(delay for _, delay in ack)
