"""The one place that decides how kernels are compiled.

`helper` is for functions called by kernels and inlined by LLVM. Neither these nor the `rare` ones
can be called from Python: making them callable is a fifth of the compile time.

`entry` is for the few functions called from Python: cached on disk. Numba's cache notices edits of
a function's own file only, so the cache key of an entry kernel is made to depend on every source
file of this package (a variable of the enclosing scope is part of the key).
"""

from __future__ import annotations

import hashlib
import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import njit

from roce_gym.sim.prune import Compiler

logger = logging.getLogger(__name__)

_COMMON: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": False,
    "pipeline_class": Compiler,
}
_INNER: dict[str, Any] = {**_COMMON, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_SLOW_COMPILE_S = 1.5

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

helper: Decorator = njit(forceinline=True, **_INNER)
"""For what runs for every packet."""

rare: Decorator = njit(forceinline=False, **_INNER)
"""For what runs once a message or less: LLVM decides, which keeps compilation short.

Numba lets a function inherit `forceinline` from its caller where it is not said otherwise."""


def source_hash() -> int:
    """Hash over every source file of the package, in a fixed order; 60 bits."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return int(digest.hexdigest()[:15], 16)


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function called from Python; cached on disk where some folder can be written."""
    if numba.config.DISABLE_JIT:
        return np.errstate(over="ignore")(function)  # rng.py means its overflows
    try:
        compiled = njit(cache=True, **_COMMON)(function)
    except RuntimeError:  # no folder for the cache can be written
        logger.warning("no writable cache folder: the simulator is compiled in every process")
        compiled = njit(**_COMMON)(function)
    return compiled


def call_announced(kernel: Callable[..., Any], *args: Any) -> Any:
    """Calls a kernel for the first time and says so if it has to be compiled."""
    if not numba.config.DISABLE_JIT:
        _compile_announced(kernel, tuple(numba.typeof(arg) for arg in args))
    return kernel(*args)


def _compile_announced(kernel: Any, signature: tuple[Any, ...]) -> None:
    notice = threading.Timer(
        _SLOW_COMPILE_S,
        lambda: print(
            "roce-gym: compiling the simulator (once per installation) …",
            file=sys.stderr,
            flush=True,
        ),
    )
    notice.daemon = True
    notice.start()
    try:
        kernel.compile(signature)
    finally:
        notice.cancel()
