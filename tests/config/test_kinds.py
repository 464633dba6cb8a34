from __future__ import annotations

import pytest

from uphold.config.kinds import (
    Account,
    Choice,
    Duration,
    FilePath,
    Flag,
    Fraction,
    Name,
    Size,
    StopSignal,
    Text,
    Umask,
    Whole,
)
from uphold.config.places import UNREAD, Place, Report
from uphold.config.variables import substitute


def read(kind, value):
    report = Report()
    result = kind.read(value, Place(report, ("key",), "it", 0))
    found = report.problems("f", lambda _: 1)
    assert bool(found) == (result is UNREAD)
    return result


def variable(text):
    return substitute("${V}", {"V": text}, pytest.fail)


@pytest.mark.parametrize(
    ("kind", "given", "result"),
    [
        (Text(), "x", "x"), (FilePath(), "a/b", "a/b"), (Name(), "a-1", "a-1"),
        (Name(dots=True), "host.example", "host.example"), (Choice(("a", "b")), "b", "b"),
        (Flag(), True, True), (Whole(0, 9), 9, 9), (Whole(0, 9, unlimited=True), "unlimited", None),
        (Fraction(0, 1), 1, 1.0), (Duration(0, 9), "9s", 9.0), (Duration(0, 9), 1, 1.0),
        (Size(0, 10**6), "1KB", 1000), (Size(0, 9), 9, 9), (StopSignal(), "SIGHUP", "HUP"),
        (StopSignal(), 2, "INT"), (Umask(), "022", 0o22), (Account(), "www", "www"),
        (Account(), 0, "0"),
    ],
)  # fmt: skip
def test_right_values_are_taken(kind, given, result):
    found = read(kind, given)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("kind", "given", "result"),
    [
        (Whole(0, 9), "3", 3), (Flag(), "true", True), (Flag(), "false", False),
        (Fraction(0, 1), "0.5", 0.5), (Duration(0, 99), "30", 30.0), (Duration(0, 99), "3s", 3.0),
        (Size(0, 99), "42", 42), (StopSignal(), "15", "TERM"), (StopSignal(), "HUP", "HUP"),
        (Account(), "1000", "1000"), (Text(), "x", "x"), (Name(), "n", "n"),
    ],
)  # fmt: skip
def test_variables_count_as_numbers_and_flags_too(kind, given, result):
    found = read(kind, variable(given))
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Text(), ""), (Text(), 1), (Text(), "a\0b"), (FilePath(), "~/x"), (Name(), "a b"), (Name(), 1),
        (Name(), "a.b"), (Name(dots=True), ".a"), (Choice(("a",)), "A"), (Choice(("a",)), []),
        (Flag(), 1), (Flag(), "true"), (Whole(0, 9), 10), (Whole(0, 9), True), (Whole(0, 9), "3"),
        (Whole(0, 9), 3.0), (Whole(0, 9), "unlimited"), (Fraction(0, 1), float("nan")),
        (Fraction(0, 1), float("inf")), (Fraction(0, 1), None), (Duration(0, 9), "10s"),
        (Duration(0, 9), float("nan")), (Duration(0, 9), 10**400), (Duration(0, 9), False),
        (Size(5, 9), 4), (Size(5, 9), 6.0), (StopSignal(), 15.0), (StopSignal(), None),
        (Umask(), 22), (Account(), -1), (Account(), 2**40), (Account(), "a:b"), (Account(), True),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(kind, given):
    assert read(kind, given) is UNREAD
