"""Which switches something is about."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from roce_gym.config.fields import HostId, Model


class SwitchSelector(Model):
    """Some switches, by node or by kind: exactly one of `switches` and `tier` is given."""

    switches: tuple[HostId, ...] = Field((), description="node ids, those of a topology file")
    tier: str | None = Field(None, description="all of one kind: leaf, spine, core")

    @model_validator(mode="after")
    def _says_which(self) -> Self:
        if bool(self.switches) == (self.tier is not None):
            raise ValueError(
                f"switches = {list(self.switches)} and tier = {self.tier!r}: exactly one of them "
                "has to say which switches are meant"
            )
        return self
