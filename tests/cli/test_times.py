from __future__ import annotations

import pytest

from uphold.cli.times import age, instant_of, moment_before, span

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (-5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m00s"),
        (750, "12m30s"),
        (14700, "4h05m"),
        (273600, "3d04h"),
    ],
)
def test_a_span_is_said_in_its_two_largest_units(seconds, text):
    assert span(seconds) == text


def test_an_age_is_said_in_one_unit_and_never_negative():
    assert age("2026-01-01T11:58:30.000Z", NOON) == "1m"
    assert age("2026-01-01T13:00:00.000Z", NOON) == "0s"
    assert age(None, NOON) == "-"
    assert age("yesterday", NOON) == "-"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("10m", NOON - 600),
        ("10m ago", NOON - 600),
        ("2h", NOON - 7200),
        ("1d", NOON - 86400),
        ("30s", NOON - 30),
        ("2026-01-01T12:00:00Z", NOON),
        ("2026-01-01T14:00:00+02:00", NOON),
        ("2026-01-01 12:00:00", NOON),
        ("soon", None),
        ("-5m", None),
        ("m", None),
        ("", None),
    ],
)
def test_a_point_in_the_past_is_a_time_or_a_span_ago(text, at):
    assert moment_before(text, NOON) == at


def test_nothing_and_nonsense_are_no_instant():
    assert instant_of(None) is None
    assert instant_of("12 o'clock") is None
