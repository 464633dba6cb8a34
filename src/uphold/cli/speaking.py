"""How commands speak: plain lines, JSON documents, errors. Everything printed leaves here."""

from __future__ import annotations

import json
import sys

from uphold.cli.screens import screen_of
from uphold.core.texts import printable
from uphold.errors import ConfigInvalid, UpholdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def say(args: argparse.Namespace, *lines: str) -> None:
    """Print lines that are made of safe text already, unless people want silence."""
    if not args.quiet:
        print_lines(lines)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines that are made of safe text already."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def print_document(document: Mapping[str, Any]) -> None:
    """Print one JSON document; pure ASCII, so that no terminal can be tricked by its content."""
    sys.stdout.write(f"{json.dumps(document, indent=2)}\n")


def print_records(records: Iterable[Mapping[str, Any]]) -> None:
    """Print one JSON object per line, each as soon as it is known."""
    for record in records:
        sys.stdout.write(f"{json.dumps(record)}\n")
        sys.stdout.flush()


def notice(args: argparse.Namespace, text: str) -> Callable[[], None]:
    """Prepare a line for people whose answer takes longer than a second."""

    def tell() -> None:
        if not args.quiet and not args.json and sys.stderr.isatty():
            sys.stderr.write(f"{printable(text)}\n")

    return tell


def warn(args: argparse.Namespace, text: str) -> None:
    """Print a line beside the result."""
    if not args.quiet:
        sys.stderr.write(f"uphold: {printable(text)}\n")


def report_error(error: UpholdError, *, as_json: bool) -> None:
    """Print what went wrong, which code it has and what to do next."""
    if as_json:
        print_document({"schema": 1, "error": error_record(error)})
        sys.stdout.flush()
        return
    screen = screen_of(sys.stderr)
    # Only the list of problems has lines of its own; anything else could forge them.
    lines = error.message.split("\n") if isinstance(error, ConfigInvalid) else [error.message]
    first, *more = (printable(line) for line in lines)
    text = [f"{screen.paint('uphold:', 'red')} {first} [{error.code}]", *more]
    if error.remedy:
        text.append(f"  {printable(error.remedy)}")
    sys.stderr.write("".join(f"{line}\n" for line in text))
    sys.stderr.flush()


def error_record(error: UpholdError) -> dict[str, Any]:
    """Give an error the shape it has in JSON."""
    record: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "remedy": error.remedy,
        "exit_code": error.exit_code,
    }
    if isinstance(error, ConfigInvalid):
        record["problems"] = [{"at": each.at, "text": each.text} for each in error.problems]
    return record
