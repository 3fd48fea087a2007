"""Programmable congestion control: a function of yours decides on the rate of queue pairs.

A tenant with `cc: user` has a function of the form

    @njit
    def my_sender(event, state, params):
        ...
        return rate

It is called for every event of every queue pair of the tenant, and returns the rate from then on,
as a share of line rate: 0.5 is half of it. Rates below `min_rate_mbps` (and NaN) are that, rates
above `max_rate_mbps` or the line are those.

    event     a record. To read: `event["kind"]`, one of CNP, TX, ACK, NACK, TIMER (below);
              `now_ps`; `rtt_ps`, of ACK and NACK: since the acknowledged packet was sent;
              `acked_bytes`, of ACK and NACK: of the queue pair, since its beginning; `bytes`, of
              TX: of the packet just sent; `line_bps`; `rate`, as it is, share of `line_bps`.
              To write: `event["timer_ps"]`: a TIMER event comes after that time, in place of one
              set before; at least 1 ns; negative: no TIMER any more.
    state     6 float64 of the queue pair, 0 at first; keep there what you like
    params    8 float64, the tenant's `params`, which settings can change during a run

The function is compiled once in each process, with x / 0 = inf or NaN as in the simulator; the
simulator itself is not compiled anew. Functions that it calls keep their own options.

Source: the events, the per-flow context of some words and the rate as a share of line rate are
those of NVIDIA's DOCA PCC for BlueField-3 and ConnectX-8 NICs.
"""

from __future__ import annotations

import importlib.util
import inspect
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from numba import carray, cfunc, njit, types
from numba.core.errors import NumbaError
from numba.np import numpy_support

from roce_gym.config import Scenario, UserConfig
from roce_gym.errors import ConfigError
from roce_gym.sim import types as t
from roce_gym.sim.cc import user

TIMER, CNP, TX, ACK, NACK = (
    int(kind) for kind in (t.USER_TIMER, t.USER_CNP, t.USER_TX, t.USER_ACK, t.USER_NACK)
)
"""Kinds of events: as in DOCA PCC; TIMER is our own."""

_WORDS = types.CPointer(types.float64)
_SIGNATURE = types.float64(types.CPointer(numpy_support.from_dtype(t.USER_EVENT)), _WORDS, _WORDS)
_FORM = "f(event, state, params) that returns a number"

_modules: dict[tuple[str, bytes], ModuleType] = {}
_compiled: dict[Any, tuple[int, Any]] = {}
"""Address of each function, and what has to live as long as that."""

_lock = threading.RLock()
"""Two fabrics may be built at once; a function must not get two addresses."""


def bind(scenario: Scenario, state: t.State) -> None:
    """Writes the addresses of the tenants' functions, which differ from process to process.

    Raises:
        ConfigError: a file or function that cannot be used; names the field.
    """
    for i, tenant in enumerate(scenario.tenants):
        if tenant.cc == "user" and tenant.user is not None:
            function = find(tenant.user, f"tenants.{tenant.name}.user")
            state.user_code[i] = _address(function, f"tenants.{tenant.name}.user.function")


def find(config: UserConfig, field: str) -> Callable[..., Any]:
    """The function that is meant.

    Raises:
        ConfigError: the file cannot be loaded or has no such function.
    """
    if config.file is None:
        given: Callable[..., Any] = config.function
        return given
    module = _load(config.file, field)
    function = getattr(module, config.function, None)
    if not callable(function):
        names = [n for n, x in vars(module).items() if callable(x) and not n.startswith("_")]
        raise ConfigError(
            f"{field}.function = {config.function!r} is not a function of {config.file}; "
            f"allowed: {', '.join(names) or 'none'}"
        )
    found: Callable[..., Any] = function
    return found


def _load(file: str, field: str) -> ModuleType:
    """Runs a file as a module; once, as long as it does not change."""
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{field}.file = {file!r} cannot be read: {error.strerror}") from None
    key = (str(Path(file).absolute()), content)
    with _lock:
        return _module(key, file, field)


def _module(key: tuple[str, bytes], file: str, field: str) -> ModuleType:
    if key not in _modules:
        spec = importlib.util.spec_from_file_location(Path(file).stem, file)
        if spec is None or spec.loader is None:
            raise ConfigError(f"{field}.file = {file!r} is not allowed; allowed: a .py file")
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise ConfigError(f"{field}.file = {file!r} cannot be loaded: {error!r}") from None
        _modules[key] = module
    return _modules[key]


def _address(function: Any, field: str) -> int:
    with _lock:
        if function not in _compiled:
            if numba.config.DISABLE_JIT:
                code = len(_compiled) + 1
                user.FUNCTIONS[code] = function
                _compiled[function] = (code, function)
            else:
                compiled = _compile(function, field)
                _compiled[function] = (int(compiled.address), compiled)
        return _compiled[function][0]


def _compile(function: Any, field: str) -> Any:
    plain = getattr(function, "py_func", function)
    _require_form(plain, field)
    inner = njit(error_model="numpy")(plain)

    def sender(event: Any, state: Any, params: Any) -> Any:
        words = carray(state, (user.USER_STATE_WORDS,))
        return inner(carray(event, (1,))[0], words, carray(params, (user.USER_PARAM_WORDS,)))

    try:
        return cfunc(_SIGNATURE)(sender)
    except (NumbaError, TypeError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in lines if not line.startswith("Failed in")), lines[0])
        name = getattr(function, "__name__", repr(function))
        raise ConfigError(
            f"{field} = {name!r} does not compile: {reason}; needed: {_FORM}"
        ) from None


def _require_form(function: Any, field: str) -> None:
    """Can be called with three arguments; whether they are what it expects, the compiler tells."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # not of Python
    try:
        signature.bind(None, None, None)
    except TypeError:
        name = getattr(function, "__name__", repr(function))
        raise ConfigError(f"{field} = {name!r} takes {signature}; needed: {_FORM}") from None
