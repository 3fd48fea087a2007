"""Every parameter of switches, NICs, senders, routing and faults acts as it says."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

import pytest
from bites import Bite, delivered, incast
from bites_of_faults import CABLES, PFC, ROUTING, STORMS
from bites_of_marks import DSCP
from bites_of_nccl import NCCL
from bites_of_nics import NIC
from bites_of_rates import DCQCN, HPCC, INT_THROTTLE, NONE, RTT, TIMELY, USER
from bites_of_switches import BUFFER, CLASSES, ECN, SHAPERS, SWITCH
from bites_of_windows import CREDIT, SWIFT, TCP, WINDOW

from roce_gym.config import (
    SENDER_CONFIGS,
    LinkDown,
    LinkLossy,
    LinkSlow,
    NicConfig,
    PfcConfig,
    RoutingConfig,
    ShaperConfig,
    Storm,
    SwitchConfig,
    TrafficClass,
    WindowConfig,
)
from roce_gym.config.fields import Model
from roce_gym.config.nccl import NcclSettings

BITES = [
    *(*SWITCH, *CLASSES, *ECN, *BUFFER, *SHAPERS, *NIC),
    *(*DSCP, *NCCL),
    *(*PFC, *STORMS, *CABLES, *ROUTING),
    *(*DCQCN, *TIMELY, *HPCC, *RTT, *USER, *INT_THROTTLE, *NONE, *SWIFT, *TCP, *CREDIT, *WINDOW),
]
NO_SETTINGS = {"classes.name", "link_events.kind"}
"""A name, and which model the other fields belong to."""

MODELS: list[tuple[str, type[Model]]] = [
    ("switch", SwitchConfig),
    ("nic", NicConfig),
    ("pfc", PfcConfig),
    ("routing", RoutingConfig),
    ("classes", TrafficClass),
    ("tenants.jobs.nccl", NcclSettings),
    ("tenants.shaper", ShaperConfig),
    ("tenants.window", WindowConfig),
    ("faults.storms", Storm),
    *(("link_events", model) for model in (LinkDown, LinkSlow, LinkLossy)),
    *((f"tenants.{name}", model) for name, model in SENDER_CONFIGS.items()),
]


def inner_model(annotation: object) -> type[Model] | None:
    """The model that a field holds, if it does, perhaps in a list or as an alternative to None."""
    if get_origin(annotation) in (Union, UnionType, Annotated, tuple):
        models = [inner_model(part) for part in get_args(annotation)]
        return next((model for model in models if model is not None), None)
    is_model = isinstance(annotation, type) and issubclass(annotation, Model)
    return annotation if is_model else None


def fields_of(model: type[Model], path: str) -> Iterator[str]:
    for name, info in model.model_fields.items():
        inner = inner_model(info.annotation)
        if inner is None:
            yield f"{path}.{name}"
        else:
            yield from fields_of(inner, f"{path}.{name}")


def all_fields() -> set[str]:
    inside = {field for path, model in MODELS for field in fields_of(model, path)}
    return inside | {"tenants.dscp"}


def test_fields_are_found():
    found = all_fields()
    assert {"pfc.watchdog.poll_us", "classes.ecn.pmax", "tenants.dctcp.loss_factor"} <= found
    assert "classes.buffer" not in found and len(found) > 130


def test_every_parameter_has_an_entry():
    assert {bite.field for bite in BITES} == all_fields() - NO_SETTINGS


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.path}-{bite.metric.__name__}")
def test_it_bites(bite: Bite):
    low, high = bite.measure(bite.low), bite.measure(bite.high)
    assert (low < high) is bite.grows and low != high, (low, high)
    assert abs(high - low) >= bite.least * max(abs(low), abs(high)), (low, high)


def test_a_parameter_that_does_nothing_is_found_out():
    """Turns of DWRR where there is one class only."""
    idle = Bite("switch.dwrr_quantum_bytes", 4_158, 1_000_000, delivered, True, incast())
    with pytest.raises(AssertionError):
        test_it_bites(idle)
