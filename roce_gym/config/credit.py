"""Parameters of receiver-driven credits."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from roce_gym.config.fields import Model, NonNegative

Window = Annotated[int, Field(ge=1, le=2**30)]


class CreditConfig(Model):
    """Senders send what their receiver grants; it grants at its line rate, to each in turn.

    Source: Olteanu et al., "An edge-queued datagram service for all datacenter traffic" (EQDS),
    NSDI 2022; of this kind is the receiver-credit congestion control of Ultra Ethernet 1.0. The
    windows are about one bandwidth-delay product, as there, at 100 Gb/s and some 8 us.
    Rules: `roce_gym/sim/credit.py`.
    """

    enabled: bool = True
    initial_window_bytes: Window = Field(
        100_000, description="sent without credit after all else was acknowledged"
    )
    credit_bytes: Window = Field(4_096, description="payload of one credit: a packet")
    host_window_bytes: Window = Field(
        150_000,
        description="a host grants no more while so much is granted and has not come: one and a "
        "half bandwidth-delay products",
    )
    pace: Annotated[float, Field(gt=0, le=1)] = Field(
        0.99, description="share of its line rate at which a host grants, so that queues drain"
    )
    max_rate_mbps: NonNegative = Field(0.0, description="0 = line rate")
