"""One thing that was looked at: how it is, in a sentence, and what would mend it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from uphold.errors import ConfigInvalid, UpholdError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Level(StrEnum):
    """How bad it is: fine, worth a look, or in the way."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """What one check came to."""

    check: str
    level: Level
    detail: str
    remedy: str = ""


def ok(check: str, detail: str) -> Finding:
    """Say that something is as it should be."""
    return Finding(check, Level.OK, detail)


def warn(check: str, detail: str, remedy: str) -> Finding:
    """Say that something works and deserves a look."""
    return Finding(check, Level.WARN, detail, remedy)


def fail(check: str, detail: str, remedy: str) -> Finding:
    """Say that something does not work."""
    return Finding(check, Level.FAIL, detail, remedy)


def look(check: str, looking: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Do one check; whatever it runs into is its finding, and the others go on."""
    try:
        return list(looking())
    except ConfigInvalid as error:
        lines = [line.strip() for line in error.message.splitlines()]
        return [fail(check, " ".join(lines), "See all of it with: uphold check")]
    except UpholdError as error:
        return [fail(check, error.message, error.remedy)]
    except Exception as error:  # noqa: BLE001 - a doctor who falls ill is of no use
        return [fail(check, f"it could not be looked at: {error!r}", "Look at it by hand.")]
