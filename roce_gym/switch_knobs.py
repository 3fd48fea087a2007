"""The knobs of each switch by itself, for agents that tune one switch each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from roce_gym.action_check import clipped
from roce_gym.config import ClassOverride, Scenario, Settings, SwitchOverride
from roce_gym.errors import ConfigError
from roce_gym.knobs import SWITCH_SETTINGS, KnobSpace
from roce_gym.presets import resolve_settings
from roce_gym.switch_settings import by_switch
from roce_gym.topology.graph import Network
from roce_gym.topology.selection import ethernet_switches
from roce_gym.units import BPS_PER_GBPS

Floats = NDArray[np.float64]


class SwitchKnobSpace:
    """What there is for a class in :class:`KnobSpace`, for each class at each switch.

    These are `kmin`, `kmax_ratio`, `pmax`, `buffer_alpha` and `buffer_split`, as far as
    `control.knobs` has them, with the ranges that they have there. They act on the ports and queues
    of that Ethernet switch alone. The senders' knobs of tenants follow, if asked for. Everything
    else stays as in the scenario's own settings: weights, pool shares and shapers of classes, too.

    Attributes:
        space: Box(-1, 1), shape (n,), float32.
        knobs: n of them, in the order of the action.
        names: `<switch>/<class>/<setting>`, switches called as in `Network.describe`; then
            `tenant/<tenant>/<setting>`.
        switches: names of the Ethernet switches, in order.
        base: the settings the scenario starts with.
    """

    def __init__(self, scenario: Scenario, network: Network, *, with_tenants: bool = False) -> None:
        """Precondition: a fabric can be built from scenario and network.

        Raises:
            ConfigError: as :class:`KnobSpace`, or there is nothing that a switch could turn.
        """
        self._network = network
        self.base: Settings = resolve_settings(scenario, network.host_rate_bps / BPS_PER_GBPS)
        self._kinds = by_switch(self.base, network)
        self._spaces = [
            KnobSpace(scenario, network, self._plain(classes)) for classes in self._kinds.kinds
        ]
        self._starts = [space.encode(space.base).astype(np.float64) for space in self._spaces]
        every = self._spaces[0].knobs
        of_class = [k.name.startswith("class/") and k.setting in SWITCH_SETTINGS for k in every]
        of_tenant = [with_tenants and k.name.startswith("tenant/") for k in every]
        if not any(of_class):
            raise ConfigError(
                "control.knobs: there is none that a switch could turn; allowed: at least one of "
                + ", ".join(SWITCH_SETTINGS)
            )
        self._own, self._tenants = np.flatnonzero(of_class), np.flatnonzero(of_tenant)
        self._nodes = list(ethernet_switches(network))
        self.switches = tuple(network.describe(node) for node in self._nodes)
        self.knobs = tuple(
            replace(every[i], name=switch + every[i].name.removeprefix("class"))
            for switch in self.switches
            for i in self._own
        ) + tuple(every[i] for i in self._tenants)
        self.names = tuple(knob.name for knob in self.knobs)
        self.space: Box[np.float32] = Box(-1.0, 1.0, (len(self.knobs),), np.float32)

    def _plain(self, classes: Any) -> Settings:
        """Settings with which these hold for classes everywhere."""
        return self.base.model_copy(update={"classes": dict(classes), "switch_overrides": ()})

    def clip(self, action: Any) -> Floats:
        """See :func:`roce_gym.action_check.clipped`."""
        return clipped(action, self.names)

    def decode(self, action: Any) -> Settings:
        """The settings that an action stands for, with an override for each switch.

        Args:
            action: shape (n,); see :meth:`clip`.

        Raises:
            ActionError: see :meth:`clip`.
        """
        position = self.clip(action)
        split = len(self._nodes) * len(self._own)
        rows = position[:split].reshape(len(self._nodes), -1)
        overrides = tuple(
            self._override(node, row) for node, row in zip(self._nodes, rows, strict=True)
        )
        settings = self.base.model_copy(update={"switch_overrides": overrides})
        if not len(self._tenants):
            return settings
        full = self._starts[0].copy()
        full[self._tenants] = position[split:]
        decoded = self._spaces[0].decode(full)
        return settings.model_copy(update={"tenants": decoded.tenants, "shapers": decoded.shapers})

    def _override(self, node: int, row: Floats) -> SwitchOverride:
        kind = self._kinds.kind_of[node]
        full = self._starts[kind].copy()
        full[self._own] = row
        classes = self._spaces[kind].decode_classes(full)
        return SwitchOverride.model_construct(
            switches=(int(self._network.node_label[node]),),
            classes={name: ClassOverride.with_all_of(chosen) for name, chosen in classes.items()},
        )

    def steps(self, factor: float) -> Floats:
        """See :meth:`KnobSpace.steps`."""
        steps = self._spaces[0].steps(factor)
        return np.concatenate([np.tile(steps[self._own], len(self._nodes)), steps[self._tenants]])

    def encode(self, settings: Settings) -> NDArray[np.float32]:
        """See :meth:`KnobSpace.encode`."""
        return self._of_all(settings, "encode").astype(np.float32)

    def values(self, settings: Settings) -> Floats:
        """See :meth:`KnobSpace.values`."""
        return self._of_all(settings, "values")

    def _of_all(self, settings: Settings, method: str) -> Floats:
        """What a method of :class:`KnobSpace` says of the settings at each switch."""
        there = by_switch(settings, self._network)
        found: dict[tuple[int, int], Floats] = {}

        def of(space: int, kind: int) -> Floats:
            if (space, kind) not in found:
                plain = settings.model_copy(update={"classes": dict(there.kinds[kind])})
                found[space, kind] = getattr(self._spaces[space], method)(plain)
            return found[space, kind]

        parts = [
            of(int(self._kinds.kind_of[node]), int(there.kind_of[node]))[self._own]
            for node in self._nodes
        ]
        return np.concatenate([*parts, of(0, 0)[self._tenants]])
