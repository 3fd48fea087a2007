"""The single-agent environment with the knobs and the telemetry of each switch by itself."""

from __future__ import annotations

from functools import partial
from typing import Any

from roce_gym.config import Scenario
from roce_gym.env import OBSERVATIONS, RoceEnv
from roce_gym.errors import ConfigError
from roce_gym.switch_knobs import SwitchKnobSpace
from roce_gym.switch_observation import (
    EyesOnSwitches,
    PolledSwitchObservation,
    SwitchObservation,
)
from roce_gym.topology import Network
from roce_gym.workload.plan import Plan

_OF_SWITCHES = {"full": SwitchObservation, "deployable": PolledSwitchObservation}
"""By `control.observation`."""


class SwitchCore(RoceEnv):
    """As :class:`RoceEnv`; actions are of :class:`SwitchKnobSpace`.

    Observations are those of the fabric as a whole, then those of every switch
    (:mod:`roce_gym.switch_observation`), then the knobs.
    """

    def __init__(self, scenario: Any, *, with_tenants: bool, **kwargs: Any) -> None:
        """Takes arguments of :class:`RoceEnv`, but for knobs and eyes of a user's own.

        Raises:
            ConfigError: as :class:`RoceEnv`, or one of these.
        """
        if "knobs" in kwargs:
            raise ConfigError("knobs: with agents that are switches, none of your own are allowed")
        if callable(kwargs.get("observation")):
            raise ConfigError(
                f"observation = {kwargs['observation']!r} is not allowed with agents that are "
                f"switches; allowed: {', '.join(OBSERVATIONS)}"
            )
        knobs = partial(SwitchKnobSpace, with_tenants=with_tenants)
        super().__init__(scenario, knobs=knobs, **kwargs)

    def _open_eyes(self, scenario: Scenario, network: Network, plan: Plan) -> EyesOnSwitches:
        kind = scenario.control.observation
        fabric = OBSERVATIONS[kind](scenario, network, plan, ())
        return EyesOnSwitches(fabric, _OF_SWITCHES[kind](scenario, network), self.knobs.names)
