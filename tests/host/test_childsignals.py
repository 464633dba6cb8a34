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
        import subprocess, threading
        from uphold.host import childsignals
        print(childsignals.are_kept())
        childsignals.keep()
        print(childsignals.are_kept())
        subprocess.run(["true"])
        print(childsignals.wait(60))
        threading.Timer(0.2, subprocess.run, (["true"],)).start()
        print(childsignals.wait(60))
        print(childsignals.wait(0.2))
    """) == ["False", "True", "True", "True", "False"]


def test_one_that_only_blocks_it_has_not_kept_it_for_us():
    assert lived("""
        import signal
        from uphold.host import childsignals
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        print(childsignals.are_kept())
        with childsignals.as_usual():
            print(signal.SIGCHLD in signal.pthread_sigmask(signal.SIG_BLOCK, []))
    """) == ["False", "True"]


def test_programs_started_as_usual_have_nothing_blocked_and_no_end_is_lost():
    blocked, inherited, heard, kept = lived("""
        import signal, subprocess
        from uphold.host import childsignals
        mask = ["sed", "-n", "s/^SigBlk:[[:space:]]*//p", "/proc/self/status"]
        childsignals.keep()
        subprocess.run(mask)
        while childsignals.wait(0):
            pass
        with childsignals.as_usual():
            subprocess.run(mask)
        print(childsignals.wait(60))
        print(signal.SIGCHLD in signal.pthread_sigmask(signal.SIG_BLOCK, []))
    """)
    assert int(blocked, 16) != 0
    assert (int(inherited, 16), heard, kept) == (0, "True", "True")


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
        import asyncio, subprocess, threading
        from uphold.host import childsignals
        from uphold.host.processes.reaping import StrangerReaper
        from uphold.host.proctable import read_stat
        from uphold.testing.waiting import eventually

        async def taken():
            stranger = subprocess.Popen(["sleep", "0.1"], start_new_session=True)
            await eventually(lambda: read_stat(stranger.pid) is None)
            stranger.returncode = 0

        async def scene():
            known = set()
            reaper = StrangerReaper(known.__contains__)
            for _ in range(2):
                await asyncio.sleep(1.5)  # nothing is dead by now: it waits to be told
                await taken()
            ours = subprocess.Popen(["sh", "-c", "exit 3"])
            claimed = subprocess.Popen(["sh", "-c", "exit 4"], start_new_session=True)
            known.add(claimed.pid)
            await taken()
            print(ours.wait(), claimed.wait())
            await asyncio.sleep(1.5)
            reaper.close()
            await eventually(lambda: not [one for one in threading.enumerate() if one.name == "reaper"])

        childsignals.keep()
        asyncio.run(scene())
    """)
    assert (ours, claimed) == ("3", "4")
