from __future__ import annotations

import pytest

from uphold.config.quantities import duration, duration_text, number, size, stop_signal, umask


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5), ("3s", 3), ("5m", 300), ("2h", 7200), ("1d", 86400), ("1.5s", 1.5),
        ("1m30s", 90), ("0s", 0),
        ("", None), ("3", None), ("s", None), ("3 s", None), ("-3s", None), ("3w", None),
        ("٣s", None), ("1e3s", None), ("9" * 100 + "s", None), ("nan", None),
    ],
)  # fmt: skip
def test_durations(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("200KB", 200_000), ("1MB", 10**6), ("1GiB", 2**30), ("1KiB", 1024), ("2TB", 2 * 10**12),
        ("512B", 512), ("1.5MB", 1_500_000), ("10mb", 10**7), ("10 MB", 10**7),
        ("10M", None), ("MB", None), ("-1MB", None), ("1XB", None), ("10", None), ("1  MB", None),
    ],
)  # fmt: skip
def test_sizes_count_in_thousands_unless_they_say_i(text, amount):
    assert size(text) == amount


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("TERM", "TERM"), ("SIGTERM", "TERM"), ("sigint", "INT"), (15, "TERM"), (9, "KILL"),
        ("STOP", None), (19, None), ("FOO", None), (0, None), (99, None), ("", None),
    ],
)  # fmt: skip
def test_signals_that_can_end_a_process(given, name):
    assert stop_signal(given) == name


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("022", 0o22),
        ("77", 0o77),
        ("0o027", 0o27),
        ("0000", 0),
        ("8", None),
        ("1000", None),
        ("", None),
    ],
)
def test_umasks_are_octal(text, mask):
    assert umask(text) == mask


def test_numbers_from_variables():
    assert [number(text) for text in ("3", "-3", "1.5", "x", "1e5", "", "9" * 99)] == [
        3, -3, 1.5, None, None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["0s", "500ms", "30s", "5m", "2h", "365d", "1d"])
def test_limits_are_written_as_people_write_them(text):
    assert duration_text(duration(text)) == text
