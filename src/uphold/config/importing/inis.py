"""Two dialects of sections and settings, read with the line of each: supervisord's and systemd's.

Both keep settings in the order of the file, repeated ones included.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from uphold.config.importing.reports import NotImportable, Setting, Source
from uphold.config.importing.wording import cleaned

_HEADER: Final = re.compile(r"\[([^\]]+)\]")
_INLINE: Final = re.compile(r"(?:^|(?<=\s))[;#].*")
_OPTION: Final = re.compile(r"[:=]")


@dataclass(slots=True)
class Section:
    """One section: its name and its settings, in order."""

    name: str
    at: str
    settings: list[Setting] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The section as it is written."""
        return f"[{self.name}]"

    def last(self) -> dict[str, Setting]:
        """Give the setting that counts for each name: the last one."""
        return {setting.name: setting for setting in self.settings}


def parse_supervisord(source: Source) -> list[Section]:
    """Read sections as supervisord does: `;` and `#` begin comments, deeper lines go on."""
    sections: list[Section] = []
    indent = 0
    for number, raw in enumerate(source.text.splitlines(), start=1):
        line = _INLINE.sub("", cleaned(raw)).rstrip()
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if sections and sections[-1].settings and depth > indent:
            last = sections[-1].settings[-1]
            sections[-1].settings[-1] = last._replace(value=f"{last.value}\n{line.strip()}")
            continue
        indent = depth
        header = _HEADER.match(line.strip())
        if header:
            sections.append(Section(header[1], source.at(number)))
            continue
        option = _OPTION.search(line)
        name = line[: option.start()].strip().lower() if option else ""
        if option is None or not name or not sections:
            where = "" if sections else " below a [section]"
            raise NotImportable(source.at(number), f"this line is no `key=value`{where}")
        value = line[option.end() :].strip()
        sections[-1].settings.append(Setting(source.at(number), sections[-1].label, name, value))
    return sections


def parse_systemd(source: Source) -> list[Section]:
    """Read sections as systemd does: a backslash at the end goes on, `#` and `;` at the start."""
    sections: list[Section] = []
    pending = ""
    begun = 0
    for number, raw in enumerate(source.text.splitlines(), start=1):
        stripped = cleaned(raw).strip()
        if stripped.startswith(("#", ";")) or (not stripped and not pending):
            continue
        begun = begun if pending else number
        if stripped.endswith("\\"):
            pending += stripped[:-1] + " "
            continue
        line, pending = pending + stripped, ""
        _systemd_line(line.strip(), sections, source, begun)
    if pending:
        _systemd_line(pending.strip(), sections, source, begun)
    return sections


def _systemd_line(line: str, sections: list[Section], source: Source, number: int) -> None:
    header = _HEADER.fullmatch(line)
    if header:
        sections.append(Section(header[1], source.at(number)))
        return
    name, equals, value = line.partition("=")
    if not equals or not sections or not name.strip():
        where = "" if sections else " below a [Section]"
        raise NotImportable(source.at(number), f"this line is no `Key=value`{where}")
    sections[-1].settings.append(
        Setting(source.at(number), sections[-1].label, name.strip(), value.strip())
    )
