"""`uphold audit`: who ordered what and when; `audit verify` proves that nothing was altered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uphold.cli.history import (
    declare_history_options,
    declare_label_option,
    details,
    flat,
    refuse_silent,
    tell_history,
    words,
)
from uphold.cli.places import locate
from uphold.cli.records import journal_of
from uphold.cli.speaking import print_document, say
from uphold.core.names import worker_of
from uphold.errors import EXIT_DONE, UpholdError

if TYPE_CHECKING:
    import argparse

    from uphold.cli.history import Cells
    from uphold.cli.places import Place
    from uphold.journal.reading import JournalReader

_EXAMPLES: Final = """examples:
  uphold audit --since 1d                    who ordered what since yesterday
  uphold audit api --action restart          who restarted this worker, and how it went
  uphold audit --actor 'ada@*' --label 'v2*' one person's orders under some labels
  uphold audit --action '*.refused'          what was refused
  uphold audit verify                        prove that nothing was altered
"""


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="only orders about these workers; the one word `verify` checks the chain instead",
    )
    parser.add_argument("--actor", metavar="WHO", help="only orders of WHO; * and ? match")
    parser.add_argument(
        "--action",
        type=words,
        action="append",
        metavar="VERB",
        help="only these, with their outcomes; * and ? match",
    )
    declare_label_option(parser)
    declare_history_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the audit, or check it."""
    place = locate(args)
    if args.names == ["verify"]:
        return _verify(place, args)
    refuse_silent(place, args.names, lambda journal, name: journal.audit(targets=[name], limit=1))
    return tell_history(
        place,
        args,
        what="audit records",
        read=lambda journal, limit: _recorded(journal, args, limit),
        cells=audit_cells,
    )


def audit_cells(record: dict[str, Any]) -> Cells:
    """Write an audit record for people."""
    target = record.get("target_id") or record.get("target_type")
    label = record.get("label")
    return (
        (record.get("created_at"), 24),
        (record.get("actor"), 16),
        (record.get("action"), 12),
        (target, 12),
        (f"[{label}]" if label else "-", 8),
        (details(record.get("details")), 0),
    )


def _recorded(journal: JournalReader, args: argparse.Namespace, limit: int) -> list[dict[str, Any]]:
    found = journal.audit(
        since=args.since,
        until=args.until,
        targets=list(map(worker_of, args.names)) or None,
        actor=args.actor,
        actions=flat(args.action),
        label=args.label,
        cause=args.cause,
        limit=limit,
        newest_first=True,
    )
    return found[::-1]


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
