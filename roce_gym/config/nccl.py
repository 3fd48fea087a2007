"""NCCL's environment variables, under their names and with their legal values.

Source of meanings, ranges and defaults, unless said otherwise: NVIDIA, "NCCL User Guide",
Environment Variables (docs/userguide/source/env.rst, 2026). What a variable does to a job is in
`docs/training_jobs.md`. Variables without an effect that is simulated are refused, not ignored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import model_validator

from roce_gym.config.fields import Model

STEPS = 8
"""Parts of a channel's buffer: NCCL_STEPS, src/include/device.h."""

_FUNCTIONS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "broadcast": "broadcast",
}
_ALGORITHMS = ("ring", "tree")
_OFFLOADED = ("collnet", "collnetchain", "collnetdirect", "nvls", "nvlstree", "pat")
_PROTOCOLS = ("simple", "ll128", "ll")  # by falling bandwidth

_WIRE = {"simple": (1, 1), "ll128": (16, 15), "ll": (2, 1)}
"""Bytes on the wire a byte of data: LL128 sends 8 bytes of flags with 120 of data, LL 4 with 4."""

_BUFFER_BYTES = {"ll128": 4_915_200, "ll": 524_288}
"""DEFAULT_LL128_BUFFSIZE and DEFAULT_LL_BUFFSIZE, src/init.cc; flags included."""

_NO_EFFECT = {
    "NCCL_IB_SL": "InfiniBand's service level is not used by RoCE; use NCCL_IB_TC",
    "NCCL_IB_FIFO_TC": "messages that return credits are not simulated",
    "NCCL_IB_ADAPTIVE_ROUTING": "all packets are routed alike; use routing.policy",
    "NCCL_IB_AR_THRESHOLD": "all packets are routed alike; use routing.policy",
    "NCCL_P2P_NET_CHUNKSIZE": "what is sent from rank to rank is one message, whatever its size",
    "NCCL_NCHANNELS_PER_NET_PEER": "what is sent from rank to rank uses one connection",
    "NCCL_NCHANNELS_PER_PEER": "what is sent from rank to rank uses one connection",
    "NCCL_NTHREADS": "time inside of GPUs is not simulated",
    "NCCL_IB_GID_INDEX": "addresses are not simulated",
    "NCCL_IB_HCA": "a host has one NIC",
    "NCCL_CROSS_NIC": "a rank sends on the NIC of its own GPU",
    "NCCL_PXN_DISABLE": "a rank sends on the NIC of its own GPU",
}

TRANSPORT = ("NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT", "NCCL_IB_TC")
"""What acts on any queue pair; the others are about collectives."""


