"""What a trace may ask for; more is refused before memory is spent on it."""

from __future__ import annotations

MAX_RANKS = 2**17
MAX_OPS = 2**23
"""Operations of a trace: 16,384 ranks with 512 each; about 0.5 GB in arrays."""

MAX_DEPENDENCIES = 2**24
MAX_COLLECTIVES = 2**20
"""Collectives of a trace, each with its own list of ranks or a shared one."""

MAX_MEMBERS = 2**24
"""Ranks of all collectives, each counted once for each collective that it is in."""

MAX_MESSAGE_BYTES = 2**50
MAX_DURATION_PS = 2**50
"""Of one computation: 18 minutes."""

MAX_LINE_BYTES = 2**12
MAX_RECORD_BYTES = 2**22
MAX_TAG = 2**32 - 1
MAX_CHANNELS = 2**15 - 1
MAX_FLOWS = 2**20
"""Of a Poisson process: each has a queue pair of its own."""
