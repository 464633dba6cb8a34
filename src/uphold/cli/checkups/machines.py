"""The machine: interpreter, kernel, limits and clock."""

from __future__ import annotations

import os
import platform
import resource
import sys
from typing import TYPE_CHECKING, Final

from uphold.cli.checkups.findings import Finding, fail, ok, warn
from uphold.cli.times import now
from uphold.core.times import parse_utc, utc_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_OLDEST_PYTHON: Final = (3, 11)
_OLDEST_SQLITE: Final = (3, 35)
_FOR_ITSELF: Final = 64
"""Descriptors that a supervisor needs without any worker, with room to spare."""
_FOR_EACH: Final = 4
"""For each slot: its process, its output twice, and one in passing while it is started."""
_FROM: Final = parse_utc("2025-01-01")
_UNTIL: Final = parse_utc("2100-01-01")
_TOLERANCE: Final = 120.0


def interpreter() -> Iterator[Finding]:
    """Look at what uphold itself runs on."""
    shown = f"Python {platform.python_version()} ({sys.executable})"
    if sys.version_info < _OLDEST_PYTHON:
        yield fail("python", f"{shown} is too old.", "Use Python 3.11 or later.")
    else:
        yield ok("python", f"{shown}.")
    from uphold.journal.connecting import SQLITE_VERSION

    number = ".".join(map(str, SQLITE_VERSION))
    if SQLITE_VERSION < _OLDEST_SQLITE:
        yield warn("sqlite", f"{number} is older than any that was tried.", "Use a newer Python.")
    else:
        yield ok("sqlite", f"{number}.")


def kernel() -> Iterator[Finding]:
    """Look at what this kernel can do for us, by trying it."""
    from uphold.host.processes import containment

    release = f"{os.uname().sysname} {os.uname().release}"
    try:
        found = containment()
    except (AttributeError, OSError) as cause:
        yield fail(
            "kernel",
            f"{release} gives no handle to a process (pidfd): {cause}.",
            "Linux 5.4 or later is needed; in a container, let pidfd_open through seccomp.",
        )
        return
    if found.sure_identity:
        yield ok("kernel", f"{release}: a process number is never mistaken for another (pidfd).")
    else:
        yield warn(
            "kernel",
            f"{release}: a process number that is used again is told apart by its start only.",
            "Linux 6.9 and later tell for sure.",
        )
    if found.exits_of_adopted:
        yield ok("exits", "those of adopted workers can be read (PIDFD_GET_INFO).")
    else:
        yield warn(
            "exits",
            "how a worker ended cannot be read if an earlier supervisor started it.",
            "Linux 6.15 and later can tell. Such an end counts as a failure.",
        )
    yield _reaping()
    yield _containment(found.means, found.gap)


def _reaping() -> Finding:
    from uphold.host.processes import can_reap

    if can_reap():
        return ok("orphans", "what workers leave behind comes to the supervisor (sub-reaper).")
    return warn(
        "orphans",
        "what workers leave behind goes to process 1.",
        "Allow prctl(PR_SET_CHILD_SUBREAPER), or let process 1 reap.",
    )


def _containment(means: str, gap: str) -> Finding:
    from uphold.host.processes.hierarchies import find_hierarchies

    if find_hierarchies().tree is not None:
        text = "level A for workers with containment = 'group' (control groups can be made)"
        return ok("containment", f"{text}, else level B ({means}).")
    return ok(
        "containment",
        f"level B: {means}. What could escape is {gap}; control groups cannot be made here.",
    )


def news_of_files(config: str) -> Iterator[Finding]:
    """Look whether the kernel tells of edits to the configuration."""
    from uphold.config.inotify import FolderNews, entries_of

    try:
        FolderNews(entries_of(config)).close()
    except OSError as cause:
        yield warn(
            "inotify",
            f"edits of {config} are not told by the kernel: {cause}.",
            "It is looked at once a second instead. See fs.inotify.max_user_instances.",
        )
    else:
        yield ok("inotify", "edits of the configuration are noticed at once.")


def limits(slots: int) -> Iterator[Finding]:
    """Look whether enough files may be open for this many slots."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    needed = _FOR_ITSELF + _FOR_EACH * slots
    shown = f"{soft} (up to {'any number' if most == sys.maxsize else hard})"
    text = f"{shown} may be open; {slots} slots need about {needed}."
    remedy = "Raise it: ulimit -Hn, LimitNOFILE= of the service, or --ulimit of the container."
    if most < needed:
        yield fail("open files", text, remedy)
    elif most < needed * 2:
        yield warn("open files", text, remedy)
    else:
        yield ok("open files", text)


def clock(home: str) -> Iterator[Finding]:
    """Look whether the clock can be right."""
    at = now()
    shown = utc_text(at)[:19] + "Z"
    remedy = "Set the clock (timedatectl, chrony); waits do not go by it, cron and logs do."
    if not _FROM <= at <= _UNTIL:
        yield fail("clock", f"it says {shown}, which cannot be.", remedy)
        return
    newest = max((_changed(f"{home}/{name}") for name in ("lock", "journal.db")), default=0.0)
    if newest > at + _TOLERANCE:
        ahead = utc_text(newest)[:19] + "Z"
        yield warn("clock", f"it says {shown}; this home was written to at {ahead}.", remedy)
    else:
        yield ok("clock", f"{shown}.")


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - text is enough
    except OSError:
        return 0.0
