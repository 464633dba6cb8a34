"""Cron expressions: reading them, and the next time that one of them names.

Five fields as in Vixie cron, with its rule for days: where day of month and day of week are
both restricted, either is enough. Times are those of a zone; what a change of the clocks skips
or repeats is served once, as cron does. An expression with `*` for minute or hour means "all
the time", and simply follows the clock through such a change.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.patterns import pattern

if TYPE_CHECKING:
    from datetime import tzinfo

_LONGEST: Final = 200
_SOONEST_LEAP_DAY: Final = 8 * 366 + 1
"""Days within which every day of the calendar comes round: leap years may be eight apart."""
_MINUTE: Final = timedelta(minutes=1)
_MONTHS: Final = tuple("jan feb mar apr may jun jul aug sep oct nov dec".split(" "))  # noqa: SIM905 - to be read
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_STEP: Final = pattern(r"[0-9]{1,4}")

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Field(NamedTuple):
    """One of the five: what it is called, what it may be, and the names it knows."""

    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """What may be written here, for people."""
        words = f" or {self.words[0]} to {self.words[-1]}" if self.words else ""
        return f"{self.low} to {self.high}{words}, with '*', lists (1,2), ranges (1-5), steps (*/2)"


_FIELDS: Final = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day of month", 1, 31),
    Field("month", 1, 12, _MONTHS),
    Field("day of week", 0, 7, _DAYS),
)


class CronWrong(ValueError):  # noqa: N818 - a state of affairs, not an "error" by name
    """What is wrong with an expression, as the end of a sentence about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """One expression, read: which values of each field it names."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    either: bool
    """Day of month and day of week are both restricted: either is enough."""
    always: bool
    """Minute or hour is `*`: it means stretches of time, not times of the day."""

    def fits(self, day: datetime) -> bool:
        """Tell whether it names any time of this day."""
        if day.month not in self.months:
            return False
        by_date = day.day in self.days
        by_week = day.isoweekday() % 7 in self.weekdays
        return (by_date or by_week) if self.either else (by_date and by_week)


@lru_cache(maxsize=1024)
def parse(text: str) -> Cron:
    """Read an expression; CronWrong says which field is wrong and what is allowed there."""
    if len(text) > _LONGEST:
        raise CronWrong(f"is longer than {_LONGEST} characters")
    words = text.split()
    if len(words) == 1 and words[0].startswith("@"):
        words = _macro(words[0]).split()
    if len(words) != len(_FIELDS):
        names = ", ".join(field.name for field in _FIELDS)
        raise CronWrong(f"must have five fields ({names}); it has {len(words)}")
    minutes, hours, days, months, weekdays = (
        _values(word.lower(), field) for word, field in zip(words, _FIELDS, strict=True)
    )
    cron = Cron(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(day % 7 for day in weekdays),
        either=not words[2].startswith("*") and not words[4].startswith("*"),
        always=words[0].startswith("*") or words[1].startswith("*"),
    )
    if _next_day(cron, datetime(2000, 1, 1)) is None:  # noqa: DTZ001 - a day of any zone
        raise CronWrong("names a day that never comes")
    return cron


def _macro(word: str) -> str:
    if word.lower() == "@reboot":
        raise CronWrong("cannot be @reboot; use at_load = true for a run when it is declared")
    found = _MACROS.get(word.lower())
    if found is None:
        raise CronWrong(f"does not know {word!r}; there are {', '.join(_MACROS)}")
    return found


def _values(text: str, field: Field) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        found.update(_part(part, field))
    return found


def _part(part: str, field: Field) -> range:
    span, slash, step = part.partition("/")
    width = _step(step, part, field) if slash else 1
    if span == "*":
        return range(field.low, field.high + 1, width)
    first, dash, last = span.partition("-")
    low = _value(first, part, field)
    if not dash:
        if slash:
            raise _wrong(part, field, f"write {first}-{field.high}/{step} for every {step}th")
        return range(low, low + 1)
    high = _value(last, part, field)
    if field.words and last == "sun" and low > 0:
        high = 7
    if high < low:
        raise _wrong(part, field, "a range goes from the lower to the higher")
    return range(low, high + 1, width)


def _step(step: str, part: str, field: Field) -> int:
    if not _STEP.fullmatch(step) or int(step) == 0:
        raise _wrong(part, field, "a step is a whole number from 1")
    return int(step)


def _value(text: str, part: str, field: Field) -> int:
    if text in field.words:
        return field.words.index(text) + field.low
    if _STEP.fullmatch(text) and field.low <= int(text) <= field.high:
        return int(text)
    raise _wrong(part, field)


def _wrong(part: str, field: Field, hint: str = "") -> CronWrong:
    why = f"; {hint}" if hint else ""
    return CronWrong(f"has {part!r} as {field.name}{why}; allowed: {field.allowed}")


def next_time(cron: Cron, zone: tzinfo, wall: float) -> float | None:
    """Give the first time after `wall` that the expression names; None if the calendar ends."""
    try:
        return _follow(cron, zone, wall) if cron.always else _serve(cron, zone, wall)
    except (OverflowError, ValueError, OSError):
        return None


def _serve(cron: Cron, zone: tzinfo, wall: float) -> float | None:
    """Go by times of day: a skipped one comes with the jump, a repeated one the first time."""
    local = _next_local(cron, _local(zone, wall))
    while local is not None:
        at = local.replace(tzinfo=zone, fold=0).timestamp()
        if _local(zone, at) != local:  # no clock shows this time: it was jumped over
            at = _jump(zone, local.replace(tzinfo=zone, fold=1).timestamp(), at)
        if at > wall:
            return at
        local = _next_local(cron, local)
    return None


def _follow(cron: Cron, zone: tzinfo, wall: float) -> float | None:
    """Go by what the clock shows, whenever it does: the second time too."""
    since = wall
    local = _next_local(cron, _local(zone, since))
    while local is not None:
        offset = _offset(zone, since)
        at = (local - offset).replace(tzinfo=UTC).timestamp()
        if _offset(zone, at) == offset:
            return at
        # The clock was changed in between: go on from there, its first minute included.
        since = _jump(zone, since, at)
        local = _next_local(cron, _local(zone, since) - _MINUTE)
    return None


def _jump(zone: tzinfo, before: float, after: float) -> float:
    """Find the moment between these two at which the zone's clocks were changed."""
    offset = _offset(zone, before)
    low, high = int(before // 1), int(-(-after // 1))
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, middle) == offset:
            low = middle
        else:
            high = middle
    return float(high)


