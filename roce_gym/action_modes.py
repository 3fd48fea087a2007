"""What actions mean: positions of knobs, steps from where they are, or a choice of factors."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from gymnasium.spaces import Box, MultiDiscrete, Space
from numpy.typing import NDArray

from roce_gym.action_check import as_floats
from roce_gym.config import ControlConfig, Settings
from roce_gym.errors import ActionError, ConfigError

Floats = NDArray[np.float64]

FACTORS = (0.5, math.sqrt(0.5), 1.0, math.sqrt(2.0), 2.0)
"""Of `multidiscrete`, by entry of the action."""

KEEP = FACTORS.index(1.0)
"""The entry that leaves a knob where it is."""


class Knobs(Protocol):
    """Positions in [-1, 1] and settings; see :class:`roce_gym.knobs.KnobSpace`."""

    space: Box[np.float32]
    names: tuple[str, ...]

    def clip(self, action: Any) -> Floats: ...  # noqa: D102
    def decode(self, action: Any) -> Settings: ...  # noqa: D102
    def encode(self, settings: Settings) -> NDArray[np.float32]: ...  # noqa: D102


class Actions(Protocol):
    """One way to move knobs.

    Attributes:
        space: of actions.
    """

    space: Space[Any]

    def __call__(self, action: Any, position: Floats) -> Floats:
        """Where the knobs go, shape (n,), in [-1, 1], from where they are.

        Raises:
            ActionError: wrong shape, or entries that are not allowed.
        """


class Absolute:
    """The action is the position."""

    def __init__(self, knobs: Knobs) -> None:
        self.space: Space[Any] = knobs.space
        self._clip = knobs.clip

    def __call__(self, action: Any, position: Floats) -> Floats:
        """See :class:`Actions`."""
        return self._clip(action)


class Delta:
    """Each entry multiplies a knob's value by `max_factor ** entry`; the range bounds the value.

    Relative steps with a bound, as RL-CC and Aurora take for rates. Of the buffer split, the ratio
    of a class's reserve to the shared pool is multiplied.
    """

    def __init__(self, knobs: Knobs, max_factor: float) -> None:
        self.space: Space[Any] = knobs.space
        self._clip = knobs.clip
        self._steps = _steps(knobs, max_factor)

    def __call__(self, action: Any, position: Floats) -> Floats:
        """See :class:`Actions`."""
        return _bounded(position + self._clip(action) * self._steps)


class Choice:
    """Each entry chooses one of :data:`FACTORS` for a knob's value; the range bounds the value."""

    def __init__(self, knobs: Knobs) -> None:
        self.space: Space[Any] = MultiDiscrete(np.full(len(knobs.names), len(FACTORS)))
        self._names = knobs.names
        self._steps = np.array([_steps(knobs, factor) for factor in FACTORS])

    def __call__(self, action: Any, position: Floats) -> Floats:
        """See :class:`Actions`."""
        given = as_floats(action, kind="whole numbers")
        if given.shape != self.space.shape:
            raise ActionError(
                f"action: shape {given.shape} is not allowed; allowed: {self.space.shape}"
            )
        is_known = np.isin(given, np.arange(len(FACTORS)))
        if not is_known.all():
            i = int(np.flatnonzero(~is_known)[0])
            raise ActionError(
                f"action[{i}] ({self._names[i]}) = {given[i]:g} is not allowed; allowed: 0 … "
                f"{len(FACTORS) - 1}, for factors {', '.join(f'{f:.4g}' for f in FACTORS)}"
            )
        chosen = self._steps[given.astype(np.int64), np.arange(len(given))]
        return _bounded(position + chosen)


def make_actions(control: ControlConfig, knobs: Knobs) -> Actions:
    """What `control.knob_mode` asks for.

    Raises:
        ConfigError: knobs of a user's own that know no steps.
    """
    if control.knob_mode == "delta":
        return Delta(knobs, control.max_factor)
    return Choice(knobs) if control.knob_mode == "multidiscrete" else Absolute(knobs)


def _steps(knobs: Any, factor: float) -> Floats:
    if not hasattr(knobs, "steps"):
        raise ConfigError(
            f"control.knob_mode needs knobs with a method steps(factor), which "
            f"{type(knobs).__name__} has not; allowed: 'absolute'"
        )
    return np.asarray(knobs.steps(factor), np.float64)


def _bounded(position: Floats) -> Floats:
    return np.minimum(np.maximum(position, -1.0), 1.0)
