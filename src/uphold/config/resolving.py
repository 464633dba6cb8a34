"""What the file says becomes `Settings`: defaults merged, paths absolute, commands split.

Tables (backoff, stop, limits, logs, environment, labels) are merged with those of [defaults]
key by key; everything else a worker says replaces what [defaults] says. Equal parts are shared
between workers: a thousand of them mostly say the same.
"""

from __future__ import annotations

import os
import re
import sys
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from uphold.config import keys
from uphold.config.files import NotRead
from uphold.config.linking import check_links
from uphold.config.places import Enough, Place, Report, shown
from uphold.config.probes import check_probe, over_defaults
from uphold.config.secrecy import Secrets
from uphold.config.sections import Sections
from uphold.config.shapes import OWN_VARIABLES, Table
from uphold.config.splitting import split
from uphold.config.timetables import is_whole, settle_schedule
from uphold.core.names import NAME_RULE, is_worker_name, nearest
from uphold.core.specs import Heartbeat, Kind, Need, Probe, Settings, SupervisorSpec, WorkerSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.config.places import Where

    EnvFile = dict[str, str] | NotRead

_TOGETHER: Final = frozenset(
    {"command", "python", "remote", "shell", "when"}
    | {"working_dir", "environment", "env_file", "depends_on"}
)
"""Keys that are resolved together with others, or in a way of their own."""
_REMOTE: Final = frozenset({"enabled", "quarantined", "team", "depends_on", "heartbeat", "labels"})
"""What can be said of a worker that runs elsewhere."""
_PROBES: Final = frozenset({"ready", "live"})
_COMMANDS: Final = {"stop": "command", "ready": "exec", "live": "exec"}
"""Tables with a command in them, and what it is called there."""
_MOST_REPEATED: Final = 200_000
"""How many values [defaults] and env_files may add to those written out."""
_BOTH: Final = "has both command and python; keep the one that shall run"
_READY_BY_WORD: Final = Probe(way="notify")
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
        self._commands: dict[int, tuple[Any, tuple[str, ...]]] = {}
        """By the identity of a command: it (so that it stays the only one), and it as shared."""
        self._split_before: dict[str, tuple[str, ...]] = {}
        self._paths: dict[str, str] = {}
        self._below: dict[str | None, tuple[tuple[str, str], ...]] = {}
        """By the env_file: the variables that lie below a worker's own."""
        self._default_words: dict[bool, tuple[str, ...]] = {}
        self._default_needs: frozenset[str] | None = None
        self._ready: dict[str, Any] = {}
        self._left_out: list[str] = []
        self._repeated = 0
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
        if {"command", "python"} <= self._defaults.keys():
            self._default_place().wrong(_BOTH)
        for key in {*_COMMANDS, "heartbeat"} & self._defaults.keys():
            words = self._with_words(key, self._defaults[key], self._default_place())
            self._defaults[key] = words
        workers = self._workers(tables.get("workers"))
        check_links(workers, self._report, self._root, frozenset(self._left_out))
        sections = Sections(self._report, self._root, self._secrets, self._path, self._folder)
        others = sections.resolve(tables, workers)  # first: passwords and keys are secrets too
        return Settings(
            supervisor=SupervisorSpec(**{"name": _host_name(), **supervisor}),
            workers=tuple(workers),
            source=source,
            secrets=self._secrets.all(),
            left_out=tuple(self._left_out),
            **others,
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
        given = given if isinstance(given, dict) else {}
        is_there = own.pop("when", self._defaults.get("when", True))
        if own.pop("remote", self._defaults.get("remote")):
            spec = self._remote(name, own, place)
        else:
            spec = self._local(name, own, given, place)
        if not is_there:  # its mistakes are told all the same
            self._left_out.append(name)
            return None
        return spec

    def _local(
        self, name: str, own: dict[str, Any], given: dict[str, Any], place: Place
    ) -> WorkerSpec:
        terms = {
            **self._program(own, given, place),
            "working_dir": self._working_dir(own),
            "environment": self._environment(own, given, place),
            "depends_on": self._needs(name, own),
        }
        for key, value in self._defaults.items():
            if key not in own and key not in _TOGETHER and is_whole(key, value):
                terms[key] = self._default(key)
        for key, value in own.items():
            if key not in _TOGETHER:
                terms[key] = self._over_default(key, value, place)
        settle_schedule(terms, given, place)
        return WorkerSpec(name=name, **terms)

    def _remote(self, name: str, own: dict[str, Any], place: Place) -> WorkerSpec:
        """Resolve a worker that runs elsewhere: nothing is started, so little is to be said."""
        for key in (key for key in own if key not in _REMOTE):
            place.inside(key).wrong("means nothing to a worker with remote = true; leave it out")
        terms = {key: self._default(key) for key in _REMOTE & self._defaults.keys() - _TOGETHER}
        for key in _REMOTE & own.keys() - _TOGETHER:
            terms[key] = self._over_default(key, own[key], place)
        terms["heartbeat"] = heartbeat = terms.get("heartbeat") or Heartbeat()
        if heartbeat.on_stale == "restart":
            place.inside("heartbeat").wrong("cannot ask for a restart: it runs elsewhere")
        return WorkerSpec(name=name, kind=Kind.REMOTE, depends_on=self._needs(name, own), **terms)

    def _default(self, key: str) -> Any:
        """Give what [defaults] says of a key, made once for all workers that say nothing."""
        if key not in self._ready:
            value = self._defaults.get(key, {})
            self._ready[key] = self._made(key, value, self._default_place(), ())
        return self._ready[key]

    def _over_default(self, key: str, value: Any, place: Place) -> Any:
        if isinstance(value, dict) and key in self._defaults:
            return self._made(key, value, place, self._defaults[key])
        return self._made(key, value, place, ())

    def _made(self, key: str, value: Any, place: Place, below: Any) -> Any:
        """Finish one value; tables lie over those of [defaults], key by key."""
        kind = keys.WORKER.by_name[key]
        if isinstance(kind, Table):
            value = self._with_words(key, value, place)
            return self._built(key, kind, over_defaults(dict(below), value), place)
        if isinstance(value, dict):
            return self._over(self._default(key) if below else (), value)
        return self._share(value)

    def _with_words(self, key: str, value: dict[str, Any], place: Place) -> dict[str, Any]:
        """Split the command that ends or asks a worker, if it is text; make its file absolute."""
        if key == "heartbeat" and "file" in value:
            return {**value, "file": self._path(value["file"])}
        inner = _COMMANDS.get(key, "")
        command = value.get(inner)
        if not command:
            return value
        if isinstance(command, str):
            command = self._split(command, place.inside(key).inside(inner))
        return {**value, inner: self._noted(command)}

    def _noted(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """Share the words of a command and look for secrets in them, once for each command."""
        if id(command) not in self._commands:
            self._secrets.in_command(command)
            shared = self._share(tuple(self._share(word) for word in command))
            self._commands[id(command)] = (command, shared)
        return self._commands[id(command)][1]

    def _built(self, key: str, table: Table, value: dict[str, Any], place: Place) -> Any:
        if key == "backoff" and value.get("base", 1.0) > value.get("max", 300.0):
            place.inside(key).wrong("cannot have a base longer than its max")
        if key in _PROBES:
            check_probe(value, place.inside(key))
        # Words by their identity, which is as good once they are shared, and they may be many.
        parts = ((name, id(v) if isinstance(v, tuple) else v) for name, v in value.items())
        mark = (key, *parts)
        if mark not in self._shared:
            self._shared[mark] = table.build(**value)
        return self._shared[mark]

    def _over(self, below: tuple[tuple[str, str], ...], own: dict[str, str]) -> Any:
        """Lay names and texts over others that are sorted already."""
        self._repeat(len(below))
        if not own:
            return below
        from bisect import bisect_left  # noqa: PLC0415 - not every file has variables

        pairs = list(below)
        for name in sorted(own):
            pair = (self._share(name), self._share(own[name]))
            at = bisect_left(pairs, name, key=itemgetter(0))
            if at < len(pairs) and pairs[at][0] == name:
                pairs[at] = pair
            else:
                pairs.insert(at, pair)
        return self._share(tuple(pairs))

    def _repeat(self, count: int) -> None:
        self._repeated += count
        if self._repeated > _MOST_REPEATED:
            text = f"defaults and env_files repeat more than {_MOST_REPEATED} values for workers."
            self._report.wrong(self._root, text)
            raise Enough

    def _share(self, value: Any, of: type | None = None) -> Any:
        # The type is part of the question: True, 1 and 1.0 are equal and not the same. So is what
        # it holds where that is not plain: a need equals the text it is written as.
        return self._shared.setdefault((of or type(value), value), value)

    def _environment(self, own: dict[str, Any], given: dict[str, Any], place: Place) -> Any:
        declared = own.get("environment", {})
        for name, value in declared.items():
            self._secrets.named(name, value)
        file = own.get("env_file", self._defaults.get("env_file"))
        path = None if file is None else self._path(file)
        if path is not None:
            self._check_env_file(path, file, given, place)
        if path not in self._below:
            self._below[path] = self._environment_below(path)
        return self._over(self._below[path], declared) if declared else self._below[path]

    def _check_env_file(self, path: str, file: Any, given: dict[str, Any], place: Place) -> None:
        found = self._env_file(path)
        if isinstance(found, NotRead):
            self._wrong_at("env_file", given, place, f"{shown(file)} {found.text}")
            return
        for name in sorted(OWN_VARIABLES & found.keys()):
            text = f"{shown(file)} sets {name}, which uphold sets itself"
            self._wrong_at("env_file", given, place, text)

    def _environment_below(self, path: str | None) -> tuple[tuple[str, str], ...]:
        """Make the variables of a file, and those of [defaults] over them, once for all."""
        declared = self._defaults.get("environment", {})
        for name, value in declared.items():
            self._secrets.named(name, value)
        found = {} if path is None else self._env_file(path)
        if isinstance(found, NotRead):
            found = {}
        for name, value in found.items():
            self._secrets.handed_in(name, value)
        below: tuple[tuple[str, str], ...] = self._over((), {**found, **declared})
        return below

    def _program(self, own: dict[str, Any], given: dict[str, Any], place: Place) -> dict[str, Any]:
        """Tell what is run: the command of a process, or the class of a Python worker."""
        if "python" in given and "command" in given:
            place.wrong(_BOTH)
        if "command" in given or "python" not in (own if "python" in given else self._defaults):
            shell = bool(own.get("shell", self._defaults.get("shell")))
            return {"command": self._command(own, given, place, shell=shell), "shell": shell}
        if given.get("shell"):
            place.inside("shell").wrong("is for commands; a Python class needs no shell")
        target = own.get("python") or self._defaults["python"]
        # -P: a file of the worker's that is called as a module of Python's must not be taken for
        # it by the runner. The runner puts the worker's folder on the path itself.
        command = (sys.executable, "-P", "-m", "uphold.runner", target)
        return {
            "kind": Kind.PYTHON,
            "python": target,
            "command": self._share(command),
            "ready": _READY_BY_WORD,  # unless it says otherwise
        }

    def _command(
        self, own: dict[str, Any], given: dict[str, Any], place: Place, *, shell: bool
    ) -> tuple[str, ...]:
        if "command" in own:
            where = place if "command" in given else self._default_place()
            return self._words(own["command"], where.inside("command"), shell=shell)
        if "command" not in self._defaults:
            if "command" not in self._given and not _tells_what_to_run(given):
                place.wrong("has no command; say what to run, for example command = './serve'")
            return ()
        if shell not in self._default_words:
            where = self._default_place().inside("command")
            self._default_words[shell] = self._words(self._defaults["command"], where, shell=shell)
        return self._default_words[shell]

    def _words(self, command: Any, place: Place, *, shell: bool) -> tuple[str, ...]:
        if shell:
            if isinstance(command, str):
                words: tuple[str, ...] = self._share((self._share(str(command)),))
                return words
            place.wrong("must be text, not a list, with shell = true")
            return ()
        if not isinstance(command, str):
            return self._noted(command)
        plain = type(command) is str  # what came from a variable is one word, spaces and all
        found = self._split_before.get(command) if plain else None
        if found is None:
            found = self._noted(self._split(command, place))
            if found and plain:
                self._split_before[command] = found
        return found

    def _split(self, command: str, place: Place) -> tuple[str, ...]:
        try:
            words = split(command)
        except ValueError as cause:
            place.wrong(f"cannot be split into words: {cause}")
            return ()
        if not words or not words[0]:
            place.wrong("must start with a program; it is empty after substitution")
        return words

    def _needs(self, name: str, own: dict[str, Any]) -> Any:
        if "depends_on" in own:
            return self._share(own["depends_on"], Need)
        needs = self._defaults.get("depends_on", ())
        self._repeat(len(needs))
        # "Everything comes after db" is a sensible default, and db itself does not.
        if self._default_needs is None:
            self._default_needs = frozenset(other for other, _ in needs)
        if name in self._default_needs:
            return tuple((other, need) for other, need in needs if other != name)
        return needs

    def _working_dir(self, own: dict[str, Any]) -> str:
        path = own.get("working_dir", self._defaults.get("working_dir", "."))
        if path not in self._paths:
            self._paths[path] = self._share(self._path(path))
        return self._paths[path]

    def _path(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._folder, path))  # noqa: PTH118 - text is enough

    def _wrong_at(self, key: str, given: dict[str, Any], place: Place, text: str) -> None:
        where = place if key in given else self._default_place()
        where.inside(key).wrong(text)

    def _default_place(self) -> Place:
        return Place(self._report, (*self._root, "defaults"), "[defaults]")


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
