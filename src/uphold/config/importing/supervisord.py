"""A `supervisord.conf` and the files it includes: programs, groups, priorities, the daemon."""

from __future__ import annotations

from typing import Any, Final

from uphold.config.importing.expansions import expand, uses
from uphold.config.importing.inis import Section, parse_supervisord
from uphold.config.importing.reports import (
    Book,
    Draft,
    Import,
    Names,
    NotImportable,
    Outcome,
    Setting,
    Source,
    Terms,
    approximated,
    lost,
    translated,
)
from uphold.config.importing.supervisord_daemon import read_daemon
from uphold.config.importing.supervisord_order import Ranked, put_in_order
from uphold.config.importing.supervisord_programs import (
    DEFAULTS,
    environment_of,
    integer,
    is_limit_of_stream,
    processes,
    read_setting,
)
from uphold.config.importing.wording import written_all

KIND: Final = "supervisord"
_PROGRAM: Final = "program:"
_GROUP: Final = "group:"
_LAST: Final = 999
"""The priority of those that have none."""
_OF_MANY: Final = ("numprocs", "numprocs_start", "process_name")
_WHOLE_SECTIONS: Final = {
    "unix_http_server": "uphold has a local socket of its own in its home, for its owner only",
    "inet_http_server": "there is no control over the network yet; use ssh and the command line",
    "supervisorctl": "the `uphold` command finds the supervisor by its home; nothing to configure",
    "rpcinterface:": "there is no XML-RPC; docs/control-protocol.md describes the local socket",
    "ctlplugin:": "the command line takes no plug-ins",
    "eventlistener:": "events are told on the local socket (`uphold events -f --json`); run the"
    " listener as an ordinary worker that reads them",
    "fcgi-program:": "uphold opens no FastCGI sockets; let the program or a web server open it",
}


def read_supervisord(source: Source) -> Import:
    """Translate a whole file."""
    book = Book()
    sections = _merged(_all_sections(source, book), book)
    for section in sections:
        book.expect(*section.settings)
    defaults: Terms = {**DEFAULTS, **source.working_dir()}
    supervisor: Terms = {}
    groups = _groups(sections, book)
    names = Names()
    ranked: list[Ranked] = []
    for section in sections:
        if section.name.startswith(_PROGRAM):
            ranked += _Program(section, groups, source, book, names).read()
        elif section.name == "supervisord":
            read_daemon(section, defaults, supervisor, book, source)
        elif section.name != "include" and not section.name.startswith(_GROUP):
            _lose(section, book)
    _told_without_settings(source, book)
    put_in_order(ranked, book)
    return Import(
        kind=KIND,
        workers=tuple(Draft(each.name, written_all(each.terms)) for each in ranked),
        report=book.lines(),
        defaults=written_all(defaults),
        supervisor=written_all(supervisor),
    )


def _all_sections(source: Source, book: Book) -> list[Section]:
    sections = parse_supervisord(source)
    for section in sections:
        book.expect(*section.settings)
    for section in list(sections):
        if section.name != "include":
            continue
        for setting in section.settings:
            if setting.name == "files":
                sections += _included(setting, source, book)
    return sections


def _included(setting: Setting, source: Source, book: Book) -> list[Section]:
    found: list[Section] = []
    read: list[str] = []
    pattern = _expanded(setting, setting.value, {"here": source.folder}, {})
    for word in pattern.split():
        for path in source.find(word):
            text = source.read(path)
            if text is None:
                raise NotImportable(setting.at, f"the included file {path} cannot be read")
            name = path.removeprefix(f"{source.folder}/")
            read.append(name)
            part = Source(name=name, text=text, folder=source.folder, target=source.target)
            found += parse_supervisord(part)
    if read:
        book.judge(setting, translated(f"read: {', '.join(read)}; they became part of this file"))
    else:
        book.judge(setting, lost("no file matches; if there should be some, import where they lie"))
    return found


def _merged(sections: list[Section], book: Book) -> list[Section]:
    """Lay sections of one name over each other, the last word of each setting counts."""
    merged: dict[str, Section] = {}
    for section in sections:
        kept = merged.setdefault(section.name, Section(section.name, section.at))
        kept.settings += section.settings
    for section in merged.values():
        last = section.last()
        for setting in section.settings:
            if last[setting.name] is not setting:
                again = last[setting.name].at
                book.judge(setting, translated(f"nothing: it is given again at {again}"))
        section.settings = [each for each in section.settings if last[each.name] is each]
    return list(merged.values())


def _groups(sections: list[Section], book: Book) -> dict[str, tuple[str, int]]:
    """Give for each program the group it is in and the group's priority."""
    programs = {each.name.removeprefix(_PROGRAM) for each in sections}
    found: dict[str, tuple[str, int]] = {}
    for section in sections:
        if not section.name.startswith(_GROUP):
            continue
        name = section.name.removeprefix(_GROUP).strip()
        settings = section.last()
        priority = settings.get("priority")
        rank = _LAST if priority is None else _rank(priority)
        if priority is not None:
            book.judge(priority, approximated("depends_on of the programs; see their priority"))
        members = settings.get("programs")
        if members is None:
            raise NotImportable(section.at, f"[{section.name}] names no programs")
        wanted = [word.strip() for word in members.value.replace("\n", ",").split(",")]
        found |= {word: (name, rank) for word in wanted if word in programs}
        missing = [word for word in wanted if word and word not in programs]
        if missing:
            book.judge(members, approximated(f"team; no program is called {', '.join(missing)}"))
        else:
            book.judge(members, translated("team of each; orders take workers by name"))
    return found


