"""The structured runtime log: one JSON object per line, shown as columns for people."""

from __future__ import annotations

import json
import os
import select
import sys
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.history import USUAL_COUNT, fields
from uphold.cli.speaking import say
from uphold.cli.times import instant_of
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse

NAME: Final = "runtime.log"
_POLL: Final = 250
"""Milliseconds between two looks while following."""
_OLDER: Final = 5
"""How many rotated files are looked for."""


def tell_runtime_log(home: str, args: argparse.Namespace) -> int:
    """Print the last runtime events; on a fresh home, that there are none."""
    tail = Tail(f"{home}/logs/{NAME}")
    recorded = (*_older(f"{home}/logs"), *tail.news())
    records = [record for line in recorded if _is_wanted(record := _parsed(line), args)]
    if args.lines is not None or args.since is None:
        count = USUAL_COUNT if args.lines is None else args.lines
        records = records[-count:] if count else []
    if not records and not args.json and not args.follow:
        say(args, "no logs yet")
    _print(records, args)
    while args.follow:
        select.poll().poll(_POLL)
        fresh = [_parsed(line) for line in tail.news()]
        _print([record for record in fresh if _is_wanted(record, args)], args)
    return EXIT_DONE


class Tail:
    """The growing end of a log that is rotated by renaming it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = _open(path)
        self._rest = b""

    def news(self) -> list[bytes]:
        """Read the complete lines that came since the last look, across a rotation."""
        # First the name, then the bytes: what is not the current file any more is read to its end.
        renamed = self._file is None or not _is_current(self._file, self._path)
        lines = self._read()
        if renamed:
            if self._file is not None:
                os.close(self._file)
            self._file = _open(self._path)
            lines += self._read()
        return lines

    def _read(self) -> list[bytes]:
        while self._file is not None and (chunk := os.read(self._file, 1 << 20)):
            self._rest += chunk
        *lines, self._rest = self._rest.split(b"\n")
        return lines


def runtime_line(record: dict[str, Any]) -> str:
    """Write a runtime event for people."""
    task, label = record.get("task_id"), record.get("label")
    tag = " - ".join(str(each) for each in (task, label) if each)
    message = str(record.get("message") or "")
    return fields(
        (record.get("timestamp"), 24),
        (record.get("level"), 7),
        (record.get("event"), 24),
        (record.get("worker"), 12),
        (f"[{tag}] {message}" if tag else message, 0),
    )


def _print(records: list[dict[str, Any]], args: argparse.Namespace) -> None:
    for record in records:
        text = json.dumps(record) if args.json else runtime_line(record)
        sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _is_wanted(record: dict[str, Any], args: argparse.Namespace) -> bool:
    at = instant_of(record.get("timestamp"))
    if at is not None and args.since is not None and at < args.since:
        return False
    if at is not None and args.until is not None and at > args.until:
        return False
    if args.grep is None:
        return True
    from uphold.cli.logreading import grep_of

    return grep_of(args.grep)(json.dumps(record, ensure_ascii=False).encode())


def _older(folder: str) -> list[bytes]:
    """Read the rotated forerunners of the log, oldest first."""
    lines: list[bytes] = []
    for place in range(_OLDER, 0, -1):
        try:
            with open(f"{folder}/{NAME}.{place}", "rb") as file:  # noqa: PTH123 - strings throughout
                lines += file.read().splitlines()
        except FileNotFoundError:
            continue
    return lines


def _parsed(line: bytes) -> dict[str, Any]:
    """Read one line; what is no JSON (a line torn by a power cut) is shown as it stands."""
    text = line.decode(errors="backslashreplace").rstrip("\n")
    try:
        read = json.loads(text)
    except ValueError:
        return {"message": text}
    return read if isinstance(read, dict) else {"message": text}


def _open(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None


def _is_current(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return True  # between two renames; what follows has no name yet
