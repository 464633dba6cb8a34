"""Schedules in a configuration: the kinds of their keys, and what must hold between keys."""
# The methods of every kind are explained once, in `Kind`.
# ruff: noqa: D102

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uphold.config.variables import Substituted
from uphold.core.specs import RestartPolicy

if TYPE_CHECKING:
    from uphold.config.places import Place
    from uphold.core.crons import CronWrong
    from uphold.core.specs import Schedule


@dataclass(frozen=True, slots=True)
class CronText:
    """A cron expression."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, str):
            return place.must("text such as '*/5 * * * *'", value)
        from uphold.core.crons import CronWrong, parse  # noqa: PLC0415 - only for who has one

        try:
            parse(str(value))
        except CronWrong as wrong:
            return _refused(value, wrong, "a cron expression", place)
        return " ".join(value.split())

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class ZoneName:
    """The name of a time zone that this machine knows."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, str):
            return place.must("the name of a time zone such as 'Europe/Berlin'", value)
        from uphold.core.crons import CronWrong, find_zone  # noqa: PLC0415 - only for who has one

        try:
            find_zone(str(value))
        except CronWrong as wrong:
            return _refused(value, wrong, "the name of a time zone", place)
        return str(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}


def _refused(value: str, wrong: CronWrong, rule: str, place: Place) -> object:
    # What a variable held is never shown, and the exact reason quotes it.
    return place.must(rule, value) if isinstance(value, Substituted) else place.wrong(str(wrong))


def is_whole(key: str, value: Any) -> bool:
    """Tell whether what [defaults] says is enough by itself; a mere time zone is no schedule."""
    return key != "schedule" or "every" in value or "cron" in value


def settle_schedule(terms: dict[str, Any], given: dict[str, Any], place: Place) -> None:
    """Fit a worker's other keys to its schedule, and note what cannot be about them together."""
    schedule = terms.get("schedule")
    if schedule is None:
        return
    written = given.get("schedule")
    _check_times(schedule, written if isinstance(written, dict) else {}, place.inside("schedule"))
    if terms.get("restart", RestartPolicy.ALWAYS) is RestartPolicy.ALWAYS:
        if "restart" in given:
            place.inside("restart").wrong("must be 'no' or 'on-failure' for a worker on a schedule")
        terms["restart"] = RestartPolicy.NO
    if terms.get("essential"):
        place.inside("essential").wrong("cannot be true for a worker on a schedule: it always ends")


def _check_times(schedule: Schedule, written: dict[str, Any], place: Place) -> None:
    if schedule.every is not None and schedule.cron is not None:
        place.wrong("must say every or cron, not both")
    elif schedule.every is not None and "timezone" in written:
        place.wrong("has a timezone, which only cron goes by; every counts seconds")
    elif schedule.every is None and schedule.cron is None and not {"every", "cron"} & set(written):
        place.wrong("must say every or cron, for example { every = '10m' }")
