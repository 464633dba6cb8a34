from __future__ import annotations

import asyncio
import json
import os
import signal

import pytest

from daemon.sharesides import INBOX, WORKER, Place
from uphold.core import orders
from uphold.core.notices import UNANSWERED, Beat, FileBeat
from uphold.daemon import outreach
from uphold.errors import UpholdError
from uphold.host.beats import BeatFiles
from uphold.host.clock import MachineClock
from uphold.inbox import reaching
from uphold.testing.waiting import eventually

SELDOM = WORKER + INBOX.replace("200ms", "10m")


def without_a_share(folder):
    return Place(folder, WORKER)


def test_without_a_share_nothing_is_looked_at_and_nothing_announced(tmp_path):
    place = without_a_share(tmp_path)

    async def story():
        place.outreach.heed(b"a line\n")
        assert await place.look() == ([], None)
        await place.outreach.beat(success=True, error=None, actions=[])
        with pytest.raises(UpholdError, match=r"no \[inbox\]") as refused:
            await place.outreach.announce({"task_id": "t"})
        assert refused.value.code == "UPH_INBOX_NOT_CONFIGURED"
        assert place.outreach.shown() is None

    place.play(story)
    assert not place.beat.exists()


@pytest.mark.accepts("C-020")
def test_a_share_that_comes_with_a_new_configuration_is_looked_at_and_let_go_again(tmp_path):
    place = without_a_share(tmp_path)

    async def story():
        running = asyncio.create_task(place.outreach.run())
        place.config.write_text(WORKER + INBOX)
        await asyncio.to_thread(place.files.reload)
        await eventually(place.beat.exists, within=60)
        place.drop("pause_watcher", "task_1")
        await eventually(place.receipts, within=60)
        place.config.write_text(WORKER)
        await asyncio.to_thread(place.files.reload)
        await eventually(lambda: place.outreach._life is None, within=60)
        running.cancel()
        await asyncio.wait({running})

    place.play(story)
    assert place.receipts()[0]["success"] is True


@pytest.mark.accepts("E-43")
@pytest.mark.parametrize("kind", [RuntimeError, asyncio.CancelledError])
def test_a_mistake_in_one_look_is_logged_and_the_next_look_follows(tmp_path, kind):
    place = Place(tmp_path)

    async def story():
        await place.look()
        life = place.outreach._life
        looks, real = [], life.look

        async def look(**given):
            looks.append(1)
            if len(looks) == 1:
                raise kind("a bug")
            return await real(**given)

        life.look = look
        running = asyncio.create_task(place.outreach.run())
        place.drop("pause_watcher", "task_1")
        await eventually(place.receipts, within=60)
        running.cancel()
        await asyncio.wait({running})

    place.play(story)
    told = [line for line in place.log.kept if line[1] == "share.failed"]
    assert [(level, "a bug" in message) for level, _, message, *_ in told] == [("ERROR", True)]


@pytest.mark.accepts("E-31")
def test_a_flag_that_only_its_owner_can_move_is_told_once_and_fails_no_look(tmp_path):
    place = Place(tmp_path)

    async def story():
        life = await place.outreach._current()

        async def kept(what, each):
            assert what == "claim"
            return [{"kept": "Operation not permitted"} for _ in each]

        life._reach.ask_each = kept
        path = place.drop("pause_watcher")
        for _ in range(3):
            assert await place.look() == ([], None)
        assert path.exists()

    place.play(story)
    (said,) = [message for _, event, message, *_ in place.log.kept if event == "flag.kept"]
    assert said.endswith(
        ".flag cannot be taken (Operation not permitted): only its owner can move it."
    )


def test_whoever_an_earlier_supervisor_kept_down_is_released(tmp_path):
    place = Place(tmp_path)

    async def die_in_the_middle():
        await place.order(orders.WithholdWorkers(names=("OrionMX",)))
        assert place.state == "stopped"

    place.play(die_in_the_middle)

    async def story():
        assert place.state == "stopped"
        await place.outreach.take_up()
        await eventually(lambda: place.state == "running", within=60)

    place.play(story)


def test_a_heartbeat_for_a_pass_says_what_it_is_told(tmp_path):
    place = Place(tmp_path)

    async def story():
        await place.look()
        await place.outreach.beat(success=False, error="it broke", actions=[{"slot": "OrionMX"}])

    place.play(story)
    beat = json.loads(place.beat.read_text())
    assert (beat["success"], beat["error"]) == (False, "it broke")
    assert beat["actions"] == [{"slot": "OrionMX"}]


class Diary(MachineClock):
    """A clock that remembers for how long anybody slept; tests add to it what else happened."""

    def __init__(self):
        super().__init__()
        self.kept = []

    async def sleep(self, seconds):
        self.kept.append(seconds)
        await super().sleep(seconds)


def looking(place, work):
    """Let the supervisor look at its share, again and again, while something is done."""

    async def story():
        running = asyncio.create_task(place.outreach.run())
        try:
            await eventually(place.beat.exists, within=60, what="the first look")
            await work()
        finally:
            running.cancel()
            await asyncio.wait({running})

    place.play(story)


def test_what_comes_is_obeyed_without_waiting_for_the_next_poll(tmp_path):
    place = Place(tmp_path, SELDOM)

    async def work():
        for number in range(3):
            place.drop("pause_watcher" if number % 2 else "resume_watcher", f"task_{number}")
            await eventually(lambda wanted=number + 1: len(place.receipts()) == wanted, within=60)

    looking(place, work)
    said = [message for _, event, message, *_ in place.log.kept if event == "share.watched"]
    assert said == ["the inbox is watched, and looked at every 600 s."]


