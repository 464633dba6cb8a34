"""Who owns a home, and how to wait for its end: through a pidfd, so that nobody else is meant."""

from __future__ import annotations

import os
import select

from uphold.errors import NotPermitted
from uphold.host.locks import Owner, Ownership, read_owner
from uphold.host.proctable import ended, lives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

_NOTICE_AFTER: Final = 1.0


class _Paths:
    """The two paths a reader of the lock needs; `Home` itself would cost the import of pathlib."""

    __slots__ = ("lock", "path")

    def __init__(self, home: str) -> None:
        self.path = home
        self.lock = f"{home}/lock"


def owner_of(home: str) -> Ownership:
    """Prove who owns a home, if anybody does."""
    if os.path.lexists(home) and not os.access(home, os.R_OK | os.X_OK):
        raise NotPermitted(
            f"the home {home} belongs to somebody else.",
            code="UPH_HOME_DENIED",
            remedy="Run this as the user who started the supervisor, or as root.",
        )
    return read_owner(_Paths(home))  # type: ignore[arg-type]  # it uses no more than these


def config_of(found: Ownership) -> str | None:
    """Tell which configuration file an owner was started with."""
    return None if found.owner is None else dict(found.owner.extra).get("config")


class Watched:
    """A supervisor we hold by its pidfd: signals and waits mean it and nobody else."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd

    def close(self) -> None:
        """Let go of it."""
        os.close(self._pidfd)

    def gone(self) -> bool:
        """Tell whether it has ended."""
        return ended(self._pidfd)

    def wait_gone(self, seconds: float, notice: Callable[[], None] | None = None) -> bool:
        """Wait for its end; False when the time is over."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        first = min(_NOTICE_AFTER, seconds)
        if poll.poll(first * 1000):
            return True
        if notice is not None:
            notice()
        return bool(poll.poll((seconds - first) * 1000))

    def signal(self, name: str) -> None:
        """Send it a signal; that it has just ended is fine."""
        import signal

        try:
            signal.pidfd_send_signal(self._pidfd, signal.Signals[name])
        except ProcessLookupError:
            return
        except PermissionError as cause:
            raise NotPermitted(
                f"supervisor {self.pid} belongs to somebody else and cannot be signalled.",
                code="UPH_HOME_DENIED",
                remedy="Run this as the user who started it, or as root.",
            ) from cause


def watch(owner: Owner) -> Watched | None:
    """Hold an owner by its pidfd; None if it is gone."""
    held = hold(owner.pid)
    # Proved after the pidfd is open: the number could have passed to another in between.
    if held is None or lives(owner.pid, owner.start_ticks, owner.pidfd_inode):
        return held
    held.close()
    return None


def hold(pid: int) -> Watched | None:
    """Hold whatever process has this number; who it is has to be proved while it is held."""
    try:
        return Watched(pid, os.pidfd_open(pid))
    except (OSError, OverflowError):
        return None
