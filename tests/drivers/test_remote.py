"""The driver of remote workers: hours of silence in milliseconds, and a real file."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from uphold.core.notices import Beat, Refused
from uphold.core.specs import Heartbeat, Kind, StopRule, WorkerSpec
from uphold.core.statuses import Health
from uphold.drivers.remote import NOT_LISTENED, PROOF, RemoteDriver
from uphold.host.beats import BeatFiles, unanswered
from uphold.ports.drivers import Launch, Trace
from uphold.testing.clocks import FakeClock


class Post:
    """A driver that listens to one worker, on a clock that only moves when told."""

    def __init__(self, **rule):
        self.clock = FakeClock()
        self.facts, self.notes = [], []
        self.unread = set()
        files = BeatFiles(self._unread, patience=60.0)  # a busy machine is no silent one
        tell = self.notes.append
        self.driver = RemoteDriver(self.clock, boot_id="boot", tell=tell, files=files)
        self.driver.subscribe(self.facts.append)
        rule = Heartbeat(**{"stale_after": 10.0, **rule})
        self.spec = WorkerSpec(name="probe", kind=Kind.REMOTE, heartbeat=rule)
        self.launch = Launch(slot="probe", generation=3, nonce="n" * 32, spec=self.spec)

    def _unread(self, path):
        """Stand for a file system that does not answer, while a path is in `unread`."""

        async def silence():
            return unanswered(path)

        return silence() if path in self.unread else None

    async def begin(self):
        self.driver.add(self.spec)
        await self.driver.start(self.launch)
        return self

    def kinds(self):
        return [type(fact).__name__ for fact in self.facts]

    def noted(self):
        return [note.type for note in self.notes]


def play(scene, **rule):
    async def go():
        post = await Post(**rule).begin()
        try:
            await scene(post)
        finally:
            await post.driver.close()

    asyncio.run(go())


@pytest.mark.accepts("O-40")
def test_silence_is_told_rung_by_rung_and_the_first_word_mends_it():
    async def scene(post):
        assert post.kinds() == ["Started"]
        await post.clock.advance(15)
        assert post.driver.beat("probe", Beat()) is None
        assert post.kinds() == ["Started", "Recovered"]
        await post.clock.advance(9)
        assert post.noted() == []
        await post.clock.advance(2)
        assert post.noted() == ["worker.beat_missed"]
        await post.clock.advance(10)
        await post.clock.advance(10)
        sick = [fact.health for fact in post.facts[2:]]
        assert sick == [Health.DEGRADED, Health.UNHEALTHY]
        assert "unresponsive" in post.facts[-1].why
        await post.clock.advance(3600)
        assert len(post.facts) == 4
        post.driver.beat("probe", Beat())
        assert post.kinds()[-1] == "Recovered"

    play(scene)


def test_regular_heartbeats_are_no_news():
    async def scene(post):
        for number in range(1, 50):
            post.driver.beat("probe", Beat(seq=number))
            await post.clock.advance(5)
        assert post.kinds() == ["Started", "Recovered"]
        assert post.notes == []
        assert post.driver.state("probe").info["beats"] == 49

    play(scene)


def test_a_gap_is_an_event_and_what_is_not_believed_is_counted():
    async def scene(post):
        for number in (1, 2, 5, 5, 3):
            post.driver.beat("probe", Beat(seq=number))
        post.driver.beat("probe", Refused("not-a-number", "NaN"))
        (note,) = post.notes
        assert note.type == "worker.beat_gap"
        assert note.payload == {"slot": "probe", "lost": 2, "after": 2, "before": 5}
        seen = post.driver.state("probe").info
        assert seen["refused"] == {"repeated": 1, "old": 1, "not-a-number": 1}
        assert (seen["gaps"], seen["lost"]) == (1, 2)

    play(scene)


def test_who_is_not_listened_to_is_not_heard():
    async def scene(post):
        assert post.driver.nonce("probe") == "n" * 32
        await post.driver.stop("probe", StopRule(), generation=3)
        gone = post.facts[-1]
        assert (gone.generation, gone.proof) == (3, PROOF)
        assert post.driver.beat("probe", Beat()).reason == NOT_LISTENED
        assert post.driver.nonce("probe") is None
        assert not post.driver.state("probe").connected
        await post.driver.kill("probe", generation=4)
        assert post.facts[-1].generation == 4
        assert not post.driver.signal("probe", "TERM")
        await post.clock.advance(3600)
        assert post.kinds()[-1] == "Gone"
        post.driver.remove("probe")
        with pytest.raises(KeyError):
            post.driver.state("probe")

    play(scene)


def test_the_next_supervisor_goes_on_listening():
    async def scene(post):
        await post.driver.close()
        trace = Trace(slot="probe", generation=3, nonce="n" * 32, identity=None, spec=post.spec)
        await post.driver.adopt([trace])
        assert post.kinds()[-1] == "Adopted"
        assert post.driver.states()["probe"].connected
        post.driver.beat("probe", Beat(seq=900))
        await post.driver.adopt([trace])
        assert post.driver.state("probe").info["seq"] == 900

    play(scene)


def test_changed_terms_apply_in_place():
    async def scene(post):
        post.driver.beat("probe", Beat())
        await post.clock.advance(8)
        hasty = WorkerSpec(name="probe", kind=Kind.REMOTE, heartbeat=Heartbeat(stale_after=2.0))
        post.driver.add(hasty)
        assert post.facts[-1].health is Health.UNHEALTHY
        post.driver.remove("other")
        post.driver.remove("probe")
        assert post.driver.listening("probe") is None

    play(scene)


async def until(post, check):
    """Let time pass in small steps: the file is read by a real thread."""
    for _ in range(6000):
        if check():
            return
        await post.clock.advance(0.05)
        await asyncio.sleep(0.005)
    raise AssertionError(f"not seen: {post.facts}")


def write(path, clock, **said):
    path.write_text(json.dumps({"status": "ok", **said}))
    stamp = clock.now().wall
    os.utime(path, (stamp, stamp))


@pytest.mark.accepts("C-109")
def test_heartbeats_may_come_from_a_file(tmp_path):
    file = tmp_path / "beat.json"

    async def scene(post):
        write(file, post.clock, seq=1)
        await until(post, lambda: "Recovered" in post.kinds())
        file.write_text("{")
        await until(post, lambda: post.driver.state("probe").info["refused"])
        await post.clock.advance(450)
        assert "Sickened" in post.kinds()
        write(file, post.clock, seq=2, error="no paper")
        await until(post, lambda: "no paper" in post.facts[-1].why)

    # Long enough for a thread that is late on a busy machine: time passes while it is waited for.
    play(scene, file=str(file), stale_after=200.0)


def test_a_file_that_is_old_already_speaks_of_the_past(tmp_path):
    file = tmp_path / "beat.json"

    async def scene(post):
        post.driver.beat("probe", Beat())
        write(file, post.clock, seq=1)
        old = post.clock.now().wall - 100
        os.utime(file, (old, old))
        await until(post, lambda: post.driver.state("probe").info["refused"])
        assert post.driver.state("probe").info["refused"] == {"old": 1}

    play(scene, file=str(file))


def test_a_file_that_cannot_be_believed_is_counted_once_for_each_of_its_states(tmp_path):
    file = tmp_path / "beat.json"

    async def scene(post):
        await post.clock.advance(1)
        whole = tmp_path / "whole"  # a file that is being written is no JSON yet, for a moment
        whole.write_text('{"progress": NaN}')
        whole.rename(file)
        await until(post, lambda: post.driver.state("probe").info["refused"])
        for _ in range(20):
            await post.clock.advance(1)
            await asyncio.sleep(0.01)
        assert post.driver.state("probe").info["refused"] == {"not-a-number": 1}
        write(file, post.clock)
        late = post.clock.now().wall + 10_000
        os.utime(file, (late, late))
        await until(post, lambda: "from-the-future" in post.driver.state("probe").info["refused"])
        assert post.driver.state("probe").info["beats"] == 0

    play(scene, file=str(file), stale_after=1000.0)


@pytest.mark.accepts("P17")
def test_a_file_that_cannot_be_read_says_nothing_of_its_worker_and_is_named(tmp_path):
    file = tmp_path / "beat.json"

    def refused(post):
        return post.driver.state("probe").info["refused"]

    async def scene(post):
        write(file, post.clock, seq=1)
        await until(post, lambda: "Recovered" in post.kinds())
        post.unread.add(str(file))
        await until(post, lambda: refused(post) == {"unanswered": 1})
        assert not post.driver.unread
        assert post.kinds()[-1] == "Recovered", "one look that failed is no silence"
        for _ in range(10):
            await post.clock.advance(200)
        sick = [fact for fact in post.facts if type(fact).__name__ == "Sickened"]
        assert [fact.health for fact in sick] == [Health.DEGRADED], "it is not known to be gone"
        assert sick[0].why.endswith(f"{file} cannot be read: its file system does not answer")
        post.unread.clear()
        await until(post, lambda: "unresponsive" in post.facts[-1].why)
        write(file, post.clock, seq=2)
        await until(post, lambda: post.kinds()[-1] == "Recovered")
        assert refused(post) == {"unanswered": 1}, "what was heard before is not heard again"

    play(scene, file=str(file), stale_after=200.0)
