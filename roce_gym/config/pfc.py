"""Priority flow control: how long a pause holds, and the watchdog against pauses without end."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from roce_gym.config.fields import Model, Positive

MAX_QUANTA = 65_535
"""16 bits of a PFC frame (IEEE 802.1Qbb)."""


class WatchdogConfig(Model):
    """What switches do about an output queue that stays paused (SONiC's pfcwd).

    A queue that holds packets and is paused from one poll to the next, for `detection_us` in all,
    is in a storm. The action then lasts until no pause was in force for `restoration_us`. Defaults:
    SONiC `pfcwd start_default`, 200 ms each; its YANG model allows 100 ms to 5 s (detection), to
    60 s (restoration) and to 1 s (poll), Arista EOS from 10 ms, 10 ms and 5 ms on.
    """

    enabled: bool = False
    action: Literal["drop", "forward", "alert"] = Field(
        "drop",
        description="drop: empty the queue, and drop what comes for it or comes in at this port in "
        "its class; forward: send in spite of pauses; alert: only count",
    )
    detection_us: Positive = Field(200_000.0, description="at least poll_us [detection_time]")
    restoration_us: Positive = Field(200_000.0, description="at least poll_us [restoration_time]")
    poll_us: Positive = Field(200_000.0, description="[POLL_INTERVAL]")

    @model_validator(mode="after")
    def _polls_in_time(self) -> WatchdogConfig:
        for name in ("detection_us", "restoration_us"):
            if getattr(self, name) < self.poll_us:
                raise ValueError(
                    f"{name} = {getattr(self, name)} is shorter than poll_us = {self.poll_us}; "
                    "allowed: at least poll_us"
                )
        return self


class PfcConfig(Model):
    """Pause frames of all switches and NICs.

    A frame pauses for `quanta` times 512 bit times of the link it is sent on: 335.5 us at 100 Gb/s,
    83.9 us at 400 Gb/s with the largest value, which is what devices send (IEEE 802.3 annex 31B).
    """

    quanta: Annotated[int, Field(ge=0, le=MAX_QUANTA)] = Field(
        MAX_QUANTA, description="0: holds until resumed, as in the ns-3 reference"
    )
    refresh_fraction: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.5,
        description="a pause that lasts is sent again after this share of its time; chosen so that "
        "one frame may be late by half of it",
    )
    watchdog: WatchdogConfig = WatchdogConfig()
