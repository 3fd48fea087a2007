"""Parameters of senders that back off before buffers are so full that PFC pauses."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from roce_gym.config.fields import Model, NonNegative, Positive

Share = Annotated[float, Field(gt=0, le=1)]


class IntThrottleConfig(Model):
    """The rate follows how full switch buffers are, as in-band telemetry tells.

    A switch reports, for each packet that leaves, what the port and priority that it came in on
    hold beyond their reserve, as a share of the threshold at which they pause; 1 is a pause. The
    highest share on the way counts. It is what the MMU compares to decide on XOFF, SAI exports it
    (SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_CURR_OCCUPANCY_BYTES), and INT (P4.org, version 2.1) has
    a field for buffer occupancy. Egress queues would not do: PFC does not look at them.

    There is no paper of this sender; it stands for the rule of thumb to throttle at 60 to 80 % of
    the buffer, before PFC acts at 90 %. That the rate changes with every ACK, but from a reference
    that changes once an interval, is HPCC's (Li et al., SIGCOMM 2019, section 3.3). As with HPCC,
    frames do not grow by the telemetry: where a few bytes matter, `nic.header_bytes` and
    `nic.ack_bytes` have to count them. Rules: `roce_gym/sim/cc/int_throttle.py`.
    """

    enabled: bool = True
    start_fraction: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.6, description="from this share of the threshold on, the rate falls [60 %]"
    )
    full_fraction: Share = Field(0.8, description="from this one on, by all of `gain` [80 %]")
    gain: Share = Field(
        1.0, description="share of the rate taken away at full_fraction; 1: down to min_rate"
    )
    rate_ai_mbps: Positive = Field(
        500.0, description="additive increase an interval, below start_fraction; as of `rtt`"
    )
    min_rate_mbps: Positive = Field(100.0, description="lowest rate; as of HPCC")
    max_rate_mbps: NonNegative = Field(0.0, description="0 = line rate")
    update_interval_us: Positive = Field(
        10.0,
        description="least time between two changes of the reference rate: about a round trip, in "
        "which the last one shows its effect",
    )

    @model_validator(mode="after")
    def _ordered(self) -> IntThrottleConfig:
        if self.full_fraction <= self.start_fraction:
            raise ValueError(
                f"full_fraction = {self.full_fraction} must be above "
                f"start_fraction = {self.start_fraction}"
            )
        return self
