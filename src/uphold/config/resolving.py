"""What the file says becomes `Settings`: defaults merged, paths absolute, commands split.

Tables (backoff, stop, limits, logs, environment, labels) are merged with those of [defaults]
key by key; everything else a worker says replaces what [defaults] says. Equal parts are shared
between workers: a thousand of them mostly say the same.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Any, Final

from uphold.config import keys
from uphold.config.files import NotRead
from uphold.config.linking import check_links
from uphold.config.places import Place, Report, shown
from uphold.config.secrecy import Secrets
from uphold.config.shapes import OWN_VARIABLES, Table
from uphold.config.variables import Substituted
from uphold.core.names import NAME_RULE, is_worker_name, nearest
from uphold.core.specs import Settings, SupervisorSpec, WorkerSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.config.places import Where

    EnvFile = dict[str, str] | NotRead

_SIMPLE_COMMAND: Final = re.compile(r"[^'\"\\]*")
_WORD: Final = re.compile(r"[^ \t\r\n]+")
_MARK: Final = "\ue000{}\ue001"
"""Stands for a variable's value while a command is split, so that it stays one word."""
_MARKED: Final = re.compile("\ue000([0-9]+)\ue001")


_OUR_LOGS: Final = frozenset({"runtime", "supervisor"})
"""Names whose log files are uphold's own."""


