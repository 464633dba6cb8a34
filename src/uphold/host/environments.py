"""The environment a worker is born with, and the program its command names.

Workers do not inherit what the supervisor happens to have: a short list of harmless
variables, what was declared, and uphold's own marks. Starting them is done elsewhere.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.core.names import worker_of
from uphold.errors import HostFailure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from uphold.core.specs import WorkerSpec

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BASE: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"}
)
_SENSITIVE: Final = (
    "UPHOLD_*",
    "LD_PRELOAD",
    "PYTHON*",
    "NOTIFY_SOCKET",
    "WATCHDOG_*",
    "LISTEN_*",
)
"""What changes how a program runs or whom it talks to; a wide pattern does not let it through."""
_MOST_KINDS: Final = 100
NOT_FOUND: Final = "UPH_START_NOT_FOUND"
NOT_EXECUTABLE: Final = "UPH_START_NOT_EXECUTABLE"


class Account(NamedTuple):
    """The user a worker runs as, when that is somebody else than the supervisor."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    name: str = ""
    home: str = "/"
    shell: str = "/bin/sh"


class Environments:
    """Composes environments out of what the supervisor itself was started with."""

    def __init__(self, inherited: Mapping[str, str], notify: str = "") -> None:
        """`notify` is the path of the socket on which workers may speak of themselves."""
        self._inherited = inherited
        self._notify = notify
        self._passed: dict[object, dict[str, str]] = {}
        """What is handed on; the same for all workers that ask for the same."""

    def compose(
        self, spec: WorkerSpec, *, slot: str, nonce: str, account: Account | None = None
    ) -> dict[str, str]:
        """Compose the whole environment of one run."""
        composed = self._handed_on(spec, account).copy()
        if self._notify and "NOTIFY_SOCKET" not in composed:  # named by them: they talk to others
            composed["NOTIFY_SOCKET"] = self._notify
        if spec.heartbeat is not None and not spec.heartbeat.file:
            # Without WATCHDOG_PID: its number is not known before it is born, and libraries
            # take a missing one for "me".
            composed["WATCHDOG_USEC"] = str(int(spec.heartbeat.stale_after * 1_000_000))
        composed.update(spec.environment)
        composed["UPHOLD_WORKER"] = worker_of(slot)
        composed["UPHOLD_SLOT"] = slot
        composed["UPHOLD_NONCE"] = nonce
        if spec.team is not None:
            composed["UPHOLD_TEAM"] = spec.team
        if spec.heartbeat is not None and spec.heartbeat.file:
            composed["UPHOLD_BEAT_FILE"] = spec.heartbeat.file
        return composed

    def _handed_on(self, spec: WorkerSpec, account: Account | None) -> dict[str, str]:
        key = (spec.pass_environment, spec.clear_environment, account)
        passed = self._passed.get(key)
        if passed is None:
            passed = dict(_passed_on(spec, self._inherited))
            if account is not None and account.name:
                _follow_user(passed, account, everything=not spec.clear_environment)
            if not spec.clear_environment:
                passed.setdefault("PATH", DEFAULT_PATH)
            if len(self._passed) >= _MOST_KINDS:
                self._passed.clear()
            self._passed[key] = passed
        return passed


def find_program(command: str, path: str | None, working_dir: str) -> str:
    """Find what a command names, with the worker's own PATH and from its own folder."""
    candidates = _candidates(command, path, working_dir)
    for candidate in candidates:
        # In this order: most folders of a PATH are plainly without it, and this is the way of
        # each start.
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate):  # noqa: PTH113
            return candidate
    files = [candidate for candidate in candidates if os.path.isfile(candidate)]  # noqa: PTH113
    if files:
        raise HostFailure(
            f"'{files[0]}' is not executable.",
            code=NOT_EXECUTABLE,
            remedy=f"chmod +x {files[0]}, or name its interpreter in the command.",
        )
    raise HostFailure(_not_found(command, path, working_dir), code=NOT_FOUND)


def _candidates(command: str, path: str | None, working_dir: str) -> list[str]:
    if "/" in command:
        return [os.path.join(working_dir, command)]  # noqa: PTH118 - a Path would cost more
    folders = (DEFAULT_PATH if path is None else path).split(":")
    return [
        f"{folder}/{command}" if folder[:1] == "/" else f"{working_dir}/{folder or '.'}/{command}"
        for folder in folders
    ]


def _not_found(command: str, path: str | None, working_dir: str) -> str:
    if "/" in command:
        return f"there is no program '{command}' (looked from {working_dir})."
    where = DEFAULT_PATH if path is None else path
    return f"there is no program '{command}' in the worker's PATH ({where})."


def _passed_on(spec: WorkerSpec, inherited: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    exact = {name for name in spec.pass_environment if not name.endswith("*")}
    prefixes = [name[:-1] for name in spec.pass_environment if name.endswith("*")]
    for name, value in inherited.items():
        base = not spec.clear_environment and (name in BASE or name.startswith("LC_"))
        if base or name in exact or any(_reaches(prefix, name) for prefix in prefixes):
            yield name, value


def _reaches(prefix: str, name: str) -> bool:
    """Tell whether a pattern passes a name on; a sensitive one only if the pattern is as narrow."""
    if not name.startswith(prefix):
        return False
    for pattern in _SENSITIVE:
        stem = pattern.rstrip("*")
        if name == pattern or (pattern.endswith("*") and name.startswith(stem)):
            return prefix.startswith(stem)
    return True


def _follow_user(passed: dict[str, str], account: Account, *, everything: bool) -> None:
    """Replace what describes the supervisor's user by what describes the worker's."""
    own = {
        "HOME": account.home,
        "USER": account.name,
        "LOGNAME": account.name,
        "SHELL": account.shell,
    }
    for name, value in own.items():
        if everything or name in passed:
            passed[name] = value
