"""Parameters of senders without congestion control."""

from __future__ import annotations

from pydantic import Field

from roce_gym.config.fields import Model, NonNegative


class NoneConfig(Model):
    """No congestion control: nothing but PFC and windows slows a sender down.

    The rate is the line's, or a limit that the NIC was given. Rules: `roce_gym/sim/cc/none.py`.
    """

    enabled: bool = True
    max_rate_mbps: NonNegative = Field(0.0, description="0 = line rate")
