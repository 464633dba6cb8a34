"""`uphold jobs`: where orders stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uphold.cli.arguments import refusal
from uphold.cli.history import (
    declare_history_options,
    declare_label_option,
    flat,
    refuse_silent,
    tell_history,
    words,
)
from uphold.cli.places import locate
from uphold.core.names import worker_of

if TYPE_CHECKING:
    import argparse

    from uphold.cli.history import Cells
    from uphold.journal.reading import JournalReader

STATES: Final = ("queued", "running", "succeeded", "failed", "blocked", "canceled")

_EXAMPLES: Final = """examples:
  uphold jobs --state failed --since 1d      what went wrong since yesterday
  uphold jobs api --action restart           restarts of one worker
  uphold jobs --label "night 1" --json       one label, for a program
  uphold jobs -f --state queued,running      what is under way
"""


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.epilog = _EXAMPLES
    parser.add_argument("names", metavar="NAME", nargs="*", help="only orders to these workers")
    parser.add_argument(
        "--state", type=_states, action="append", metavar="STATE", help=f"only {', '.join(STATES)}"
    )
    parser.add_argument(
        "--action", type=words, action="append", metavar="VERB", help="only these; * and ? match"
    )
    declare_label_option(parser)
    parser.add_argument("--task-id", metavar="ID", help="only the order of this flag file")
    declare_history_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the jobs, oldest first."""
    place = locate(args)
    refuse_silent(place, args.names, lambda journal, name: journal.jobs(targets=[name], limit=1))
    return tell_history(
        place,
        args,
        what="jobs",
        read=lambda journal, limit: _recorded(journal, args, limit),
        cells=job_cells,
    )


def job_cells(job: dict[str, Any]) -> Cells:
    """Write a job for people."""
    label = job.get("label")
    return (
        (job.get("created_at"), 24),
        (job.get("job_id"), 24),
        (job.get("state"), 9),
        (job.get("job_type"), 10),
        (job.get("target_ref"), 12),
        (f"[{label}]" if label else "-", 8),
        (job.get("last_error") or "", 0),
    )


def _states(text: str) -> list[str]:
    found = words(text)
    for word in found:
        if word not in STATES:
            raise refusal(f"'{word}' is no state; there are {', '.join(STATES)}")
    return found


def _recorded(journal: JournalReader, args: argparse.Namespace, limit: int) -> list[dict[str, Any]]:
    found = journal.jobs(
        since=args.since,
        until=args.until,
        states=flat(args.state),
        targets=list(map(worker_of, args.names)) or None,
        actions=flat(args.action),
        label=args.label,
        cause=args.cause,
        task_id=args.task_id,
        limit=limit,
        newest_first=True,
    )
    return found[::-1]
