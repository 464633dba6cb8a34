"""In processes of their own: who else has threads here, and which signals they take, is unknown."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest


def lived(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_an_end_before_or_during_the_wait_is_heard_of_and_silence_is_not():
    assert lived("""
        import subprocess, threading, time
        from uphold.host import childsignals
        print(childsignals.are_kept())
        childsignals.keep()
        print(childsignals.are_kept())
        subprocess.run(["true"])
        childsignals.wait(60)
        threading.Timer(0.2, subprocess.run, (["true"],)).start()
        childsignals.wait(60)
        began = time.monotonic()
        childsignals.wait(0.2)
        print(time.monotonic() - began >= 0.2)
    """) == ["False", "True", "True"]


def test_programs_started_as_usual_have_nothing_blocked_and_no_end_is_lost():
    blocked, inherited, alone = lived("""
        import subprocess
        from uphold.host import childsignals
        mask = ["sed", "-n", "s/^SigBlk:[[:space:]]*//p", "/proc/self/status"]
        childsignals.keep()
        subprocess.run(mask)
        with childsignals.as_usual():
            subprocess.run(mask)
        childsignals.wait(60)
        print(childsignals.are_kept())
    """)
    assert int(blocked, 16) != 0
    assert (int(inherited, 16), alone) == (0, "True")


def test_commands_have_nothing_blocked():
    (blocked,) = lived("""
        from uphold.host import childsignals, commands
        childsignals.keep()
        mask = ["sed", "-n", "s/^SigBlk:[[:space:]]*//p", "/proc/self/status"]
        print(commands.run(mask, cwd="/").stdout)
    """)
    assert int(blocked, 16) == 0


@pytest.mark.accepts("P16")
def test_strangers_are_taken_and_others_left_where_ends_are_told():
    ours, claimed = lived("""
        import asyncio, subprocess
        from uphold.host import childsignals
        from uphold.host.processes.reaping import StrangerReaper
        from uphold.host.proctable import read_stat
        from uphold.testing.waiting import eventually

        async def scene():
            reaper = StrangerReaper(lambda pid: pid == claimed.pid)
            await asyncio.sleep(1)  # it has seen nothing and waits to be told
            ours = subprocess.Popen(["sh", "-c", "exit 3"])
            claimed = subprocess.Popen(["sh", "-c", "exit 4"], start_new_session=True)
            for _ in range(3):
                stranger = subprocess.Popen(["sleep", "0.1"], start_new_session=True)
                await eventually(lambda: read_stat(stranger.pid) is None)
                stranger.returncode = 0
            reaper.close()
            print(ours.wait(), claimed.wait())

        childsignals.keep()
        asyncio.run(scene())
    """)
    assert (ours, claimed) == ("3", "4")
