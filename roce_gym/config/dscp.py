"""DSCP: what packets say about their class, and what switches make of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from roce_gym.config.fields import MAX_PRIORITIES, Model
from roce_gym.config.selector import SwitchSelector

MAX_DSCP = 63
"""6 bits (RFC 2474)."""

CODES_PER_PRIORITY = 8
"""The default of NICs and switches that trust DSCP: priority = DSCP / 8, so that the class selector
of RFC 2474 with a priority's number, 8 x priority, means that priority."""

Dscp = Annotated[int, Field(ge=0, le=MAX_DSCP)]
Priority = Annotated[int, Field(ge=0, lt=MAX_PRIORITIES)]


class DscpOverride(SwitchSelector):
    """Switches that are configured otherwise than the rest, by mistake or on purpose.

    Where several entries concern a switch, the later one holds.
    """

    inherit: bool = Field(
        True, description="False: nothing holds of switch.dscp.map and default, nor of the above"
    )
    map: dict[Dscp, str] = Field(default_factory=dict, description="in place of entries as above")
    default: str | None = Field(None, description="None: as above")
    priorities: dict[str, Priority] = Field(
        default_factory=dict,
        description="classes whose PFC frames carry, and obey, another priority here",
    )


class DscpConfig(Model):
    """In which class switches take a packet, by its DSCP (SONiC's DSCP_TO_TC_MAP).

    A class here is SONiC's traffic class, priority group and queue in one. Hosts put packets in
    their tenant's class, mark them with its DSCP, and heed pauses of its priority.
    """

    map: dict[Dscp, str] = Field(default_factory=dict, description="DSCP: class")
    default: str | None = Field(
        None, description="class of all other DSCPs; None: the one with priority DSCP / 8"
    )
    overrides: tuple[DscpOverride, ...] = ()


def check_dscp(dscp: DscpConfig | None, classes: Sequence[Any], tenants: Sequence[Any]) -> None:
    """Maps name classes that exist, and nothing is marked for maps that do not.

    Raises:
        ValueError: names the field.
    """
    if dscp is None:
        for kind, given in (("classes", classes), ("tenants", tenants)):
            for one in given:
                if one.dscp is not None:
                    raise ValueError(
                        f"{kind}.{one.name}.dscp = {one.dscp} has no meaning without switch.dscp; "
                        "give that, if only as {}"
                    )
        return
    names = sorted(c.name for c in classes)
    places: list[tuple[str, DscpConfig | DscpOverride]] = [("switch.dscp", dscp)]
    places += [(f"switch.dscp.overrides.{i}", one) for i, one in enumerate(dscp.overrides)]
    for place, part in places:
        given = [(f"map.{code}", name) for code, name in part.map.items()]
        given += [("default", part.default)] if part.default is not None else []
        for field, name in given:
            if name not in names:
                raise ValueError(f"{place}.{field} = {name!r} is not a class; allowed: {names}")
    for i, one in enumerate(dscp.overrides):
        for name, priority in one.priorities.items():
            if name not in names:
                raise ValueError(
                    f"switch.dscp.overrides.{i}.priorities.{name} = {priority}: {name!r} is not a "
                    f"class; allowed: {names}"
                )
