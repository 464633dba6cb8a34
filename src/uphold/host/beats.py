"""Heartbeat files: read without being led astray, kept waiting or made to swallow too much.

The content is somebody else's business: `decode` is handed in. May be called in a thread.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from uphold.core.notices import MISSING, Beat, FileBeat, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    Decode = Callable[[bytes], Beat | Refused]

LONGEST: Final = 1 << 16
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_beat(path: str, decode: Decode) -> FileBeat | Refused:
    """Read one file; Refused says why it is not believed, `missing` included."""
    try:
        descriptor = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return Refused(MISSING, f"there is no heartbeat file {path}.")
    except OSError as cause:
        # A link gives ELOOP, a socket ENXIO.
        return Refused("unreadable", f"the heartbeat file {path} is not read: {cause.strerror}.")
    try:
        return _read(path, descriptor, decode)
    except OSError as cause:
        return Refused("unreadable", f"the heartbeat file {path} is not read: {cause.strerror}.")
    finally:
        os.close(descriptor)


def _read(path: str, descriptor: int, decode: Decode) -> FileBeat | Refused:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return Refused("not-a-file", f"the heartbeat file {path} is not a regular file.")
    if status.st_size > LONGEST:
        return Refused("too-large", f"the heartbeat file {path} has more than {LONGEST} bytes.")
    content = b""
    while len(content) <= LONGEST and (part := os.read(descriptor, LONGEST + 1 - len(content))):
        content += part
    beat = decode(content)
    if isinstance(beat, Refused):
        return Refused(beat.reason, f"the heartbeat file {path} is not believed: {beat.text}")
    return FileBeat(beat=beat, modified=status.st_mtime)
