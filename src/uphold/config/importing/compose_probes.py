"""Probes of process-compose, which are those of Kubernetes, as probes of ours."""

from __future__ import annotations

import shlex
from typing import Any, Final

from uphold.config.importing.compose_texts import Texts, as_text
from uphold.config.importing.reports import (
    NotImportable,
    Outcome,
    Setting,
    Terms,
    approximated,
    translated,
)
from uphold.config.importing.wording import has_variables

_TIMES: Final = {
    "initial_delay_seconds": ("initial_delay", 0, 0, 86400, "s"),
    "period_seconds": ("every", 10, 1, 86400, "s"),
    "timeout_seconds": ("timeout", 1, 1, 3600, "s"),
    "success_threshold": ("successes", 1, 1, 1000, ""),
    "failure_threshold": ("failures", 3, 1, 1000, ""),
}
"""Setting, key here, default there, least, most, unit."""
_HTTP: Final = frozenset({"host", "scheme", "path", "port"})
_KINDS: Final = frozenset({"http_get", "exec"})


def probe_of(setting: Setting, texts: Texts, key: str) -> tuple[Terms, Outcome]:
    """Translate one probe."""
    given = setting.value
    if not isinstance(given, dict) or len(_KINDS & given.keys()) != 1:
        raise NotImportable(setting.at, f"{setting.name} must have either http_get or exec")
    remarks: list[str] = []
    if "http_get" in given:
        terms: Terms = {"http": _address(setting, given["http_get"], texts, remarks)}
    else:
        terms = {"exec": _program(setting, given["exec"], texts)}
    for name, (ours, default, least, most, unit) in _TIMES.items():
        value = given.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            rule = f"{name} must be a whole number from 0 to {most}"
            raise NotImportable(setting.at, f"{setting.name}: {rule}")
        if value or least:
            terms[ours] = f"{max(value, least)}{unit}" if unit else max(value, least)
    rest = sorted({*given} - _KINDS - {*_TIMES})
    if rest:
        remarks.append(f"{', '.join(rest)} have no counterpart")
    if remarks:
        return terms, approximated(f"{key}; {'; '.join(remarks)}")
    return terms, translated(key)


def _address(setting: Setting, given: Any, texts: Texts, remarks: list[str]) -> str:
    if not isinstance(given, dict):
        raise NotImportable(setting.at, f"{setting.name}: http_get must be a table")
    scheme = texts.read(given.get("scheme") or "http").lower()
    host = texts.read(given.get("host") or "127.0.0.1")
    path = texts.read(given.get("path") or "/")
    port = texts.read(given.get("port") or "")
    if port and not port.isdigit() and not has_variables(port):
        raise NotImportable(setting.at, f"{setting.name}: port must be a number")
    rest = sorted({*given} - _HTTP)
    if rest:
        remarks.append(f"{', '.join(rest)} of http_get have no counterpart")
    slash = "" if path.startswith("/") else "/"
    return f"{scheme}://{host}{f':{port}' if port else ''}{slash}{path}"


def _program(setting: Setting, given: Any, texts: Texts) -> list[str]:
    command = texts.read(given.get("command")) if isinstance(given, dict) else ""
    if not command.strip():
        raise NotImportable(setting.at, f"{setting.name}: exec must have a command")
    folder = as_text(given.get("working_dir"))
    line = f"cd {shlex.quote(folder)} && {command}" if folder else command
    return ["sh", "-c", line]
