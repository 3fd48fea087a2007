"""Where results are remembered on disk, and how a file appears there whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

CACHE_VARIABLE = "ROCE_GYM_CACHE"


def cache_folder() -> Path | None:
    """`ROCE_GYM_CACHE` if set (None if set to nothing), else the platform's folder for caches."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(home / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(home / ".cache")
    return Path(base) / "roce_gym"


def write_whole(path: Path, text: str) -> None:
    """Writes a file whole or not at all; where nothing can be written, nothing happens."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
