"""When a scheduled worker runs next, and what is to be done about it now. Pure.

`every` goes by the monotonic clock alone. `cron` means the clock on the wall: both clocks are
handed in, and what a jump of the wall clock passes over is not made up for. The next run is
decided once, recorded as a `Due`, and then only looked at.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.core.actions import Appoint, Skip, Stop, Wait
from uphold.core.altering import alter
from uphold.core.specs import Instant
from uphold.core.statuses import RESTING, Due, State
from uphold.core.times import utc_text

if TYPE_CHECKING:
    from uphold.core.actions import Action
    from uphold.core.declaring import Entry
    from uphold.core.events import Moment
    from uphold.core.specs import Schedule
    from uphold.core.statuses import SlotStatus

    Spans = tuple[tuple[float, float], ...]

_ON_TIME: Final = 60.0
"""Seconds by which a run may be late and still takes place."""
_ROUNDING: Final = 1e-6
"""A sum of times may be off by less: what wakes up at the end of that minute must find it over."""
_NAP: Final = 30.0
"""The longest sleep before a time of the wall clock: that clock may be set meanwhile."""
_SET_BACK: Final = 1.0
"""Seconds by which the wall clock must be behind what was expected to count as set back."""
_MINUTE: Final = 60.0
_MOST_SPANS: Final = 8
_END_OF_TIME: Final = 253402300799.0
"""The last second that can be written: for what never comes."""


class Run(NamedTuple):
    """It is to be started now."""

    why: str
    owed: bool = False
    """Whatever it has to wait for, it is not too late."""


class Look(Enum):
    """How a decided run stands to the present."""

    EARLY = "early"
    DUE = "due"
    MISSED = "missed"
    VOID = "void"
    """The clock was set back behind times that have not been served."""


def rule_text(schedule: Schedule) -> str:
    """Write a schedule in a few words; a different one reads differently."""
    if schedule.every is not None:
        return f"every {schedule.every:g} s"
    return f"cron {schedule.cron} {schedule.timezone}"


def next_text(due: Due) -> str:
    """Say when the next run is, as a slot's reason to wait."""
    return f"next run at {due.text}"


def next_run_at(entry: Entry, status: SlotStatus, now: Moment) -> float | None:
    """Give the wall time of the next run, for a slot at rest that waits for nothing else."""
    schedule, due = entry.spec.schedule, status.due
    if schedule is None or due is None or status.state not in RESTING:
        return None
    if status.state is State.WAITING and status.why != next_text(due):
        return None
    at = due.wall if schedule.every is None else now.wall + max(0.0, due.at - now.mono)
    return at if 0.0 <= at < _END_OF_TIME else None  # books may be damaged


def next_after(schedule: Schedule, wall: float) -> float:
    """Give the first time after this one that a cron schedule names."""
    from uphold.core.crons import CronWrong, find_zone, next_time, parse  # noqa: PLC0415 - rare

    assert schedule.cron is not None
    try:
        found = next_time(parse(schedule.cron), find_zone(schedule.timezone), wall)
    except CronWrong:  # files with such a thing are refused; a program may have made it
        found = None
    return _END_OF_TIME if found is None else found


def first(schedule: Schedule, now: Moment, before: Due | None, started_wall: float = 0.0) -> Due:
    """Decide the next run of a worker that begins to wait; `before` is what was decided last."""
    skipped = 0 if before is None else before.skipped
    if schedule.every is not None:
        return _every(schedule, now, Instant(now.mono + schedule.every), skipped)
    spans: Spans = () if before is None else before.spans
    if before is None and started_wall:  # the books of an earlier boot know that much
        spans = ((started_wall - _MINUTE, started_wall), (now.wall, now.wall))
    return _cron(schedule, now, spans, skipped)


def after_start(schedule: Schedule, now: Moment, due: Due | None, started_wall: float) -> Due:
    """Decide the run that follows one which is started now, for whatever reason."""
    if due is None or due.rule != rule_text(schedule) or schedule.every is not None:
        return first(schedule, now, due, started_wall)
    if due.wall > now.wall:  # somebody wanted it ahead of its time, which stays
        return alter(due, owed=False)
    *others, (begin, _) = due.spans or ((due.wall, due.wall),)
    return _cron(schedule, now, (*others, (min(begin, due.wall), due.wall)), due.skipped)


def after_retry(schedule: Schedule, now: Moment, due: Due | None, started_wall: float) -> Due:
    """Decide the run that follows one which is tried again now: a time still to come stays."""
    same = due is not None and due.rule == rule_text(schedule)
    if due is not None and same and look(schedule, due, now) is Look.EARLY:
        return alter(due, owed=False)
    return after_start(schedule, now, due, started_wall)


