"""What a single pass is told, what takes part in it, and what it reports."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from uphold.core import events
from uphold.core.names import nearest
from uphold.core.times import utc_or_none, utc_text
from uphold.errors import NoSuchWorker

if TYPE_CHECKING:
    from uphold.core.events import Event
    from uphold.core.passes import Check
    from uphold.core.specs import Settings
    from uphold.daemon.equipping import Launch
    from uphold.daemon.narrating import BookLog
    from uphold.engine.supervisor import Supervisor

_DEEDS: Final[dict[type, str]] = {
    events.StartBegun: "started",
    events.StopBegun: "stopped",
    events.AbortBegun: "aborted",
    events.KillBegun: "killed",
    events.GaveUp: "gave up",
    events.StartFailed: "failed to start",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that was done in a pass."""

    slot: str
    did: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a pass came to."""

    supervisor_id: str
    worker_id: str
    began: float
    ended: float
    actions: tuple[Action, ...] = ()
    before: tuple[Check, ...] = ()
    """How everybody was found, before anything was done about it."""
    workers: tuple[Check, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """Tell whether all checks passed and nothing went wrong."""
        return not self.problems

    def document(self) -> dict[str, Any]:
        """Give the report as people and programs get it from `uphold once --json`."""
        return {
            "schema": 1,
            "acted": True,
            "success": self.success,
            "supervisor_id": self.supervisor_id,
            "worker_id": self.worker_id,
            "began": utc_text(self.began),
            "ended": utc_text(self.ended),
            "actions": [as_mapping(each) for each in self.actions],
            "before": [_shown(each) for each in self.before],
            "workers": [_shown(each) for each in self.workers],
            "problems": list(self.problems),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What those who take part in a pass are handed."""

    supervisor: Supervisor
    settings: Settings
    log: BookLog
    names: tuple[str, ...]
    """The workers that this pass is about."""
    ending: asyncio.Event
    """Set when somebody asked the pass to end: what is under way is finished, nothing begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What a pass does besides; each gives what went wrong, in sentences."""

    flags: Callable[[Passage], Awaitable[Sequence[str]]] | None = None
    """Deals with the orders that wait in a shared folder; before anything starts by itself."""
    copy: Callable[[Launch, Settings], Awaitable[Sequence[str]]] | None = None
    """Copies to the shared database; the journal is closed by then, and the home still ours."""
    heartbeat: Callable[[Launch, Settings, Report], Awaitable[Sequence[str]]] | None = None
    """Tells whoever watches the share that a pass took place."""


def deed_of(event: Event) -> Action | None:
    """Tell what was done to a worker, if that is what an event tells of."""
    did = _DEEDS.get(type(event))
    if did is None:
        return None
    fault = getattr(event, "fault", None)
    why = getattr(event, "why", "") if fault is None else fault.message
    return Action(slot=getattr(event, "slot", ""), did=did, why=why)


def scrubbed(report: Report, scrub: Callable[[str], str]) -> Report:
    """Take secrets out of everything that a report says in words."""

    def cleaned(checks: Sequence[Check]) -> tuple[Check, ...]:
        return tuple(replace(each, problem=each.problem and scrub(each.problem)) for each in checks)

    return replace(
        report,
        actions=tuple(replace(each, why=scrub(each.why)) for each in report.actions),
        before=cleaned(report.before),
        workers=cleaned(report.workers),
        problems=tuple(map(scrub, report.problems)),
    )


def chosen(settings: Settings, worker_id: str | None) -> tuple[str, ...]:
    """Name the workers that a pass is about; the supervisor's own name means all of them."""
    names = tuple(spec.name for spec in settings.workers)
    if worker_id is None or worker_id in names:
        return names if worker_id is None else (worker_id,)
    if worker_id == settings.supervisor.name:
        return names
    meant = nearest(worker_id, names)
    raise NoSuchWorker(
        f"no worker is called '{worker_id}', nor is this supervisor.",
        remedy=f"Did you mean '{meant}'?" if meant else f"Declared are: {', '.join(names)}.",
    )


def _shown(check: Check) -> dict[str, Any]:
    return {**as_mapping(check), "last_heartbeat": utc_or_none(check.last_heartbeat)}


def as_mapping(value: Action | Check) -> dict[str, Any]:
    """Give the fields of a value by name."""
    # `asdict` would bring the whole of `dataclasses` along (decision 0014).
    return {each.name: getattr(value, each.name) for each in fields(value)}