@pytest.mark.accepts("P17")
def test_a_helper_that_is_killed_is_replaced_by_one_that_watches(tmp_path, monkeypatch):
    monkeypatch.setattr(reaching, "_YOUNG", 0.0)
    place = Place(tmp_path, SELDOM)

    async def work():
        (first,) = place.children
        os.kill(first, signal.SIGKILL)
        await eventually(lambda: place.children and first not in place.children, within=60)
        place.drop("pause_watcher", "task_1")
        await eventually(place.receipts, within=60)

    looking(place, work)


def test_more_than_one_look_takes_is_worked_through_all_the_same(tmp_path):
    place = Place(tmp_path, SELDOM)

    async def work():
        for number in range(250):
            place.drop("nonsense", f"task_{number}")
        await eventually(lambda: place.answered() == 250, within=90)

    looking(place, work)


@pytest.mark.accepts("T15")
def test_a_flood_does_not_make_us_look_without_a_pause(tmp_path):
    place = Place(tmp_path, SELDOM)
    place.clock = diary = Diary()

    async def work():
        life = place.outreach._life
        real = life.look

        async def look(**given):
            diary.kept.append("look")
            return await real(**given)

        life.look = look
        for number in range(100):
            place.drop("nonsense", f"task_{number}")
            await asyncio.sleep(0.002)
        await eventually(lambda: place.answered() == 100, within=90)

    looking(place, work)
    between, slept = [], 0.0
    for each in diary.kept[diary.kept.index("look") + 1 :]:
        if each == "look":
            between.append(slept)
            slept = 0.0
        elif each <= outreach._LONGEST_BURST:  # the poll itself is begun, and not waited for
            slept += each
    assert all(slept >= outreach._BURST for slept in between)


def test_what_is_half_written_waits_as_it_does_without_a_watch(tmp_path):
    place = Place(tmp_path, SELDOM)

    async def work():
        path = place.drop("pause_watcher", "task_1")
        await eventually(place.receipts, within=60)
        flag = {"task_id": "task_2", "handler": "pause_watcher", "worker_id": "OrionMX"}
        whole = json.dumps(flag)
        with path.open("w") as file:
            file.write(whole[:20])
            file.flush()
            place.drop("resume_watcher", "task_3")
            await eventually(lambda: len(place.receipts()) == 2, within=60)
            assert path.exists(), "it was seen, and left alone"
            file.write(whole[20:])
        await eventually(lambda: len(place.receipts()) == 3, within=60)

    looking(place, work)
    assert {receipt["success"] for receipt in place.receipts()} == {True}


def test_how_the_share_stands_is_shown_as_far_as_it_is_known(tmp_path):
    place = Place(tmp_path, SELDOM)
    top = str(place.top)

    async def story():
        assert place.outreach.shown() == {
            "path": top,
            "state": "unknown",
            "since": None,
            "watched": None,
            "polled_because": None,
            "poll_seconds": 600.0,
            "last_error": None,
        }
        await place.look()
        assert place.outreach.shown()["watched"] is False, "a single look is told of nothing"
        life = place.outreach._life
        await life.look(watch=True)
        shown = place.outreach.shown()
        assert (shown["state"], shown["watched"]) == ("reachable", True)
        assert shown["since"].endswith("Z")
        place.inbox.rename(place.top / "elsewhere")
        await life.look(watch=True)
        shown = place.outreach.shown()
        assert (shown["watched"], shown["polled_because"]) == (False, "there is no inbox")
        place.top.rename(place.folder / "gone")
        await life.look(watch=True)
        shown = place.outreach.shown()
        assert (shown["state"], shown["watched"]) == ("unreachable", None)
        assert shown["last_error"]["code"] == "UPH_SHARE_NOT_MOUNTED"
        (place.folder / "gone").rename(place.top)

    place.play(story)


@pytest.mark.accepts("P17")
def test_heartbeat_files_on_the_share_are_read_by_its_helper_and_others_are_not(tmp_path):
    place = Place(tmp_path)
    file = place.top / "00_STATE" / "watcher.json"
    file.write_text("{}")
    os.utime(file, (1000.0, 1000.0))

    def in_a_thread(path):
        raise AssertionError(f"{path} is on the share")

    async def story():
        reading = place.outreach.reading
        for elsewhere in (tmp_path / "b", f"{place.top}-2/b", f"{place.top}/../b", place.top):
            assert reading(str(elsewhere)) is None
        files = BeatFiles(reading, read=in_a_thread, patience=60.0)
        found = await files.read(str(file), lambda _: Beat())
        assert found == FileBeat(beat=Beat(), modified=1000.0)
        (helper,) = place.children
        await place.look()
        assert place.children == {helper}, "one serves for everything"
        await place.outreach.close()
        gone = await files.read(str(file), lambda _: Beat())
        assert gone.reason == UNANSWERED
        assert place.children == set(), "nothing is begun any more"

    place.play(story)


def test_without_a_share_every_heartbeat_file_lies_elsewhere(tmp_path):
    place = without_a_share(tmp_path)

    async def story():
        assert place.outreach.reading(str(place.top / "b")) is None

    place.play(story)
