"""A systemd `.service` and its drop-ins: one unit becomes one worker."""

from __future__ import annotations

import re
from typing import Final

from uphold.config.importing.inis import Section, parse_systemd
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
from uphold.config.importing.systemd_commands import Commands
from uphold.config.importing.systemd_restarts import read_restarts
from uphold.config.importing.systemd_settings import environment_of, read_setting
from uphold.config.importing.wording import variable, written_all

KIND: Final = "systemd"
_SPECIFIER: Final = re.compile(r"%([A-Za-z%])")
_FOLDERS: Final = {
    "t": "/run",
    "S": "/var/lib",
    "C": "/var/cache",
    "L": "/var/log",
    "E": "/etc",
    "T": "/tmp",  # noqa: S108 - what systemd means by %T
    "V": "/var/tmp",  # noqa: S108 - and by %V
}
_MAY_REPEAT: Final = re.compile(
    r"Exec\w+|\w*Environment|EnvironmentFile|After|Before|Requires|Wants|BindsTo|PartOf|Upholds"
    r"|Conflicts|WantedBy|RequiredBy|Also|Alias|Documentation|SuccessExitStatus|Restart\w+Status"
    r"|(?:Condition|Assert)\w+|\w+Paths?|\w+Directories|\w+Directory|SystemCall\w+|DeviceAllow"
    r"|\w*Capabilit\w+|Supplementary\w+"
)
_TIES: Final = frozenset(
    {"After", "Before", "Requires", "Requisite", "Wants", "BindsTo", "PartOf", "Upholds"}
    | {"Conflicts", "OnFailure", "OnSuccess", "PropagatesReloadTo", "RequiresMountsFor"}
)
_TIED: Final = (
    "other units are no workers of this file; import them too and name them in depends_on, or"
    " put this line into the unit of `uphold export systemd`"
)


def read_systemd(source: Source) -> Import:
    """Translate a unit."""
    book = Book()
    unit = _Unit(source)
    sections = parse_systemd(source) + unit.drop_ins()
    settings = [setting for section in sections for setting in section.settings]
    book.expect(*settings)
    name = Names().give(unit.stem)
    counting = _that_count(sections, book)
    # systemd's own: the root folder, and a minute and a half to end.
    terms: Terms = {"working_dir": "/", "stop": {"grace": "90s"}}
    service = [each for each in counting if each.section == "[Service]"]
    commands = Commands(_own_variables(service, unit))
    for setting in counting:
        value = unit.specified(setting)
        if setting.section != "[Service]":
            book.judge(setting, _beside_service(setting, value, terms), name)
        elif not commands.takes(setting, value):
            book.judge(setting, read_setting(setting, value, terms, source), name)
    for setting, outcome in commands.put_into(terms):
        book.judge(setting, outcome, name)
    for setting, outcome in read_restarts(counting, terms):
        book.judge(setting, outcome, name)
    for setting, unknown in unit.unknown:
        book.judge(setting, lost(f"{unknown} is not known here; it stands there as it is"), name)
    workers = (Draft(name, written_all(terms)),) if "command" in terms else ()
    return Import(kind=KIND, workers=workers, report=book.lines())


class _Unit:
    """What the file's name says, and what follows from it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._file = source.name.rpartition("/")[2]
        base = self._file.removesuffix(".service")
        self._prefix, at, self._instance = base.partition("@")
        self._is_template = bool(at) and not self._instance
        self.stem = f"{self._prefix}-{self._instance}" if self._instance else self._prefix
        self.unknown: list[tuple[Setting, str]] = []

    def drop_ins(self) -> list[Section]:
        """Read the files that add to the unit."""
        found: list[Section] = []
        for path in self._source.find(f"{self._file}.d/*.conf"):
            text = self._source.read(path)
            name = path.removeprefix(f"{self._source.folder}/")
            if text is None:
                raise NotImportable(name, "this drop-in cannot be read")
            found += parse_systemd(Source(name=name, text=text))
        return found

    def specified(self, setting: Setting) -> str:
        """Put in what `%` stands for."""

        def one(match: re.Match[str]) -> str:
            letter = match[1]
            if letter in "iI" and self._is_template:
                text = "this is a template; copy it to NAME@INSTANCE.service and import that"
                raise NotImportable(setting.at, text)
            known = self._known().get(letter)
            if known is None:
                self.unknown.append((setting, match[0]))
            return match[0] if known is None else known

        return _SPECIFIER.sub(one, setting.value)

    def _known(self) -> dict[str, str | None]:
        base = self._file.removesuffix(".service")
        return {
            **_FOLDERS,
            "%": "%",
            "n": self._file,
            "N": base,
            "p": self._prefix,
            "P": self._prefix,
            "i": self._instance,
            "I": self._instance,
            "H": self._source.host,
            "h": variable("HOME"),
            "u": variable("USER"),
        }


def _that_count(sections: list[Section], book: Book) -> list[Setting]:
    """Leave out what a later line takes back or replaces."""
    kept: dict[tuple[str, str], list[Setting]] = {}
    for section in sections:
        for setting in section.settings:
            before = kept.setdefault((setting.section, setting.name), [])
            if setting.value == "" or not _MAY_REPEAT.fullmatch(setting.name):
                for each in before:
                    book.judge(each, translated(f"nothing: {setting.at} replaces it"))
                before.clear()
            if setting.value == "":
                book.judge(setting, translated("nothing: it is empty, or takes back what was said"))
            else:
                before.append(setting)
    order = [setting for section in sections for setting in section.settings]
    counting = {id(setting) for settings in kept.values() for setting in settings}
    return [setting for setting in order if id(setting) in counting]


def _own_variables(service: list[Setting], unit: _Unit) -> dict[str, str]:
    found: dict[str, str] = {}
    for setting in service:
        if setting.name == "Environment":
            found |= environment_of(setting, unit.specified(setting))
    return found


def _beside_service(setting: Setting, value: str, terms: Terms) -> Outcome:
    """Judge what stands in [Unit], [Install] and other sections."""
    if setting.section == "[Unit]":
        if setting.name == "Description":
            terms.setdefault("labels", {})["description"] = value
            return translated("labels.description")
        if setting.name == "Documentation":
            known = terms.setdefault("labels", {}).get("documentation", "")
            terms["labels"]["documentation"] = f"{known} {value}".strip()
            return translated("labels.documentation")
        if setting.name in _TIES:
            return lost(_TIED)
        if setting.name.startswith(("Condition", "Assert")):
            return lost("nothing is checked before a start; let the command do it and exit 0")
        return lost("it is for people or for systemd; uphold has no such setting")
    if setting.section == "[Install]":
        if setting.name in ("WantedBy", "RequiredBy"):
            return approximated(
                "it starts with the supervisor (autostart); that one is what"
                " systemd starts: `uphold export systemd`"
            )
        return lost("workers have no other names and pull in nobody")
    return lost(f"uphold has no section {setting.section}")