def _local(zone: tzinfo, wall: float) -> datetime:
    return datetime.fromtimestamp(wall, zone).replace(tzinfo=None, fold=0)


def _offset(zone: tzinfo, wall: float) -> timedelta:
    offset = datetime.fromtimestamp(wall, zone).utcoffset()
    assert offset is not None
    return offset


def _next_local(cron: Cron, after: datetime) -> datetime | None:
    """Give the first minute later than this one's beginning, as the clock on the wall shows it."""
    start = after.replace(second=0, microsecond=0) + _MINUTE
    day: datetime | None = start
    while day is not None:
        if cron.fits(day):
            found = _next_minute(cron, day)
            if found is not None:
                return found
        day = _next_day(cron, day)
    return None


def _next_minute(cron: Cron, start: datetime) -> datetime | None:
    for hour in cron.hours:
        if hour < start.hour:
            continue
        least = start.minute if hour == start.hour else 0
        minute = next((each for each in cron.minutes if each >= least), None)
        if minute is not None:
            return start.replace(hour=hour, minute=minute)
    return None


def _next_day(cron: Cron, day: datetime) -> datetime | None:
    """Give the beginning of the next day that fits."""
    day = day.replace(hour=0, minute=0)
    for _ in range(_SOONEST_LEAP_DAY):
        day += timedelta(days=1)
        if cron.fits(day):
            return day
    return None


@lru_cache(maxsize=256)
def find_zone(name: str) -> tzinfo:
    """Find a time zone by its name; CronWrong if this machine does not know it."""
    if name.upper() == "UTC":
        return UTC
    # Only those who use zones pay for the library and its tables.
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415

    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        pass
    if not available_timezones():
        raise CronWrong(
            f"{name!r} cannot be looked up: this machine has no time zone database; "
            "install the package 'tzdata', or use UTC"
        )
    raise CronWrong(f"must be the name of a time zone such as 'Europe/Berlin'; it is {name!r}")
