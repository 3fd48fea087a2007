"""The one place that decides how kernels are compiled.

`helper` is for functions called by kernels: inlined by LLVM and compiled without Numba's
reference counting, which the kernels do not need as they never create or keep an array. Both
together make the event loop ten to twenty times faster than Numba's defaults.

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
from numba import njit

logger = logging.getLogger(__name__)

_COMMON: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": False,
    "_nrt": False,
}
_SLOW_COMPILE_S = 1.5

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

helper: Decorator = njit(forceinline=True, **_COMMON)
"""For what runs for every packet."""

rare: Decorator = njit(**_COMMON)
"""For what runs once a message or less: not inlined, which keeps compilation short."""


def source_hash() -> int:
    """Hash over every source file of the package, in a fixed order; 60 bits."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return int(digest.hexdigest()[:15], 16)


def entry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function called from Python; cached on disk where some folder can be written."""
    if numba.config.DISABLE_JIT:
        return function
    try:
        compiled = njit(cache=True, **_COMMON)(function)
    except RuntimeError:  # no folder for the cache can be written
        logger.warning("no writable cache folder: the simulator is compiled in every process")
        compiled = njit(**_COMMON)(function)
    return compiled


def call_announced(kernel: Callable[..., Any], *args: Any) -> Any:
    """Calls a kernel for the first time and says so if it has to be compiled."""
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
        return kernel(*args)
    finally:
        notice.cancel()