def after_skip(schedule: Schedule, now: Moment, due: Due) -> Due:
    """Decide the run that follows one which does not take place."""
    skipped = due.skipped + 1
    if schedule.every is not None:
        passed = int((now.mono - due.at) // schedule.every) + 1
        at = Instant(due.at + passed * schedule.every)
        after = _every(schedule, now, at, skipped)
    else:
        missed = look(schedule, due, now) is Look.MISSED
        # What was jumped over has not had its turn: if the clock is put right, it will.
        spans = (*due.spans, (now.wall, now.wall)) if missed else due.spans
        after = _cron(schedule, now, spans, skipped)
    return alter(after, owed=due.owed)


def _every(schedule: Schedule, now: Moment, at: Instant, skipped: int) -> Due:
    wall = now.wall + (at - now.mono)
    return Due(
        at=at, wall=wall, rule=rule_text(schedule), text=_utc_minute_text(wall), skipped=skipped
    )


def _cron(schedule: Schedule, now: Moment, spans: Spans, skipped: int) -> Due:
    spans = _present_last(spans, now.wall)[-_MOST_SPANS:]
    wall = next_after(schedule, now.wall)
    # Nothing has its turn twice, wherever the clock was set back to.
    for begin, end in sorted(spans):
        if begin <= wall <= end:
            wall = next_after(schedule, end)
    return Due(
        at=Instant(now.mono + (wall - now.wall)),
        wall=wall,
        rule=rule_text(schedule),
        text=_zone_text(schedule, wall),
        spans=spans,
        skipped=skipped,
    )


def _present_last(spans: Spans, wall: float) -> Spans:
    """Put the stretch last that the clock goes on in; a new one if it was set to before it."""
    if spans and spans[-1][0] <= wall:
        return spans
    for span in spans:
        if span[0] <= wall <= span[1]:
            return (*(each for each in spans if each is not span), span)
    return (*spans, (wall, wall))


def look(schedule: Schedule, due: Due, now: Moment) -> Look:
    """Tell whether a decided run is due, still to come, or too late."""
    late = now.wall - due.wall if schedule.every is None else now.mono - due.at
    if late < 0:
        behind = (due.wall - now.wall) - (due.at - now.mono)
        if schedule.every is None and behind > _SET_BACK:
            return Look.VOID if _again(schedule, due, now).wall < due.wall else Look.EARLY
        return Look.EARLY
    return Look.DUE if late < _ON_TIME - _ROUNDING else Look.MISSED


def wake(schedule: Schedule, due: Due, now: Moment) -> Instant:
    """Say when to look again at a run that is still to come."""
    if schedule.every is not None:
        return due.at
    return Instant(now.mono + min(_NAP, due.wall - now.wall))


def too_late_at(schedule: Schedule, due: Due, now: Moment) -> Instant:
    """Say when to look again at a run that is due and has to wait for something else."""
    if schedule.every is not None:
        return Instant(due.at + _ON_TIME)
    return Instant(now.mono + min(_NAP, due.wall + _ON_TIME - now.wall))


def _again(schedule: Schedule, due: Due, now: Moment) -> Due:
    return alter(_cron(schedule, now, due.spans, due.skipped), owed=due.owed)


def plan_at_rest(schedule: Schedule, status: SlotStatus, now: Moment) -> Action | Instant | Run:
    """Decide about a slot without a process that is on a schedule and nobody has asked for."""
    due = status.due
    if due is not None and due.owed:
        return Run("its run was put off until now")
    if due is None or due.rule != rule_text(schedule) or status.state is State.STOPPED:
        if schedule.at_load and status.state is State.STOPPED:
            return Run("declared", owed=True)
        return _appoint(status, first(schedule, now, due, status.started_wall))
    match look(schedule, due, now):
        case Look.DUE:
            return Run(f"its schedule: {due.rule}")
        case Look.MISSED:
            after = after_skip(schedule, now, due)
            return Skip(slot=status.slot, why="nobody could start it in time", due=after)
        case Look.VOID:
            return _appoint(status, _again(schedule, due, now))
        case Look.EARLY:
            if _is_calm(status) and status.why != next_text(due):
                return _appoint(status, due)
            return wake(schedule, due, now)


def plan_running(schedule: Schedule, status: SlotStatus, now: Moment) -> Action | Instant:
    """Decide about a slot that runs and is on a schedule: its next run may be due."""
    due = status.due
    if due is None or due.rule != rule_text(schedule):
        return _appoint(status, first(schedule, now, due, status.started_wall))
    match look(schedule, due, now):
        case Look.EARLY:
            return wake(schedule, due, now)
        case Look.VOID:
            return _appoint(status, _again(schedule, due, now))
        case Look.MISSED:
            pass
        case Look.DUE if schedule.overlap == "queue" and not due.owed:
            after = after_start(schedule, now, due, status.started_wall)
            why = "the last run still goes on"
            return Appoint(slot=status.slot, why=why, due=alter(after, owed=True))
        case Look.DUE if schedule.overlap == "kill":
            after = after_start(schedule, now, due, status.started_wall)
            why = "its next run is due, and overlap = kill"
            return Stop(slot=status.slot, why=why, due=alter(after, owed=True))
    after = after_skip(schedule, now, due)
    return Skip(slot=status.slot, why="the last run still goes on", due=after)


def _is_calm(status: SlotStatus) -> bool:
    """Tell whether a slot waits, or may: one that failed shows that until its next run."""
    return status.state in (State.STOPPED, State.WAITING) or (
        status.state is State.EXITED and status.error is None
    )


def _appoint(status: SlotStatus, due: Due) -> Action:
    if _is_calm(status):
        return Wait(slot=status.slot, why=next_text(due), due=due)
    return Appoint(slot=status.slot, why=next_text(due), due=due)


def _utc_minute_text(wall: float) -> str:
    try:
        return f"{utc_text(wall)[:19].replace('T', ' ')} UTC"
    except (OverflowError, ValueError, OSError):
        return "no time that can be written"


def _zone_text(schedule: Schedule, wall: float) -> str:
    if wall == _END_OF_TIME:
        return "no time that ever comes"
    from uphold.core.crons import find_zone  # noqa: PLC0415 - rare

    moment = datetime.fromtimestamp(wall, find_zone(schedule.timezone))
    return f"{moment:%Y-%m-%d %H:%M} {schedule.timezone}"
