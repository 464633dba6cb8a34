"""Looking whether everything is there that must be on a share (helper's side). Stands alone."""

from __future__ import annotations

import os
import stat

from uphold.inbox.shelves import put
from uphold.inbox.trusting import user_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from uphold.inbox.folders import Top

_PROBE = ".uphold-can-write"


def survey(top: Top, paths: list[str]) -> dict[str, Any]:
    """Look at every folder; each finding has its own error, and none hides another."""
    return {
        "paths": {path: _entered(top, path) for path in paths},
        "inbox": _named(top, "inbox"),
        "kept_by": _kept_by(top),
        "outbox": _named(top, "outbox"),
        "logs": _writable(top, "logs"),
        "space": _space(top),
    }


def _entered(top: Top, path: str) -> str | None:
    try:
        folder, name = top.parent_of(path)
        here = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError as cause:
        return cause.strerror
    try:
        with os.scandir(here) as entries:
            next(entries, None)
    except OSError as cause:
        return cause.strerror
    finally:
        os.close(here)
    return None


def _named(top: Top, name: str) -> str | None:
    try:
        top.folder(name)
    except OSError as cause:
        return cause.strerror
    return None


def _kept_by(top: Top) -> str | None:
    """Tell whose the inbox is, if that keeps us from moving the files of others out of it."""
    try:
        found = os.fstat(top.folder("inbox"))
    except OSError:
        return None
    ours = os.geteuid() in {0, found.st_uid}
    return None if ours or not found.st_mode & stat.S_ISVTX else user_of(found.st_uid)


def _writable(top: Top, name: str) -> str | None:
    """Try it: what permissions say is not what every file system does."""
    try:
        folder = top.folder(name)
        put(folder, _PROBE, b"")
        os.unlink(_PROBE, dir_fd=folder)
    except OSError as cause:
        return cause.strerror
    return None


def _space(top: Top) -> dict[str, Any] | None:
    try:
        found = os.statvfs(top.descriptor)
    except OSError:
        return None
    total = found.f_blocks * found.f_frsize
    free = found.f_bavail * found.f_frsize
    used = total - found.f_bfree * found.f_frsize
    percent = round(100 * free / total, 1) if total else None
    return {"total": total, "used": used, "free": free, "percent_free": percent}
