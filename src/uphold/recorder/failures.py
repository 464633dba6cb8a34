"""What a database said, as one sentence with a code and a remedy.

Servers say what is wrong by number (MySQL and MariaDB), by SQLSTATE (PostgreSQL) or only in
words (SQLite, and PostgreSQL before a connection stands). Nothing that comes out of here holds a
password or the values of a statement.
"""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from uphold.core.texts import printable
from uphold.errors import StoreUnavailable
from uphold.recorder.addresses import Address
from uphold.wire.redaction import Redactor

UNREACHABLE: Final = "UPH_STORE_UNREACHABLE"
TIMEOUT: Final = "UPH_STORE_TIMEOUT"
DENIED: Final = "UPH_STORE_DENIED"
NO_DATABASE: Final = "UPH_STORE_NO_DATABASE"
READ_ONLY: Final = "UPH_STORE_READ_ONLY"
SCHEMA: Final = "UPH_STORE_SCHEMA"
FULL: Final = "UPH_STORE_FULL"
EXTRA_MISSING: Final = "UPH_STORE_EXTRA_MISSING"
ADDRESS: Final = "UPH_STORE_ADDRESS"

_SAYINGS: Final = {
    UNREACHABLE: "cannot be reached",
    TIMEOUT: "did not answer in time",
    DENIED: "refused {user}",
    NO_DATABASE: "has no database {database}",
    READ_ONLY: "lets {user} read but not write",
    SCHEMA: "does not have the tables it must have",
    FULL: "has no room left",
    EXTRA_MISSING: "cannot be used without the packages for it",
    ADDRESS: "cannot be asked with the options in its address",
}
_REMEDIES: Final = {
    UNREACHABLE: (
        "Check host and port in store.url, and that the server runs and accepts connections"
        " from this machine. Supervision goes on without it; nothing is lost meanwhile."
    ),
    TIMEOUT: (
        "Look whether the server is frozen or overloaded, or somebody holds a lock there; a"
        " command can be given more time with --timeout. Supervision goes on without it."
    ),
    DENIED: (
        "Correct user and password in store.url, or let the server's administrator grant the"
        " user access to the database from this machine."
    ),
    NO_DATABASE: "Create the database on the server (CREATE DATABASE …), or correct store.url.",
    READ_ONLY: (
        "Grant the user SELECT, INSERT, UPDATE, DELETE and CREATE, ALTER, INDEX, CREATE VIEW on"
        " the database (PostgreSQL: USAGE and CREATE on the schema), or name another user in"
        " store.url."
    ),
    SCHEMA: (
        "Run `uphold db migrate`; if it names a table of another program, give uphold a database"
        " (or, on PostgreSQL, a schema) of its own."
    ),
    FULL: "Make room on the database server; what was to be written is written then.",
    EXTRA_MISSING: "Install them: pip install 'uphold[sql]', or the package that is named.",
    ADDRESS: "Correct the options after the ? in store.url.",
}

_MYSQL: Final = {
    **dict.fromkeys((1045, 1044, 1130, 1131, 1251, 1275, 1698, 1820, 1862, 4151), DENIED),
    **dict.fromkeys((1049,), NO_DATABASE),
    **dict.fromkeys((1142, 1143, 1227, 1290, 1792, 1836, 1370, 1410), READ_ONLY),
    **dict.fromkeys(
        (
            *(1048, 1054, 1060, 1062, 1071, 1072, 1136, 1146, 1170, 1264, 1265, 1292, 1347, 1364),
            *(1366, 1406, 1451, 1452, 1467, 1644, 3819, 4025),
        ),
        SCHEMA,
    ),
    **dict.fromkeys((3, 28, 1021, 1037, 1038, 1041, 1114), FULL),
    **dict.fromkeys((1205, 1213, 1317, 1969, 3024), TIMEOUT),
}
_POSTGRESQL: Final = (
    ("28", DENIED),
    ("3D000", NO_DATABASE),
    ("42501", READ_ONLY),
    ("25006", READ_ONLY),
    ("53100", FULL),
    ("53200", FULL),
    ("57014", TIMEOUT),
    ("55P03", TIMEOUT),
    ("40", TIMEOUT),
    ("22", SCHEMA),
    ("23", SCHEMA),
    ("3F", SCHEMA),
    ("42", SCHEMA),
    ("P0001", SCHEMA),
)
_WORDS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), code)
    for pattern, code in (
        # PostgreSQL, before a connection stands
        (r"password authentication failed|no password supplied|no pg_hba\.conf entry", DENIED),
        (r"role \".*\" (does not exist|is not permitted)|authentication failed", DENIED),
        (r"permission denied for database", DENIED),
        (r"database \".*\" does not exist", NO_DATABASE),
        (r"timeout expired|timed out", TIMEOUT),
        (r"invalid (connection option|sslmode|.* value)|invalid integer value", ADDRESS),
        # SQLite
        (r"readonly database|authorization denied", READ_ONLY),
        (r"database or disk is full", FULL),
        (r"is locked|interrupted", TIMEOUT),
        (r"unable to open database file|not a database", NO_DATABASE),
        (r"no such (table|column)|no column named|constraint failed|datatype mismatch", SCHEMA),
    )
)
_NOISE: Final = re.compile(
    r"^(?:connection (?:failed|is bad): )?(?:connection to server at .{1,100}? failed: )?"
    r"(?:FATAL: )?| \(using password: (?:YES|NO)\)"
)
"""What drivers say around the matter; where it is and who asks stands in our sentence already."""
_LONGEST: Final = 300


