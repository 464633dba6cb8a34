from __future__ import annotations

import pytest

from uphold.core.times import parse_utc, utc_or_none, utc_text

NEW_YEAR = 1_767_225_600.0


@pytest.mark.accepts("E-41", "B-76")
def test_a_moment_is_written_in_utc_with_milliseconds_and_z():
    assert utc_text(NEW_YEAR) == "2026-01-01T00:00:00.000Z"
    assert utc_text(NEW_YEAR + 0.25) == "2026-01-01T00:00:00.250Z"
    assert utc_text(0.0) == "1970-01-01T00:00:00.000Z"


@pytest.mark.accepts("E-41", "B-76")
def test_what_is_written_is_read_back_as_the_same_moment():
    assert parse_utc(utc_text(NEW_YEAR + 0.125)) == NEW_YEAR + 0.125


@pytest.mark.accepts("E-41", "B-77")
@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.000Z",
        "2026-01-01 00:00:00",
        "2026-01-01 00:00:00.000000",
        "2026-01-01T00:00:00",
        "2026-01-01",
        "  2026-01-01 00:00:00\n",
        "2026-01-01T01:00:00+01:00",
        "2025-12-31 19:00:00-05:00",
    ],
)
def test_the_ways_of_standards_and_databases_are_read_and_no_zone_means_utc(text):
    assert parse_utc(text) == NEW_YEAR


def test_text_that_is_no_time_is_an_error():
    with pytest.raises(ValueError, match="soon"):
        parse_utc("soon")


def test_a_moment_that_never_was_has_no_text():
    assert utc_or_none(None) is None
    assert utc_or_none(0.0) is None
    assert utc_or_none(NEW_YEAR) == "2026-01-01T00:00:00.000Z"
