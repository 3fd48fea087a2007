"""How switches choose among equal-cost next hops, and what happens to cables during a run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from roce_gym.config.fields import Fraction, HostId, Model, NonNegative, Positive, Rate

RoutingPolicy = Literal["ecmp", "spray_random", "spray_round_robin", "adaptive", "flowlet"]


class RoutingConfig(Model):
    """Load balancing of data packets (docs/rules.md, section 12).

    ACKs, NACKs and CNPs always take an ECMP path. Sources: packet spraying, Dixit et al., "On the
    Impact of Packet Spraying in Data Center Networks", INFOCOM 2013; adaptive routing, Ghorbani et
    al., "DRILL", SIGCOMM 2017; flowlets, Vanini et al., "Let It Flow", NSDI 2017.
    """

    policy: RoutingPolicy = Field(
        "ecmp",
        description="ecmp: a path per QP; spray_random, spray_round_robin, adaptive (shortest "
        "queue): per packet; flowlet: anew after a gap",
    )
    flowlet_gap_us: Positive = Field(
        50.0, description="LetFlow's 500 us at 10 Gb/s, scaled to 100 Gb/s"
    )
    reroute_delay_us: NonNegative = Field(
        1000.0,
        description="from a change of a cable to new routes; a choice: loss of signal is seen at "
        "once, a switch's software needs about this to change its ECMP groups",
    )


class _LinkEvent(Model):
    """Something that happens to a cable from `start_us` to `stop_us` (None: for good).

    `between` are the node ids of its ends, those of the topology file where there is one.
    """

    between: tuple[HostId, HostId]
    cable: Annotated[int, Field(ge=0, le=65535)] = Field(0, description="of parallel cables")
    start_us: NonNegative = 0.0
    stop_us: Positive | None = None

    @model_validator(mode="after")
    def _ordered(self) -> _LinkEvent:
        if self.stop_us is not None and self.stop_us <= self.start_us:
            raise ValueError(f"stop_us = {self.stop_us} must be after start_us = {self.start_us}")
        return self


class LinkDown(_LinkEvent):
    """A cable that is cut: whatever arrives on it is lost, in both directions."""

    kind: Literal["down"] = "down"


class LinkSlow(_LinkEvent):
    """A cable that trained at a lower rate."""

    kind: Literal["slow"] = "slow"
    rate_gbps: Rate
    direction: Literal["both", "forward"] = Field("both", description="forward: first end sends")


class LinkLossy(_LinkEvent):
    """A gray failure, such as a bent fibre: packets are lost at random."""

    kind: Literal["lossy"] = "lossy"
    loss: Fraction = Field(description="probability that a packet is lost")
    direction: Literal["both", "forward"] = Field("both", description="forward: first end sends")


LinkEvent = Annotated[LinkDown | LinkSlow | LinkLossy, Field(discriminator="kind")]
