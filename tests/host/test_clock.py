from __future__ import annotations

import asyncio
import re

import pytest

from uphold.core.specs import Instant
from uphold.host.clock import MachineClock, boot_id, parse_utc, utc_text


def test_both_clocks_go_forward_together():
    clock = MachineClock()

    async def scene():
        before = clock.now()
        await clock.sleep(0.01)
        return before, clock.now()

    before, after = asyncio.run(scene())
    assert after.mono >= before.mono + 0.01
    assert after.wall > 1_700_000_000


def test_an_alarm_rings_once_and_not_when_cancelled():
    clock = MachineClock()
    rung = []

    async def scene():
        at = Instant(clock.now().mono + 0.01)
        cancel = clock.alarm(at, lambda: rung.append("cancelled"))
        cancel()
        clock.alarm(at, lambda: rung.append("rung"))
        await clock.sleep(0.05)

    asyncio.run(scene())
    assert rung == ["rung"]


@pytest.mark.accepts("E-41", "B-76", "B-77")
@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00Z",
        "2026-01-01T01:00:00+01:00",
        "2026-01-01 00:00:00",
        "2026-01-01T00:00:00",
        " 2026-01-01 00:00:00.000000 ",
    ],
)
def test_times_are_read_with_any_zone_and_mean_utc_without_one(text):
    assert parse_utc(text) == 1767225600.0


@pytest.mark.accepts("E-41")
def test_times_are_written_in_utc_with_milliseconds():
    assert utc_text(1767225600.0) == "2026-01-01T00:00:00.000Z"
    assert parse_utc(utc_text(1767225600.25)) == 1767225600.25


def test_the_boot_has_a_name():
    assert re.fullmatch(r"[0-9a-f-]{36}", boot_id())
