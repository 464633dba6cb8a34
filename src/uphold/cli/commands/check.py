"""`uphold check`: read the configuration file and list every problem in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from uphold.cli.places import locate, require_config
from uphold.cli.speaking import print_document, say
from uphold.core.texts import printable
from uphold.errors import EXIT_CONFIG, EXIT_DONE

if TYPE_CHECKING:
    import argparse

    from uphold.core.specs import Settings
    from uphold.errors import Problem


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of the file instead"
    )


def run(args: argparse.Namespace) -> int:
    """Check the file; nothing that runs is touched."""
    if args.schema:
        from uphold.config.schema import json_schema

        print_document(json_schema())
        return EXIT_DONE
    from uphold.config.loading import examine

    path = require_config(locate(args))
    reading = examine(path, environ=os.environ)
    advice = []
    if reading.settings is not None:
        from uphold.config.advice import warnings

        advice = warnings(reading.settings, environ=os.environ)
        advice += _unusable_plugins(path, reading.settings)
    if args.json:
        print_document(_document(path, reading, advice))
        return EXIT_DONE if reading.settings is not None else EXIT_CONFIG
    settings = reading.settings_or_raise()
    count = len(settings.workers)
    workers = "1 worker" if count == 1 else f"{count} workers"
    for each in advice:
        say(args, f"warning: {printable(str(each))}")
    absent = f"; left out by 'when': {', '.join(settings.left_out)}" if settings.left_out else ""
    say(args, f"{printable(path)} is fine: {workers}{absent}.")
    return EXIT_DONE


def _unusable_plugins(path: str, settings: Settings) -> list[Problem]:
    """List the handlers that the file names and that cannot be used on this machine."""
    if settings.inbox is None or not settings.inbox.handlers:
        return []
    from uphold.errors import Problem
    from uphold.inbox.consulting import survey

    unusable = survey(settings.inbox.handlers).unusable
    return [Problem(path, f"inbox.handlers: {why}") for why in unusable.values()]


def _document(path: str, reading: Any, advice: list[Any]) -> dict[str, Any]:
    settings = reading.settings
    return {
        "schema": 1,
        "file": path,
        "ok": settings is not None,
        "workers": [] if settings is None else [spec.name for spec in settings.workers],
        "left_out": [] if settings is None else list(settings.left_out),
        "problems": [{"at": each.at, "text": each.text} for each in reading.problems],
        "warnings": [{"at": each.at, "text": each.text} for each in advice],
    }
