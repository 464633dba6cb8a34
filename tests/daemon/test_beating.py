"""Heartbeats through the socket: what is believed, what is refused, and what is shown."""

from __future__ import annotations

import asyncio
from types import MappingProxyType

import pytest

from uphold.core.declaring import Declaration, Entry
from uphold.core.overrides import Override
from uphold.core.specs import Heartbeat, Kind, WorkerSpec
from uphold.daemon.beating import Beats
from uphold.errors import UpholdError
from uphold.ports.drivers import Launch
from uphold.testing.clocks import FakeClock

PROBE = WorkerSpec(name="probe", kind=Kind.REMOTE, heartbeat=Heartbeat(stale_after=10.0))
HELD = WorkerSpec(name="held", kind=Kind.REMOTE, heartbeat=Heartbeat())
WEB = WorkerSpec(name="web", command=("serve",))
DECLARED = Declaration(
    workers=MappingProxyType(
        {
            "probe": Entry(spec=PROBE),
            "held": Entry(spec=HELD, override=Override(held=True)),
            "web": Entry(spec=WEB),
        }
    )
)


def listen(scene):
    async def go():
        clock = FakeClock()
        beats = Beats(clock, "boot")
        await beats.driver.start(Launch(slot="probe", generation=1, nonce="mine", spec=PROBE))
        await scene(beats, clock)
        await beats.driver.close()

    asyncio.run(go())


def refusal(beats, **params):
    with pytest.raises(UpholdError) as refused:
        beats.take(params, DECLARED)
    return refused.value


def test_a_heartbeat_is_taken_in_and_answered_with_what_is_known():
    async def scene(beats, clock):
        told = beats.take({"worker": "probe", "seq": 7, "progress": 3}, DECLARED)
        assert (told["seq"], told["status"], told["progress"]) == (7, "ok", 3.0)
        assert told["at"] == "2026-01-01T00:00:00.000Z"
        beats.take({"worker": "probe", "seq": 8, "nonce": told["nonce"]}, DECLARED)
        await clock.advance(12)
        assert beats.shown("probe")["missed"] == 1
        assert beats.shown("web") == {}

    listen(scene)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"progress": "much"}, "wrong-type"),
        ({"progress": -1}, "out-of-range"),
        ({"seq": 1.5}, "wrong-type"),
        ({"status": ["ok"]}, "wrong-type"),
        ({"summary": "x" * 100_000}, "too-large"),
        ({"utc": "1970-01-01T00:00:00Z"}, "from-1970"),
        ({"utc": "2100-01-01T00:00:00Z"}, "from-the-future"),
        ({"nonce": "yours"}, "foreign"),
    ],
)
def test_what_cannot_be_true_is_refused_and_counted(said, reason):
    async def scene(beats, _clock):
        error = refusal(beats, worker="probe", **said)
        assert error.code == "UPH_BEAT_REFUSED"
        assert f"({reason})" in error.message
        assert beats.shown("probe")["refused"] == {reason: 1}
        assert beats.shown("probe")["beats"] == 0

    listen(scene)


def test_only_remote_workers_that_are_wanted_are_listened_to():
    async def scene(beats, _clock):
        assert refusal(beats, worker="prob").code == "UPH_WORKER_UNKNOWN"
        assert refusal(beats, worker="prob").exit_code == 5
        assert "runs here" in refusal(beats, worker="web").message
        assert "is paused" in refusal(beats, worker="held").message
        assert refusal(beats, worker="held").exit_code == 4

    listen(scene)


def test_a_gap_is_put_on_record():
    async def scene(beats, _clock):
        told = []

        async def tell(note):
            told.append(note.type)

        beats.take({"worker": "probe", "seq": 1}, DECLARED)
        beats.take({"worker": "probe", "seq": 3}, DECLARED)  # before anybody keeps records
        beats.tell_to(tell)
        beats.take({"worker": "probe", "seq": 9}, DECLARED)
        await asyncio.sleep(0)
        assert told == ["worker.beat_gap"]

    listen(scene)


def test_rows_of_remote_workers_tell_when_they_were_heard_and_no_others():
    async def scene(beats, _clock):
        row = {"kind": "remote", "slot": "probe", "last_health_at": "now"}
        beats.complete([row])
        assert row["last_heartbeat_at"] is row["last_health_at"] is None
        beats.take({"worker": "probe"}, DECLARED)
        beats.complete([row])
        assert row["last_heartbeat_at"] == row["last_health_at"] == "2026-01-01T00:00:00.000Z"
        other = {"kind": "process", "slot": "web", "last_health_at": "now"}
        beats.complete([other])
        assert other == {"kind": "process", "slot": "web", "last_health_at": "now"}

    listen(scene)
