"""A diagnostic report: sections that are read side by side, each with its own limit and error.

What is in a section is decided in `sections`, who reads for it by whoever asks. A section that
cannot be read says why, and hinders no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from uphold.core.texts import printable
from uphold.core.times import utc_text
from uphold.errors import UpholdError

if TYPE_CHECKING:
    from uphold.wire.redaction import Redactor

Reader: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
"""Reads what one section needs and gives its content."""
SECTIONS: Final = {
    "process": "Worker process",
    "heartbeat": "Heartbeat",
    "database": "Database",
    "paths": "Paths of the share",
    "disk": "Room on the share",
    "log": "Last lines of the log",
    "inbox": "Waiting in the inbox",
    "audit": "Last audit rows",
}
"""Every report has these, in this order, with these headings."""
LIMIT: Final = 10.0
"""Seconds that one section gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Whom a report is about, and who asked for it."""

    supervisor_id: str
    worker_id: str
    hostname: str = ""
    version: str = ""
    task_id: str | None = None
    label: str | None = None


async def compose(
    about: About,
    readers: Mapping[str, Reader],
    *,
    wall: float,
    redactor: Redactor,
    limit: float = LIMIT,
) -> dict[str, Any]:
    """Read all sections and give the report, without secrets; never raises for one of them."""
    found = await asyncio.gather(*(_section(readers.get(name), limit) for name in SECTIONS))
    sections = dict(zip(SECTIONS, found, strict=True))
    report: dict[str, Any] = {
        "schema": 1,
        "timestamp": utc_text(wall),
        "supervisor_id": about.supervisor_id,
        "worker_id": about.worker_id,
        "hostname": about.hostname,
        "version": about.version,
        "task_id": about.task_id,
        "label": about.label,
        "complete": all(section["ok"] for section in sections.values()),
        "sections": sections,
    }
    shown: dict[str, Any] = redactor.value(report)
    return shown


def render(report: Mapping[str, Any]) -> str:
    """Write a report for people; whatever a newer uphold has put into it is shown as well."""
    label = f", {report['label']}" if report.get("label") else ""
    title = f"Diagnostics of {report.get('worker_id')} at {report.get('timestamp')}{label}"
    lines = [_safe(title)]
    sections = report.get("sections")
    for name, section in sections.items() if isinstance(sections, Mapping) else ():
        lines += ["", _safe(SECTIONS.get(name, str(name)))]
        if not isinstance(section, Mapping):
            continue
        error = section.get("error")
        if isinstance(error, Mapping):
            lines.append(f"  cannot be told: {_safe(error.get('message'))}")
        lines += (f"  {line}" for line in _lines(section.get("content") or {}))
    return "\n".join(lines) + "\n"


async def _section(reader: Reader | None, limit: float) -> dict[str, Any]:
    if reader is None:
        return _failed(UpholdError.code, "this is not set up here.")
    try:
        async with asyncio.timeout(limit):
            content = dict(await reader())
    except TimeoutError:
        return _failed("UPH_DIAGNOSE_TIMEOUT", f"there was no answer within {limit:g} s.")
    except UpholdError as cause:
        return _failed(cause.code, cause.message)
    except Exception as cause:  # noqa: BLE001 - one section must not cost the others
        return _failed("UPH_INTERNAL", f"{type(cause).__name__}: {cause}")
    return {"ok": True, "error": None, "content": content}


def _failed(code: str, message: str) -> dict[str, Any]:
    error = {"code": code, "message": printable(message)}
    return {"ok": False, "error": error, "content": None}


def _lines(content: object) -> list[str]:
    """Show plain content as lines: one for each value, lists and tables below their names."""
    if isinstance(content, Mapping):
        lines = []
        for name, value in content.items():
            if isinstance(value, Mapping | list) and value:
                lines.append(f"{_safe(name)}:")
                lines += (f"  {line}" for line in _lines(value))
            else:
                lines.append(f"{_safe(name)}: {_plain(value)}")
        return lines
    if isinstance(content, list):
        return [_in_a_row(each) for each in content]
    return [_plain(content)]


def _in_a_row(value: object) -> str:
    if isinstance(value, Mapping):
        return "  ".join(f"{_safe(name)}={_plain(each)}" for name, each in value.items())
    return _plain(value)


def _plain(value: object) -> str:
    if value is None or value in ([], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _safe(value)


def _safe(value: object) -> str:
    return printable(str(value))
