"""What is kept when a command fails in a way nobody foresaw."""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from uphold.errors import UpholdError

if TYPE_CHECKING:
    import argparse


def record_crash(error: Exception, args: argparse.Namespace | None) -> str | None:
    """Write the trace into the home's logs, if there is one; tell where."""
    text = "".join(traceback.format_exception(error))
    if os.environ.get("UPHOLD_TRACEBACK"):
        sys.stderr.write(text)
    try:
        return _write(text, args) if args is not None else None
    except (OSError, UpholdError):
        # Without a home, or on a full disk, the one-line message has to do.
        return None


def _write(text: str, args: argparse.Namespace) -> str:
    from uphold.cli.places import locate
    from uphold.cli.times import now
    from uphold.core.texts import utc_text

    logs = f"{locate(args).home}/logs"
    at = utc_text(now()).replace(":", "").replace(".", "")
    path = f"{logs}/crash-{at}-{os.getpid()}.txt"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"uphold {args.verb}\n{text}")
    return path
