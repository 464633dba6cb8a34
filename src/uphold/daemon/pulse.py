"""The supervisor's own pulse: its heartbeat file, and a word when its loop was held up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from uphold.core.events import Note
from uphold.core.times import utc_text
from uphold.daemon.notifying import describe
from uphold.host.files import write_atomically
from uphold.host.threads import in_thread
from uphold.wire.codecs import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from pathlib import Path

    from uphold.core.events import Recorded
    from uphold.engine.supervisor import Supervisor
    from uphold.host.looping import WatchedSelector


_FAREWELL: Final = 2.0


class Pulse:
    """Writes HOME/heartbeat.json for every heartbeat in the journal, and tells of blocked turns."""

    def __init__(
        self,
        home: Path,
        supervisor: Supervisor,
        about: Callable[[], Mapping[str, Any]],
        selector: WatchedSelector | None,
    ) -> None:
        self._path = home / "heartbeat.json"
        self._supervisor = supervisor
        self._about = about
        self._selector = selector
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Tell of blocked turns from now on; what comes before is the work of starting."""
        if self._selector is not None:
            self._selector.take_longest()
            self._selector.blocked = self._blocked

    def hear(self, recorded: Recorded) -> None:
        """Write the file for a heartbeat: in a thread, and its failure is its own."""
        event = recorded.event
        if isinstance(event, Note) and event.type == "supervisor.heartbeat":
            self._task(self._write(encode(self._content(recorded)) + b"\n"))

    async def close(self) -> None:
        """Tell of nothing more; what is being written is finished, so that no half is left."""
        if self._selector is not None:
            self._selector.blocked = None
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_FAREWELL)

    def _content(self, recorded: Recorded) -> dict[str, object]:
        about = self._about()
        return {
            "supervisor_id": about["id"],
            "worker_id": about["name"],
            "pid": about["pid"],
            "status": about["health"],
            "utc": utc_text(recorded.at),
            "seq": recorded.seq,
            "summary": describe(self._supervisor.snapshot()),
            "longest_turn": None if self._selector is None else self._longest(self._selector),
        }

    def _longest(self, selector: WatchedSelector) -> float:
        return round(selector.take_longest(), 4)

    async def _write(self, content: bytes) -> None:
        with suppress(OSError, RuntimeError):  # the journal has it; the next one comes soon
            await in_thread(lambda: write_atomically(self._path, content))

    def _blocked(self, seconds: float) -> None:
        """Hear of a blocked turn, in the middle of the loop's own machinery: only note it."""
        self._loop.call_soon_threadsafe(self._tell, seconds)

    def _tell(self, seconds: float) -> None:
        note = Note(
            type="supervisor.loop_blocked",
            entity_type="supervisor",
            entity_id="supervisor",
            payload={"seconds": round(seconds, 3)},
            severity="warning",
        )
        self._task(self._supervisor.tell(note))

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
