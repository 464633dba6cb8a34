"""Rows that the shared database refuses for themselves: set aside, counted and told.

One row must not keep all that come after it from being copied; and none vanishes without a word.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sqlalchemy.exc import DBAPIError

from uphold.core.texts import printable
from uphold.core.times import utc_text
from uphold.host.files import make_private_folder, write_all

FILE_NAME: Final = "refused.jsonl"
_LONGEST: Final = 300


class Refusals:
    """Keeps refused rows in `spool/refused.jsonl`, one JSON object a line."""

    def __init__(
        self, spool: Path, *, wall: Callable[[], float], say: Callable[[str], None]
    ) -> None:
        self._spool = spool
        self._wall = wall
        self._say = say
        self._count = 0

    def set_aside(self, table: str, row: dict[str, Any], cause: DBAPIError) -> None:
        """Keep a row; OSError if not even the disk takes it, and then it is tried again later."""
        why = printable(" ".join(str(cause.orig or cause).split()))[:_LONGEST]
        line = {"at": utc_text(self._wall()), "table": table, "error": why, "row": row}
        make_private_folder(self._spool)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._spool / FILE_NAME, flags, 0o600)
        try:
            write_all(descriptor, json.dumps(line, ensure_ascii=False).encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._count += 1
        self._say(f"{table} refused a row, which is set aside in {FILE_NAME}: {why}")

    def take_count(self) -> int:
        """Tell how many were set aside since the last time."""
        count, self._count = self._count, 0
        return count