def translate(
    cause: BaseException, address: Address, *, late: float | None = None
) -> StoreUnavailable:
    """Say what went wrong; `late` are the seconds after which we ourselves gave up waiting."""
    original = cause.orig if isinstance(cause, DBAPIError) and cause.orig else cause
    code = TIMEOUT if late is not None else classify(original)
    if code == READ_ONLY and isinstance(cause, DBAPIError) and _is_reading(cause.statement):
        code = DENIED
    said = f"no answer within {late:g} s" if late is not None else _said(original, address)
    return failure(code, address, said)


def failure(code: str, address: Address, said: str, *, remedy: str = "") -> StoreUnavailable:
    """Put together the sentence for a code: which database, what it means, what was said."""
    user = f"the user {printable(address.user)!r}" if address.user else "us"
    what = _SAYINGS[code].format(user=user, database=repr(printable(address.database)))
    if address.dialect == "sqlite" and code == NO_DATABASE:
        what = "cannot be opened as an SQLite file"
    return StoreUnavailable(
        f"the shared database at {address.shown} {what}: {said.rstrip('.')}.",
        code=code,
        remedy=remedy or _REMEDIES[code],
    )


def classify(cause: BaseException) -> str:
    """Find the code for what a driver raised."""
    if isinstance(cause, ImportError) or "package is required" in str(cause):
        return EXTRA_MISSING  # MySQL's newer passwords without TLS need one more
    if isinstance(cause, TypeError | ValueError):
        return ADDRESS  # an option the driver does not know, or a value it cannot read
    if isinstance(cause, TimeoutError):
        return TIMEOUT
    text = _text(cause)
    number = cause.args[0] if cause.args else None
    if type(cause).__module__.startswith("pymysql") and isinstance(number, int):
        if number in (2003, 2013) and "timed out" in text:
            return TIMEOUT
        return _MYSQL.get(number, UNREACHABLE)
    state = getattr(cause, "sqlstate", None)
    if isinstance(state, str):
        return next((code for start, code in _POSTGRESQL if state.startswith(start)), UNREACHABLE)
    return next((code for pattern, code in _WORDS if pattern.search(text)), UNREACHABLE)


def _is_reading(statement: str | None) -> bool:
    return statement is not None and statement.lstrip().upper().startswith("SELECT")


def _said(cause: BaseException, address: Address) -> str:
    """Give the server's own words: one line, no secrets, not the statement."""
    if isinstance(cause, ImportError):
        return f"the package {cause.name or 'SQLAlchemy'} is not installed"
    text = str(cause) if isinstance(cause, SQLAlchemyError) else _text(cause)
    line = " ".join(text.split("\n")[0].split())
    line = _NOISE.sub("", line)
    secrets = [address.password] if address.password else []
    return printable(Redactor(secrets).text(line))[:_LONGEST] or type(cause).__name__


def _text(cause: BaseException) -> str:
    words = [each for each in cause.args if isinstance(each, str)]
    return words[-1] if words else str(cause)
