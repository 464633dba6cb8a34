"""Why is it so? One short reason per slot for tables, one paragraph for people who ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from uphold.core.absorbing import duration_text
from uphold.core.changes import asked_again
from uphold.core.restarts import due, exhausted, still_comes_back
from uphold.core.schedules import next_text, rule_text
from uphold.core.specs import Instant
from uphold.core.statuses import Admin, Health, SlotStatus, State

if TYPE_CHECKING:
    from uphold.core.absorbing import Observed
    from uphold.core.declaring import Declaration, Entry
    from uphold.core.specs import Schedule, WorkerSpec

_STATE_WORDS: Final = {
    State.STOPPED: "stopped",
    State.WAITING: "waiting",
    State.STARTING: "starting",
    State.RUNNING: "running",
    State.STOPPING: "stopping",
    State.BACKOFF: "in back-off",
    State.EXITED: "at its end",
    State.FAILED: "given up",
}


_ENDED: Final = (State.BACKOFF, State.EXITED, State.FAILED)


def why(entry: Entry | None, status: SlotStatus, now: Instant) -> str:
    """Give the reason for a slot's state in one short line."""
    again = _again(entry, status)
    if again is not None:
        return f"{status.why}; starts again: {again}"
    match status.state:
        case State.RUNNING:
            return _why_running(status, now)
        case State.STARTING:
            lasting = duration_text(max(0.0, now - status.started_at))
            up = status.identity is not None
            return f"{status.why} (since {lasting})" if up else f"being started: {status.why}"
        case State.STOPPING:
            return _why_stopping(status, now)
        case State.BACKOFF:
            return _why_backoff(entry, status, now)
        case State.WAITING:
            return status.why
        case State.FAILED:
            return f"{status.why}{_next_run(entry, status)}"
        case State.EXITED:
            return f"{status.why}{_next_run(entry, status) or _policy(entry, status)}"
        case State.STOPPED:
            lasting = duration_text(max(0.0, now - status.since))
            return _why_stopped(entry, status, lasting)
        case _:
            assert_never(status.state)


def _again(entry: Entry | None, status: SlotStatus) -> str | None:
    """Say why a slot that has ended is started again as soon as anybody acts, if it is."""
    if status.state not in _ENDED or entry is None or not entry.wants(status.slot):
        return None
    return asked_again(entry, status)


def _policy(entry: Entry | None, status: SlotStatus) -> str:
    """Name the rule that goes for a slot which has ended, as the end of a sentence."""
    spec = status.terms if entry is None else entry.spec
    return "" if spec is None else f"; restart = {spec.restart}"


def _why_running(status: SlotStatus, now: Instant) -> str:
    lasting = duration_text(max(0.0, now - status.started_at))
    found = status.finding
    if found is None and status.terms is not None and status.terms.remote:
        return f"no heartbeat has come yet, listened to since {lasting}"
    if found is None:
        return f"up since {lasting}"
    if found.health is Health.HEALTHY:
        return f"up and {found.why} since {lasting}"
    return f"{found.health}: {found.why}"


def _next_run(entry: Entry | None, status: SlotStatus) -> str:
    """Say when a slot on a schedule runs next, as the end of a sentence; nothing if it is not."""
    if entry is None or entry.spec.schedule is None or status.due is None or not entry.wanted:
        return ""
    return f"; {next_text(status.due)}"


def _why_stopping(status: SlotStatus, now: Instant) -> str:
    if status.error is not None:
        return status.error.message
    if status.killed:
        return f"{status.why}; SIGKILL sent, not yet verified gone"
    left = max(0.0, status.since + status.grace - now)
    return f"{status.why}; SIGKILL in {duration_text(left)}"


def _why_backoff(entry: Entry | None, status: SlotStatus, now: Instant) -> str:
    if entry is None or not entry.wants(status.slot):
        return status.why
    spec = entry.spec
    if not still_comes_back(status, spec):
        return f"{status.why}{_policy(entry, status)}"
    if exhausted(status, spec):
        return f"{status.why}; it is not tried again"
    left = max(0.0, due(status, spec) - now)
    tries = "" if spec.max_restarts is None else f", try {status.failures} of {spec.max_restarts}"
    return f"{status.why}; starts again in {duration_text(left)}{tries}"


def _why_stopped(entry: Entry | None, status: SlotStatus, lasting: str) -> str:
    if entry is None:
        return "no longer declared"
    if entry.ordered_down:
        return entry.ordered_down
    match entry.admin:
        case Admin.DISABLED:
            return "disabled in the file"
        case Admin.QUARANTINED:
            return "quarantined until approved"
    if not entry.up:
        return "started only on request (autostart is off)"
    if entry.override.withheld:
        return "kept down while what it runs from is changed"
    return f"stopped {lasting} ago" if status.generation else "not started yet"


