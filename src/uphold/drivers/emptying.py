"""Ending what is left of a slot, and proving that nothing is.

"Stopped" is said here and nowhere else: the lock is free, and no process carries the nonce or,
where all of a tree must have come to us as its sub-reaper, nothing has. What cannot be ended is
named, and looked for until it is gone.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.core.events import StopFailed
from uphold.core.statuses import Fault
from uphold.drivers.launching import account_number
from uphold.host.processes import hold_sighted, is_reaper
from uphold.host.processes.reaping import has_orphans
from uphold.host.processes.slotlocks import is_held
from uphold.host.proctable import read_proc, read_stat

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.core.events import SlotFact
    from uphold.drivers.runs import Run
    from uphold.host.homes import Home
    from uphold.host.processes.groups import Group
    from uphold.host.processes.scanning import Scanner
    from uphold.ports.clocks import Clock

PROOF: Final = "level B: lock free, no process carries the nonce"
PROOF_BY_DESCENT: Final = "level B: lock free, no descendant left"
PROOF_BY_GROUP: Final = "level A: lock free, its control group is empty"
"""Said only when marks or descent show nothing either: a tool of root's may leave its group."""
_PATIENCE: Final = 2.0
_ORPHANS_STAY: Final = 0.01
"""For so long it is not asked again whether any are left: a thousand ends ask at the same time."""
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.1
_SLOW_PAUSE: Final = 1.0
_HELPER_PAUSE: Final = 0.02


class Survivor(NamedTuple):
    """A process that is still there."""

    pid: int
    start_ticks: int
    ours: bool
    """False: it holds the slot's lock, but nothing says that it belongs to the slot."""

    def __str__(self) -> str:
        name = read_proc(f"/proc/{self.pid}/comm").decode("utf-8", "replace").strip()
        return f"pid {self.pid} ({name or 'gone'})"


