"""Switches, NICs and traffic classes: what stays as it is during a run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from roce_gym.asics import ASICS, Asic, AsicName
from roce_gym.config.dscp import Dscp, DscpConfig
from roce_gym.config.fields import MAX_PRIORITIES, Bytes, Model, NonNegative, Positive
from roce_gym.config.settings import (
    MAX_WEIGHT,
    BufferConfig,
    EcnConfig,
    ShaperConfig,
    SwitchOverride,
)

XON_OFFSET_BYTES = 3072


class TrafficClass(Model):
    """One of the 8 priorities, as all switches and NICs treat it."""

    name: str = "roce"
    priority: Annotated[int, Field(ge=0, lt=MAX_PRIORITIES)] = 3
    dscp: Dscp | None = Field(
        None, description="of its packets, as switch.dscp maps it; None: 8 x priority (RFC 2474)"
    )
    lossless: bool = True
    scheduling: Literal["strict", "round_robin", "dwrr"] = Field(
        "round_robin",
        description="dwrr: bytes by weight (Shreedhar and Varghese 1996); round_robin: a packet in "
        "turn. Classes that are not strict are all served in one of these two ways",
    )
    weight: Annotated[int, Field(ge=1, le=MAX_WEIGHT)] = Field(1, description="for dwrr")
    shaper: ShaperConfig | None = Field(
        None, description="of this class at every switch port; None: cannot be turned on later"
    )
    pool: str | None = Field(
        None,
        description="part of the buffer; classes that name the same one share it, and its size is "
        "the sum of their pool_share. None: a pool of its own if it has a pool_share, else the "
        "one that all others use",
    )
    headroom_bytes: Annotated[int, Field(ge=0, le=2**31 - 1)] | Literal["auto", "sonic"] = Field(
        "auto",
        description="auto: what the simulator needs; sonic: SONiC's rule for the switch.asic, from "
        "rate, cable (delay / 5 ns a metre) and MTU",
    )
    headroom_rate_delays: NonNegative | None = Field(
        None, description="headroom as a multiple of rate x one-way delay of each port"
    )
    xon_offset_bytes: Bytes = Field(
        XON_OFFSET_BYTES,
        description="resume this far below the threshold; 3 KiB as in the HPCC simulator",
    )
    ecn: EcnConfig | None = Field(None, description="None: from the preset")
    buffer: BufferConfig | None = Field(None, description="None: from the preset")

    @model_validator(mode="after")
    def _no_contradiction(self) -> TrafficClass:
        if self.weight != 1 and self.scheduling != "dwrr":
            raise ValueError(
                f"weight = {self.weight} has no meaning with scheduling = {self.scheduling!r}; "
                "allowed: 1, or scheduling = 'dwrr'"
            )
        for field in ("headroom_bytes", "headroom_rate_delays"):
            value = getattr(self, field)
            if not self.lossless and isinstance(value, int | float) and value > 0:
                raise ValueError(
                    f"{field} = {value!r} is for PFC, which a class with lossless = false does "
                    "not have; leave it out, or set lossless = true"
                )
        if not self.lossless and self.xon_offset_bytes != XON_OFFSET_BYTES:
            raise ValueError(
                f"xon_offset_bytes = {self.xon_offset_bytes} is for PFC, which a class with "
                "lossless = false does not have; leave it out, or set lossless = true"
            )
        if self.buffer is not None:
            require_lossy_limit(self.buffer, self.lossless)
        return self


def require_lossy_limit(buffer: BufferConfig, lossless: bool) -> None:
    """Only queues of lossy classes are bounded at the egress.

    Raises:
        ValueError: names the field of a lossless class's buffer.
    """
    for field in ("egress_alpha", "egress_limit_bytes"):
        value = getattr(buffer, field)
        if lossless and value is not None:
            raise ValueError(
                f"buffer.{field} = {value} would drop packets of a lossless class; "
                "leave it out, or set lossless = false"
            )


def with_default_alpha(raw: Any, alpha: float) -> Any:
    """A class, or what one is made from, with `alpha` in its buffer if there is one without."""
    if not isinstance(raw, dict | TrafficClass):
        return raw
    buffer = raw.buffer if isinstance(raw, TrafficClass) else raw.get("buffer")
    if isinstance(buffer, dict) and "alpha" not in buffer:
        buffer = buffer | {"alpha": alpha}
    elif isinstance(buffer, BufferConfig) and "alpha" not in buffer.model_fields_set:
        buffer = buffer.model_copy(update={"alpha": alpha})
    else:
        return raw
    change = {"buffer": buffer}
    return raw.model_copy(update=change) if isinstance(raw, TrafficClass) else raw | change


class SwitchConfig(Model):
    """Switches, alike but for `overrides` and those of `dscp`.

    16 MiB matches a shared-buffer switch of the 3.2 Tb/s class. An `asic` gives
    `buffer_bytes`, and `alpha` of classes, where the scenario does not.
    """

    asic: AsicName | None = Field(None, description="see roce_gym/asics.py")
    buffer_bytes: Annotated[int, Field(gt=0, le=2**31 - 1)] = 16 * 2**20
    ecn_scales_with_rate: bool = Field(
        True, description="kmin and kmax grow with port rate over host rate"
    )
    alpha_scales_with_rate: bool = Field(
        False, description="alpha doubles, up to 1, for each doubling of port rate over host rate"
    )
    headroom_pool_bytes: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        None,
        description="headroom that all ports and classes of a switch share, each up to its own "
        "(SONiC's BUFFER_POOL xoff); None: each has its own",
    )
    dscp: DscpConfig | None = Field(
        None, description="None: a packet is of its sender's class at every switch"
    )
    dwrr_quantum_bytes: Annotated[int, Field(ge=64, le=2**20)] | None = Field(
        None,
        description="bytes of weight 1 in a round of DWRR; None: the least with which every class "
        "can send the largest frame in each round",
    )
    overrides: tuple[SwitchOverride, ...] = Field(
        (), description="switches whose ECN and buffer thresholds are not those of `classes`"
    )

    @model_validator(mode="after")
    def _headroom_fits(self) -> SwitchConfig:
        if self.headroom_pool_bytes is not None and self.headroom_pool_bytes > self.buffer_bytes:
            raise ValueError(
                f"headroom_pool_bytes = {self.headroom_pool_bytes} is more than "
                f"buffer_bytes = {self.buffer_bytes}"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _buffer_of_asic(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and "buffer_bytes" not in raw:
            asic = raw.get("asic")
            if isinstance(asic, str) and asic in ASICS:
                return raw | {"buffer_bytes": ASICS[asic].buffer_bytes}
        return raw

    @property
    def known(self) -> Asic | None:
        """What is known about the ASIC."""
        return None if self.asic is None else ASICS[self.asic]


class NicConfig(Model):
    """Host NIC and transport. Frame sizes: IEEE 802.3, IBTA volume 1 annex A17 (RoCEv2)."""

    mtu_bytes: Annotated[int, Field(ge=64, le=65536)] = Field(4096, description="payload")
    header_bytes: Annotated[int, Field(ge=0, le=1024)] = Field(
        62, description="Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4"
    )
    ack_bytes: Annotated[int, Field(ge=1, le=4096)] = Field(66, description="header + AETH 4")
    cnp_bytes: Annotated[int, Field(ge=1, le=4096)] = Field(78, description="header + 16 reserved")
    pfc_bytes: Annotated[int, Field(ge=1, le=4096)] = Field(64, description="IEEE 802.1Qbb")
    interframe_gap_bytes: Annotated[int, Field(ge=0, le=64)] = Field(
        20, description="preamble 8 and gap 12; takes time on the wire, no buffer"
    )
    ack_every: Annotated[int, Field(ge=1, le=1024)] = Field(
        16,
        description="packets acknowledged by one ACK; a message's last always is. IBTA volume 1, "
        "9.7.5.1.2 lets responders coalesce; how many packets NICs take is not published",
    )
    ack_class: str | None = Field(None, description="None: the class of the data")
    cnp_mode: Literal["packet", "ack_echo"] = Field(
        "packet", description="CNPs of their own, or the CE bit echoed in ACKs"
    )
    cnp_class: str | None = Field(None, description="None: the class of the data")
    cnp_interval_us: NonNegative = Field(
        4.0, description="least time between CNPs of a QP [min_time_between_cnps]"
    )
    window_bytes: Annotated[int, Field(ge=0, le=2**40)] = Field(0, description="0 = no window")
    retransmit_timeout_us: NonNegative = Field(
        67_108.864, description="4.096 us x 2^14, local ACK timeout 14 of IBTA; 0 = never"
    )
    retry_limit: Annotated[int, Field(ge=0, le=7)] = Field(7, description="IBTA: 3 bits")
    nack_interval_us: Positive = Field(
        500.0, description="before a gap is reported again; as in the HPCC simulator"
    )
    out_of_order: bool = Field(
        False, description="data may arrive in any order; else a gap is answered with a NACK"
    )
    reorder_window_packets: Annotated[int, Field(ge=1, le=4096)] = Field(
        512,
        description="out of order: most MTUs a QP has outstanding, so that the receiver need not "
        "keep track of more; IRN's is the bandwidth-delay product (Mittal et al., SIGCOMM 2018, "
        "section 3.2), here with an MTU of 1,024: 400 Gb/s x 10 us",
    )
    reorder_wait_us: NonNegative = Field(
        100.0,
        description="out of order: a gap this old counts as a loss; IRN's low timeout (section "
        "4.1). IRN itself takes every gap for one: 0",
    )
    recovery: Literal["go_back_n", "go_back_0", "selective_repeat"] = Field(
        "go_back_n",
        description="what is sent again: all from the gap on; the whole message (Guo et al., "
        "SIGCOMM 2016); what the receiver misses (IRN)",
    )
    ack_ignores_pause: bool = Field(
        False, description="a paused host goes on sending ACKs: a flaw of the ns-3 reference"
    )

    @property
    def largest_packet_bytes(self) -> int:
        """Largest frame that a switch may queue, without preamble and gap."""
        return max(self.mtu_bytes + self.header_bytes, self.ack_bytes, self.cnp_bytes)

    @model_validator(mode="after")
    def _window_lets_acks_come(self) -> NicConfig:
        least = (self.ack_every - 1) * self.mtu_bytes + 1
        if 0 < self.window_bytes < least:
            raise ValueError(
                f"window_bytes = {self.window_bytes} closes before an ACK is due; allowed: 0, or "
                f"at least {least} with ack_every = {self.ack_every}, "
                f"mtu_bytes = {self.mtu_bytes}"
            )
        return self

    @property
    def sender_window_bytes(self) -> int:
        """Most bytes that a QP may have outstanding before it sends another packet; 0 = any."""
        if not self.out_of_order:
            return self.window_bytes
        window_bytes = self.reorder_window_packets * self.mtu_bytes
        return min(window_bytes, self.window_bytes or window_bytes)

    @model_validator(mode="after")
    def _reorder_window_lets_acks_come(self) -> NicConfig:
        if self.out_of_order and self.reorder_window_packets < self.ack_every:
            raise ValueError(
                f"reorder_window_packets = {self.reorder_window_packets} closes before an ACK is "
                f"due; allowed: at least ack_every = {self.ack_every}"
            )
        return self

    @model_validator(mode="after")
    def _recovery_fits_the_receiver(self) -> NicConfig:
        needed = {"selective_repeat": True, "go_back_0": False}.get(self.recovery)
        if needed is not None and self.out_of_order != needed:
            raise ValueError(
                f"recovery = {self.recovery!r} needs out_of_order = {str(needed).lower()}, not "
                f"{str(self.out_of_order).lower()}"
            )
        return self
