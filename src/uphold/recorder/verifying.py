"""Finding out whether the shared database is as it should be, one check at a time.

Nothing here raises, whatever the server does: what goes wrong is the result. A check is `ok`,
`fail` or `skip`, and the whole is ok only if every single one is. Nothing is written to the
database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uphold.core.texts import printable
from uphold.core.times import parse_utc, utc_text
from uphold.errors import EXIT_CONFIG, StoreUnavailable, UpholdError
from uphold.host.files import write_atomically
from uphold.recorder.addresses import Address
from uphold.recorder.extras import require_packages
from uphold.wire.redaction import Redactor

if TYPE_CHECKING:
    from uphold.recorder.asking import Questions

_TABLE: Final = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_BROKEN_LINE: Final = ("UPH_STORE_TIMEOUT", "UPH_STORE_UNREACHABLE")
_FAR_APART: Final = 5.0
"""Seconds between the server's clock and ours that are worth a word."""

Found = tuple[str, dict[str, Any]]
"""What a check found out: a line for people, and values for programs."""


def verify(  # noqa: PLR0913 - all named where it is called
    url: str | None,
    *,
    tables: Iterable[str],
    supervisor: str,
    wall: Callable[[], float],
    label: str | None = None,
    patience: float = 10.0,
    secrets: Iterable[str] = (),
) -> dict[str, Any]:
    """Check the database at this address; without one every check fails or is skipped."""
    names, began = tuple(dict.fromkeys(tables)), utc_text(wall())
    address, checks = _all(url, names, wall, patience)
    report = {
        "schema": 1,
        "timestamp": began,
        "supervisor_id": supervisor,
        "label": label,
        "ok": all(check["result"] == "ok" for check in checks),
        "database_url": address.shown if address else None,
        "checks": checks,
    }
    known = [*secrets, *([address.password] if address and address.password else [])]
    shown: dict[str, Any] = Redactor(known).value(report)
    return shown


def report_name(report: dict[str, Any]) -> str:
    """Name the file of a report: who, when, and the label as far as a file can carry it."""
    moment = re.sub(r"[^0-9TZ]", "", report["timestamp"])
    parts = ["db_verification", report["supervisor_id"], moment, report["label"]]
    return "_".join(re.sub(r"[^A-Za-z0-9.-]+", "_", part) for part in parts if part) + ".json"


def write_report(report: dict[str, Any], folder: Path) -> Path:
    """Write a report into a folder that is there; OSError if it cannot be."""
    path = folder / report_name(report)
    write_atomically(path, f"{json.dumps(report, indent=2)}\n".encode())
    return path


def _all(
    url: str | None, tables: tuple[str, ...], wall: Callable[[], float], patience: float
) -> tuple[Address | None, list[dict[str, Any]]]:
    address: Address | None = None
    questions: Questions | None = None

    def connect() -> Found:
        nonlocal address, questions
        if url is None:
            raise not_configured()
        address = Address.parse(url)
        require_packages(address.dialect)
        from uphold.recorder.asking import Questions  # noqa: PLC0415 - needs the packages

        questions = Questions(address, patience)
        return questions.connection()

    checks = [_check("connection", connect)]
    if questions is None or checks[0]["result"] != "ok":
        rest = ["server", *(f"table {name}" for name in tables), "time zone"]
        return address, checks + [_skipped(name) for name in rest]
    checks += _more(questions, tables, wall)
    return address, checks


def _more(
    questions: Questions, tables: tuple[str, ...], wall: Callable[[], float]
) -> Iterator[dict[str, Any]]:
    planned: list[tuple[str, Callable[[], Found]]] = [
        ("server", lambda: _server(questions, wall)),
        *((f"table {name}", lambda name=name: _rows(questions, name)) for name in tables),
        ("time zone", questions.time_zone),
    ]
    gone = False
    for name, ask in planned:
        if gone:
            yield _skipped(name)
            continue
        check = _check(name, ask)
        yield check
        # A table too large to be counted in time is one thing, a server that went away another.
        if check["result"] == "fail" and check["error"]["code"] in _BROKEN_LINE:
            gone = _check("connection", questions.connection)["result"] != "ok"


def _check(name: str, ask: Callable[[], Found]) -> dict[str, Any]:
    """Ask one question; whatever goes wrong is its result."""
    try:
        detail, values = ask()
    except UpholdError as error:
        return _failed(name, error)
    except Exception as cause:  # noqa: BLE001 - the promise of this module
        return _failed(name, UpholdError(f"{type(cause).__name__}: {cause}", code="UPH_INTERNAL"))
    return {"check": name, "result": "ok", "detail": printable(detail), "error": None} | values


def _failed(name: str, error: UpholdError) -> dict[str, Any]:
    told = {"code": error.code, "message": error.message, "remedy": error.remedy or None}
    return {"check": name, "result": "fail", "detail": printable(error.message), "error": told}


def _skipped(name: str) -> dict[str, Any]:
    detail = "not looked at, as there is no connection"
    return {"check": name, "result": "skip", "detail": detail, "error": None}


def _server(questions: Questions, wall: Callable[[], float]) -> Found:
    database, moment = questions.place_and_time()
    apart = round(parse_utc(moment) - wall(), 3)
    detail = f"database {database}, {moment} by the server's clock"
    if abs(apart) >= _FAR_APART:
        detail += f", {abs(apart):.0f} s {'ahead of' if apart > 0 else 'behind'} this machine's"
    return detail, {"database": database, "server_time": moment, "ahead_seconds": apart}


def _rows(questions: Questions, name: str) -> Found:
    if not _TABLE.fullmatch(name):
        raise StoreUnavailable(
            "this is no name of a table: small letters, digits and underscores only.",
            code="UPH_STORE_SCHEMA",
            remedy="Correct store.critical_tables.",
        )
    count = questions.rows(name)
    return f"{count} {'row' if count == 1 else 'rows'}", {"rows": count}


def not_configured() -> UpholdError:
    """Make the error for a configuration without a shared database."""
    return UpholdError(
        "no shared database is configured: the file has no [store].",
        code="UPH_STORE_NOT_CONFIGURED",
        remedy='Add [store] with url = "mysql://user:password@host/name" to it, if you want one.',
        exit_code=EXIT_CONFIG,
    )
