"""A sender algorithm that a user has written."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_serializer, field_validator, model_validator

from roce_gym.config.fields import MAX_VALUE, Model, NonNegative, Positive

MAX_USER_PARAMS = 8
"""DOCA PCC has 44 words."""

Number = Annotated[float, Field(ge=-MAX_VALUE, le=MAX_VALUE)]


class UserConfig(Model):
    """A function that decides on the rate of each of the tenant's queue pairs.

    What it gets and returns: `roce_gym/user_sender.py`; an example: `docs/examples/my_sender.py`.
    The events are those of programmable congestion control on ConnectX and BlueField NICs
    (NVIDIA, DOCA PCC). File and function stay as they are during a run; the rest may change.
    """

    enabled: bool = True
    file: str | None = Field(
        None, description="Python file with the function; relative to the scenario's folder"
    )
    function: Any = Field(description="its name in the file; in Python also the function itself")
    params: Annotated[tuple[Number, ...], Field(max_length=MAX_USER_PARAMS)] = Field(
        (), description="numbers that the function gets; missing ones are 0"
    )
    min_rate_mbps: Positive = Field(1.0, description="lowest rate")
    max_rate_mbps: NonNegative = Field(0.0, description="0 = line rate")

    @field_validator("function")
    @classmethod
    def _is_name_or_function(cls, value: Any) -> Any:
        if not (callable(value) or (isinstance(value, str) and value.isidentifier())):
            raise ValueError(f"{value!r} is not allowed; allowed: a function's name, or a function")
        return value

    @model_validator(mode="after")
    def _has_file(self) -> UserConfig:
        if isinstance(self.function, str) and self.file is None:
            raise ValueError(f"function = {self.function!r} needs file, where it is defined")
        if not isinstance(self.function, str) and self.file is not None:
            raise ValueError(f"file = {self.file!r} is not allowed with a function; allowed: none")
        return self

    @field_serializer("function", when_used="json")
    def _name(self, value: Any) -> str:
        return value if isinstance(value, str) else str(getattr(value, "__name__", "function"))

    @property
    def words(self) -> tuple[float, ...]:
        """The parameters, filled up with zeros."""
        return self.params + (0.0,) * (MAX_USER_PARAMS - len(self.params))
