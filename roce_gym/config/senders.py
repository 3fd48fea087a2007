"""Parameters of the sender algorithms, and windows of queue pairs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from roce_gym.config.credit import CreditConfig
from roce_gym.config.delay import RttConfig, SwiftConfig
from roce_gym.config.fields import Fraction, Model, NonNegative, Positive
from roce_gym.config.int_throttle import IntThrottleConfig
from roce_gym.config.none import NoneConfig
from roce_gym.config.tcp import DctcpConfig, RenoConfig
from roce_gym.config.user import UserConfig


class DcqcnConfig(Model):
    """Sender parameters, named after their role; the ConnectX name is given in brackets.

    Ranges are those of the firmware (NVIDIA "DCQCN parameters", ConnectX-4 and later), with
    finer units where the firmware's are coarse. Rules: `roce_gym/sim/cc/dcqcn.py`.
    """

    enabled: bool = True
    alpha_interval_us: Positive = Field(1.0, description="alpha update period [dce_tcp_rtt]")
    decrease_interval_us: Positive = Field(
        4.0, description="least time between rate cuts [rate_reduce_monitor_period]"
    )
    increase_timer_us: Positive = Field(300.0, description="increase timer [rpg_time_reset]")
    byte_counter_bytes: Annotated[int, Field(ge=0, le=2**50)] = Field(
        0, description="bytes between increases, 0 = off [rpg_byte_reset]"
    )
    fast_recovery_times: Annotated[int, Field(ge=0, le=31)] = Field(
        1, description="increases before additive increase, F [rpg_threshold]"
    )
    rate_ai_mbps: Positive = Field(5.0, description="additive increase [rpg_ai_rate]")
    rate_hai_mbps: Positive = Field(50.0, description="hyper increase [rpg_hai_rate]")
    min_rate_mbps: Positive = Field(1.0, description="lowest rate [rpg_min_rate]")
    max_rate_mbps: NonNegative = Field(0.0, description="0 = line rate [rpg_max_rate]")
    g: Annotated[float, Field(gt=0, le=1)] = Field(
        5 / 1024, description="gain of the alpha average [1 - dce_tcp_g/1024]"
    )
    initial_alpha: Fraction = Field(1023 / 1024, description="[initial_alpha_value/1024]")
    alpha_cap: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0, description="alpha never exceeds this; 1 = the firmware's rule"
    )
    cut_divisor: Literal[1, 2] = Field(
        2, description="a cut is 1 - alpha/divisor [rpg_gd: 11 = 2, 10 = 1]"
    )
    min_decrease_factor: Fraction = Field(
        0.5, description="one cut keeps at least this share of the rate [rpg_min_dec_fac]"
    )
    first_cnp_rate_mbps: NonNegative = Field(
        0.0, description="rate on the first CNP, 0 = unchanged [rate_to_set_on_first_cnp]"
    )
    clamp_target_rate: bool = Field(
        False, description="every cut sets the target to the current rate [clamp_tgt_rate]"
    )
    clamp_target_rate_after_time_inc: bool = Field(
        True,
        description="a cut after a timer increase does so too [clamp_tgt_rate_after_time_inc]",
    )


class TimelyConfig(Model):
    """TIMELY: the rate follows round-trip times; ECN marks are ignored.

    Source: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015,
    algorithm 1; numbers are those of the simulator by HPCC's authors (github: alibaba-edu/
    High-Precision-Congestion-Control).
    Rules: `roce_gym/sim/cc/timely.py`.
    """

    enabled: bool = True
    t_low_us: Positive = Field(50.0, description="below this round trip: always increase [T_low]")
    t_high_us: Positive = Field(500.0, description="beyond: always decrease [T_high]")
    min_rtt_us: Positive = Field(20.0, description="the gradient is in units of this [minRTT]")
    ewma_weight: Annotated[float, Field(gt=0, le=1)] = Field(
        0.875, description="of the newest difference of round trips [alpha]"
    )
    beta: Fraction = Field(0.8, description="multiplicative decrease")
    rate_ai_mbps: Positive = Field(10.0, description="additive increase [delta]")
    rate_hai_mbps: Positive = Field(50.0, description="increase after `hai_after` [N x delta]")
    hai_after: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        5, description="increases in a row before hyperactive increase"
    )
    min_rate_mbps: Positive = Field(100.0, description="lowest rate")
    max_rate_mbps: NonNegative = Field(0.0, description="0 = line rate")

    @model_validator(mode="after")
    def _ordered(self) -> TimelyConfig:
        if self.t_high_us < self.t_low_us:
            raise ValueError(
                f"t_high_us = {self.t_high_us} must be at least t_low_us = {self.t_low_us}"
            )
        return self


class HpccConfig(Model):
    """HPCC: the rate follows in-band telemetry of switches; ECN marks are ignored.

    Its telemetry makes frames longer: where it matters, `nic.header_bytes` and `nic.ack_bytes` have
    to count 42 bytes more (5 hops of 8 bytes, 2 of overhead). A window in proportion to the rate is
    part of HPCC, see `Tenant.window`.

    Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1; units
    of telemetry are those of its authors' simulator. Rules: `roce_gym/sim/cc/hpcc.py`.
    """

    enabled: bool = True
    target_utilisation: Annotated[float, Field(gt=0, le=1)] = Field(0.95, description="[eta]")
    max_stage: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        5, description="additive increases in a row; 0: multiplicative always [maxStage]"
    )
    rate_ai_mbps: Positive = Field(
        50.0, description="additive increase: (1 - eta) x 100 Gb/s over 100 flows [W_AI / T]"
    )
    min_rate_mbps: Positive = Field(100.0, description="lowest rate")
    max_rate_mbps: NonNegative = Field(0.0, description="0 = line rate")
    tx_unit_bytes: Annotated[int, Field(ge=1, le=2**20)] = Field(
        128, description="bytes sent by a port are reported in multiples of this"
    )
    queue_unit_bytes: Annotated[int, Field(ge=1, le=2**20)] = Field(80, description="so are queues")


AlgorithmName = Literal[
    "dcqcn",
    "timely",
    "hpcc",
    "swift",
    "rtt",
    "dctcp",
    "reno",
    "user",
    "credit",
    "int_throttle",
    "none",
]

# The first of those that fit a mapping is taken: NoneConfig fits whatever it has the fields for.
SenderConfig = (
    NoneConfig
    | DcqcnConfig
    | TimelyConfig
    | HpccConfig
    | SwiftConfig
    | RttConfig
    | RenoConfig
    | DctcpConfig
    | UserConfig
    | CreditConfig
    | IntThrottleConfig
)

SENDER_CONFIGS: dict[AlgorithmName, type[SenderConfig]] = {
    "dcqcn": DcqcnConfig,
    "timely": TimelyConfig,
    "hpcc": HpccConfig,
    "swift": SwiftConfig,
    "rtt": RttConfig,
    "dctcp": DctcpConfig,
    "reno": RenoConfig,
    "user": UserConfig,
    "credit": CreditConfig,
    "int_throttle": IntThrottleConfig,
    "none": NoneConfig,
}

OWN_WINDOWS: tuple[AlgorithmName, ...] = ("swift", "dctcp", "reno", "credit")
"""Algorithms that set a window themselves."""


class WindowConfig(Model):
    """Bytes that each of a tenant's queue pairs may have sent and not had acknowledged.

    Source: HPCC (Li et al., SIGCOMM 2019) limits inflight bytes and paces at window / base RTT; its
    authors compare it with DCQCN with the same window, too ("DCQCN+win").
    """

    bytes: Annotated[int, Field(ge=1, le=2**36)] | Literal["bdp"] = Field(
        "bdp", description="bdp: line rate x base RTT"
    )
    follows_rate: bool = Field(
        True, description="the window is in proportion to the sender's rate over line rate"
    )
    base_rtt_us: Positive | None = Field(
        None,
        description="round trip of an idle fabric; None: the longest of the tenant's queue pairs, "
        "propagation both ways and a payload's serialisation on each link",
    )
