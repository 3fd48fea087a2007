"""Between eyes and agent: measurements that are late, off, and shown with those before them."""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from roce_gym.config import ControlConfig
from roce_gym.errors import ConfigError
from roce_gym.telemetry import Interval

Frame = NDArray[np.float32]

_STREAM = 0x0B5E
"""Keeps the draws of errors apart from others that are made from the same seed."""


class Eyes(Protocol):
    """What turns intervals into observations; see :class:`roce_gym.observation.Observation`."""

    space: Box[np.float32]
    names: tuple[str, ...]

    def __call__(self, interval: Interval, knobs: ArrayLike) -> Frame: ...  # noqa: D102
    def at_start(self, knobs: ArrayLike) -> Frame: ...  # noqa: D102


class Sight:
    """What the agent is shown of what the eyes see.

    Measurements are `telemetry_delay` intervals old (before the first, nothing was measured); the
    knobs' positions (entries `knob/…`) are always the present ones. With `noise` s, each measured
    value is multiplied by `exp(s z)`, z standard normal, drawn anew each time. With `history` k,
    the last k observations are shown, oldest first; before the first, the first.

    Attributes:
        space: as the eyes' with k times the entries.
        names: those of older observations end in `@-1`, `@-2`, …
    """

    def __init__(self, eyes: Eyes, control: ControlConfig, seed: int) -> None:
        """Raises ConfigError if there is noise, and the eyes know no errors."""
        if control.noise and not hasattr(eyes, "num_measured"):
            raise ConfigError(
                f"control.noise = {control.noise} needs an observation with num_measured and "
                f"errors, which {type(eyes).__name__} has not; allowed: 0"
            )
        self._eyes = eyes
        self._noise = control.noise
        self._rng = np.random.default_rng([_STREAM, seed])
        self._is_knob = np.array([name.startswith("knob/") for name in eyes.names], bool)
        self._late: deque[Frame] = deque(maxlen=control.telemetry_delay + 1)
        self._shown: deque[Frame] = deque(maxlen=control.history)
        self._is_plain = control.history == 1 and control.telemetry_delay == 0
        ages = range(control.history - 1, -1, -1)
        self.names = tuple(f"{name}@-{age}" if age else name for age in ages for name in eyes.names)
        space = eyes.space
        self.space: Box[np.float32] = (
            space
            if control.history == 1
            else Box(
                np.tile(space.low, control.history),
                np.tile(space.high, control.history),
                dtype=np.float32,
            )
        )

    def at_start(self, knobs: ArrayLike) -> Frame:
        """The observation before the first interval."""
        frame = self._eyes.at_start(knobs)
        self._late.clear()
        self._late.extend([frame] * (self._late.maxlen or 1))
        self._shown.clear()
        self._shown.extend([frame] * (self._shown.maxlen or 1))
        return self._joined()

    def __call__(self, interval: Interval, knobs: ArrayLike) -> Frame:
        """The observation after an interval, with the knobs as they are now."""
        frame = self._look(interval, knobs)
        if self._is_plain:
            return frame
        self._late.append(frame)
        oldest = self._late[0]
        self._shown.append(np.where(self._is_knob, frame, oldest))
        return self._joined()

    def _look(self, interval: Interval, knobs: ArrayLike) -> Frame:
        if not self._noise:
            return self._eyes(interval, knobs)
        eyes: Any = self._eyes
        errors = np.exp(self._noise * self._rng.standard_normal(eyes.num_measured))
        frame: Frame = eyes(interval, knobs, errors)
        return frame

    def _joined(self) -> Frame:
        """A fresh array."""
        return np.concatenate(self._shown)