class Emptier:
    """Makes slots empty."""

    def __init__(
        self,
        home: Home,
        clock: Clock,
        scanner: Scanner,
        tell: Callable[[SlotFact], None],
        claimed: Callable[[int], bool],
    ) -> None:
        """`claimed` tells whether a child of ours is the main process of some slot."""
        self._home = home
        self._clock = clock
        self._scanner = scanner
        self._tell = tell
        self._claimed = claimed
        self._is_reaper = is_reaper()
        self._no_orphans_at = -1.0
        self._orphans_until = -1.0

    async def empty(self, run: Run) -> str:
        """End everything of a slot; say how it is proved. Complains once if it lasts."""
        while run.helper is not None and not run.forced:
            await self._clock.sleep(_HELPER_PAUSE)  # whoever runs it sees to its time
        began = self._clock.now().mono
        pause, complained = _FIRST_PAUSE, False
        while True:
            if run.group is not None:
                run.group.kill()
            if run.process is not None:
                # The group is ended through the pidfd, which reaches those that fork right now.
                run.process.send_group(signal.SIGKILL)
            if (proof := self.plain_proof(run)) is not None:
                return proof
            if run.group is not None and run.group.proves and await self._emptied(run, run.group):
                continue
            await self._clock.sleep(pause)
            survivors, trouble = await self.end_survivors(run)
            if not survivors and not trouble and run.exit is not None:
                return _proof(run, PROOF)
            late = self._clock.now().mono - began >= _PATIENCE
            if late and not complained and (survivors or trouble):
                complained = True
                self._tell(_stop_failed(run, survivors, trouble))
            pause = _SLOW_PAUSE if complained else min(pause * 2, _LONGEST_PAUSE)

    def plain_proof(self, run: Run) -> str | None:
        """Prove without a look at all processes that nothing is left, where that is possible."""
        try:
            return _proof(run, PROOF_BY_DESCENT) if self._is_plainly_empty(run) else None
        except OSError:  # without descriptors, say: who cannot look has proved nothing
            return None

    def _is_plainly_empty(self, run: Run) -> bool:
        if not self._is_reaper or not run.descended or run.exit is None:
            return False
        if run.helper is not None:  # a child of ours, so no orphan, and it has no lock
            return False
        if run.group is not None and not run.group.is_empty():
            return False
        if self._no_orphans_at < run.ended_at:
            # One look serves all that had ended before it.
            now = self._clock.now().mono
            if now < self._orphans_until:
                return False
            if has_orphans(self._claimed):
                self._orphans_until = now + _ORPHANS_STAY
                return False
            self._no_orphans_at = now
        return not is_held(self._home.slot_lock(run.slot))

    async def _emptied(self, run: Run, group: Group) -> bool:
        """Wait for the kernel's word that a group is empty; tell whether that is news."""
        if group.is_empty():
            return False
        await group.emptied(_LONGEST_PAUSE)
        if run.exit is None:
            await self._clock.sleep(_FIRST_PAUSE)  # its exit is a moment away
        return group.is_empty()

    async def end_survivors(self, run: Run) -> tuple[list[Survivor], str]:
        """Look for what is left and send it SIGKILL; also say if one could not look."""
        try:
            survivors = await self.survivors(run)
            for survivor in survivors:
                if survivor.ours:
                    _kill(survivor)
        except (OSError, RuntimeError) as cause:
            return [], f"the process table could not be read: {cause}"
        return survivors, ""

    async def survivors(self, run: Run) -> list[Survivor]:
        """Find whatever of a slot is still alive."""
        found = _inmates(run.group)
        if found:
            return found
        snapshot = await self._scanner.look()
        found = [
            Survivor(seen.pid, seen.start_ticks, ours=True)
            for seen in snapshot.members(run.nonces, run.main)
        ]
        if found:
            return found
        if run.process is not None and run.process.alive():
            return [Survivor(run.process.identity.pid, run.process.identity.start_ticks, ours=True)]
        return await self._holders(run)

    async def _holders(self, run: Run) -> list[Survivor]:
        """Find who keeps the lock of a slot in which nothing else is found."""
        lock = self._home.slot_lock(run.slot)
        if not is_held(lock):
            return []
        uid = account_number(run.spec)
        found = []
        for pid in await self._scanner.holders(lock):
            stat = read_stat(pid)
            if stat is not None:
                # Descriptors can be handed to anybody. Ending a process of the worker's own
                # user gives the worker no power it has not got; another one is only named.
                ours = pid > 1 and (stat.ppid == os.getpid() or _owner(pid) == uid)
                found.append(Survivor(pid, stat.start_ticks, ours=ours))
        if found or not is_held(lock):
            return found
        return [Survivor(0, 0, ours=False)]


def _proof(run: Run, marks: str) -> str:
    """Name the level at which the end of a run is known, and what it rests on."""
    return PROOF_BY_GROUP if run.group is not None and run.group.proves else marks


def _inmates(group: Group | None) -> list[Survivor]:
    """Find what lives in a group."""
    stats = () if group is None or group.is_empty() else map(read_stat, group.members())
    return [
        Survivor(stat.pid, stat.start_ticks, ours=True)
        for stat in stats
        if stat is not None and not stat.dead
    ]


def _kill(survivor: Survivor) -> None:
    process = hold_sighted(survivor.pid, survivor.start_ticks, "")
    if process is not None:
        process.send(signal.SIGKILL)
        process.close()


def _owner(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 - a number is all that is wanted
    except OSError:
        return -1


def _stop_failed(run: Run, survivors: list[Survivor], trouble: str) -> StopFailed:
    names = ", ".join(str(survivor) for survivor in survivors if survivor.pid)
    if trouble:
        text = f"cannot verify that {run.slot} has ended: {trouble}."
    elif any(survivor.ours for survivor in survivors):
        text = f"{run.slot} survives SIGKILL: {names}. A process stuck in the kernel ends when "
        text += "the disk or share it waits for answers; uphold keeps looking."
    else:
        text = f"the lock of {run.slot} is held by {names or 'a process that cannot be seen'}, "
        text += "which is not known to belong to it. End that process; uphold keeps looking."
    fault = Fault(code="UPH_STOP_UNKILLABLE", message=text)
    return StopFailed(slot=run.slot, generation=run.generation, fault=fault)
