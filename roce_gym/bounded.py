"""Opening files that may be anything: folders, devices, endless or huge ones."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from roce_gym.errors import TraceFileError

MAX_FILE_BYTES = 2**31
"""Of a file that is read piece by piece."""

MAX_WHOLE_FILE_BYTES = 2**26
"""Of a file that is held in memory."""


def open_bounded(path: str | Path, max_bytes: int = MAX_FILE_BYTES) -> BinaryIO:
    """Opens a regular file of bounded size for reading.

    Anything else (a pipe, a device, a folder) could block, or never end.

    Raises:
        TraceFileError: it is no such file, too large, or cannot be opened.
    """
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise TraceFileError(f"{path}: cannot be read: is not a regular file")
        if status.st_size > max_bytes:
            raise TraceFileError(
                f"{path}: cannot be read: has {status.st_size} bytes; allowed: 0 … {max_bytes}"
            )
        return open(path, "rb")
    except TraceFileError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TraceFileError(f"{path}: cannot be read: {reason}") from None


def read_bounded(path: str | Path, max_bytes: int = MAX_WHOLE_FILE_BYTES) -> bytes:
    """All of a file.

    Raises:
        TraceFileError: as `open_bounded`, or it grew beyond the limit.
    """
    with open_bounded(path, max_bytes) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise TraceFileError(f"{path}: cannot be read: has more than {max_bytes} bytes")
    return content