class _Program:
    """One `[program:x]` on its way to one worker, or to several that differ by their number."""

    def __init__(
        self,
        section: Section,
        groups: dict[str, tuple[str, int]],
        source: Source,
        book: Book,
        names: Names,
    ) -> None:
        self._section = section
        self._program = section.name.removeprefix(_PROGRAM).strip()
        self._group = groups.get(self._program)
        self._source = source
        self._book = book
        self._names = names
        self._settings = section.last()

    def read(self) -> list[Ranked]:
        if "command" not in self._settings:
            raise NotImportable(self._section.at, f"[{self._section.name}] has no command")
        many, first = self._number("numprocs", 1), self._number("numprocs_start", 0)
        apart = many > 1 and any(
            uses(setting.value, "process_num")
            for name, setting in self._settings.items()
            if name in ("command", "directory", "environment")
        )
        numbers = range(first, first + many) if apart else (first,)
        found = [self._one(number, many, apart=apart, told=number == first) for number in numbers]
        if many > 1 and not apart:
            found[0].terms["replicas"] = many
        self._judge_numbers(found, many, apart=apart)
        return found

    def _number(self, name: str, default: int) -> int:
        setting = self._settings.get(name)
        if setting is None:
            return default
        value = _expanded(setting, setting.value, self._known(0, 1), {})
        return processes(setting, value) if name == "numprocs" else integer(setting, value)

    def _known(self, number: int, many: int) -> dict[str, str | int]:
        return {
            "here": self._source.folder,
            "program_name": self._program,
            "group_name": self._group[0] if self._group else self._program,
            "process_num": number,
            "numprocs": many,
            "host_node_name": self._source.host,
        }

    def _one(self, number: int, many: int, *, apart: bool, told: bool) -> Ranked:
        known = self._known(number, many)
        own = self._own_variables(known)
        name = self._names.give(self._name(known, own, plain=many > 1 and not apart))
        terms: Terms = {} if self._group is None else {"team": Names().give(self._group[0])}
        # stdout before stderr: where they share a key, that of stdout counts.
        for setting in sorted(self._settings.values(), key=_is_about_stderr):
            if setting.name in (*_OF_MANY, "priority"):
                continue
            outcome = self._outcome(setting, known, own, terms)
            if told:
                self._book.judge(setting, outcome, name)
        priority = self._settings.get("priority") or Setting(
            self._section.at, self._section.label, "(priority)", None
        )
        rank = _LAST if priority.value is None else _rank(priority)
        outer = rank if self._group is None else self._group[1]
        return Ranked((outer, rank), name, terms, priority if told else None)

    def _outcome(
        self, setting: Setting, known: dict[str, Any], own: dict[str, str], terms: Terms
    ) -> Outcome:
        if is_limit_of_stream(setting, self._settings):
            return translated("nothing to do: it only says that a stream is not rotated")
        value = _expanded(setting, setting.value, known, own)
        return read_setting(setting, value, terms, self._source)

    def _own_variables(self, known: dict[str, str | int]) -> dict[str, str]:
        setting = self._settings.get("environment")
        if setting is None:
            return {}
        return environment_of(setting, _expanded(setting, setting.value, known, {}))

    def _name(self, known: dict[str, str | int], own: dict[str, str], *, plain: bool) -> str:
        setting = self._settings.get("process_name")
        if setting is None or plain:
            return self._program
        return _expanded(setting, setting.value, known, own)

    def _judge_numbers(self, found: list[Ranked], many: int, *, apart: bool) -> None:
        names = ", ".join(each.name for each in found)
        outcome: Outcome
        for name in _OF_MANY:
            setting = self._settings.get(name)
            if setting is None:
                continue
            if apart:
                outcome = translated(f"a worker each, as they differ: {names}")
            elif many == 1:
                outcome = translated(f"the worker {names}")
            elif name == "numprocs":
                outcome = translated("replicas")
            else:
                first = found[0].name
                outcome = approximated(
                    f"slots are called {first}, {first}.2, … here; UPHOLD_SLOT tells the program"
                )
            self._book.judge(setting, outcome, found[0].name)


def _lose(section: Section, book: Book) -> None:
    why = next(
        (why for start, why in _WHOLE_SECTIONS.items() if section.name.startswith(start)),
        "uphold has no such section",
    )
    for setting in section.settings:
        book.judge(setting, lost(why))
    if not section.settings:
        book.judge(Setting(section.at, section.label, "", None), lost(why))


def _told_without_settings(source: Source, book: Book) -> None:
    """Say what differs although nobody wrote it down."""
    inherited = Setting(source.name, "", "(inherited environment)", None)
    book.judge(
        inherited,
        approximated(
            "supervisord hands its whole environment on, uphold a short list; name what"
            " a program needs in environment, env_file or pass_environment"
        ),
    )


def _rank(priority: Setting) -> int:
    return integer(priority, priority.value, -(10**6))


def _is_about_stderr(setting: Setting) -> bool:
    return setting.name.startswith("stderr_")


def _expanded(setting: Setting, text: str, known: dict[str, Any], own: dict[str, str]) -> str:
    try:
        return expand(text, known, own)
    except ValueError as cause:
        raise NotImportable(setting.at, f"{setting.name}: {cause}") from None
