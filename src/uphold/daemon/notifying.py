"""uphold as a service itself: what it tells the service manager that started it (sd_notify).

Ready only when lock, journal and socket are up; alive only after a pass of the reconciler has been
completed since the last time. Without $NOTIFY_SOCKET all of this says nothing.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from uphold.core.events import Note
from uphold.core.orders import ShutDown
from uphold.core.statuses import Health, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from uphold.core.events import Recorded
    from uphold.engine.snapshots import Snapshot
    from uphold.engine.supervisor import Supervisor


class ServiceManager:
    """Whoever started us, as far as they want to hear from us."""

    def __init__(self, environ: Mapping[str, str], pid: int) -> None:
        named = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + named[1:] if named.startswith("@") else named
        self._wanted = named[:1] in ("/", "@")
        # `uphold run` may stand between: then the watchdog means it, and we speak for it.
        meant = {"", str(pid), str(os.getppid())}
        usual = environ.get("WATCHDOG_PID", "") in meant
        self.watchdog = _seconds(environ) if self._wanted and usual else None
        """Seconds within which it wants to hear of us; None if it does not."""

    def say(self, *lines: str) -> None:
        """Send one message; one that nobody takes is lost, and no reason to stop."""
        if not self._wanted:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
            speaker.setblocking(False)
            speaker.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)


class Service:
    """Keeps the service manager informed about a supervisor."""

    def __init__(self, supervisor: Supervisor, manager: ServiceManager) -> None:
        self._supervisor = supervisor
        self._manager = manager
        self._status = ""
        self._passes = -1
        self._pet: asyncio.TimerHandle | None = None
        self._ready = False

    def begin(self) -> None:
        """Say that we are up, and from now on that we are alive."""
        self._ready = True
        self._status = describe(self._supervisor.snapshot())
        self._manager.say("READY=1", f"STATUS={self._status}")
        if self._manager.watchdog is not None:
            self._tick()

    def hear(self, recorded: Recorded) -> None:
        """Tell what it wants to know of what has happened."""
        event = recorded.event
        if not isinstance(event, Note):
            return
        if event.type == "order.accepted" and event.payload.get("verb") == ShutDown.VERB:
            self._manager.say("STOPPING=1", "STATUS=Stopping.")
        elif event.type == "supervisor.heartbeat" and self._ready:
            status = describe(self._supervisor.snapshot())
            if status != self._status:
                self._status = status
                self._manager.say(f"STATUS={status}")

    @contextmanager
    def reloading(self, mono: float) -> Iterator[None]:
        """Say that the configuration is being read, and when that is over."""
        if not self._ready:  # an edit while we start is part of the start
            yield
            return
        self._manager.say("RELOADING=1", f"MONOTONIC_USEC={int(mono * 1_000_000)}")
        try:
            yield
        finally:
            self._manager.say("READY=1")

    def close(self) -> None:
        """Say nothing more."""
        if self._pet is not None:
            self._pet.cancel()

    def _tick(self) -> None:
        """Say that we are alive if a pass has been completed since the last time; ask for one."""
        assert self._manager.watchdog is not None
        # Twice as often as it must be: one may come late.
        after = self._manager.watchdog / 2
        self._pet = asyncio.get_running_loop().call_later(after, self._tick)
        passes = self._supervisor.passes
        if passes != self._passes:
            self._passes = passes
            self._manager.say("WATCHDOG=1")
        self._supervisor.look()


def describe(snapshot: Snapshot) -> str:
    """Sum up in one line what runs."""
    slots = [each for name, each in snapshot.observed.slots.items() if not name.startswith("@")]
    running = sum(each.state is State.RUNNING for each in slots)
    text = f"{running} of {len(slots)} workers running"
    return f"{text}." if snapshot.health is Health.HEALTHY else f"{text}; {snapshot.health}."


def _seconds(environ: Mapping[str, str]) -> float | None:
    text = environ.get("WATCHDOG_USEC", "")
    usec = int(text) if text.isdecimal() and len(text) < 18 else 0
    return usec / 1_000_000 if usec else None
