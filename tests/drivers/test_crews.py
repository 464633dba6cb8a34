from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from uphold.drivers.crews import Crew
from uphold.testing.waiting import eventually, until


def threads():
    """Count the threads of this process; those of a crew are too plain for `threading`."""
    return len(list(Path("/proc/self/task").iterdir()))


def test_every_job_is_told_on_the_loop_once_also_those_that_fail():
    async def go():
        told = []

        def work(job):
            if job % 7 == 0:
                raise OSError(job, "no")
            return job * 2

        here = threading.get_ident()
        crew = Crew(work, lambda job, outcome: told.append((job, outcome, threading.get_ident())))
        for job in range(100):
            await crew.have_room()
            crew.hand(job)
        await crew.finish()
        crew.dismiss()
        assert sorted(job for job, _, _ in told) == list(range(100))
        assert {where for _, _, where in told} == {here}
        assert all(
            isinstance(outcome, OSError) if job % 7 == 0 else outcome == job * 2
            for job, outcome, _ in told
        )

    asyncio.run(go())


def test_the_threads_go_when_they_are_dismissed():
    async def go():
        before = threads()
        crew = Crew(lambda job: job, lambda job, outcome: None)
        crew.hand(1)
        await crew.finish()
        await eventually(lambda: threads() > before)
        crew.dismiss()
        await eventually(lambda: threads() <= before)

    asyncio.run(go())


def test_many_outcomes_leave_the_loop_its_turns():
    async def go():
        gate, told, turns = threading.Event(), [], set()
        turn = 0

        def note(job, outcome):
            told.append(job)
            turns.add(turn)

        crew = Crew(lambda job: gate.wait(60) or job, note)
        for job in range(32):
            crew.hand(job)
        gate.set()
        until(lambda: len(crew._outcomes) == 32)  # without a turn of the loop
        while len(told) < 32:
            turn += 1
            await asyncio.sleep(0)
        crew.dismiss()
        assert len(turns) >= 4

    asyncio.run(go())


def test_a_job_waits_while_there_are_too_many():
    async def go():
        gate = threading.Event()
        crew = Crew(lambda job: gate.wait(60) or job, lambda job, outcome: None)
        for job in range(32):
            crew.hand(job)
        waiting = asyncio.ensure_future(crew.have_room())
        await asyncio.sleep(0)
        assert not waiting.done()
        gate.set()
        await waiting
        await crew.finish()
        crew.dismiss()

    asyncio.run(go())
