"""What an import yields: workers, and a verdict on every setting of the source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from uphold.core.names import is_worker_name

Terms = dict[str, Any]
"""Keys of a worker on their way into a file."""

NO_SUCH_SETTING: Final = "uphold has no such setting; docs/configuration.md tells what there is"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
_RESERVED: Final = frozenset({"runtime", "supervisor"})
"""Uphold's own logs are called so."""
_LONGEST_NAME: Final = 64


class Verdict(StrEnum):
    """What became of one setting."""

    TRANSLATED = "translated"
    APPROXIMATED = "approximated"
    LOST = "lost"


class Setting(NamedTuple):
    """One setting as the source gives it."""

    at: str
    """File and line; only the file for what holds although nobody wrote it."""
    section: str
    name: str
    value: Any


class Outcome(NamedTuple):
    """What became of a setting, and how; for what is lost: why, and what to do instead."""

    verdict: Verdict
    how: str


class Line(NamedTuple):
    """One line of the parity report."""

    at: str
    section: str
    setting: str
    verdict: Verdict
    how: str
    worker: str | None
    """The worker it concerns, if it is a single one."""


class NotImportable(Exception):  # noqa: N818 - a state of affairs; becomes an error at the front
    """The source cannot be read as what it is; the text says where and why."""

    def __init__(self, at: str, text: str) -> None:
        super().__init__(f"{at}: {text}")
        self.at = at
        self.text = text


@dataclass(frozen=True, slots=True)
class Draft:
    """One worker to be: its keys as they will stand in the file."""

    name: str
    terms: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """A whole source, translated as far as it can be."""

    kind: str
    workers: tuple[Draft, ...]
    report: tuple[Line, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    supervisor: Mapping[str, Any] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Count the settings by verdict."""
        return {
            verdict.value: sum(line.verdict is verdict for line in self.report)
            for verdict in Verdict
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A text to be imported, and what may be asked about the files around it."""

    name: str
    """The file as people recognise it, for messages."""
    text: str
    folder: str = "."
    """Where it lies."""
    target: str | None = None
    """Where the configuration will lie; None: beside the source."""
    host: str = "localhost"
    """What the machine is called."""
    read: Callable[[str], str | None] = lambda _path: None
    """Reads another file of the source; None if it cannot be read."""
    find: Callable[[str], tuple[str, ...]] = lambda _pattern: ()
    """Lists the files that a pattern matches."""

    def at(self, line: int) -> str:
        """Name a line."""
        return f"{self.name}:{line}"

    def path(self, path: str) -> str:
        """Write a path of the source so that it means the same in the configuration."""
        if path.startswith(("/", "$")) or self.target in (None, self.folder):
            return path
        inner = path.removeprefix("./")
        folder = self.folder.rstrip("/")
        return f"{folder}/{inner}" if inner not in (".", "") else folder or "/"

    def working_dir(self) -> dict[str, str]:
        """Say where workers run that name no folder: where the source lies."""
        return {} if self.path(".") == "." else {"working_dir": self.path(".")}


class Book:
    """Collects the verdicts; whatever nobody has judged is lost, and is said to be."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str, str], Line] = {}

    def expect(self, *settings: Setting) -> None:
        """Put settings down in the order of the source, before they are judged."""
        for setting in settings:
            key = (setting.at, setting.section, setting.name)
            if key not in self._lines:
                self.judge(setting, lost("this version does not know it; it was left out"))

    def judge(self, setting: Setting, outcome: Outcome, worker: str | None = None) -> None:
        """Give the verdict on one setting; a later verdict replaces an earlier one."""
        key = (setting.at, setting.section, setting.name)
        self._lines[key] = Line(*key, outcome.verdict, outcome.how, worker)

    def lines(self) -> tuple[Line, ...]:
        """Give the whole report, in the order of the source."""
        return tuple(self._lines.values())


class Names:
    """Gives every worker a name that is allowed and that no other has."""

    def __init__(self) -> None:
        self._taken: set[str] = set(_RESERVED)

    def give(self, wanted: str) -> str:
        """Give the wanted name, or the nearest one that is free."""
        name = _NOT_IN_NAMES.sub("-", wanted).lstrip("-_")[:_LONGEST_NAME] or "worker"
        number = 1
        free = name
        while free.lower() in self._taken:
            number += 1
            free = f"{name[: _LONGEST_NAME - 6]}-{number}"
        self._taken.add(free.lower())
        assert is_worker_name(free), free
        return free


def translated(how: str) -> Outcome:
    """Say that a setting means the same here."""
    return Outcome(Verdict.TRANSLATED, how)


def approximated(how: str) -> Outcome:
    """Say that a setting became something near it, and how that differs."""
    return Outcome(Verdict.APPROXIMATED, how)


def lost(why: str) -> Outcome:
    """Say that a setting has no counterpart, why, and what to do instead."""
    return Outcome(Verdict.LOST, why)
