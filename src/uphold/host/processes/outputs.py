"""Where a worker's output goes: a FIFO that the pump empties, or straight into a log file.

The supervisor keeps one descriptor of each FIFO, so that nothing in it is lost while neither
worker nor pump has it open. Moving the bytes is the pump's business.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from uphold.errors import HostFailure
from uphold.host.processes.slotlocks import above_standard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from uphold.core.specs import Logs
    from uphold.host.environments import Account
    from uphold.host.homes import Home

_FIFO: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_FORMS: Final = (".idx", ".gz", "")
"""What a log may have at each place: the index of its times, and its lines, packed or not."""
_CURRENT: Final = (".idx", "")
_FILE: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Outputs:
    """The output channels of all slots of a home."""

    def __init__(
        self,
        home: Home,
        on_fifo: Callable[[str], None] | None = None,
        *,
        straight: bool = False,
    ) -> None:
        """`straight` sends all output to files, whatever a spec says: there will be no pump."""
        self._home = home
        self._straight = straight
        self._on_fifo = on_fifo
        self._kept: dict[str, tuple[int, ...]] = {}

    def open(
        self, slot: str, logs: Logs, account: Account | None, *, rotating: bool = True
    ) -> list[int]:
        """Open what a new run writes to: one descriptor, or two when its streams are split.

        Each run gets a fresh open: what one worker does to its descriptor (non-blocking mode,
        say) must not reach the next.
        """
        streams = ("out", "err") if logs.split else ("out",)
        if self._straight or logs.mode == "file":
            paths = [self._home.log(slot, stream) for stream in streams]
            for path in paths if rotating else ():
                rotate(path, logs)
            return _open_all(paths, _FILE, account)
        fifos = [self._home.fifo(slot, stream) for stream in streams]
        fresh = [_make_fifo(path) for path in fifos if not _is_fifo(path)]
        opened = _open_all(fifos, _FIFO, account)
        if fresh or len(self._kept.get(slot, ())) != len(fifos):
            try:
                self._keep(slot, opened)
            except OSError:
                _close_all(opened)
                raise
            # An old FIFO too: whoever read it may have let go while nobody held it.
            if self._on_fifo is not None:
                self._on_fifo(slot)
        return opened

    def keep(self, slot: str) -> None:
        """Hold the FIFOs of a slot that was adopted, if it has any."""
        if self._straight:
            return  # a pump that still empties them shall see when their worker has ended
        paths = [self._home.fifo(slot, stream) for stream in ("out", "err")]
        opened: list[int] = []
        for path in paths:
            with suppress(OSError):
                if _is_fifo(path):
                    opened.append(os.open(path, _FIFO))
        try:
            self._keep(slot, opened)
        finally:
            _close_all(opened)
        if opened and self._on_fifo is not None:
            # A worker of a single pass does not write to it: until now nobody held it, and
            # whoever looked into it has let go again.
            self._on_fifo(slot)

    @property
    def held(self) -> Iterable[str]:
        """Name the slots whose FIFOs are held."""
        return self._kept

    def release(self, slot: str) -> None:
        """Let go of the FIFOs of a slot that will not run again."""
        _close_all(self._kept.pop(slot, ()))

    def close(self) -> None:
        """Let go of everything."""
        for slot in list(self._kept):
            self.release(slot)

    def _keep(self, slot: str, opened: list[int]) -> None:
        kept: list[int] = []
        try:
            kept.extend(map(os.dup, opened))
        except OSError:
            _close_all(kept)
            raise
        self.release(slot)
        if kept:
            self._kept[slot] = tuple(kept)


def rotate(path: Path, logs: Logs) -> None:
    """Move a log that has grown too large aside; only ever done while nobody writes to it."""
    try:
        if path.lstat().st_size <= logs.max_size:
            return
    except FileNotFoundError:
        return
    _remove(path, logs.keep)
    for number in range(logs.keep - 1, -1, -1):
        _move(path, number)


def _move(path: Path, number: int) -> None:
    """Move one log up a place, as the pump would: packed or not, its index first."""
    for form in _FORMS if number else _CURRENT:
        with suppress(FileNotFoundError):
            _numbered(path, number, form).replace(_numbered(path, number + 1, form))


def _remove(path: Path, number: int) -> None:
    for form in _FORMS if number else _CURRENT:
        _numbered(path, number, form).unlink(missing_ok=True)


def _numbered(path: Path, number: int, form: str) -> Path:
    place = f".{number}" if number else ""
    return path.with_name(f"{path.name}{place}{form}")


def _is_fifo(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _make_fifo(path: str) -> str:
    """Make a FIFO where there is none, and give its name."""
    try:
        os.mkfifo(path, 0o600)
    except FileExistsError:
        raise HostFailure(
            f"{path} is in the way: it should carry a worker's output and is not a FIFO.",
            code="UPH_START_NO_OUTPUT",
            remedy=f"Look at what it is and remove it: rm {path}.",
        ) from None
    return path


def _open_all(paths: Sequence[str | Path], flags: int, account: Account | None) -> list[int]:
    opened: list[int] = []
    try:
        for path in paths:
            opened.append(above_standard(os.open(path, flags, 0o600)))
            _give(opened[-1], account)
    except BaseException:
        _close_all(opened)
        raise
    return opened


def _give(descriptor: int, account: Account | None) -> None:
    """Make it the worker's own, so that it can open /dev/stdout again."""
    uid = os.geteuid() if account is None else account.uid
    if os.fstat(descriptor).st_uid != uid:
        os.fchown(descriptor, uid, -1)


def _close_all(descriptors: list[int] | tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
