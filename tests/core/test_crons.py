"""Cron expressions: what they mean, when they are refused, and changes of the clocks."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uphold.core import crons
from uphold.core.crons import CronWrong, find_zone, next_time, parse
from uphold.core.times import parse_utc

BERLIN = "Europe/Berlin"


def times(text, since, count, zone="UTC"):
    """Give the next times as the clocks of the zone show them."""
    place, wall, found = find_zone(zone), parse_utc(since), []
    for _ in range(count):
        wall = next_time(parse(text), place, wall)
        found.append(datetime.fromtimestamp(wall, place).strftime("%Y-%m-%d %H:%M %z"))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", ["2026-11-17 10:04", "2026-11-17 10:05", "2026-11-17 10:06"]),
        ("*/20 * * * *", ["2026-11-17 10:20", "2026-11-17 10:40", "2026-11-17 11:00"]),
        ("10-30/10 9 * * *", ["2026-11-18 09:10", "2026-11-18 09:20", "2026-11-18 09:30"]),
        ("5,3 10 * * *", ["2026-11-17 10:05", "2026-11-18 10:03", "2026-11-18 10:05"]),
        ("0 0 1 jan,Jul *", ["2027-01-01 00:00", "2027-07-01 00:00", "2028-01-01 00:00"]),
        ("0 6 * * mon-fri", ["2026-11-18 06:00", "2026-11-19 06:00", "2026-11-20 06:00"]),
        ("0 6 * * 7", ["2026-11-22 06:00", "2026-11-29 06:00", "2026-12-06 06:00"]),
        ("0 6 * * fri-sun", ["2026-11-20 06:00", "2026-11-21 06:00", "2026-11-22 06:00"]),
        ("0 0 29 2 *", ["2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00"]),
        ("0 0 31 * *", ["2026-12-31 00:00", "2027-01-31 00:00", "2027-03-31 00:00"]),
        ("@hourly", ["2026-11-17 11:00", "2026-11-17 12:00", "2026-11-17 13:00"]),
        ("@daily", ["2026-11-18 00:00", "2026-11-19 00:00", "2026-11-20 00:00"]),
        ("@midnight", ["2026-11-18 00:00", "2026-11-19 00:00", "2026-11-20 00:00"]),
        ("@weekly", ["2026-11-22 00:00", "2026-11-29 00:00", "2026-12-06 00:00"]),
        ("@monthly", ["2026-12-01 00:00", "2027-01-01 00:00", "2027-02-01 00:00"]),
        ("@yearly", ["2027-01-01 00:00", "2028-01-01 00:00", "2029-01-01 00:00"]),
        ("@Annually", ["2027-01-01 00:00", "2028-01-01 00:00", "2029-01-01 00:00"]),
    ],
)
def test_names_the_times_that_a_crontab_would(text, expected):
    found = times(text, "2026-11-17T10:03:30Z", 3)
    assert found == [f"{each} +0000" for each in expected]


def test_either_day_is_enough_where_both_are_restricted():
    """The rule of Vixie cron: the 13th, and every Friday."""
    found = times("0 12 13 * fri", "2026-12-01T00:00:00Z", 4)
    assert [each[5:10] for each in found] == ["12-04", "12-11", "12-13", "12-18"]


def test_both_days_must_fit_where_one_begins_with_a_star():
    found = times("0 12 */2 * fri", "2026-12-01T00:00:00Z", 3)
    assert [each[5:10] for each in found] == ["12-11", "12-25", "01-01"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("* * * *", ["five fields", "it has 4", "minute, hour, day of month"]),
        ("", ["five fields", "it has 0"]),
        ("0 0 * * * *", ["it has 6"]),
        ("60 * * * *", ["'60' as minute", "0 to 59"]),
        ("* 24 * * *", ["'24' as hour", "0 to 23"]),
        ("* * 0 * *", ["'0' as day of month", "1 to 31"]),
        ("* * * 13 *", ["'13' as month", "1 to 12 or jan to dec"]),
        ("* * * * 8", ["'8' as day of week", "0 to 7 or sun to sat"]),
        ("* * * * someday", ["'someday' as day of week"]),
        ("-1 * * * *", ["'-1' as minute"]),
        ("1, * * * *", ["'' as minute"]),
        ("9-3 * * * *", ["from the lower to the higher"]),
        ("* * * * fri-mon", ["from the lower to the higher"]),
        ("5/10 * * * *", ["write 5-59/10"]),
        ("*/0 * * * *", ["a step is a whole number from 1"]),
        ("*/x * * * *", ["a step is a whole number"]),
        ("0 0 L * *", ["day of month"]),
        ("0 0 30 2 *", ["never comes"]),
        ("@reboot", ["at_load = true"]),
        ("@often", ["'@often'", "@hourly"]),
        ("1" * 500, ["longer than"]),
        ("²  * * * *", ["minute"]),
    ],
)
def test_says_which_field_is_wrong_and_what_is_allowed(text, parts):
    with pytest.raises(CronWrong) as wrong:
        parse(text)
    for part in parts:
        assert part in str(wrong.value)


@pytest.mark.accepts("P15")
@pytest.mark.parametrize(
    ("text", "since", "expected"),
    [
        # In March 02:00 to 03:00 is left out, in October it comes twice.
        ("30 2 * * *", "2026-03-28T12:00Z", ["03-29 03:00 +0200", "03-30 02:30 +0200"]),
        ("15,45 2 * * *", "2026-03-28T12:00Z", ["03-29 03:00 +0200", "03-30 02:15 +0200"]),
        ("0 2,3 * * *", "2026-03-28T12:00Z", ["03-29 03:00 +0200", "03-30 02:00 +0200"]),
        ("30 2 * * *", "2026-10-24T12:00Z", ["10-25 02:30 +0200", "10-26 02:30 +0100"]),
        ("30 2 * * *", "2026-10-25T01:10Z", ["10-26 02:30 +0100", "10-27 02:30 +0100"]),
        ("30 * * * *", "2026-03-29T00:00Z", ["03-29 01:30 +0100", "03-29 03:30 +0200"]),
        ("30 * * * *", "2026-10-25T00:00Z", ["10-25 02:30 +0200", "10-25 02:30 +0100"]),
        ("*/30 2 * * *", "2026-10-25T00:10Z", ["10-25 02:30 +0200", "10-25 02:00 +0100"]),
    ],
)
def test_what_a_change_of_the_clocks_skips_or_repeats_is_served_as_cron_does(text, since, expected):
    assert [each[5:] for each in times(text, since, 2, BERLIN)] == expected


def test_the_calendar_ends_quietly():
    assert next_time(parse("@yearly"), UTC, parse_utc("9999-06-01T00:00:00Z")) is None
    assert next_time(parse("* * * * *"), UTC, 1e30) is None
    assert next_time(parse("5 5 * * *"), find_zone(BERLIN), float("nan")) is None


FIELD_TEXTS = st.tuples(
    st.sampled_from(["*", "0", "*/7", "3,33", "10-50/20", "59"]),
    st.sampled_from(["*", "2", "*/5", "0,23", "1-3"]),
    st.sampled_from(["*", "1", "29-31", "*/9"]),
    st.sampled_from(["*", "mar,oct", "2"]),
    st.sampled_from(["*", "sun", "1-5", "6,0"]),
).map(" ".join)


@given(
    text=FIELD_TEXTS,
    since=st.integers(int(parse_utc("2025-01-01")), int(parse_utc("2030-01-01"))),
    zone=st.sampled_from(
        ["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]
    ),
)
def test_is_always_later_and_never_twice(text, since, zone):
    place, cron = find_zone(zone), parse(text)
    first = next_time(cron, place, since)
    assert first > since
    # Nothing lies in between: from anywhere before it, the same one is next.
    assert next_time(cron, place, (since + first) / 2) == first
    assert next_time(cron, place, first - 0.5) == first
    assert next_time(cron, place, first) > first


@given(text=FIELD_TEXTS, since=st.integers(0, 4 * 10**9))
def test_agrees_with_looking_at_every_day_where_clocks_never_change(text, since):
    cron = parse(text)
    found = datetime.fromtimestamp(next_time(cron, UTC, since), UTC)
    assert found.minute in cron.minutes
    assert found.hour in cron.hours
    assert cron.fits(found)
    start = datetime.fromtimestamp(since, UTC)
    between = range(start.toordinal() + 1, found.toordinal())
    assert not any(cron.fits(datetime.fromordinal(day)) for day in between)


@pytest.mark.parametrize("name", ["Europe/Nowhere", "", "../../etc/passwd", "/etc", "Europe", "\0"])
def test_an_unknown_zone_is_named(name):
    with pytest.raises(CronWrong, match="must be the name of a time zone"):
        find_zone(name)


def test_a_machine_without_zones_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    with pytest.raises(CronWrong, match="tzdata"):
        find_zone("Europe/Nowhere")


def test_utc_needs_no_table_of_zones():
    assert find_zone("utc") is UTC
    assert "zoneinfo" not in vars(crons)
