"""What holds at each switch: settings of classes, and what some switches have in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roce_gym.config import ClassSettings, Settings
from roce_gym.errors import ConfigError, TuningError
from roce_gym.topology.graph import Network
from roce_gym.topology.selection import select_switches


class BySwitch(NamedTuple):
    """Settings of classes at every node.

    Attributes:
        kinds: by class name, for each kind of node there is; kind 0 is `Settings.classes`.
        kind_of: shape (num_hosts + num_switches,), the kind of each node; hosts are of kind 0.
    """

    kinds: list[Mapping[str, ClassSettings]]
    kind_of: NDArray[np.intp]

    def at(self, node: int) -> Mapping[str, ClassSettings]:
        """Settings of classes at a node."""
        return self.kinds[int(self.kind_of[node])]


def by_switch(settings: Settings, network: Network) -> BySwitch:
    """Resolves `settings.switch_overrides`; switches for which the same ones are form a kind.

    Raises:
        TuningError: an override is for a class, a switch or a tier that does not exist.
    """
    kind_of = np.zeros(len(network.node_label), np.intp)
    entries: dict[int, list[int]] = {}
    for i, one in enumerate(settings.switch_overrides):
        try:
            nodes = select_switches(one, f"switch.overrides.{i}", network)
        except ConfigError as error:
            raise TuningError(str(error)) from None
        for name in one.classes:
            if name not in settings.classes:
                raise TuningError(
                    f"switch.overrides.{i}.classes: {name!r} is not a class; allowed: "
                    f"{sorted(settings.classes)}"
                )
        for node in nodes:
            entries.setdefault(node, []).append(i)
    numbers: dict[tuple[int, ...], int] = {(): 0}
    for node, concerned in entries.items():
        kind_of[node] = numbers.setdefault(tuple(concerned), len(numbers))
    return BySwitch([_with(settings, concerned) for concerned in numbers], kind_of)


def _with(settings: Settings, concerned: tuple[int, ...]) -> Mapping[str, ClassSettings]:
    """Settings of classes where some of the overrides hold, one after the other."""
    classes = dict(settings.classes)
    for i in concerned:
        for name, override in settings.switch_overrides[i].classes.items():
            classes[name] = override.over(classes[name])
    return classes
