"""Rows that were just written are told again, for a moment and while nothing changes."""

from __future__ import annotations

import asyncio

from uphold.daemon.rewriting import MANY, MOMENT, WrittenRows
from uphold.testing.clocks import FakeClock
from uphold.wire.frames import encode_line

ROWS = [{"slot": f"w{number}"} for number in range(MANY)]


def run(check):
    async def go():
        clock = FakeClock()
        await check(WrittenRows(clock), clock)

    asyncio.run(go())


def test_the_rows_of_a_state_are_told_again_as_they_were_written():
    async def check(written, _clock):
        kept = written.keep(7, ROWS)
        assert written.find(7) is kept
        assert encode_line({"workers": kept}) == encode_line({"workers": ROWS})

    run(check)


def test_another_state_is_never_told_the_rows_of_this_one():
    async def check(written, _clock):
        written.keep(7, ROWS)
        assert written.find(8) is None

    run(check)


def test_after_a_moment_they_are_written_anew():
    async def check(written, clock):
        written.keep(7, ROWS)
        await clock.advance(MOMENT)
        assert written.find(7) is None

    run(check)


def test_few_rows_are_not_kept():
    async def check(written, _clock):
        few = ROWS[:-1]
        assert written.keep(7, few) is few
        assert written.find(7) is None

    run(check)
