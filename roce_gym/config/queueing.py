"""What classes must agree on to share ports and buffers: scheduling, pools, shapers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from roce_gym.config.devices import TrafficClass
from roce_gym.config.settings import ShaperConfig

SHARED_POOL = 0
"""Number of the pool for classes without one of their own."""

_ROUNDING = 1e-9
"""By which a sum of shares may miss 1."""


def check_scheduling(classes: Sequence[TrafficClass]) -> None:
    """A port serves its classes that are not strict in one way.

    Raises:
        ValueError: names two classes that contradict each other.
    """
    kinds = {c.scheduling: c.name for c in classes if c.scheduling != "strict"}
    if len(kinds) > 1:
        raise ValueError(
            f"classes.{kinds['dwrr']}.scheduling = 'dwrr' does not go with "
            f"classes.{kinds['round_robin']}.scheduling = 'round_robin'; use one for both"
        )


def pool_numbers(classes: Sequence[TrafficClass]) -> tuple[int, ...]:
    """The pool of each class: SHARED_POOL, or 1, 2, … in order of first mention."""
    known: dict[tuple[str, str], int] = {}
    numbers = []
    for c in classes:
        if c.pool is not None:
            label = ("pool", c.pool)
        elif c.buffer is not None and c.buffer.pool_share is not None:
            label = ("class", c.name)
        else:
            numbers.append(SHARED_POOL)
            continue
        numbers.append(known.setdefault(label, len(known) + 1))
    return tuple(numbers)


def pool_sizes(
    classes: Sequence[TrafficClass],
    numbers: Sequence[int],
    shares: Sequence[float | None],
    room_bytes: int,
) -> list[int]:
    """Bytes of each pool, the shared one first.

    Args:
        classes: of the scenario.
        numbers: of :func:`pool_numbers`.
        shares: `pool_share` of each class.
        room_bytes: buffer less headroom and reserve.

    Raises:
        ValueError: a pool without a share, or shares that leave too little.
    """
    per_pool = [0.0] * (1 + max(numbers, default=0))
    for c, number, share in zip(classes, numbers, shares, strict=True):
        if share is not None and number == SHARED_POOL:
            raise ValueError(
                f"classes.{c.name}.buffer.pool_share = {share}: the class shares its pool with "
                "others; give it a pool_share in the scenario"
            )
        per_pool[number] += share or 0.0
    for c, number in zip(classes, numbers, strict=True):
        if number != SHARED_POOL and per_pool[number] == 0.0:
            raise ValueError(
                f"classes.{c.name}.buffer.pool_share is missing: a pool of its own "
                "(classes.pool, or pool_share in the scenario) needs one"
            )
    total = math.fsum(per_pool)
    if total > 1.0 + _ROUNDING:
        raise ValueError(f"classes.buffer.pool_share: the sum is {total:g}; allowed: at most 1")
    if total > 1.0 - _ROUNDING and SHARED_POOL in numbers:
        name = classes[list(numbers).index(SHARED_POOL)].name
        raise ValueError(
            f"classes.buffer.pool_share: the sum is 1, which leaves nothing for class {name!r}; "
            "lower the shares or give it one"
        )
    sizes = [int(share / max(1.0, total) * room_bytes) for share in per_pool]
    sizes[SHARED_POOL] = room_bytes - sum(sizes[1:]) if SHARED_POOL in numbers else 0
    return sizes


def check_shapers(
    kind: str, shapers: Mapping[str, ShaperConfig | None], largest_packet_bytes: int
) -> None:
    """A bucket must be able to hold every packet.

    Args:
        kind: "classes" or "tenants".
        shapers: by name.
        largest_packet_bytes: least burst.

    Raises:
        ValueError: names the bucket that is too small.
    """
    for name, shaper in shapers.items():
        if shaper is not None and shaper.burst_bytes < largest_packet_bytes:
            raise ValueError(
                f"{kind}.{name}.shaper.burst_bytes = {shaper.burst_bytes} is less than the largest "
                f"frame; allowed: at least {largest_packet_bytes}"
            )
