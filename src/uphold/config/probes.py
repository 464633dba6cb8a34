"""How readiness and life are asked for: the tables `ready`, `live` and `heartbeat`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from uphold.config.kinds import Choice, Duration, FilePath, Flag, Text, Whole
from uphold.config.places import UNREAD
from uphold.config.shapes import Command, Key, Table
from uphold.core.addresses import parse_host_and_port, parse_url
from uphold.core.specs import Heartbeat, Probe

if TYPE_CHECKING:
    from uphold.config.places import Place

_DAY: Final = 86400.0
_YEAR: Final = 365 * _DAY
_LONGEST_PATTERN: Final = 1000
WAYS: Final = ("http", "tcp", "exec", "log", "notify", "fd")


@dataclass(frozen=True, slots=True)
class Address(Text):
    """An address to connect to: a URL, or `host:port`."""

    url: bool = False

    def read(self, value: object, place: Place) -> object:  # noqa: D102 - explained in Kind
        if not self.url and isinstance(value, int) and not isinstance(value, bool):
            value = f"127.0.0.1:{value}"
        found = Text.read(self, value, place)
        if not isinstance(found, str):
            return found
        if self.url:
            right = parse_url(found) is not None
            rule = "must be a URL such as http://127.0.0.1:8001/health, without a password"
        else:
            right = parse_host_and_port(found) is not None
            rule = "must be host:port such as 127.0.0.1:5432, or a port"
        return found if right else place.wrong(rule)

    def schema(self) -> dict[str, Any]:  # noqa: D102 - explained in Kind
        return {"type": "string"} if self.url else {"type": ["string", "integer"]}


@dataclass(frozen=True, slots=True)
class Pattern(Text):
    """A regular expression that is looked for in lines."""

    def read(self, value: object, place: Place) -> object:  # noqa: D102 - explained in Kind
        found = Text.read(self, value, place)
        if not isinstance(found, str):
            return found
        if len(found) > _LONGEST_PATTERN:
            return place.wrong(f"must not be longer than {_LONGEST_PATTERN} characters")
        try:
            re.compile(found)
        except (re.error, RecursionError, OverflowError) as cause:
            return place.wrong(f"is no regular expression: {cause}")
        return found


@dataclass(frozen=True, slots=True)
class ProbeTable(Table):
    """A table with one way to ask among its keys."""

    def read(self, value: object, place: Place) -> object:  # noqa: D102 - explained in Kind
        found = Table.read(self, value, place)
        if not isinstance(found, dict) or not isinstance(value, dict):
            return found
        # What was wrong with the way has been said; that none is left need not be.
        lost = any(name in value and name not in found for name in WAYS)
        return UNREAD if lost else found


def _timing(failures: str) -> tuple[Key, ...]:
    return (
        Key("every", Duration(0.1, _DAY), "10s", "Time from one question to the next."),
        Key("timeout", Duration(0.01, 3600), "1s", "How long an answer may take."),
        Key("successes", Whole(1, 1000), 1, "Good answers in a row that count as one."),
        Key("failures", Whole(1, 1000), 3, failures),
        Key("initial_delay", Duration(0, _DAY), "0s", "Time before the first question."),
    )


def _ways(*left_out: str) -> tuple[Key, ...]:
    every = (
        Key("http", Address(url=True), None, "A URL that must answer with 200 to 399."),
        Key("tcp", Address(), None, "A host:port, or port, that must accept a connection."),
        Key("exec", Command(), None, "A command that must exit with 0."),
        Key("log", Pattern(), None, "A regular expression that a line of its log must match."),
        Key("notify", Flag(), None, "It says READY=1 to $NOTIFY_SOCKET by itself."),
        Key("fd", Whole(4, 255), None, "It writes a line to this descriptor by itself."),
    )
    return tuple(key for key in every if key.name not in left_out)


def _probe(**given: Any) -> Probe:
    """Make the probe that a checked table describes."""
    way = next((name for name in WAYS if given.get(name) not in (None, False)), "tcp")
    target = given.get(way)
    timing = {key: value for key, value in given.items() if key not in WAYS}
    if way == "exec":
        return Probe(way=way, command=target if isinstance(target, tuple) else (), **timing)
    return Probe(way=way, target="" if way == "notify" else str(target or ""), **timing)


def check_probe(value: dict[str, Any], place: Place) -> None:
    """Say what is wrong with a table as a whole."""
    chosen = [name for name in WAYS if value.get(name) not in (None, False)]
    if not chosen:
        place.wrong("says no way to ask: one of http, tcp, exec, log, notify or fd")
    elif len(chosen) > 1:
        place.wrong(f"has {' and '.join(chosen)}; choose one")


def over_defaults(below: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Lay a worker's table over that of [defaults]; another way replaces the one below."""
    if any(name in own for name in WAYS):
        below = {name: value for name, value in below.items() if name not in WAYS}
    return {**below, **own}


READY: Final = ProbeTable(
    (*_ways(), *_timing("Bad answers in a row after which it is no longer ready.")), build=_probe
)
LIVE: Final = ProbeTable(
    (
        *_ways("log", "notify", "fd"),
        *_timing("Bad answers in a row after which it is ended and started again."),
    ),
    build=_probe,
)
HEARTBEAT: Final = Table(
    (
        Key("file", FilePath(), None, "Where it writes its beats; else they come by notify."),
        Key("stale_after", Duration(0.1, _YEAR), "5m", "Time after which a beat is missing."),
        Key(
            "on_stale",
            Choice(("degrade", "restart")),
            "degrade",
            "What three missing beats in its file lead to.",
        ),
        Key("stall_after", Duration(0.1, _YEAR), None, "How long its progress may stand still."),
    ),
    build=Heartbeat,
)
