"""The shared database: whether it can be used at all, and how far its copy is behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.checkups.findings import Finding, fail, ok, warn
from uphold.cli.times import span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from uphold.core.specs import Settings

_AWAY: Final = ("unreachable", "refused")


def copy_of(home: str, settings: Settings) -> Iterator[Finding]:
    """Look at what the recorder says; nobody is connected to (`uphold verify-db` does that)."""
    if settings.store is None:
        return
    from importlib.util import find_spec

    from uphold.recorder.addresses import Address
    from uphold.recorder.reports import read_report

    shown = Address.parse(settings.store.url).shown
    if find_spec("sqlalchemy") is None:
        yield fail(
            "store",
            f"the journal cannot be copied to {shown}: SQLAlchemy is not installed.",
            "Install what it needs: pip install 'uphold[sql]'. Nothing is lost meanwhile.",
        )
        return
    report = read_report(Path(home, "spool"))
    if report is None or report.get("shown_url") != shown:
        yield ok("store", f"{shown}; nothing has been copied yet. Try it: uphold verify-db")
    else:
        yield from _standing(shown, report)


def _standing(shown: str, report: dict[str, Any]) -> Iterator[Finding]:
    if report["state"] in _AWAY:
        error = report.get("last_error") or {}
        behind = span(report.get("lag_seconds") or 0.0)
        waiting = f"{report.get('pending')} rows wait, behind by {behind}"
        yield warn("store", f"{error.get('message')} ({waiting})", str(error.get("remedy") or ""))
    else:
        state = str(report["state"]).replace("_", " ")
        yield ok("store", f"{shown}: {state}, {report.get('pending')} rows wait.")
    if report.get("lost") or report.get("set_aside"):
        yield warn(
            "store",
            f"{report.get('lost')} events were lost before they could be copied, and"
            f" {report.get('set_aside')} rows were refused.",
            "A larger store.spool loses fewer; refused rows lie in spool/refused.jsonl.",
        )