def explain(name: str, declaration: Declaration, observed: Observed, now: Instant) -> str:
    """Answer "why is it so?" for one worker: what is wished, seen, decided, and what comes next."""
    entry = declaration.workers.get(name)
    slots = observed.of(name) or ((name,) if entry is None else entry.slots())
    parts = [_wish(name, entry)]
    for slot in slots:
        status = observed.slots.get(slot) or SlotStatus(slot=slot)
        parts.append(_seen(slot, entry, status, now, single=len(slots) == 1))
        parts.append(_next(entry, status, now))
    if declaration.paused:
        parts.append("The supervisor itself is paused, so nothing is acted on: uphold resume.")
    return " ".join(part for part in parts if part)


def _wish(name: str, entry: Entry | None) -> str:
    if entry is None:
        return f"'{name}' is no longer declared, so it shall not run."
    ordered = entry.ordered_down
    match entry.admin:
        case Admin.PAUSED:
            return f"'{name}' is held: {ordered}. It shall not run until: uphold resume {name}."
        case Admin.DISABLED:
            how = ordered or "disabled in the file"
            return f"'{name}' is {how}. It shall not run until: uphold enable {name}."
        case Admin.QUARANTINED:
            how = ordered or "quarantined"
            return f"'{name}' is {how}. It shall not run until: uphold approve {name}."
    if entry.spec.remote:
        return f"'{name}' runs elsewhere and is listened to."
    if not entry.up:
        how = ordered or "autostart is off"
        return f"'{name}' shall not run ({how}). Start it with: uphold start {name}."
    if entry.override.withheld:
        return f"What '{name}' runs from is being changed; it comes back after that: uphold jobs."
    count = entry.replicas
    schedule = entry.spec.schedule
    when = "" if schedule is None else f" on its schedule ({rule_text(schedule)})"
    return f"'{name}' shall run{'' if count == 1 else f' in {count} slots'}{when}."


def _seen(slot: str, entry: Entry | None, status: SlotStatus, now: Instant, *, single: bool) -> str:
    subject = "It" if single else f"Slot '{slot}'"
    known = status.identity is not None and status.identity.pid
    pid = f" (pid {known})" if known else ""
    reason = why(entry, status, now).rstrip(".")
    return f"{subject} is {_STATE_WORDS[status.state]}{pid}: {reason}."


def _next(
    entry: Entry | None,
    status: SlotStatus,
    now: Instant,
) -> str:
    if entry is None or not entry.wants(status.slot) or _again(entry, status) is not None:
        return ""
    spec = entry.spec
    name = spec.name
    match status.state:
        case State.BACKOFF:
            return _after_back_off(spec, status, now)
        case State.WAITING | State.EXITED | State.FAILED if spec.schedule is not None:
            return f"{_skipped(status)}Sooner with: uphold start {name}."
        case State.RUNNING if spec.schedule is not None:
            return _while_it_runs(spec.schedule, status)
        case State.FAILED:
            return (
                "It is not started again by itself. Once the cause is mended: "
                f"uphold start {name} (or reset {name}); its output: uphold logs {name}."
            )
        case State.WAITING:
            return "It starts as soon as that is so."
        case State.EXITED:
            return _no_other_run(spec)
        case State.RUNNING:
            count = "never restarted" if not status.restarts else f"restarted {status.restarts} x"
            return f"Generation {status.generation}, {count} by itself."
        case _:
            return ""


def _after_back_off(spec: WorkerSpec, status: SlotStatus, now: Instant) -> str:
    if not still_comes_back(status, spec):
        return _no_other_run(spec)
    if exhausted(status, spec):
        return ""
    left = duration_text(max(0.0, due(status, spec) - now))
    runs = "1 failed run" if status.failures == 1 else f"{status.failures} failed runs"
    return (
        f"The rule is restart = {spec.restart} with back-off: {runs} in a row, "
        f"so the next start is in {left}; sooner with: uphold start {spec.name}."
    )


def _no_other_run(spec: WorkerSpec) -> str:
    return f"The rule restart = {spec.restart} wants no other run after this end."


def _skipped(status: SlotStatus) -> str:
    count = 0 if status.due is None else status.due.skipped
    if not count:
        return ""
    return "1 run was skipped so far. " if count == 1 else f"{count} runs were skipped so far. "


def _while_it_runs(schedule: Schedule, status: SlotStatus) -> str:
    if status.due is None:
        return ""
    if status.due.owed:
        return f"{_skipped(status)}Another run follows it directly."
    rule = {
        "skip": "is skipped if this one still goes on then",
        "queue": "waits for the end of this one",
        "kill": "ends this one if it still goes on then",
    }[schedule.overlap]
    return f"{_skipped(status)}Its next run, at {status.due.text}, {rule}."
