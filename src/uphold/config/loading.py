"""Reading a configuration file: from a path to `Settings`, or to everything wrong with it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from uphold.config import keys
from uphold.config.documents import DEEPEST, Unparsable, parse
from uphold.config.dotenv import parse_env
from uphold.config.files import NotRead, Shelf, as_recognised
from uphold.config.places import UNREAD, Enough, Report, path_text
from uphold.config.resolving import Resolver
from uphold.config.secrecy import Secrets
from uphold.config.variables import Substituted, substitute
from uphold.core.specs import Settings
from uphold.errors import ConfigInvalid, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from uphold.config.documents import Document
    from uphold.config.places import Where
    from uphold.config.resolving import EnvFile

MISSING: Final = "UPH_CONFIG_MISSING"
_NOT_WORKERS: Final = frozenset({"supervisor", "journal", "store", "inbox", "deploy", "defaults"})
_SECRET_KEYS: Final = frozenset({"environment", "command", "store", "senders"})
"""Where secrets go: a variable used elsewhere names things that are meant to be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The outcome of one look at a configuration and the files it is made of."""

    settings: Settings | None
    """None when there are problems."""
    problems: tuple[Problem, ...]
    marks: Mapping[str, int | None]
    """Every file that was looked at, and a mark of what it held (None: nothing readable)."""
    missing: bool = False

    def settings_or_raise(self) -> Settings:
        """Give the settings; ConfigInvalid with every problem if there are none."""
        if self.settings is None:
            raise ConfigInvalid(list(self.problems), code=MISSING if self.missing else None)
        return self.settings


def load(path: str | os.PathLike[str], *, environ: Mapping[str, str]) -> Settings:
    """Read a configuration file; ConfigInvalid names everything wrong with it at once."""
    return examine(path, environ=environ).settings_or_raise()


def examine(path: str | os.PathLike[str], *, environ: Mapping[str, str]) -> Reading:
    """Look at a configuration file and say what it means or what is wrong with it."""
    return _Examination(os.path.abspath(path), environ).outcome()  # noqa: PTH100 - links stay


class _Examination:
    """One look at one file."""

    def __init__(self, path: str, environ: Mapping[str, str]) -> None:
        self._path = path
        self._shown = as_recognised(path)
        self._folder = os.path.dirname(path)  # noqa: PTH120 - text is enough
        self._environ = environ
        self._shelf = Shelf()
        self._report = Report()
        self._secrets = Secrets()
        self._env_files: dict[str, EnvFile] = {}

    def outcome(self) -> Reading:
        try:
            text = self._shelf.read(self._path)
            document = parse(text, self._path)
        except NotRead as cause:
            problem = Problem(self._shown, f"the file {cause.text}.")
            return self._failed(problem, missing=cause.missing)
        except Unparsable as cause:
            faults = (*cause.before, (cause.line, f"{cause.text}."))
            return self._failed(*(Problem(f"{self._shown}:{line}", text) for line, text in faults))
        # A backslash may spell a dollar sign; without either there is nothing to substitute.
        settings: Settings | None = None
        with suppress(Enough):
            settings = self._settings(document, variables="$" in text or "\\" in text)
        problems = self._report.problems(self._shown, document.line_of, document.faults)
        return Reading(
            settings=None if problems else settings,
            problems=tuple(problems),
            marks=self._shelf.marks,
        )

    def _failed(self, *problems: Problem, missing: bool = False) -> Reading:
        marks = self._shelf.marks
        return Reading(settings=None, problems=problems, marks=marks, missing=missing)

    def _settings(self, document: Document, *, variables: bool) -> Settings | None:
        tables = document.tables
        part: Any = tables.get(keys.WRAPPER)
        where: Where = ()
        if isinstance(part, dict):
            tables, where = part, (keys.WRAPPER,)
        if not tables:
            self._report.wrong(where, "the file is empty; it must declare [workers].")
            return None
        if tables.keys() <= _NOT_WORKERS:
            # A file that was cut short must not read as a wish for nothing (P12).
            self._report.wrong(where, "the file declares no [workers]; an empty table is fine.")
            return None
        lookup = self._lookup()
        if variables:
            tables = self._expanded(tables, where, lookup, 0)
        resolver = Resolver(
            folder=self._folder,
            root=where,
            report=self._report,
            secrets=self._secrets,
            env_file=self._env_file,
        )
        return resolver.settings(tables, self._path)

    def _lookup(self) -> dict[str, str]:
        path = os.path.join(self._folder, ".env")  # noqa: PTH118 - text is enough
        # A folder of this name is somebody's virtual environment, not a mistake.
        found = {} if os.path.isdir(path) else self._env_file(path)  # noqa: PTH112 - text is enough
        if isinstance(found, NotRead):
            if not found.missing:
                self._report.wrong_in(as_recognised(path), f"the file {found.text}.")
            return dict(self._environ)
        for name, value in found.items():
            self._secrets.named(name, value)
        return {**found, **self._environ}

    def _env_file(self, path: str) -> EnvFile:
        if path not in self._env_files:
            self._env_files[path] = self._read_env_file(path)
        return self._env_files[path]

    def _read_env_file(self, path: str) -> EnvFile:
        try:
            values, faults = parse_env(self._shelf.read(path))
        except NotRead as cause:
            return cause
        for line, text in faults:
            self._report.wrong_in(f"{as_recognised(path)}:{line}", text)
        return values

    def _expanded(self, value: Any, where: Where, lookup: Mapping[str, str], depth: int) -> Any:
        if isinstance(value, str):
            return self._substituted(value, where, lookup) if "$" in value else value
        if not isinstance(value, dict | list):
            return value
        if depth > DEEPEST:
            self._report.wrong(where, "tables or lists are nested too deeply.")
            return UNREAD
        if isinstance(value, dict):
            return {
                key: self._expanded(item, (*where, key), lookup, depth + 1)
                for key, item in value.items()
            }
        items = [
            item
            if isinstance(item, str) and "$" not in item
            else self._expanded(item, (*where, at), lookup, depth + 1)
            for at, item in enumerate(value)
        ]
        return UNREAD if any(item is UNREAD for item in items) else items

    def _substituted(self, text: str, where: Where, lookup: Mapping[str, str]) -> Any:
        def wrong(what: str) -> None:
            self._report.wrong(where, f"{path_text(where)}: {what}")

        result = substitute(text, lookup, wrong)
        if result is None:
            return UNREAD
        if isinstance(result, Substituted):
            for name, value in set(result.pieces):
                if name and _SECRET_KEYS.intersection(where):
                    self._secrets.handed_in(name, value)
                elif name:
                    self._secrets.named(name, value)
        return result
