"""Parameters of the sender algorithms that go by round-trip times."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from roce_gym.config.fields import Model, NonNegative, Positive

Packets = Annotated[float, Field(gt=0, le=1e6)]


class SwiftConfig(Model):
    """Swift: a window, in packets, that follows delays of the fabric and of the receiving host.

    Source: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
    Datacenter", SIGCOMM 2020, section 3 and algorithm 1. The paper leaves targets and gains to the
    operator. Defaults of `ai`, `beta`, `max_mdf`, `fs_min_cwnd`, `fs_max_cwnd` and
    `retransmit_reset` are those of public simulators; those without a source are chosen for a
    fabric with some 10 us of base round-trip time. Rules: `roce_gym/sim/cc/swift.py`.
    """

    enabled: bool = True
    base_target_us: Positive = Field(20.0, description="fabric delay aimed at, without scaling")
    hop_target_us: NonNegative = Field(1.0, description="added for each switch on the path")
    endpoint_target_us: Positive = Field(
        20.0, description="aim for the time from a packet's arrival to the departure of its ACK"
    )
    fs_range_us: NonNegative = Field(
        40.0, description="most that flow scaling adds to the fabric's target; 0 = no flow scaling"
    )
    fs_min_cwnd: Packets = Field(0.1, description="window at which flow scaling adds all of it")
    fs_max_cwnd: Packets = Field(100.0, description="window from which on it adds nothing")
    ai: Packets = Field(1.0, description="additive increase, packets a round trip")
    beta: Annotated[float, Field(gt=0, le=1)] = Field(
        0.8, description="share of the relative excess of delay by which the window is cut"
    )
    max_mdf: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.5, description="most that one cut takes; what a loss takes"
    )
    retransmit_reset: Annotated[int, Field(ge=1, le=100)] = Field(
        4, description="timeouts in a row after which the window is min_cwnd"
    )
    initial_cwnd: Packets = Field(10.0, description="as TCP's [RFC 6928]")
    min_cwnd: Packets = Field(0.001, description="below 1, the QP sends 1/cwnd round trips apart")
    max_cwnd: Packets = Field(1000.0, description="above the bandwidth-delay product")
    max_rate_mbps: NonNegative = Field(0.0, description="0 = line rate")

    @model_validator(mode="after")
    def _ordered(self) -> SwiftConfig:
        if self.fs_max_cwnd <= self.fs_min_cwnd:
            raise ValueError(
                f"fs_max_cwnd = {self.fs_max_cwnd} must be above fs_min_cwnd = {self.fs_min_cwnd}"
            )
        if not self.min_cwnd <= self.initial_cwnd <= self.max_cwnd:
            raise ValueError(
                f"initial_cwnd = {self.initial_cwnd} must be from min_cwnd = {self.min_cwnd} to "
                f"max_cwnd = {self.max_cwnd}"
            )
        return self


class RttConfig(Model):
    """A plain controller of round-trip times, as RTT-based firmware has one.

    Above the target, once a round trip: rate x (1 - gain x (rtt - target) / rtt); else additive
    increase. This is Swift's decrease (Kumar et al., SIGCOMM 2020, algorithm 1) on a rate; its
    `beta` of 0.8 is the default gain. The other defaults are chosen for 100 Gb/s and some 10 us of
    base round-trip time. Rules: `roce_gym/sim/cc/rtt.py`.
    """

    enabled: bool = True
    target_us: Positive = Field(20.0, description="round-trip time aimed at")
    gain: Annotated[float, Field(gt=0, le=1)] = Field(
        0.8, description="share of the relative excess by which the rate is cut"
    )
    rate_ai_mbps: Positive = Field(500.0, description="additive increase, each round trip")
    min_rate_mbps: Positive = Field(10.0, description="lowest rate")
    max_rate_mbps: NonNegative = Field(0.0, description="0 = line rate")
