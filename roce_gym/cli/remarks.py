"""What the numbers of a run do not say by themselves, as warnings and notes below them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from roce_gym.cli.text import number


def remarks(found: dict[str, Any]) -> list[str]:
    """Warnings, and notes about the jobs, of what :mod:`roce_gym.cli.run` found."""
    warnings = [f"warning: {warning['text']}" for warning in found["warnings"]]
    return warnings + [
        f"note: {text}"
        for tenant, numbers in found["tenants"].items()
        for job in numbers["jobs"]
        for text in _of_job(f"{tenant} ({job['kind']})", job, found["horizon_us"])
    ]


def _of_job(name: str, job: dict[str, Any], horizon_us: float) -> Iterator[str]:
    """A round that is late but does not count, as it has not ended; and what never began."""
    age_us = job["round_under_way_us"]
    if age_us is not None and age_us > (job["cct_max_us"] or job["cct_alone_us"] or 0.0):
        yield f"a round of {name} has been under way for {number(age_us)} us and is not counted"
    after = job["starts_after_end"]
    if after is None:
        return
    end = f"the end of the run at {number(horizon_us)} us"
    first, last = number(after["first_us"]), number(after["last_us"])
    if job["flows"] is None:
        yield (
            f"{name} begins nothing before {end}, its first round at {first} us at the earliest; "
            f"set --duration-us or control.horizon_us above that"
        )
        return
    when = f"at {first} us" if first == last else f"from {first} to {last} us"
    yield (
        f"{number(after['count'])} of {number(job['flows'])} flows of {name} start after {end}, "
        f"{when}; set --duration-us or control.horizon_us above {last}"
    )
