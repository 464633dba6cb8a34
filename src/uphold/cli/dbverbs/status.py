"""`uphold db status`: how far the copy is behind, what waits, and what the database holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.places import locate
from uphold.cli.speaking import print_document, say
from uphold.cli.stores import configured_store
from uphold.cli.times import instant_of, now, span
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE, EXIT_FAILED, StoreUnavailable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from uphold.recorder.addresses import Address

SUMMARY: Final = "how far the copy is behind, what waits, what it holds"
_PATIENCE: Final = 10.0


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb: nothing."""


def run(args: argparse.Namespace) -> int:
    """Ask the journal, the recorder's file and the database; exit code 1 if that is away."""
    from uphold.recorder.addresses import Address

    place = locate(args)
    settings, spec = configured_store(place)
    address = Address.parse(spec.url)
    document = _looked_at(Path(place.home), address, args.timeout or _PATIENCE)
    document["spool"]["limit_bytes"] = settings.store.spool if settings.store else None
    if args.json:
        print_document(document)
    else:
        say(args, *_lines(document))
    return EXIT_DONE if document["error"] is None else EXIT_FAILED


def _looked_at(home: Path, address: Address, patience: float) -> dict[str, Any]:
    from uphold.journal.outgoing import Cursor, Outgoing
    from uphold.recorder.reports import error_view, read_report

    report = read_report(home / "spool")
    if report is not None and report.get("shown_url") != address.shown:
        report = None  # it is about another database
    copied = (report or {}).get("copied") or {}
    events, audit, jobs = (int(copied.get(key) or 0) for key in ("events", "audit", "jobs"))
    cursor = Cursor(events=events, audit=audit, jobs=jobs)
    error, held = None, None
    with Outgoing(home / "journal.db") as journal:
        try:
            held, cursor = _held(address, journal.supervisor_id(), patience)
        except StoreUnavailable as failure:
            error = error_view(failure)
        waiting = journal.waiting(cursor)
    oldest = instant_of(waiting.oldest)
    return {
        "schema": 1,
        "url": address.shown,
        "error": error,
        "recorder": report,
        "spool": {
            "pending": {"events": waiting.events, "audit": waiting.audit, "jobs": waiting.jobs},
            "oldest": waiting.oldest,
            "lag_seconds": 0.0 if oldest is None else round(max(0.0, now() - oldest), 3),
        },
        "held": held,
    }


def _held(address: Address, owner: str, patience: float) -> tuple[dict[str, Any], Any]:
    from uphold.recorder.extras import require_packages

    require_packages(address.dialect)
    from uphold.recorder.connecting import Store
    from uphold.recorder.holdings import holdings

    with Store(address, patience=patience, create=False) as store:
        return holdings(store, owner)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    spool, held, error = document["spool"], document["held"], document["error"]
    yield f"database  {printable(document['url'])}"
    report = document["recorder"]
    if report is not None:
        yield f"recorder  {printable(str(report['state']))} since {printable(str(report['since']))}"
    else:
        yield "recorder  it has not said anything of this database yet"
    pending = spool["pending"]
    if any(pending.values()):
        told = ", ".join(f"{count} {what}" for what, count in pending.items() if count)
        yield f"waiting   {told}; behind by {span(spool['lag_seconds'])}"
    else:
        yield "waiting   nothing"
    if held is not None:
        yield f"holds     {held['events']} events, {held['audit']} audit, {held['jobs']} jobs"
        if held["lost"] or held["set_aside"]:
            yield f"missing   {held['lost']} events lost, {held['set_aside']} rows set aside"
    if error is not None:
        yield f"error     {printable(error['message'])} [{error['code']}]"
        yield f"          → {printable(error['remedy'])}"
