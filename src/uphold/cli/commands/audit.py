"""`uphold audit`: who ordered what and when; `audit verify` proves that nothing was altered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uphold.cli.history import (
    declare_history_options,
    details,
    fields,
    limit_of,
    tell_history,
)
from uphold.cli.places import locate
from uphold.cli.records import journal_of
from uphold.cli.seeing import refuse_unknown
from uphold.cli.speaking import print_document, say
from uphold.core.names import worker_of
from uphold.errors import EXIT_DONE, StoreUnavailable, UpholdError

if TYPE_CHECKING:
    import argparse

    from uphold.cli.places import Place
    from uphold.journal.reading import JournalReader


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="only orders about these workers; the one word `verify` checks the chain instead",
    )
    declare_history_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the audit, or check it."""
    place = locate(args)
    if args.names == ["verify"]:
        return _verify(place, args)
    _refuse_unknown(place, args)
    return tell_history(
        place,
        args,
        what="audit records",
        read=lambda journal: _recorded(journal, args),
        line=audit_line,
    )


def audit_line(record: dict[str, Any]) -> str:
    """Write an audit record for people."""
    target = record.get("target_id") or record.get("target_type")
    label = record.get("label")
    return fields(
        (record.get("created_at"), 24),
        (record.get("actor"), 16),
        (record.get("action"), 12),
        (target, 12),
        (f"[{label}]" if label else "-", 8),
        (details(record.get("details")), 0),
    )


def _recorded(journal: JournalReader, args: argparse.Namespace) -> list[dict[str, Any]]:
    limit = limit_of(args)
    found: dict[object, dict[str, Any]] = {}
    for name in dict.fromkeys(map(worker_of, args.names)) or [None]:
        lines = journal.audit(since=args.since, target=name, limit=limit, newest_first=True)
        found |= {line["audit_id"]: line for line in lines[::-1]}
    # Sorting keeps the order of the chain among lines of the same moment.
    in_order = sorted(found.values(), key=lambda line: str(line["created_at"]))
    return in_order[-limit:] if limit and args.names else list(found.values())


def _refuse_unknown(place: Place, args: argparse.Namespace) -> None:
    try:
        with journal_of(place.home) as journal:
            names = dict.fromkeys(map(worker_of, args.names))
            silent = [name for name in names if not journal.audit(target=name, limit=1)]
    except StoreUnavailable:
        return  # told by whoever reads it next
    refuse_unknown(place, silent)


def _verify(place: Place, args: argparse.Namespace) -> int:
    from uphold.journal.audit import verify

    with journal_of(place.home) as journal:
        problems = verify(journal)
        count = sum(1 for _ in journal.audit_rows())
    if args.json:
        found = [{"at": each.at, "text": each.text} for each in problems]
        print_document({"schema": 1, "ok": not problems, "records": count, "problems": found})
        return EXIT_DONE if not problems else 1
    if problems:
        first = problems[0]
        raise UpholdError(
            f"the audit was altered: {first.at}: {first.text} "
            f"({len(problems)} breaks in {count} records.)",
            code="UPH_AUDIT_BROKEN",
            remedy="`uphold audit verify --json` lists every break. Keep a copy of journal.db.",
        )
    say(args, f"the audit is whole: {count} records, every one as it was written.")
    return EXIT_DONE
