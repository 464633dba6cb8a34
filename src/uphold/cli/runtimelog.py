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
    from collections.abc import Iterator

NAME: Final = "runtime.log"
_POLL: Final = 250
"""Milliseconds between two looks while following."""
_OLDER: Final = 5
"""How many rotated files are looked for."""


def tell_runtime_log(home: str, args: argparse.Namespace) -> int:
    """Print the last runtime events; on a fresh home, that there are none."""
    records = [record for record in _recorded(f"{home}/logs") if _is_wanted(record, args)]
    if args.lines is not None or args.since is None:
        count = USUAL_COUNT if args.lines is None else args.lines
        records = records[-count:] if count else []
    if not records and not args.json and not args.follow:
        say(args, "no logs yet")
    _print(records, args)
    if args.follow:
        for line in _following(f"{home}/logs/{NAME}"):
            record = _parsed(line)
            if _is_wanted(record, args):
                _print([record], args)
    return EXIT_DONE


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


def _recorded(folder: str) -> list[dict[str, Any]]:
    """Read the log and its rotated forerunners, oldest first."""
    records: list[dict[str, Any]] = []
    for name in (*(f"{NAME}.{place}" for place in range(_OLDER, 0, -1)), NAME):
        try:
            with open(f"{folder}/{name}", "rb") as file:  # noqa: PTH123 - strings throughout
                records += [_parsed(line) for line in file if line.strip()]
        except FileNotFoundError:
            continue
    return records


def _parsed(line: bytes) -> dict[str, Any]:
    """Read one line; what is no JSON (a line torn by a power cut) is shown as it stands."""
    text = line.decode(errors="backslashreplace").rstrip("\n")
    try:
        read = json.loads(text)
    except ValueError:
        return {"message": text}
    return read if isinstance(read, dict) else {"message": text}


def _following(path: str) -> Iterator[bytes]:
    """Give complete lines as they are written, across rotations."""
    file = _open_at_end(path)
    rest = b""
    while True:
        chunk = b"" if file is None else os.read(file, 65536)
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        if chunk:
            continue
        select.poll().poll(_POLL)
        if file is None or not _is_current(file, path):
            if file is not None:
                os.close(file)
            file = _open(path)


def _open(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None


def _open_at_end(path: str) -> int | None:
    file = _open(path)
    if file is not None:
        os.lseek(file, 0, os.SEEK_END)
    return file


def _is_current(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return True  # between two renames; what follows has no name yet
