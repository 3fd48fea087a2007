"""Delays of cables: given, or from their length."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from roce_gym.config.fields import Model, NonNegative

NS_PER_M = 5.0
"""Light in glass and signals in copper alike, rounded: fibre of group index 1.468 (ITU-T G.652) has
4.9 ns/m, SONiC's headroom rule assumes 1.98e8 m/s, that is 5.05 ns/m."""

DEFAULT_DELAY_NS = 1000.0
"""As in the topologies of the HPCC repository; a cable of 200 m."""

Delay = NonNegative | None
Length = Annotated[float, Field(ge=0, le=100_000)] | None


class Cabled(Model):
    """A topology whose cables are given by tier.

    For each tier T there are `T_delay_ns` and `T_cable_m`; `link_delay_ns` holds where neither is
    given. Only one of a delay and a length may be given for any cable.
    """

    tiers: ClassVar[tuple[str, ...]] = ("host", "fabric")

    @model_validator(mode="after")
    def _one_delay_each(self) -> Cabled:
        common = getattr(self, "link_delay_ns", None)
        for tier in self.tiers:
            length = getattr(self, f"{tier}_cable_m")
            delays = {
                "link_delay_ns": common,
                f"{tier}_delay_ns": getattr(self, f"{tier}_delay_ns"),
            }
            for field, delay_ns in delays.items():
                if length is not None and delay_ns is not None:
                    raise ValueError(
                        f"{tier}_cable_m = {length:g} and {field} = {delay_ns:g} are both given; "
                        f"allowed: one of them ({NS_PER_M:g} ns a metre)"
                    )
        return self

    def delay_ns(self, tier: str) -> float:
        """One-way delay of the cables of a tier."""
        length = getattr(self, f"{tier}_cable_m")
        if length is not None:
            return float(length * NS_PER_M)
        own = getattr(self, f"{tier}_delay_ns")
        common = getattr(self, "link_delay_ns", None)
        chosen = own if own is not None else common
        return DEFAULT_DELAY_NS if chosen is None else float(chosen)
