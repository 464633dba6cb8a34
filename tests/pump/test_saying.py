"""The pump's own lines."""

from __future__ import annotations

import re

import pytest

from uphold.pump.clocks import monotonic, wall
from uphold.pump.saying import say


def test_a_line_carries_the_time_in_utc(capfd: pytest.CaptureFixture[str]) -> None:
    say("something happened")
    line = capfd.readouterr().err
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z pump: something happened\n", line)


def test_the_clocks_are_microseconds_and_seconds() -> None:
    assert wall() > 1_600_000_000_000_000
    assert monotonic() <= monotonic()
