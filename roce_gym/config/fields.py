"""Kinds of numbers, with the range that makes sense for each."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_PRIORITIES = 8
"""IEEE 802.1Q priority code points."""

MIN_RATE_GBPS = 0.001
MAX_RATE_GBPS = 3200.0
"""Link rates outside of this range are taken for a slip of the pen."""

MAX_VALUE = 1e12
"""No number is larger, so that us in ps and Mb/s in b/s fit into 64 bits."""

Rate = Annotated[float, Field(ge=MIN_RATE_GBPS, le=MAX_RATE_GBPS)]
NonNegative = Annotated[float, Field(ge=0, le=MAX_VALUE)]
Positive = Annotated[float, Field(gt=0, le=MAX_VALUE)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Bytes = Annotated[int, Field(ge=0, le=2**31 - 1)]
Volume = Annotated[int, Field(gt=0, le=2**50)]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
HostId = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Model(BaseModel):
    """Frozen; unknown keys, infinities and NaN are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