class NcclSettings(Model):
    """Values of NCCL's variables for one job; None: as if unset."""

    NCCL_ALGO: str | None = None
    NCCL_PROTO: str | None = None
    NCCL_BUFFSIZE: int | None = None
    NCCL_MIN_NCHANNELS: int | None = None
    NCCL_MAX_NCHANNELS: int | None = None
    NCCL_MIN_CTAS: int | None = None
    NCCL_MAX_CTAS: int | None = None
    NCCL_IB_QPS_PER_CONNECTION: int | None = None
    NCCL_IB_SPLIT_DATA_ON_QPS: int | None = None
    NCCL_IB_TIMEOUT: int | None = None
    NCCL_IB_RETRY_CNT: int | None = None
    NCCL_IB_TC: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _legal(cls, raw: Any) -> Any:
        if isinstance(raw, dict):
            for name, value in raw.items():
                if name in _NO_EFFECT:
                    raise ValueError(f"{name} = {value!r} has no effect here: {_NO_EFFECT[name]}")
                if name in _NUMBERS and value is not None:
                    _require_legal(name, value)
        return raw

    @model_validator(mode="after")
    def _fit(self) -> NcclSettings:
        for function in self._algorithms:
            self.algorithm(_FUNCTIONS.get(function, "all_reduce"))
        _ = self.protocol
        self._require_some_channels()
        return self

    def _require_some_channels(self) -> None:
        least, most = self._bounds
        if least and most and least[0] > most[0]:
            raise ValueError(
                f"{least[1]} = {least[0]} is more than {most[1]} = {most[0]}; allowed: "
                f"1 … {most[0]} with this {most[1]}, or {least[0]} … {_MAX_CHANNELS} for {most[1]}"
            )

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the variables that are set."""
        return tuple(name for name, value in self if value is not None)

    @property
    def _bounds(self) -> tuple[tuple[int, str] | None, tuple[int, str] | None]:
        """Of the number of channels, with names; where two are given, the stricter one counts."""
        least = self._named("NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS")
        most = self._named("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS")
        return max(least, default=None), min(most, default=None)

    def _named(self, *names: str) -> list[tuple[int, str]]:
        """Values that are set, with their names."""
        return [(value, name) for name in names if (value := getattr(self, name)) is not None]

    def channels(self, default: int) -> int:
        """Number of channels of a collective that has `default` of them if nothing is set."""
        least, most = self._bounds
        return min(max(default, least[0] if least else 1), most[0] if most else _MAX_CHANNELS)

    @property
    def protocol(self) -> str:
        """The protocol with the most bandwidth of those allowed: simple, ll128 or ll."""
        allowed = _selection("NCCL_PROTO", self.NCCL_PROTO, _PROTOCOLS, ())
        return next(one for one in _PROTOCOLS if one in allowed["all"])

    @property
    def _algorithms(self) -> dict[str, tuple[str, ...]]:
        return _selection("NCCL_ALGO", self.NCCL_ALGO, _ALGORITHMS, _OFFLOADED)

    def algorithm(self, operation: str) -> str:
        """ring, tree, or auto where nothing or both are asked for.

        NCCL has a tree for all-reduce only, and since 2.24 does not fall back to a ring that is not
        on the list. An all-to-all is made of sends and has no algorithm.

        Raises:
            ValueError: none of the algorithms that are allowed can do the operation.
        """
        function = {name: f for f, name in _FUNCTIONS.items()}.get(operation)
        if function is None or self.NCCL_ALGO is None:
            return "auto"
        chosen = self._algorithms.get(function, self._algorithms["all"])
        if operation != "all_reduce":
            if "ring" not in chosen:
                raise ValueError(
                    f"NCCL_ALGO = {self.NCCL_ALGO!r} leaves no algorithm for {function}; "
                    "allowed for it: ring"
                )
            return "ring"
        return "auto" if len(chosen) == len(_ALGORITHMS) else chosen[0]

    @property
    def slice_bytes(self) -> int:
        """Data that a channel hands to the network at a time: an eighth of its buffer."""
        if self.protocol == "simple":
            return (self.NCCL_BUFFSIZE or 4 * 2**20) // STEPS
        part = _BUFFER_BYTES[self.protocol] // STEPS
        wire, data = _WIRE[self.protocol]
        return part * data // wire

    @property
    def chunk_bytes(self) -> int | None:
        """The same where a variable sets it; None: the algorithm's default."""
        is_set = self.NCCL_BUFFSIZE is not None or self.NCCL_PROTO is not None
        return self.slice_bytes if is_set else None

    def on_wire(self, size: int) -> int:
        """Bytes on the wire for `size` bytes of data."""
        wire, data = _WIRE[self.protocol]
        return -(-size * wire // data)

    @property
    def qps_per_connection(self) -> int:
        """Queue pairs of a connection of two ranks."""
        return self.NCCL_IB_QPS_PER_CONNECTION or 1

    @property
    def splits_data(self) -> bool:
        """Whether each message is split over these queue pairs; else they take turns."""
        return self.NCCL_IB_SPLIT_DATA_ON_QPS == 1

    @property
    def timeout_ps(self) -> int | None:
        """Of retransmission: 4.096 us x 2^t (IBTA volume 1, 9.7.6.1.3); 0: never, None: unset."""
        if self.NCCL_IB_TIMEOUT is None:
            return None
        return 4_096_000 << self.NCCL_IB_TIMEOUT if self.NCCL_IB_TIMEOUT else 0

    @property
    def dscp(self) -> int | None:
        """The upper six bits of the traffic class; the lower two are ECN's (RFC 2474, RFC 3168)."""
        return None if self.NCCL_IB_TC is None else self.NCCL_IB_TC >> 2


EVERY = tuple(NcclSettings.model_fields)


class _Number(NamedTuple):
    """A variable that is a whole number: its legal range, and where that or the meaning is from."""

    low: int
    high: int
    source: str


_MAX_CHANNELS = 64

_CHANNELS = _Number(
    1, _MAX_CHANNELS, "channels a collective (NCCL User Guide: 64 at most since 2.25, before 32)"
)

_NUMBERS = {
    "NCCL_BUFFSIZE": _Number(
        1024,
        2**30,
        "bytes, without a unit: 4194304, not 4M (NCCL User Guide; it has no range, this is the "
        "simulator's)",
    ),
    "NCCL_MIN_NCHANNELS": _CHANNELS,
    "NCCL_MAX_NCHANNELS": _CHANNELS,
    "NCCL_MIN_CTAS": _CHANNELS,
    "NCCL_MAX_CTAS": _CHANNELS,
    "NCCL_IB_QPS_PER_CONNECTION": _Number(
        1, 128, "queue pairs between two ranks (NCCL User Guide)"
    ),
    "NCCL_IB_SPLIT_DATA_ON_QPS": _Number(
        0, 1, "1: each message over all queue pairs, 0: they take turns (NCCL User Guide)"
    ),
    "NCCL_IB_TIMEOUT": _Number(
        0,
        31,
        "it is an exponent, 4.096 us x 2^t, not a time: 14 is 67 ms, 20 is 4.3 s, 22 is 17 s; 0 is "
        "never (NCCL User Guide; 5 bits in IBTA volume 1)",
    ),
    "NCCL_IB_RETRY_CNT": _Number(0, 7, "the field of a queue pair has 3 bits (IBTA volume 1)"),
    "NCCL_IB_TC": _Number(
        0,
        255,
        "it is the whole traffic class byte, DSCP x 4 + ECN: DSCP 26 is 104 or 106 (NCCL User "
        "Guide; RFC 2474, RFC 3168)",
    ),
}


def _require_legal(name: str, value: Any) -> None:
    low, high, source = _NUMBERS[name]
    is_number = isinstance(value, int | str) and not isinstance(value, bool)
    try:
        number = int(value) if is_number else None
    except ValueError:
        number = None
    if number is None or not low <= number <= high:
        raise ValueError(
            f"{name} = {value!r} is not allowed; allowed: whole numbers {low} … {high}; {source}"
        )


def _selection(
    variable: str, text: str | None, known: tuple[str, ...], offloaded: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """What a list such as `ring,tree;broadcast:ring` or `^ll` allows, by function; "all": others.

    Raises:
        ValueError: unknown names, names that are not simulated, or nothing is left.
    """
    allowed = {"all": known}
    for position, entry in enumerate((text or "").lower().replace(" ", "").split(";")):
        if not entry and not text:
            break
        function, colon, listed = entry.rpartition(":")
        if function not in _FUNCTIONS if colon else position > 0:
            raise ValueError(
                f"{variable} = {text!r}: {function or entry!r} is not a function; allowed: "
                f"{', '.join(_FUNCTIONS)}"
            )
        names = listed.removeprefix("^").split(",")
        for name in names:
            if name not in known and name not in offloaded:
                raise ValueError(
                    f"{variable} = {text!r}: {name!r} is unknown; allowed: {', '.join(known)}"
                )
        if listed.startswith("^"):
            chosen = tuple(one for one in known if one not in names)
        else:
            chosen = tuple(one for one in known if one in names)
        if not chosen:
            raise ValueError(
                f"{variable} = {text!r} leaves nothing that is simulated; allowed: "
                f"{', '.join(known)} (switches and NVSwitches do not reduce here)"
            )
        allowed[function or "all"] = chosen
    return allowed
