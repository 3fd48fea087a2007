"""Topologies: from a few numbers, or from a file."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from roce_gym.config.cables import Cabled, Delay, Length
from roce_gym.config.clos import Clos3, FatTree, LeafSpine, RailOptimised
from roce_gym.config.fields import Model, Rate


class Star(Cabled):
    """`hosts` hosts on one switch.

    No switch has thousands of ports; such stars are for tests of scale, and need a
    `switch.buffer_bytes` that holds the reserve and headroom of all of them.
    """

    tiers: ClassVar[tuple[str, ...]] = ("host",)

    kind: Literal["star"] = "star"
    hosts: Annotated[int, Field(ge=2, le=65_536)]
    host_rate_gbps: Rate = 100.0
    link_delay_ns: Delay = None
    host_delay_ns: Delay = None
    host_cable_m: Length = None


class Dumbbell(Cabled):
    """Two switches, `hosts_per_side` hosts on each, one link between them."""

    kind: Literal["dumbbell"] = "dumbbell"
    hosts_per_side: Annotated[int, Field(ge=1, le=2048)]
    host_rate_gbps: Rate = 100.0
    trunk_rate_gbps: Rate = 100.0
    link_delay_ns: Delay = None
    host_delay_ns: Delay = None
    host_cable_m: Length = None
    fabric_delay_ns: Delay = None
    fabric_cable_m: Length = None


class Circle(Cabled):
    """Switches in a circle, each linked to the next.

    `routing: shortest` takes the shorter way round (ECMP where both are as long); `clockwise` sends
    everything, ACKs too, from each switch to the next one only, so that buffers depend on each
    other all the way round: the textbook case of a PFC deadlock (Hu et al., "Deadlocks in
    Datacenter Networks", HotNets 2016).
    """

    hosts_per_switch: Annotated[int, Field(ge=1, le=1024)] = 1
    routing: Literal["shortest", "clockwise"] = "shortest"
    host_rate_gbps: Rate = 100.0
    trunk_rate_gbps: Rate = 100.0
    link_delay_ns: Delay = None
    host_delay_ns: Delay = None
    host_cable_m: Length = None
    fabric_delay_ns: Delay = None
    fabric_cable_m: Length = None


class Ring(Circle):
    """`switches` switches in a circle, `hosts_per_switch` hosts on each."""

    kind: Literal["ring"] = "ring"
    switches: Annotated[int, Field(ge=3, le=1024)]


class Triangle(Circle):
    """A ring of three switches."""

    kind: Literal["triangle"] = "triangle"

    @property
    def switches(self) -> int:
        """Always 3."""
        return 3


class TopologyFile(Model):
    """Any graph, from a file in the HPCC format (nodes, switches, links)."""

    kind: Literal["hpcc_file"] = "hpcc_file"
    path: str


Topology = Annotated[
    Star | Dumbbell | LeafSpine | FatTree | Clos3 | RailOptimised | Ring | Triangle | TopologyFile,
    Field(discriminator="kind"),
]
