"""Every parameter of switches, NICs, classes, PFC, routing and senders acts as it says."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

import pytest
from bites import Bite
from bites_of_nics import NIC
from bites_of_rates import DCQCN, HPCC, RTT, TIMELY, USER
from bites_of_switches import BUFFER, CLASSES, ECN, PFC, ROUTING, SHAPERS, SWITCH
from bites_of_windows import CREDIT, SWIFT, TCP, WINDOW

from roce_gym.config import (
    SENDER_CONFIGS,
    NicConfig,
    PfcConfig,
    RoutingConfig,
    ShaperConfig,
    SwitchConfig,
    TrafficClass,
    WindowConfig,
)
from roce_gym.config.fields import Model

BITES = [
    *(*SWITCH, *CLASSES, *ECN, *BUFFER, *SHAPERS, *PFC, *ROUTING, *NIC),
    *(*DCQCN, *TIMELY, *HPCC, *RTT, *USER, *SWIFT, *TCP, *CREDIT, *WINDOW),
]
NAMES_ONLY = {"classes.name"}
"""By which other fields refer to something."""

MODELS: dict[str, type[Model]] = {
    "switch": SwitchConfig,
    "nic": NicConfig,
    "pfc": PfcConfig,
    "routing": RoutingConfig,
    "classes": TrafficClass,
    "tenants.shaper": ShaperConfig,
    "tenants.window": WindowConfig,
} | {f"tenants.{name}": model for name, model in SENDER_CONFIGS.items()}


def inner_model(annotation: object) -> type[Model] | None:
    """The model that a field holds, if it does, perhaps as an alternative to None."""
    if get_origin(annotation) in (Union, UnionType, Annotated):
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
    return {field for path, model in MODELS.items() for field in fields_of(model, path)}


def test_fields_are_found():
    found = all_fields()
    assert {"pfc.watchdog.poll_us", "classes.ecn.pmax", "tenants.dctcp.loss_factor"} <= found
    assert "classes.buffer" not in found and len(found) > 130


def test_every_parameter_has_an_entry():
    assert {bite.field for bite in BITES} == all_fields() - NAMES_ONLY


@pytest.mark.parametrize("bite", BITES, ids=lambda bite: f"{bite.path}-{bite.metric.__name__}")
def test_it_bites(bite: Bite):
    low, high = bite.measure(bite.low), bite.measure(bite.high)
    assert (low < high) is bite.grows and low != high, (low, high)
    assert abs(high - low) >= bite.least * max(abs(low), abs(high)), (low, high)
