"""How an agent drives a scenario: what it may turn, what it sees, how late, and what it is paid."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from roce_gym.config.fields import Fraction, Model, NonNegative, Positive

RewardTerm = Literal["completion", "pfc", "interference"]
KnobMode = Literal["absolute", "delta", "multidiscrete"]
ObservationName = Literal["full", "deployable"]

MAX_INTERVALS = 64
"""Of history and delays; more is a slip of the pen: episodes have about 100 intervals."""

Intervals = Annotated[int, Field(ge=0, le=MAX_INTERVALS)]


def _default_weights() -> dict[RewardTerm, float]:
    return {"completion": 1.0, "pfc": 0.1, "interference": 0.1}


class KnobRange(Model):
    """Values at -1 and 1, in the knob's unit at hosts of 100 Gb/s; None: as `roce_gym.knobs`."""

    low: float | None = None
    high: float | None = None

    @model_validator(mode="after")
    def _ordered(self) -> KnobRange:
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"low = {self.low} must be below high = {self.high}")
        return self


class PollingConfig(Model):
    """How often counters are read, for `observation: deployable`."""

    nic_us: Positive = Field(
        10_000.0,
        description="mlx5 hands out cached counters, refreshed every 10 ms (hw_counters/lifespan)",
    )
    switch_us: Positive = Field(
        1_000_000.0,
        description="SONiC reads a port's counters every 1,000 ms by default (flex counters)",
    )


class ControlConfig(Model):
    """How an agent drives the scenario."""

    interval_us: Annotated[float, Field(ge=10, le=1e6)] = 200.0
    horizon_us: Annotated[float, Field(ge=100, le=1e8)] = 18_000.0
    reward_weights: dict[RewardTerm, NonNegative] = Field(default_factory=_default_weights)
    knob_mode: KnobMode = Field(
        "absolute",
        description="what actions mean: positions; steps; or a choice of five factors a knob",
    )
    max_factor: Annotated[float, Field(gt=1, le=16)] = Field(
        2.0, description="delta: most by which an interval multiplies or divides a knob's value"
    )
    knobs: dict[str, KnobRange | None] | None = Field(
        None,
        description="knobs to have, by setting (kmin) or name (class/gold/kmin), with their range; "
        "what is not listed stays as it is. None: all, with default ranges",
    )
    observation: ObservationName = Field(
        "full",
        description="full: all signals, every interval; deployable: only counters that switches "
        "and NICs export, as often as they are polled",
    )
    polling: PollingConfig = PollingConfig()
    history: Annotated[int, Field(ge=1, le=MAX_INTERVALS)] = Field(
        1, description="last observations that are shown together, the newest last"
    )
    telemetry_delay: Intervals = Field(0, description="intervals by which measurements are late")
    action_delay: Intervals = Field(0, description="intervals until an action holds")
    noise: Fraction = Field(
        0.0,
        description="standard deviation of the logarithm by which each measured value is off, "
        "drawn anew for each value and interval from the episode's seed",
    )
