"""Clos topologies: two and three tiers, and rails of multi-GPU servers."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from roce_gym.config.cables import Cabled, Delay, Length
from roce_gym.config.fields import MIN_RATE_GBPS, Positive, Rate

MAX_SWITCHES = 1024
"""Of one kind, in one place (pod, or layer)."""

Few = Annotated[int, Field(ge=1, le=MAX_SWITCHES)]


def _uplinks(field: str, ratio: float, down_gbps: float, up_gbps: float) -> int:
    """Links upwards of a switch, the most with which it is oversubscribed by `ratio` or more.

    Raises:
        ValueError: there would be none, or too many.
    """
    count = int(down_gbps / (ratio * up_gbps) * (1 + 1e-12))
    if not 1 <= count <= MAX_SWITCHES:
        lowest, highest = down_gbps / up_gbps / MAX_SWITCHES, down_gbps / up_gbps
        raise ValueError(
            f"{field} = {ratio:g} gives {count or 'no'} uplinks of {up_gbps:g} Gb/s for "
            f"{down_gbps:g} Gb/s downwards; allowed: {lowest:.4g} … {highest:.4g}"
        )
    return count


def _require_one(first: str, a: object, second: str, b: object) -> None:
    if (a is None) == (b is None):
        if a is None:
            raise ValueError(f"{first} and {second} are both missing; allowed: one of them")
        raise ValueError(f"{first} = {a} and {second} = {b} are both given; allowed: one of them")


class LeafSpine(Cabled):
    """`leaves` leaf switches with `hosts_per_leaf` hosts, each linked to every spine.

    Give `spines`, or `oversubscription`: a leaf's bandwidth downwards over that upwards.
    """

    kind: Literal["leaf_spine"] = "leaf_spine"
    leaves: Few
    hosts_per_leaf: Annotated[int, Field(ge=1, le=1024)]
    spines: Few | None = None
    oversubscription: Positive | None = None
    host_rate_gbps: Rate = 100.0
    spine_rate_gbps: Rate = 100.0
    link_delay_ns: Delay = None
    host_delay_ns: Delay = None
    host_cable_m: Length = None
    fabric_delay_ns: Delay = None
    fabric_cable_m: Length = None

    @model_validator(mode="after")
    def _has_spines(self) -> LeafSpine:
        _require_one("spines", self.spines, "oversubscription", self.oversubscription)
        _ = self.num_spines
        return self

    @property
    def num_spines(self) -> int:
        """Spines, as given or as oversubscription has it."""
        if self.spines is not None:
            return self.spines
        down = self.hosts_per_leaf * self.host_rate_gbps
        return _uplinks(
            "oversubscription", self.oversubscription or 1.0, down, self.spine_rate_gbps
        )


class Clos3(Cabled):
    """Three tiers: `pods` of leaves and spines, joined by cores.

    Each leaf is linked to every spine of its pod, spine `j` of each pod to the cores of plane `j`;
    planes have equally many cores. Give the number of spines a pod, or `oversubscription` of the
    leaves; and the number of cores, or `core_oversubscription` of the spines. Source: Al-Fares et
    al., "A Scalable, Commodity Data Center Network Architecture", SIGCOMM 2008, without its equal
    port counts.
    """

    tiers: ClassVar[tuple[str, ...]] = ("host", "fabric", "core")

    kind: Literal["clos3"] = "clos3"
    pods: Few
    leaves_per_pod: Few
    hosts_per_leaf: Annotated[int, Field(ge=1, le=1024)]
    spines_per_pod: Few | None = None
    oversubscription: Positive | None = None
    cores: Annotated[int, Field(ge=1, le=MAX_SWITCHES**2)] | None = None
    core_oversubscription: Positive | None = None
    host_rate_gbps: Rate = 100.0
    spine_rate_gbps: Rate = Field(100.0, description="between leaves and spines")
    core_rate_gbps: Rate = Field(100.0, description="between spines and cores")
    link_delay_ns: Delay = None
    host_delay_ns: Delay = None
    host_cable_m: Length = None
    fabric_delay_ns: Delay = None
    fabric_cable_m: Length = None
    core_delay_ns: Delay = None
    core_cable_m: Length = None

    @model_validator(mode="after")
    def _has_spines_and_cores(self) -> Clos3:
        _require_one(
            "spines_per_pod", self.spines_per_pod, "oversubscription", self.oversubscription
        )
        _require_one("cores", self.cores, "core_oversubscription", self.core_oversubscription)
        if self.num_cores % self.num_spines:
            raise ValueError(
                f"cores = {self.cores} must be a multiple of spines_per_pod = {self.num_spines}: "
                "each spine of a pod is linked to cores of its own"
            )
        return self

    @property
    def num_spines(self) -> int:
        """Spines a pod, as given or as oversubscription has it."""
        if self.spines_per_pod is not None:
            return self.spines_per_pod
        down = self.hosts_per_leaf * self.host_rate_gbps
        return _uplinks(
            "oversubscription", self.oversubscription or 1.0, down, self.spine_rate_gbps
        )

    @property
    def num_cores(self) -> int:
        """Cores, as given or as oversubscription of the spines has it."""
        if self.cores is not None:
            return self.cores
        down = self.leaves_per_pod * self.spine_rate_gbps
        ratio = self.core_oversubscription or 1.0
        return self.num_spines * _uplinks("core_oversubscription", ratio, down, self.core_rate_gbps)


class FatTree(Cabled):
    """The k-ary fat tree: k pods of k/2 leaves and k/2 spines, (k/2)^2 cores, k/2 hosts a leaf.

    Source: Al-Fares et al., SIGCOMM 2008, section 3.
    """

    tiers: ClassVar[tuple[str, ...]] = ("host", "fabric", "core")

    kind: Literal["fat_tree"] = "fat_tree"
    k: Annotated[int, Field(ge=2, le=64)]
    host_rate_gbps: Rate = 100.0
    spine_rate_gbps: Rate = Field(100.0, description="between leaves and spines")
    core_rate_gbps: Rate = Field(100.0, description="between spines and cores")
    link_delay_ns: Delay = None
    host_delay_ns: Delay = None
    host_cable_m: Length = None
    fabric_delay_ns: Delay = None
    fabric_cable_m: Length = None
    core_delay_ns: Delay = None
    core_cable_m: Length = None

    @model_validator(mode="after")
    def _even(self) -> FatTree:
        if self.k % 2:
            raise ValueError(f"k = {self.k} is odd; allowed: even numbers, 2 … 64")
        return self

    @property
    def as_clos3(self) -> Clos3:
        """The same network with its numbers written out."""
        half = self.k // 2
        same = self.model_dump(exclude={"kind", "k"})
        return Clos3(
            pods=self.k,
            leaves_per_pod=half,
            hosts_per_leaf=half,
            spines_per_pod=half,
            cores=half * half,
            **same,
        )


class RailOptimised(Cabled):
    """Servers of several GPUs, GPU `i` of each on rail switch `i`; spines, if any, join the rails.

    A host is a GPU with a NIC of its own; hosts are counted server by server. GPUs of one server
    talk over its NVLink, see `docs/topologies.md`. Source: NVIDIA DGX SuperPOD reference
    architecture (H100): 8 GPUs and 8 NICs of 400 Gb/s a server, one leaf a rail.
    """

    kind: Literal["rail_optimised"] = "rail_optimised"
    nodes: Annotated[int, Field(ge=2, le=4096)]
    gpus_per_node: Annotated[int, Field(ge=2, le=256)] = 8
    spines: Annotated[int, Field(ge=0, le=MAX_SWITCHES)] = Field(
        0, description="0: GPUs of different servers reach each other on one rail only"
    )
    host_rate_gbps: Rate = Field(400.0, description="NIC of a GPU; ConnectX-7 in DGX H100")
    spine_rate_gbps: Rate = 400.0
    nvlink_gbps: Annotated[float, Field(ge=MIN_RATE_GBPS, le=100_000)] = Field(
        3600.0,
        description="a GPU's, each way; NVIDIA H100: 18 links, 900 GB/s both ways together",
    )
    nvlink_delay_ns: Annotated[float, Field(ge=0, le=10_000)] = Field(
        300.0,
        description="GPU to NVSwitch; two of them are NCCL's 0.6 us a hop (tuning.cc, ring, LL)",
    )
    link_delay_ns: Delay = None
    host_delay_ns: Delay = None
    host_cable_m: Length = None
    fabric_delay_ns: Delay = None
    fabric_cable_m: Length = None
