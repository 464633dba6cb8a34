"""Questions to real sockets and real programs."""

from __future__ import annotations

import asyncio
import os
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from uphold.core.notices import Beat, Refused
from uphold.core.specs import Probe
from uphold.core.vitals import Outcome, Pulse
from uphold.drivers.probing import MachineProber
from uphold.host.beats import BeatFiles
from uphold.host.clock import MachineClock
from uphold.ports.probes import Subject
from uphold.testing.clocks import FakeClock
from uphold.testing.waiting import eventually

PEM = Path(__file__).parent / "data" / "localhost.pem"


@asynccontextmanager
async def served(answer, **options):
    """Serve connections on a free port; `answer` gets the reader and the writer."""

    async def handle(reader, writer):
        try:
            await answer(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def saying(text):
    async def answer(reader, writer):
        await reader.readline()
        writer.write(text)
        await writer.drain()

    return answer


async def silence(reader, _writer):
    await reader.read()


def prober(stage, clock=None):
    files = BeatFiles(patience=60.0)  # a busy machine is no silent one
    return MachineProber(stage.home, clock or MachineClock(), stage.driver, files)


def subject(stage, slot="web"):
    launch = stage.launch(slot, "sleep", "1000")
    return Subject(slot=slot, generation=1, nonce=launch.nonce, spec=launch.spec)


async def asked(stage, way, target="", **more):
    return await prober(stage).ask(Probe(way=way, target=target, **more), subject(stage))


def test_a_port_that_accepts_is_enough_for_tcp(act):
    async def scene(stage):
        async with served(silence) as port:
            answer = await asked(stage, "tcp", f"127.0.0.1:{port}", timeout=30.0)
            assert answer.outcome is Outcome.PASSED
            named = await asked(stage, "tcp", f"localhost:{port}", timeout=30.0)
            assert named.outcome is Outcome.PASSED
        refused = await asked(stage, "tcp", f"127.0.0.1:{port}", timeout=30.0)
        assert refused.outcome is Outcome.REFUTED
        assert "refused" in refused.text.lower()

    act(scene)


@pytest.mark.parametrize(
    ("text", "outcome", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", Outcome.PASSED, "answers 200"),
        (b"HTTP/1.0 302 Found\r\nLocation: /x\r\n\r\n", Outcome.PASSED, "answers 302"),
        (b"HTTP/1.1 404 No\r\n\r\n", Outcome.MISSED, "answers 404"),
        (b"HTTP/1.1 503 Later\r\n\r\n", Outcome.MISSED, "answers 503"),
        (b"SSH-2.0-x\r\n", Outcome.MISSED, "no HTTP answer"),
        (b"", Outcome.MISSED, "closed without an answer"),
        (b"x" * 100_000, Outcome.MISSED, "no HTTP answer"),
    ],
)
def test_what_http_answers_mean(act, text, outcome, words):
    async def scene(stage):
        async with served(saying(text)) as port:
            answer = await asked(stage, "http", f"http://127.0.0.1:{port}/health", timeout=30.0)
        if answer.outcome is Outcome.REFUTED:
            assert "eset" in answer.text, "it closed with bytes unread, which resets"
            return
        assert answer.outcome is outcome
        assert words in answer.text

    act(scene)


def test_silence_ends_with_the_timeout(act):
    async def scene(stage):
        async with served(silence) as port:
            answer = await asked(stage, "http", f"http://127.0.0.1:{port}/", timeout=0.2)
        assert answer.outcome is Outcome.MISSED
        assert "no answer within 0.2 s" in answer.text

    act(scene)


def test_https_is_asked_by_a_program_of_its_own(act):
    async def scene(stage):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(PEM)
        await stage.start("web", "sleep", "1000")
        async with served(saying(b"HTTP/1.1 200 OK\r\n\r\n"), ssl=context) as port:
            good = await asked(stage, "http", f"https://127.0.0.1:{port}/x?y=1", timeout=50.0)
        async with served(saying(b"HTTP/1.1 500 No\r\n\r\n"), ssl=context) as port:
            bad = await asked(stage, "http", f"https://127.0.0.1:{port}/", timeout=50.0)
        assert good.outcome is Outcome.PASSED
        assert bad.outcome is Outcome.MISSED

    act(scene)


def test_a_command_is_asked_as_the_worker_itself(act):
    async def scene(stage):
        await stage.start("web", "sleep", "1000", environment=(("GOOD", "yes"),))
        good = ("sh", "-c", 'test "$GOOD" = yes && test "$UPHOLD_SLOT" = web')
        passed = await asked(stage, "exec", command=good, timeout=30.0)
        assert passed.outcome is Outcome.PASSED
        failed = await asked(stage, "exec", command=("sh", "-c", "exit 3"), timeout=30.0)
        assert (failed.outcome, "exits with 3" in failed.text) == (Outcome.MISSED, True)
        missing = await asked(stage, "exec", command=("/no/such/check",), timeout=30.0)
        assert missing.outcome is Outcome.MISSED
        assert "/no/such/check" in missing.text
        assert (stage.home.logs / "web.log").exists() is False, "it says nothing in the log"

    act(scene)


def test_a_command_that_hangs_is_killed_with_all_it_started(act):
    async def scene(stage):
        await stage.start("web", "sleep", "1000")
        hanging = ("sh", "-c", "sleep 1001 & sleep 1001")
        answer = await asked(stage, "exec", command=hanging, timeout=0.5)
        assert answer.outcome is Outcome.MISSED
        assert "no answer within 0.5 s" in answer.text
        await eventually(lambda: len(stage.marked()) == 1, what="only the worker is left")

    act(scene)


@pytest.mark.parametrize("way", ["log", "notify"])
def test_a_line_of_the_log_counts_once_it_is_whole_and_from_this_run(act, way):
    """Also when nobody meant to look there as it was started: the file may say so since."""

    async def scene(stage):
        asking = prober(stage)
        log = stage.home.logs / "web.log"
        log.write_text("listening on 1\n")
        await stage.start("web", "sleep", "1000", ready=Probe(way=way, target="listening"))
        probe = Probe(way="log", target="listening on [0-9]+")

        async def outcome():
            return (await asking.ask(probe, subject(stage))).outcome

        assert await outcome() is Outcome.MISSED, "that was an earlier run"
        with log.open("a") as file:
            file.write("beginning\nlistening on ")
            file.flush()
            assert await outcome() is Outcome.MISSED
            file.write("80\n")
        assert await outcome() is Outcome.PASSED
        log.rename(log.with_suffix(".log.1"))
        log.write_text("listening on 81\n")
        assert await outcome() is Outcome.PASSED

    act(scene)


def test_a_file_of_beats_is_as_old_as_the_older_of_its_two_times(act):
    async def scene(stage):
        asking = prober(stage)
        path = stage.folder / "beat.json"
        missing = await asking.read_beat(str(path), subject(stage))
        assert isinstance(missing, Refused)
        path.write_text('{"status": "running", "utc": "2020-01-01T00:00:00Z", "progress": 4}')
        beat = await asking.read_beat(str(path), subject(stage))
        assert isinstance(beat, Beat)
        assert beat.progress == 4
        assert beat.at == pytest.approx(1577836800.0)
        path.write_text('{"status": "running", "nonce": "of another"}')
        assert isinstance(await asking.read_beat(str(path), subject(stage)), Refused)

    act(scene)


@pytest.mark.accepts("P15", "P26")
def test_a_file_does_not_stay_fresh_because_the_clock_was_set_back_a_little(act):
    async def scene(stage):
        clock = FakeClock()
        asking = prober(stage, clock)
        path = stage.folder / "beat.json"
        path.write_text('{"status": "running"}')
        os.utime(path, (clock.now().wall, clock.now().wall))
        pulse = Pulse(began=clock.now().mono)
        for back in (0.0, 200.0, 0.0):
            clock.jump_wall(-back)
            await clock.advance(50.0)
            beat = await asking.read_beat(str(path), subject(stage))
            pulse = pulse.after_reading(beat, clock.now())
        assert clock.now().mono - pulse.last == pytest.approx(150.0)

    act(scene)
