"""Topologies: from a few numbers, or from a file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roce_gym.config.fields import Model, NonNegative, Rate


class Star(Model):
    """`hosts` hosts on one switch."""

    kind: Literal["star"] = "star"
    hosts: Annotated[int, Field(ge=2, le=4096)]
    host_rate_gbps: Rate = 100.0
    link_delay_ns: NonNegative = 1000.0


class Dumbbell(Model):
    """Two switches, `hosts_per_side` hosts on each, one link between them."""

    kind: Literal["dumbbell"] = "dumbbell"
    hosts_per_side: Annotated[int, Field(ge=1, le=2048)]
    host_rate_gbps: Rate = 100.0
    trunk_rate_gbps: Rate = 100.0
    link_delay_ns: NonNegative = 1000.0


class LeafSpine(Model):
    """`leaves` leaf switches with `hosts_per_leaf` hosts, each linked to every spine."""

    kind: Literal["leaf_spine"] = "leaf_spine"
    leaves: Annotated[int, Field(ge=1, le=1024)]
    hosts_per_leaf: Annotated[int, Field(ge=1, le=1024)]
    spines: Annotated[int, Field(ge=1, le=1024)]
    host_rate_gbps: Rate = 100.0
    spine_rate_gbps: Rate = 100.0
    link_delay_ns: NonNegative = 1000.0


class TopologyFile(Model):
    """Any graph, from a file in the HPCC format (nodes, switches, links)."""

    kind: Literal["hpcc_file"] = "hpcc_file"
    path: str


Topology = Annotated[Star | Dumbbell | LeafSpine | TopologyFile, Field(discriminator="kind")]
