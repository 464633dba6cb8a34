"""Finding every process of a slot: one look at the process table serves all who wait for one.

A look costs tens of milliseconds for a thousand processes, so it runs in a thread, and only
for adoption, verified stops and left-overs; never on the way of an ordinary restart.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from uphold.host.proctable import (
    Stat,
    is_another,
    parse_stat,
    read_nonce,
    read_proc,
    stats_by_ps,
)
from uphold.host.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from uphold.core.statuses import Identity


class Sighted(NamedTuple):
    """A living process as the table showed it."""

    pid: int
    ppid: int
    session: int
    start_ticks: int
    nonce: str | None


class Snapshot:
    """All living processes at one time, by what ties them to a slot."""

    def __init__(self, processes: Iterable[Sighted]) -> None:
        self._by_pid = {process.pid: process for process in processes}
        self._by_nonce: dict[str, list[Sighted]] = defaultdict(list)
        self._by_session: dict[int, list[Sighted]] = defaultdict(list)
        self._by_parent: dict[int, list[Sighted]] = defaultdict(list)
        for process in self._by_pid.values():
            self._by_session[process.session].append(process)
            self._by_parent[process.ppid].append(process)
            if process.nonce:
                self._by_nonce[process.nonce].append(process)

    def members(self, nonces: Collection[str], main: Identity | None) -> list[Sighted]:
        """Find all that belongs together: by nonce, by the session `main` began, by descent.

        `main` is given only if it lived a moment ago: the number of a session long gone may
        belong to anybody.
        """
        found: dict[int, Sighted] = {}
        for nonce in nonces:
            self._gather(self._by_nonce.get(nonce, ()), found)
        if main is not None and self._session_is_its_own(main):
            self._gather(self._by_session.get(main.pid, ()), found)
        return sorted(found.values(), key=lambda process: (process.start_ticks, process.pid))

    def leader(self, nonce: str) -> Sighted | None:
        """Find the main process of a run: the oldest session leader with its nonce."""
        leaders = [seen for seen in self._by_nonce.get(nonce, ()) if seen.pid == seen.session]
        return min(leaders, key=lambda seen: (seen.start_ticks, seen.pid), default=None)

    def get(self, pid: int) -> Sighted | None:
        """Look one process up."""
        return self._by_pid.get(pid)

    def _gather(self, processes: Iterable[Sighted], found: dict[int, Sighted]) -> None:
        todo = list(processes)
        while todo:
            process = todo.pop()
            if process.pid in found or process.pid == os.getpid():
                continue
            found[process.pid] = process
            todo.extend(self._by_parent.get(process.pid, ()))

    def _session_is_its_own(self, main: Identity) -> bool:
        leader = self._by_pid.get(main.pid)
        if leader is None:
            return True
        # A number that is used again within one clock tick shows the same start; while anything
        # of the session lives, the kernel gives its number to nobody.
        same_start = leader.start_ticks == main.start_ticks
        return same_start and not is_another(main.pid, main.inode)


class Scanner:
    """Looks at the process table in a thread; whoever asks before a look begins shares it."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[Snapshot]] = []
        self._looking: asyncio.Task[None] | None = None
        self.looks = 0
        """How many looks were taken, for proving that ordinary restarts take none."""

    async def look(self) -> Snapshot:
        """See all processes as they are some time after this call."""
        future: asyncio.Future[Snapshot] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="process scan")
        return await future

    async def holders(self, lock: str | Path) -> list[int]:
        """Find the processes that hold a lock (not those that merely have the file open)."""
        return await in_thread(lambda: lock_holders(lock))

    async def _look(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                self.looks += 1
                snapshot, cause = None, None
                try:
                    snapshot = await in_thread(take_snapshot)
                except (OSError, RuntimeError) as raised:  # no descriptor or thread to be had
                    cause = raised
                _settle(waiting, snapshot, cause)
        finally:
            self._looking = None


def take_snapshot() -> Snapshot:
    """Read the whole process table. Blocks."""
    stats = _stats_by_proc() if sys.platform == "linux" else stats_by_ps()
    return Snapshot(
        Sighted(stat.pid, stat.ppid, stat.session, stat.start_ticks, read_nonce(stat.pid))
        for stat in stats
        if not stat.dead
    )


def lock_holders(lock: str | Path) -> list[int]:
    """Find who holds a lock by what /proc says of each open descriptor. Blocks.

    A child of ours that does not run its own program yet has copies of all our descriptors,
    those of other slots included; it is on its way to letting go of them, and no holder.
    """
    try:
        wanted = os.stat(lock)  # noqa: PTH116 - a name is all there is
    except OSError:
        return []
    return [
        pid
        for pid in _numbers("/proc")
        if pid != os.getpid()
        and _holds(pid, wanted)
        and _runs_its_own_program(pid)
        and _holds(pid, wanted)  # now that nothing more goes away by itself
    ]


def _settle(
    waiting: list[asyncio.Future[Snapshot]], snapshot: Snapshot | None, cause: Exception | None
) -> None:
    for future in waiting:
        if future.done():
            continue
        if snapshot is not None:
            future.set_result(snapshot)
        elif cause is not None:
            future.set_exception(cause)


def _stats_by_proc() -> Iterable[Stat]:
    for pid in _numbers("/proc"):
        raw = read_proc(f"/proc/{pid}/stat")
        if raw:
            yield parse_stat(raw)


def _holds(pid: int, wanted: os.stat_result) -> bool:
    for number in _numbers(f"/proc/{pid}/fd"):
        try:
            same = os.path.samestat(os.stat(f"/proc/{pid}/fd/{number}"), wanted)  # noqa: PTH116 - hot
        except OSError:
            continue
        if same and b"FLOCK" in read_proc(f"/proc/{pid}/fdinfo/{number}"):
            return True
    return False


def _runs_its_own_program(pid: int) -> bool:
    # Empty in the middle of an exec, before copies of descriptors are closed.
    words = read_proc(f"/proc/{pid}/cmdline")
    return words not in (b"", read_proc("/proc/self/cmdline"))


def _numbers(folder: str) -> list[int]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - pathlib would build a thousand objects
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []
    return [int(name) for name in names if name.isdigit()]
