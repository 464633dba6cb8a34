from __future__ import annotations

import asyncio
import json

import pytest

from daemon.sharesides import INBOX, WORKER, Place
from uphold.core import orders
from uphold.errors import UpholdError
from uphold.testing.waiting import eventually


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
def test_a_mistake_in_one_look_is_logged_and_the_next_look_follows(tmp_path):
    place = Place(tmp_path)

    async def story():
        await place.look()
        life = place.outreach._life
        looks, real = [], life.look

        async def look():
            looks.append(1)
            if len(looks) == 1:
                raise RuntimeError("a bug")
            return await real()

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
