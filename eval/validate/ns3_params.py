"""Parameters of a reference run, and which runs this simulator can repeat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from eval.validate.ns3_rng import M2
from roce_gym.config import AlgorithmName
from roce_gym.errors import TraceFileError
from roce_gym.faults import explain

_ALGORITHMS: dict[int, AlgorithmName] = {1: "dcqcn", 3: "hpcc", 7: "timely"}
_CC_NONE = 0

_Switch = Annotated[int, Field(ge=0, le=1)]
_Micros = Annotated[float, Field(ge=1, le=1e9)]
_Map = dict[int, Annotated[float, Field(ge=0, le=1e6)]]


class Parameters(BaseModel):
    """The settings of a run that matter here; names, units as in the reference's `params.json`.

    Attributes:
        cc_mode: 0 none, 1 DCQCN, 3 HPCC, 7 TIMELY.
        has_window, follows_rate: 1: a window of one BDP, in proportion to the rate.
        int_multi: bytes in telemetry are in multiples of this many of its units.
        ecn: 1: switches mark and senders listen.
        kmin_kb, kmax_kb, pmax: by link rate in bit/s; 1 KB = 1,000 bytes.
        buffer_mib: per switch.
        pfc_shift: a port at host rate may take 2^-shift of what is free.
        picoseconds: 1: the clock counts picoseconds, else nanoseconds.
        seed: of its random number generator.
        stop_s: end of the run, if it does not end with the last flow.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    cc_mode: int = Field(alias="CC_MODE")
    ecn: _Switch = Field(alias="ENABLE_QCN")
    dynamic_threshold: _Switch = Field(1, alias="USE_DYNAMIC_PFC_THRESHOLD")
    has_window: _Switch = Field(0, alias="HAS_WIN")
    follows_rate: _Switch = Field(0, alias="VAR_WIN")
    global_rtt: _Switch = Field(1, alias="GLOBAL_T")
    fast_react: _Switch = Field(0, alias="FAST_REACT")
    per_hop_rate: _Switch = Field(0, alias="MULTI_RATE")
    sample_feedback: _Switch = Field(0, alias="SAMPLE_FEEDBACK")
    rate_bound: _Switch = Field(1, alias="RATE_BOUND")
    target_utilisation: Annotated[float, Field(gt=0, le=1)] = Field(0.95, alias="U_TARGET")
    max_stage: Annotated[int, Field(ge=0)] = Field(0, alias="MI_THRESH")
    int_multi: Annotated[int, Field(ge=1, le=1024)] = Field(1, alias="INT_MULTI")
    back_to_zero: _Switch = Field(0, alias="L2_BACK_TO_ZERO")
    switch_ack_high_prio: _Switch = Field(0, alias="SWITCH_ACK_HIGH_PRIO")
    ack_high_prio: _Switch = Field(alias="ACK_HIGH_PRIO")
    alpha_interval_us: _Micros = Field(alias="ALPHA_RESUME_INTERVAL")
    decrease_interval_us: _Micros = Field(alias="RATE_DECREASE_INTERVAL")
    increase_timer_us: _Micros = Field(alias="RP_TIMER")
    clamp_target_rate: _Switch = Field(alias="CLAMP_TARGET_RATE")
    g: Annotated[float, Field(gt=0, le=1)] = Field(alias="EWMA_GAIN")
    fast_recovery_times: Annotated[int, Field(ge=0, le=31)] = Field(alias="FAST_RECOVERY_TIMES")
    rate_ai: str = Field(alias="RATE_AI")
    rate_hai: str = Field(alias="RATE_HAI")
    min_rate: str = Field(alias="MIN_RATE")
    link_loss: Annotated[float, Field(ge=0, lt=1)] = Field(0.0, alias="ERROR_RATE_PER_LINK")
    payload_bytes: Annotated[int, Field(gt=0)] = Field(alias="PACKET_PAYLOAD_SIZE")
    kmin_kb: _Map = Field(alias="KMIN_MAP")
    kmax_kb: _Map = Field(alias="KMAX_MAP")
    pmax: _Map = Field(alias="PMAX_MAP")
    buffer_mib: Annotated[int, Field(gt=0)] = Field(alias="BUFFER_SIZE")
    pfc_shift: Annotated[int, Field(ge=0, le=30)] = Field(alias="PFC_SHIFT")
    picoseconds: _Switch = Field(0, alias="RES_PS")
    seed: Annotated[int, Field(ge=1, lt=M2)] = Field(1, alias="RNG_SEED")
    stop_s: Annotated[float, Field(gt=0, le=1e3)] = Field(alias="SIMULATOR_STOP_TIME")

    @property
    def stop_ps(self) -> int:
        """End of the run."""
        return round(self.stop_s * 10**12)

    @property
    def algorithm(self) -> AlgorithmName | None:
        """Of the senders."""
        return _ALGORITHMS.get(self.cc_mode)

    @property
    def has_dcqcn(self) -> bool:
        """Whether senders react to marks."""
        return self.algorithm == "dcqcn"

    @property
    def marks_at_random(self) -> bool:
        """Whether switches draw random numbers to mark."""
        return self.ecn == 1 and any(
            self.kmax_kb.get(rate, low) > low and self.pmax.get(rate, 0.0) > 0
            for rate, low in self.kmin_kb.items()
        )

    @property
    def settings(self) -> str:
        """All that decides the run but the seed; equal for runs that differ in this only."""
        return self.model_dump_json(exclude={"seed"})

    def is_start_of(self, other: Parameters) -> bool:
        """Whether `other` is the same run, but ends later."""
        rest = {"stop_s"}
        same = self.model_dump(exclude=rest) == other.model_dump(exclude=rest)
        return same and self.stop_s < other.stop_s


def read_parameters(path: Path) -> dict[str, Parameters]:
    """The parameters of all variants that this simulator can run, in file order.

    Raises:
        TraceFileError: names file, variant and parameter.
    """
    try:
        raw: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TraceFileError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise TraceFileError(f"{path}: is not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise TraceFileError(f"{path}: must map variants to their parameters")
    out = {}
    for variant, values in raw.items():
        if isinstance(values, dict) and not _is_supported(values):
            continue
        out[variant] = parse_parameters(f"{path}: {variant}", values)
    return out


def parse_parameters(place: str, values: Any) -> Parameters:
    """Parameters by their names in the reference.

    Raises:
        TraceFileError: begins with `place`, names the parameter.
    """
    try:
        return Parameters.model_validate(values)
    except ValidationError as error:
        raise TraceFileError(f"{place}: {explain(error)}") from None


def _is_supported(values: dict[str, Any]) -> bool:
    """Whether this simulator has the congestion control of the run."""
    mode = values.get("CC_MODE", _CC_NONE)
    return mode == _CC_NONE or mode in _ALGORITHMS