class Resolver:
    """Turns one file's tables into settings; everything wrong goes to the report."""

    def __init__(
        self,
        *,
        folder: str,
        root: Where,
        report: Report,
        secrets: Secrets,
        env_file: Callable[[str], EnvFile],
    ) -> None:
        self._folder = folder
        self._root = root
        self._report = report
        self._secrets = secrets
        self._env_file = env_file
        """Reads an env_file by its absolute path."""
        self._shared: dict[Any, Any] = {}
        self._defaults: dict[str, Any] = {}
        self._given: dict[str, Any] = {}
        """[defaults] as written: a wrong value there is reported once, and there."""

    def settings(self, tables: dict[str, Any], source: str) -> Settings:
        """Resolve the whole file. The result is only of use if the report stayed empty."""
        self._check_sections(tables)
        supervisor = self._table(keys.SUPERVISOR, tables, "supervisor")
        supervisor.pop("home", None)  # `finding` tells the home; it is no matter of the engine
        self._defaults = self._table(keys.WORKER, tables, "defaults")
        self._given = tables.get("defaults") or {}
        workers = self._workers(tables.get("workers"))
        check_links(workers, self._report, self._root)
        return Settings(
            supervisor=SupervisorSpec(**{"name": _host_name(), **supervisor}),
            workers=tuple(workers),
            source=source,
            secrets=self._secrets.all(),
        )

    def _check_sections(self, tables: dict[str, Any]) -> None:
        top = Place(self._report, self._root, "the file")
        for name in tables:
            if name in keys.LATER_SECTIONS:
                top.inside(name).later()
            elif name not in keys.SECTIONS:
                meant = "workers" if name in ("programs", "services", "processes") else None
                top.unknown(name, (*keys.SECTIONS, *keys.LATER_SECTIONS), meant)

    def _table(self, table: Table, tables: dict[str, Any], section: str) -> dict[str, Any]:
        place = Place(self._report, (*self._root, section), f"[{section}]")
        found = table.read(tables.get(section), place)
        return found if isinstance(found, dict) else {}

    def _workers(self, tables: object) -> list[WorkerSpec]:
        place = Place(self._report, (*self._root, "workers"), "[workers]")
        if tables is not None and not isinstance(tables, dict):
            place.must("a table of workers", tables)
            return []
        found: list[WorkerSpec] = []
        lower: dict[str, str] = {}
        for name, given in (tables or {}).items():
            other = lower.setdefault(name.lower(), name)
            if name in _OUR_LOGS:
                self._report.wrong(
                    (*place.where, name), f"no worker can be called '{name}': uphold's own log is."
                )
            elif not is_worker_name(name):
                self._report.wrong(
                    (*place.where, name), f"{shown(name)} cannot be a worker's name: {NAME_RULE}."
                )
            elif other != name:
                self._report.wrong(
                    (*place.where, name), f"the workers '{other}' and '{name}' differ only in case."
                )
            spec = self._worker(name, given, place.where)
            if spec is not None:
                found.append(spec)
        return found

    def _worker(self, name: str, given: object, above: Where) -> WorkerSpec | None:
        place = Place(self._report, (*above, name), f"worker {shown(name)}")
        own = keys.WORKER.read(given, place)
        if not isinstance(own, dict):
            return None
        terms = self._merged(own)
        given = given if isinstance(given, dict) else {}
        terms["environment"] = self._environment(terms, given, place)
        terms["command"] = self._command(terms, given, place)
        terms["working_dir"] = self._path(terms.get("working_dir", "."))
        terms["depends_on"] = self._needs(name, own, terms)
        for key, value in terms.items():
            terms[key] = self._finished(key, value, place)
        return WorkerSpec(name=name, **terms)

    def _merged(self, own: dict[str, Any]) -> dict[str, Any]:
        terms = {**self._defaults, **own}
        for key, value in own.items():
            if isinstance(value, dict) and key in self._defaults:
                terms[key] = {**self._defaults[key], **value}
        return terms

    def _finished(self, key: str, value: Any, place: Place) -> Any:
        kind = keys.WORKER.by_name[key]
        if isinstance(kind, Table):
            value = self._built(key, kind, value, place)
        elif isinstance(value, dict):
            value = tuple((self._share(name), self._share(value[name])) for name in sorted(value))
        elif key == "command":
            value = tuple(self._share(word) for word in value)
        return self._share(value)

    def _built(self, key: str, table: Table, value: dict[str, Any], place: Place) -> Any:
        if key == "backoff" and value.get("base", 1.0) > value.get("max", 300.0):
            place.inside(key).wrong("cannot have a base longer than its max")
        if key == "stop" and isinstance(value.get("command"), str):
            where = place.inside(key).inside("command")
            value = {**value, "command": self._split(value["command"], where)}
        built = table.build(**value)
        if key == "stop":
            self._secrets.in_command(built.command)
        return built

    def _share(self, value: Any) -> Any:
        # The type is part of the question: True, 1 and 1.0 are equal and not the same.
        return self._shared.setdefault((type(value), value), value)

    def _environment(
        self, terms: dict[str, Any], given: dict[str, Any], place: Place
    ) -> dict[str, str]:
        declared: dict[str, str] = terms.get("environment", {})
        for name, value in declared.items():
            self._secrets.named(name, value)
        file = terms.pop("env_file", None)
        if file is None:
            return declared
        found = self._env_file(self._path(file))
        if isinstance(found, NotRead):
            self._wrong_at("env_file", given, place, f"{shown(file)} {found.text}")
            return declared
        for name, value in found.items():
            if name in OWN_VARIABLES:
                text = f"{shown(file)} sets {name}, which uphold sets itself"
                self._wrong_at("env_file", given, place, text)
            self._secrets.handed_in(name, value)
        return {**found, **declared}

    def _command(
        self, terms: dict[str, Any], given: dict[str, Any], place: Place
    ) -> tuple[str, ...]:
        command = terms.get("command")
        if command is None:
            if "command" not in self._given and not _tells_what_to_run(given):
                place.wrong("has no command; say what to run, for example command = './serve'")
            return ()
        if terms.get("shell"):
            if isinstance(command, str):
                return (str(command),)
            self._wrong_at("command", given, place, "must be text, not a list, with shell = true")
            return ()
        if isinstance(command, str):
            where = place if "command" in given else self._default_place()
            command = self._split(command, where.inside("command"))
        self._secrets.in_command(command)
        return tuple(command)

    def _split(self, command: str, place: Place) -> tuple[str, ...]:
        if not isinstance(command, Substituted) and _SIMPLE_COMMAND.fullmatch(command):
            return tuple(_WORD.findall(command))
        marked, values = _marked(command)
        try:
            words = shlex.split(marked)
        except ValueError as cause:
            place.wrong(f"cannot be split into words: {str(cause).lower()}")
            return ()
        words = [_MARKED.sub(lambda match: values[int(match[1])], word) for word in words]
        if not words or not words[0]:
            place.wrong("must start with a program; it is empty after substitution")
        return tuple(words)

    def _needs(self, name: str, own: dict[str, Any], terms: dict[str, Any]) -> Any:
        needs = terms.get("depends_on", ())
        if "depends_on" in own:
            return needs
        # "Everything comes after db" is a sensible default, and db itself does not.
        return tuple((other, need) for other, need in needs if other != name)

    def _path(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._folder, path))  # noqa: PTH118 - text is enough

    def _wrong_at(self, key: str, given: dict[str, Any], place: Place, text: str) -> None:
        where = place if key in given else self._default_place()
        where.inside(key).wrong(text)

    def _default_place(self) -> Place:
        return Place(self._report, (*self._root, "defaults"), "[defaults]")


def _marked(command: str) -> tuple[str, list[str]]:
    if not isinstance(command, Substituted):
        return command, []
    values: list[str] = []
    text = ""
    for name, piece in command.pieces:
        if name:
            text += _MARK.format(len(values))
            values.append(piece)
        else:
            text += piece.replace("\ue000", "")
    return text, values


def _tells_what_to_run(given: dict[str, Any]) -> bool:
    """Tell whether a missing command is only a slip that has been named already."""
    return any(
        key in ("command", "python", "mcp", "remote")
        or keys.WORKER.meant.get(key) == "command"
        or (key not in keys.WORKER.by_name and nearest(key, ("command",)))
        for key in given
    )


def _host_name() -> str:
    name = re.sub(r"[^A-Za-z0-9._-]", "-", os.uname().nodename)[:64].lstrip("._-")
    return name or "uphold"
