"""Numbers and words of drivers, as codes. What real servers say is in test_connecting.py."""

from __future__ import annotations

import sqlite3

import psycopg
import pymysql
import pytest
from sqlalchemy.exc import OperationalError

from uphold.recorder.addresses import Address
from uphold.recorder.failures import classify, failure, translate

ADDRESS = Address.parse("mysql://orion:canary-word@host:3306/name")


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (pymysql.err.OperationalError(1045, "Access denied for user"), "DENIED"),
        (pymysql.err.OperationalError(1049, "Unknown database"), "NO_DATABASE"),
        (pymysql.err.OperationalError(1142, "INSERT command denied to user"), "READ_ONLY"),
        (pymysql.err.OperationalError(1290, "running with --read-only"), "READ_ONLY"),
        (pymysql.err.OperationalError(1114, "The table is full"), "FULL"),
        (pymysql.err.OperationalError(1021, "Disk full"), "FULL"),
        (pymysql.err.DataError(1406, "Data too long for column"), "SCHEMA"),
        (pymysql.err.OperationalError(1213, "Deadlock found"), "TIMEOUT"),
        (pymysql.err.OperationalError(1040, "Too many connections"), "UNREACHABLE"),
        (pymysql.err.OperationalError(2013, "Lost connection (timed out)"), "TIMEOUT"),
        (pymysql.err.OperationalError(2013, "Lost connection"), "UNREACHABLE"),
        (psycopg.errors.DiskFull("could not extend file"), "FULL"),
        (psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT"), "READ_ONLY"),
        (psycopg.errors.UndefinedColumn("no column"), "SCHEMA"),
        (psycopg.errors.DeadlockDetected("deadlock"), "TIMEOUT"),
        (psycopg.errors.TooManyConnections("too many"), "UNREACHABLE"),
        (psycopg.errors.AdminShutdown("terminating"), "UNREACHABLE"),
        (psycopg.OperationalError("the connection is lost"), "UNREACHABLE"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "READ_ONLY"),
        (sqlite3.OperationalError("database or disk is full"), "FULL"),
        (sqlite3.OperationalError("database is locked"), "TIMEOUT"),
        (sqlite3.IntegrityError("NOT NULL constraint failed: jobs_t.owner"), "SCHEMA"),
        (sqlite3.OperationalError("disk I/O error"), "UNREACHABLE"),
        (ModuleNotFoundError("No module named 'pymysql'", name="pymysql"), "EXTRA_MISSING"),
        (RuntimeError("'cryptography' package is required for …"), "EXTRA_MISSING"),
        (TypeError("unexpected keyword argument"), "ADDRESS"),
        (ConnectionResetError("reset"), "UNREACHABLE"),
        (TimeoutError("timed out"), "TIMEOUT"),
    ],
)
def test_each_cause_has_its_code(cause, code):
    assert classify(cause) == f"UPH_STORE_{code}"


@pytest.mark.accepts("S43")
def test_the_statement_its_values_and_the_password_stay_out():
    inner = pymysql.err.OperationalError(2003, "no route for canary-word\nmore lines")
    cause = OperationalError("INSERT INTO secret_t", {"value": "canary-value"}, inner)
    found = translate(cause, ADDRESS)
    assert found.code == "UPH_STORE_UNREACHABLE"
    assert found.message.startswith("the shared database at mysql://host:3306/name cannot")
    for hidden in ("canary", "secret_t", "more lines", "\n"):
        assert hidden not in found.message


def test_who_may_not_even_read_is_denied():
    inner = psycopg.errors.InsufficientPrivilege("permission denied for table jobs_t")
    for statement, code in (("SELECT 1", "UPH_STORE_DENIED"), ("INSERT", "UPH_STORE_READ_ONLY")):
        assert translate(OperationalError(statement, {}, inner), ADDRESS).code == code


def test_giving_up_ourselves_is_said_as_that():
    found = translate(ConnectionResetError(), ADDRESS, late=1.5)
    assert (found.code, "no answer within 1.5 s" in found.message) == ("UPH_STORE_TIMEOUT", True)


def test_signs_that_could_forge_a_line_are_escaped():
    forged = Address.parse("mysql://o%0Ax:canary-word@host/na%0Ame")
    found = failure("UPH_STORE_DENIED", forged, "no")
    assert "\n" not in found.message
