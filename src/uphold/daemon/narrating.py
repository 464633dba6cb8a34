"""Events as log lines: what an operator reads in runtime.log and supervisor.log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uphold.core import events
from uphold.core.absorbing import describe_exit
from uphold.core.names import worker_of
from uphold.host.logbooks import Entry, Level
from uphold.wire.envelopes import severity

if TYPE_CHECKING:
    from uphold.core.events import Recorded, SlotFact
    from uphold.host.logbooks import Logbook

_LEVELS: Final = {"info": Level.INFO, "warning": Level.WARNING, "error": Level.ERROR}


class BookLog:
    """The engine's log, kept in the logbook."""

    def __init__(self, book: Logbook) -> None:
        self._book = book

    def write(  # noqa: PLR0913 - the fixed keys of a log record, by name
        self,
        level: str,
        event: str,
        message: str,
        *,
        worker: str | None = None,
        task_id: str | None = None,
        label: str | None = None,
    ) -> None:
        """Write one record into both logs."""
        self._book.write(
            Level[level], message, event=event, worker=worker, task_id=task_id, label=label
        )


def narrate(recorded: Recorded) -> Entry | None:
    """Put one event into words. A change of state is told by the fact that caused it."""
    event = recorded.event
    if isinstance(event, events.StateChanged):
        return None
    if isinstance(event, events.Note) and (
        # Whoever deals with flags writes a line of its own, which names the task.
        event.type == "supervisor.heartbeat" or event.entity_type == "flag"
    ):
        return None
    level = _LEVELS.get(severity(event), Level.INFO)
    if not isinstance(event, events.Note):
        worker = worker_of(event.slot)
        return Entry(level, _sentence(event), event.TYPE, worker, at=recorded.at)
    label = event.payload.get("label")
    return Entry(
        level,
        _note(event),
        event.type,
        worker=event.entity_id if event.entity_type == "worker" else None,
        task_id=event.entity_id if event.entity_type == "order" else None,
        label=None if label is None else str(label),
        at=recorded.at,
    )


def _sentence(event: SlotFact) -> str:  # noqa: C901, PLR0912 - one arm for each fact
    slot = event.slot
    match event:
        case events.StartBegun():
            return f"starting {slot}, generation {event.generation}: {event.why}"
        case events.Started():
            pid = event.identity.pid
            return f"{slot} runs as pid {pid}" if pid else f"{slot} is listened to"
        case events.Adopted():
            pid = event.identity.pid
            found = f"was found alive as pid {pid} and is watched" if pid else "is listened to"
            return f"{slot} {found} again"
        case events.StartFailed() | events.StopFailed():
            return f"{slot}: {event.fault.message}"
        case events.Exited():
            left = "; its tree is being seen off" if event.left_overs else ""
            return f"{slot} {describe_exit(event.exit)}{left}"
        case events.StopBegun():
            return f"stopping {slot}: {event.why}"
        case events.KillBegun():
            return f"{slot} did not stop within its grace: forced with SIGKILL"
        case events.Gone():
            return f"{slot} is gone ({event.proof})"
        case events.WaitBegun() | events.GaveUp() | events.Rested():
            return f"{slot}: {event.why}"
        case events.Forgotten():
            return f"{slot} is no longer declared"
        case events.Pardoned():
            return f"{slot}: failures and counters cleared"
        case events.Amended():
            return f"{slot} goes on under changed terms"
        case events.Ready():
            return f"{slot} is ready: {event.why}"
        case events.Sickened():
            return f"{slot} is {event.health}: {event.why}"
        case events.Condemned():
            return f"{slot} is unhealthy and will be ended: {event.why}"
        case events.Recovered():
            return f"{slot} is healthy again: {event.why}"
        case events.AbortBegun():
            return f"aborting {slot}: {event.why}"
        case events.Extended():
            return f"{slot} asks for {event.seconds:g} s more to end"
        case events.Appointed():
            return f"{slot}: {event.why}{'; another one follows it' if event.due.owed else ''}"
        case events.Skipped():
            return f"{slot}: a run is skipped, as {event.why}; the next one is at {event.due.text}"


def _note(event: events.Note) -> str:
    parts = [f"{key}={value}" for key, value in event.payload.items() if value not in (None, "")]
    about = () if event.entity_type in ("supervisor", "order") else (event.entity_id,)
    return " ".join((event.type.replace(".", " "), *about, *parts))
