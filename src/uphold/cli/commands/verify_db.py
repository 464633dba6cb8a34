"""`uphold verify-db`: whether the shared database is there, and as it should be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.arguments import label
from uphold.cli.places import locate
from uphold.cli.screens import screen_of
from uphold.cli.speaking import print_document, say, warn
from uphold.cli.stores import configured_store
from uphold.cli.times import now
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE, EXIT_FAILED, UpholdError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

_COLOURS: Final = {"ok": "green", "skip": "yellow", "fail": "red"}
_PATIENCE: Final = 10.0


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--report", metavar="DIR", help="where the report goes; HOME/reports unless told"
    )
    parser.add_argument("--label", type=label, metavar="TEXT", help="a short name for the report")


def run(args: argparse.Namespace) -> int:
    """Check the database, keep the report, and fail unless everything is ok."""
    from uphold.recorder.verifying import verify

    place = locate(args)
    settings, store = configured_store(place)
    report = verify(
        store.url,
        tables=store.critical_tables,
        supervisor=settings.supervisor.name,
        wall=now,
        label=args.label,
        patience=args.timeout or _PATIENCE,
        secrets=settings.secrets,
    )
    kept = _keep(report, Path(args.report) if args.report else None, Path(place.home), args)
    if args.json:
        print_document(report | {"report": kept})
    else:
        say(args, *_lines(report, kept))
    return EXIT_DONE if report["ok"] and kept else EXIT_FAILED


def _keep(
    report: dict[str, Any], told: Path | None, home: Path, args: argparse.Namespace
) -> str | None:
    """Write the report; what was found is printed also where that cannot be done."""
    from uphold.host.files import make_private_folder
    from uphold.recorder.verifying import write_report

    try:
        if told is None:
            make_private_folder(home)
            make_private_folder(home / "reports")
        else:
            told.mkdir(parents=True, exist_ok=True)
        return str(write_report(report, told or home / "reports").resolve())
    except (OSError, UpholdError) as cause:
        said = cause.strerror if isinstance(cause, OSError) else str(cause)
        warn(args, f"the report cannot be kept in {told or home / 'reports'}: {said}.")
        return None


def _lines(report: dict[str, Any], kept: str | None) -> Iterator[str]:
    screen = screen_of()
    width = max(len(each["check"]) for each in report["checks"])
    for each in report["checks"]:
        result = screen.paint(f"{each['result']:<4}", _COLOURS[each["result"]])
        yield f"{result}  {each['check']:<{width}}  {printable(each['detail'])}"
        if each["error"] and each["error"]["remedy"]:
            yield f"{'':<4}  {'':<{width}}  → {printable(each['error']['remedy'])}"
    results = [each["result"] for each in report["checks"]]
    counts = [f"{results.count(kind)} {kind}" for kind in _COLOURS if kind in results]
    yield f"{len(results)} checks: {', '.join(counts)}"
    if kept:
        yield f"report: {printable(kept)}"
