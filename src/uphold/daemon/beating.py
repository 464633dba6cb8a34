"""Heartbeats of remote workers that come through the local socket, and what is shown of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uphold.core.declaring import unknown
from uphold.core.notices import Refused
from uphold.core.remotes import judge
from uphold.core.specs import Kind
from uphold.core.times import utc_or_none
from uphold.drivers.remote import RemoteDriver
from uphold.errors import EXIT_NO_SUCH, EXIT_NOT_PERMITTED, NoSuchWorker, UpholdError
from uphold.wire.frames import encode_line
from uphold.wire.notices import decode_beat

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from uphold.core.declaring import Declaration, Entry
    from uphold.core.events import Event, Note
    from uphold.host.beats import BeatFiles
    from uphold.ports.clocks import Clock

_SAID: tuple[str, ...] = ("seq", "status", "progress", "error", "summary", "nonce", "utc")


class Beats:
    """Takes heartbeats in on behalf of the socket."""

    def __init__(self, clock: Clock, boot_id: str, files: BeatFiles | None = None) -> None:
        self._clock = clock
        self.driver = RemoteDriver(clock, boot_id=boot_id, tell=self._note, files=files)
        self._tell: Callable[[Event], Awaitable[None]] | None = None
        self._telling: set[asyncio.Future[None]] = set()

    def tell_to(self, tell: Callable[[Event], Awaitable[None]]) -> None:
        """Put on record what is worth an event: gaps, missed heartbeats."""
        self._tell = tell

    def take(self, params: Mapping[str, Any], declaration: Declaration) -> dict[str, object]:
        """Take one in, or raise why it is not believed; either way it is counted."""
        name = str(params.get("worker", ""))
        entry = declaration.workers.get(name)
        if entry is None:
            told = unknown(name, declaration.workers)
            raise NoSuchWorker(told.message, remedy=told.remedy, exit_code=EXIT_NO_SUCH)
        _refuse_others(name, entry)
        said = {key: params[key] for key in _SAID if params.get(key) is not None}
        text = encode_line({"status": "ok", **said})
        beat = decode_beat(text, self._clock.now().wall, nonce=self.driver.nonce(name))
        refused = self.driver.beat(name, beat)
        if isinstance(refused, Refused):
            raise _refused(
                f"the heartbeat of '{name}' is not believed ({refused.reason}): {refused.text}"
            )
        return {"schema": 1, "worker": name, "nonce": self.driver.nonce(name), **self.shown(name)}

    def shown(self, slot: str) -> dict[str, object]:
        """Give what is known by its heartbeats; nothing of a slot that is not listened to."""
        listening = self.driver.listening(slot)
        if listening is None:
            return {}
        seen = dict(self.driver.state(slot).info)
        wall = seen["at"]
        seen["at"] = utc_or_none(wall if isinstance(wall, float) else 0.0)
        verdict = judge(listening.status, listening.rule, self._clock.now().mono)
        return {**seen, "missed": verdict.missed}

    def complete(self, rows: Iterable[dict[str, Any]]) -> None:
        """Put into records of remote slots when they were last heard of, and no claim beyond."""
        for row in rows:
            if row["kind"] == Kind.REMOTE:
                at = self.shown(str(row["slot"])).get("at")
                row["last_heartbeat_at"] = row["last_health_at"] = at

    def _note(self, note: Note) -> None:
        if self._tell is not None:
            task = asyncio.ensure_future(self._tell(note))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)


def _refuse_others(name: str, entry: Entry) -> None:
    if not entry.spec.remote:
        raise _refused(
            f"'{name}' runs here: its heartbeats come from its own processes.",
            "They go to $NOTIFY_SOCKET, or into the file that heartbeat.file names.",
        )
    if not entry.wanted:
        raise _refused(
            f"'{name}' is {entry.admin}, so its heartbeats are not listened to.",
            f"uphold show {name} says by whom.",
        )


def _refused(message: str, remedy: str = "") -> UpholdError:
    return UpholdError(
        message, code="UPH_BEAT_REFUSED", remedy=remedy, exit_code=EXIT_NOT_PERMITTED
    )
