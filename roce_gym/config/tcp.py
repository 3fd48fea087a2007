"""Parameters of the sender algorithms that have TCP's window."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from roce_gym.config.fields import Fraction, Model, NonNegative, Positive

Window = Annotated[int, Field(ge=1, le=2**30)]


class RenoConfig(Model):
    """TCP's window: slow start, additive increase, multiplicative decrease on loss.

    Source: RFC 5681. What is lost is sent again by the rules of the NIC; a NACK stands for three
    duplicate ACKs, and `nic.retransmit_timeout_us` is the retransmission timeout. Marks are
    ignored. Rules: `roce_gym/sim/cc/tcp.py`, `reno.py`.
    """

    enabled: bool = True
    initial_window_bytes: Window = Field(14_600, description="10 x 1,460 [RFC 6928]")
    initial_ssthresh_bytes: Annotated[int, Field(ge=0, le=2**30)] = Field(
        0, description="end of the first slow start; 0 = max_window_bytes [RFC 5681: high]"
    )
    max_window_bytes: Window = Field(4_194_304, description="Linux, tcp_wmem: 4 MiB")
    additive_packets: Positive = Field(1.0, description="increase a round trip [RFC 5681: 1]")
    loss_factor: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.5, description="of the window, after a loss [RFC 5681: 0.5]"
    )
    max_rate_mbps: NonNegative = Field(0.0, description="0 = line rate")

    @model_validator(mode="after")
    def _ordered(self) -> RenoConfig:
        for name in ("initial_window_bytes", "initial_ssthresh_bytes"):
            if getattr(self, name) > self.max_window_bytes:
                raise ValueError(
                    f"{name} = {getattr(self, name)} must be at most max_window_bytes = "
                    f"{self.max_window_bytes}"
                )
        return self


class DctcpConfig(RenoConfig):
    """DCTCP: as Reno, and once a window cut by half the share of bytes that were marked, averaged.

    Source: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010; RFC 8257 (defaults).
    Rules: `roce_gym/sim/cc/dctcp.py`.
    """

    g: Annotated[float, Field(gt=0, le=1)] = Field(
        1 / 16, description="gain of the average [RFC 8257: 1/16]"
    )
    initial_alpha: Fraction = Field(1.0, description="[RFC 8257: 1]")
