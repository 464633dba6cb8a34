"""Holding, signalling and reaping one process where there is no pidfd (macOS, the BSDs).

Same contract as `linux`, less certainty: a process is known by number and start second,
nothing tells of its end but looking, and only children leave an exit status.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from uphold.core.statuses import Identity
from uphold.host.processes.containment import Containment, Ending
from uphold.host.proctable import boot_id, stats_by_ps


class Process:
    """One process, looked up again before each use of its number."""

    __slots__ = ("_ending", "child", "descriptor", "identity")

    def __init__(self, identity: Identity, *, child: bool) -> None:
        self.identity = identity
        self.descriptor = -1
        """Nothing becomes readable when it ends: the watcher looks."""
        self.child = child
        self._ending: Ending | None = None

    def alive(self) -> bool:
        """Tell whether it still runs."""
        if self.child:
            return self._wait() is None
        return _is_there(self.identity)

    def reap(self) -> Ending | None:
        """Learn how it ended; None while it lives, unknown for one that is not our child."""
        if self.child:
            return self._wait()
        return None if _is_there(self.identity) else Ending()

    def send(self, number: int) -> bool:
        """Send a signal to it; False if it is gone or not ours to signal."""
        if not self.alive():
            return False
        try:
            os.kill(self.identity.pid, number)
        except OSError:
            return False
        return True

    def send_group(self, number: int) -> bool:
        """Send a signal to the group it leads, while it lives and the number is surely its own."""
        if not self.alive():
            return False
        try:
            os.killpg(self.identity.pid, number)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Nothing is held."""

    def _wait(self) -> Ending | None:
        if self._ending is None:
            try:
                pid, status = os.waitpid(self.identity.pid, os.WNOHANG)
            except ChildProcessError:
                self._ending = Ending()
                return self._ending
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self._ending = Ending(signal=-code) if code < 0 else Ending(code=code)
        return self._ending


def hold_child(pid: int, nonce: str) -> Process:
    """Hold a process just started by us."""
    return Process(_identify(pid, nonce), child=True)


def find(identity: Identity) -> Process | None:
    """Hold exactly this process again; None if it is gone."""
    if identity.boot_id != boot_id() or not _is_there(identity):
        return None
    return Process(identity, child=False)


def hold_sighted(pid: int, start_ticks: int, nonce: str) -> Process | None:
    """Hold a process that was seen in the process table a moment ago; None if it is gone."""
    identity = Identity(pid=pid, start_ticks=start_ticks, boot_id=boot_id(), inode=0, nonce=nonce)
    return Process(identity, child=False) if _is_there(identity) else None


def become_reaper() -> bool:
    """Orphans go to process 1 here; there is no other way."""
    return False


def is_reaper() -> bool:
    """Orphans never come to us here."""
    return False


def can_reap() -> bool:
    """Tell whether orphans could come to us: no other system knows that."""
    return False


def close_on_exec(first: int) -> bool:
    """Mark every open descriptor from this one on to be closed at exec."""
    for entry in Path("/dev/fd").iterdir():
        if entry.name.isdigit() and int(entry.name) >= first:
            with suppress(OSError):  # the one that lists the folder is gone again
                os.set_inheritable(int(entry.name), False)
    return True


def containment() -> Containment:
    """Say what holds on a system without pidfd and sub-reaper."""
    return Containment(
        level="C",
        means="session and slot lock",
        sure_identity=False,
        exits_of_adopted=False,
        gap="a process that starts a session of its own and closes the slot lock",
    )


def _identify(pid: int, nonce: str) -> Identity:
    stats = stats_by_ps(pid)
    born = stats[0].start_ticks if stats else 0
    return Identity(pid=pid, start_ticks=born, boot_id=boot_id(), inode=0, nonce=nonce)


def _is_there(identity: Identity) -> bool:
    return any(
        stat.start_ticks == identity.start_ticks and not stat.dead
        for stat in stats_by_ps(identity.pid)
    )
