"""A report in sections, each with its own error: what cannot be had never hides the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from uphold.core.texts import printable
from uphold.core.times import utc_text
from uphold.errors import UpholdError

PATIENCE: Final = 15.0
"""Seconds that one section may take."""

Section = Callable[[], Awaitable[Mapping[str, Any]]]


async def gather(
    sections: Mapping[str, Section], *, worker: str, supervisor: str, wall: float, label: str | None
) -> dict[str, Any]:
    """Ask every section, all at once; each answers within its time or says why not."""
    found = await asyncio.gather(*(_ask(section) for section in sections.values()))
    answers = dict(zip(sections, found, strict=True))
    return {
        "schema": 1,
        "timestamp": utc_text(wall),
        "supervisor_id": supervisor,
        "worker_id": worker,
        "label": label,
        "ok": all(each["error"] is None for each in answers.values()),
        "sections": answers,
    }


async def _ask(section: Section) -> dict[str, Any]:
    try:
        async with asyncio.timeout(PATIENCE):
            return {"error": None, **await section()}
    except TimeoutError:
        return {"error": f"it was not found out within {PATIENCE:g} s"}
    except UpholdError as problem:
        return {"error": problem.message}
    except Exception as problem:  # noqa: BLE001 - the boundary of a section
        return {"error": f"{type(problem).__name__}: {problem}"}


def render(report: Mapping[str, Any]) -> list[str]:
    """Write a report for people, a section after the other."""
    label = f", {report['label']}" if report.get("label") else ""
    lines = [f"diagnostics of {report['worker_id']} at {report['timestamp']}{label}"]
    for name, section in report["sections"].items():
        lines += ["", name.replace("_", " ")]
        if section["error"] is not None:
            lines.append(f"  not available: {section['error']}")
        lines += _values(section)
    return [printable(line) for line in lines]


def _values(section: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for key, value in section.items():
        if key == "error":
            continue
        if isinstance(value, list):
            lines.append(f"  {key}:" if value else f"  {key}: none")
            lines += [f"    {_plain(item)}" for item in value]
        elif isinstance(value, Mapping):
            lines.append(f"  {key}:")
            lines += [f"    {inner}: {_plain(item)}" for inner, item in value.items()]
        else:
            lines.append(f"  {key}: {_plain(value)}")
    return lines


def _plain(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return " ".join(f"{key}={item}" for key, item in value.items() if item is not None)
    return str(value)
