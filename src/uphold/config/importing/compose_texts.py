"""Texts of process-compose: variables of the environment, templates, lists of `KEY=value`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from uphold.config.importing.reports import NotImportable, Setting
from uphold.config.importing.wording import cleaned, variable
from uphold.config.shapes import OWN_VARIABLES

_VARIABLE: Final = re.compile(
    r"\$\$|\$\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?:(?::-|-|:=|=)(?P<default>[^{}]*))?\}"
    r"|\$(?P<plain>[A-Za-z_][A-Za-z0-9_]*)"
)
_TEMPLATE: Final = re.compile(r"\{\{\s*\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
REPLICA: Final = "PC_REPLICA_NUM"


@dataclass(frozen=True, slots=True)
class Texts:
    """How texts are to be read in one file, or in one process of it."""

    expands: bool = True
    """Whether `$NAME` is a variable that is put in when the file is read."""
    templates: bool = True
    vars: dict[str, Any] = field(default_factory=dict)

    def read(self, value: Any) -> str:
        """Read one text: variables become marks, templates their values."""
        text = cleaned(as_text(value))
        if self.templates:
            text = _TEMPLATE.sub(self._var, text)
        return _VARIABLE.sub(_marked, text) if self.expands else text

    def unknown(self, value: Any) -> list[str]:
        """Name what stands in a text between `{{` and `}}` and cannot be put in."""
        rest = _TEMPLATE.sub(self._var, as_text(value)) if self.templates else ""
        return re.findall(r"\{\{[^{}]{0,200}\}\}", rest)

    def _var(self, match: re.Match[str]) -> str:
        known = self.vars.get(match[1])
        return match[0] if known is None else as_text(known)


def as_text(value: Any) -> str:
    """Write a plain value as the text it stands for."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def variables_of(setting: Setting, texts: Texts) -> dict[str, str]:
    """Read an environment: a list of `KEY=value`, or a table."""
    given = setting.value
    if isinstance(given, dict):
        pairs = [(key, texts.read(item)) for key, item in given.items()]
    elif isinstance(given, list):
        pairs = []
        for item in given:
            name, equals, value = as_text(item).partition("=")
            if not equals or not name.strip():
                raise NotImportable(setting.at, "environment must be a list of KEY=value")
            pairs.append((name.strip(), texts.read(value)))
    elif given is None:
        pairs = []
    else:
        raise NotImportable(setting.at, "environment must be a list of KEY=value, or a table")
    return {name: value for name, value in pairs if name not in OWN_VARIABLES}


def _marked(match: re.Match[str]) -> str:
    if match[0] == "$$":
        return "$"
    # One that is not set is empty there; here that has to be said.
    mark = variable(match["braced"] or match["plain"], match["default"] or "")
    return match[0] if mark is None else mark
