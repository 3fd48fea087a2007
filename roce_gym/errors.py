"""Every error the library raises on purpose.

Each message names the field, the value it had and what is allowed.
"""

from __future__ import annotations


class RoceGymError(Exception):
    """Root of all errors raised by roce_gym."""


class ConfigError(RoceGymError, ValueError):
    """Raised when a scenario, a setting or a command-line value is not acceptable."""


class TopologyError(ConfigError):
    """Raised when a topology is malformed or a host cannot be reached."""


class TraceFileError(ConfigError):
    """Raised when a topology, flow or trace file cannot be read; names file and line."""


class GraphError(ConfigError):
    """Raised when an operation graph cannot be executed.

    Attributes:
        op: number of the operation at fault; None: of none in particular.
    """

    def __init__(self, message: str, op: int | None = None) -> None:
        super().__init__(message)
        self.op = op


class TuningError(ConfigError):
    """Raised when settings applied during a run are not acceptable."""


class ActionError(RoceGymError, ValueError):
    """Raised when an action has the wrong shape or is not finite."""


class CheckpointError(RoceGymError):
    """Raised when a training checkpoint or an evaluation record is missing or corrupt."""


class SimulationError(RoceGymError):
    """Raised when the compiled core stops with a status other than success."""
