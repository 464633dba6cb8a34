"""`uphold jobs`: where orders stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uphold.cli.history import declare_history_options, fields, limit_of, tell_history
from uphold.cli.places import locate

if TYPE_CHECKING:
    import argparse

    from uphold.journal.reading import JournalReader


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    declare_history_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the jobs, oldest first."""
    return tell_history(
        locate(args),
        args,
        what="jobs",
        read=lambda journal: _recorded(journal, args),
        line=job_line,
    )


def job_line(job: dict[str, Any]) -> str:
    """Write a job for people."""
    label = job.get("label")
    return fields(
        (job.get("created_at"), 24),
        (job.get("job_id"), 24),
        (job.get("state"), 9),
        (job.get("job_type"), 10),
        (job.get("target_ref"), 12),
        (f"[{label}]" if label else "-", 8),
        (job.get("last_error") or "", 0),
    )


def _recorded(journal: JournalReader, args: argparse.Namespace) -> list[dict[str, Any]]:
    found = journal.jobs(since=args.since, limit=limit_of(args), newest_first=True)
    return found[::-1]
